"""Batches of junctions, and how a schedule is run on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait.alphabets import encode
from plait.devices.target import Target
from plait.dp.chain.launches import ENUMERATION, PATH_COUNTS, CountBatch, EnumerationBatch
from plait.dp.chain.tables import REGION_FIELDS, ChainOutput, ChainTables, Junctions
from plait.run.executor import Executor
from plait.vdj.chain import chain_kind, chain_tables
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.models import PathModel

__all__ = [
    "Answer",
    "Batch",
    "Junction",
    "Pieces",
    "ends_of",
    "make_germline",
    "run_chain",
    "run_enumeration",
]

#: Results by the name of an output array, as nested lists.
Answer = dict[str, Any]
#: First and last item of every piece of a batch.
Pieces = Iterable[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Junction:
    """A junction with known V and J.

    Attributes
    ----------
    sequence
        Upper-case IUPAC codes.
    v, j
        Numbers of the alleles.
    """

    sequence: str
    v: int = 0
    j: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Junctions to be counted in one run.

    Attributes
    ----------
    germline
        The alleles; its chain is what is counted.
    model
        How it is counted.
    junctions
        At least one.
    """

    germline: GermlineSet
    model: PathModel
    junctions: tuple[Junction, ...]


def make_germline(
    v: Iterable[str],
    d: Iterable[str],
    j: Iterable[str],
    *,
    locus: str = "TRB",
    d_j_order: dict[str, tuple[str, ...]] | None = None,
    d_d_order: tuple[tuple[str, str], ...] | None = None,
) -> GermlineSet:
    """A germline set of the given ends.

    Parameters
    ----------
    v, j
        The parts inside the junction. V alleles get a codon before theirs, J alleles one behind.
    d
        D genes; with locus TRD, chains hold two of them.
    locus
        Locus; names are made from it: ``TRBV1*01``, ..
    d_j_order, d_d_order
        Joining rules, by these names.
    """

    def allele(segment: Any, k: int, sequence: str, anchor: int | None) -> Allele:
        gene = f"{locus}{segment}{k + 1}"
        source: Any = "none" if anchor is None else "given"
        return Allele(
            name=f"{gene}*01",
            gene=gene,
            segment=segment,
            sequence=sequence,
            anchor=anchor,
            anchor_source=source,
        )

    return GermlineSet(
        name="drawn",
        species="",
        locus=locus,
        version="1",
        source="tests/support",
        v=tuple(allele("V", k, "TAC" + end, 3) for k, end in enumerate(v)),
        d=tuple(allele("D", k, gene, None) for k, gene in enumerate(d)),
        j=tuple(allele("J", k, end + "GGC", len(end) - 3) for k, end in enumerate(j)),
        d_j_order=d_j_order or {},
        d_d_order=d_d_order,
    )


def ends_of(batch: Batch, junction: Junction) -> tuple[str, str]:
    """The V and the J end of a junction.

    Parameters
    ----------
    batch
        The batch.
    junction
        One of its junctions.
    """
    v, j = batch.germline.v[junction.v], batch.germline.j[junction.j]
    return v.cdr3_end or "", j.cdr3_end or ""


def run_chain(
    batch: Batch,
    target: Target,
    algebra: Any,
    lanes: Any,
    *,
    dtype: Any = np.int64,
    tables: ChainTables | None = None,
    pieces: Pieces | None = None,
    executor: Executor | None = None,
) -> Answer:
    """Run the chain schedule.

    Parameters
    ----------
    batch
        What to count.
    target, algebra, lanes
        How.
    dtype
        Type of the algebra's values.
    tables
        Tables in place of those of the batch's germline set and model.
    pieces
        Pieces of the batch to be run one by one; all at once by default.
    executor
        What the pieces are given to; by default they are run here.
    """
    if tables is None:
        tables = chain_tables(batch.germline, batch.model, batch.germline.chain, dtype)
    out = _room(batch, dtype)
    texts = _texts(batch)
    kind = chain_kind(batch.model, lanes)

    def run(piece: tuple[int, int]) -> None:
        part = ChainOutput(*(array[slice(*piece)] for array in out))
        batch = CountBatch(kind, algebra, tables, _stretch(texts, *piece), part)
        target.launch(PATH_COUNTS, batch)

    pieces = pieces or [(0, len(batch.junctions))]
    list(executor.map(run, pieces) if executor else map(run, pieces))
    return {name: array.tolist() for name, array in zip(ChainOutput._fields, out, strict=True)}


def run_enumeration(batch: Batch, target: Target, *, pieces: Pieces | None = None) -> Answer:
    """Run the enumeration; one D gene at most.

    Parameters
    ----------
    batch
        What to count.
    target
        Where.
    pieces
        As for `run_chain`.
    """
    tables = chain_tables(batch.germline, batch.model, batch.germline.chain)
    d, most = len(batch.germline.d), batch.model.max_n
    counts = np.zeros((len(batch.junctions), d + 1, most + 1), np.int64)
    texts = _texts(batch)
    for first, last in pieces or [(0, len(batch.junctions))]:
        own = EnumerationBatch(tables, _stretch(texts, first, last), most, counts[first:last])
        target.launch(ENUMERATION, own)
    return {"full": counts[:, :d].tolist(), "none": counts[:, d].tolist()}


def _texts(batch: Batch) -> Junctions:
    lengths = np.array([len(item.sequence) for item in batch.junctions], np.int64)
    return Junctions(
        symbols=encode("".join(item.sequence for item in batch.junctions)),
        start=np.cumsum(lengths) - lengths,
        length=lengths,
        v=np.array([item.v for item in batch.junctions], np.int64),
        j=np.array([item.j for item in batch.junctions], np.int64),
    )


def _stretch(texts: Junctions, first: int, last: int) -> Junctions:
    return Junctions(texts.symbols, *(array[first:last] for array in texts[1:]))


def _room(batch: Batch, dtype: Any) -> ChainOutput:
    """Output arrays, filled with a value that no result has where every element is to be written."""
    model, n, d = batch.model, len(batch.junctions), len(batch.germline.d)
    m = len(model.pis) * len(model.nus) if model.name == "dp2" else model.max_n + 1
    pairs = d * d if batch.germline.chain == "vddj" else 0
    return ChainOutput(
        full=np.full((n, d, m), -1, dtype),
        empty=np.full((n, d, m), -1, dtype),
        none=np.full((n, m), -1, dtype),
        pair=np.zeros((n, pairs, m), dtype),
        regions=np.full((n, len(REGION_FIELDS)), -9, np.int64),
        bound=np.full(n, -1.0),
    )
