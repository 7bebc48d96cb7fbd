"""Generation probabilities of junctions and of the rows of files, and why some cannot be made."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, Final, Literal, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.target import check_device, resolve, used_devices
from plait.dp.chain.launches import WEIGHTS, WeighBatch
from plait.errors import FormatError, InvalidInput
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.tables import ONE_FILE, PartSettings
from plait.run.executor import Executor, LocalExecutor, Progress
from plait.run.rows import FinishedRun, RowRun, RowWork, asked_where_done, run_rows
from plait.types import Provenance, Tabular
from plait.vdj.airr import RearrangementRows
from plait.vdj.calls import (
    ANY_IDENTITY,
    MEANINGS,
    STATUSES,
    BlamedCalls,
    CauseFinder,
    IdentityLimit,
    RowTotals,
    TableCauses,
    as_column,
    cause_sentences,
    ends_of,
    foreign_sentences,
)
from plait.vdj.germline.germline_set import locus_of
from plait.vdj.model.expectations import PosteriorFinder
from plait.vdj.model.junctions import (
    LINES,
    EncodedTexts,
    EndShape,
    GivenCalls,
    GivenGenes,
    JunctionColumns,
    JunctionEncoder,
    JunctionTable,
    ModelShapes,
    TextKind,
    TooManySets,
    make_scratch,
    model_shapes,
    open_junctions,
    split_texts,
    weighted_chain,
)
from plait.vdj.model.recombination_model import RecombinationModel

#: Reasons for a generation probability of zero, in the order in which they are looked for.
ZERO_REASONS: Final = tuple(MEANINGS["pgen_zeros"])
#: Every value of the status column: ``"ok"``, reasons for having no number, and reasons for zero.
PGEN_STATUSES: Final = (*STATUSES, *ZERO_REASONS)

_CODE: Final = {reason: PGEN_STATUSES.index(reason) for reason in ZERO_REASONS}
_Ints = NDArray[np.int64]


class ZeroReasons:
    """Finds reasons for zeros; `shapes` are the trees of the genes of the model."""

    def __init__(self, model: RecombinationModel, shapes: ModelShapes) -> None:
        self._p_dj = model.p_dj.sum(axis=1)
        self._insertions = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))
        self._chosen = model.p_v > 0, self._p_dj.max(axis=0) > 0
        self._ends = [
            (shape, _reached(shape, p[shape.gene, shape.deletion] * chosen[shape.gene]))
            for shape, chosen, p in (
                (shapes.v, self._chosen[0], model.p_v_deletions),
                (shapes.j, self._chosen[1], model.p_j_deletions),
            )
        ]

    def reasons(self, rows: _Ints, texts: EncodedTexts, v: GivenGenes, j: GivenGenes) -> NDArray[np.uint8]:
        """Why the texts `rows` of a column cannot be made of their genes: indices into `PGEN_STATUSES`.

        `v` and `j` are the genes that each row of the column may be made of.
        """
        pairs, of_pair = np.unique(np.stack([v.codes[rows], j.codes[rows]]), axis=1, return_inverse=True)
        known = [self._of_genes(v.genes[a], j.genes[b]) for a, b in pairs.T.tolist()]
        found = np.array(known, np.uint8)[of_pair.ravel()]
        rest = np.flatnonzero(found == 0)
        at, words = rows[rest], _table_of(texts.words)
        kept_v = _longest(*self._ends[0], words, texts, at, *v.spread(at))
        kept_j = _longest(*self._ends[1], words[:, :, ::-1], texts, at, *j.spread(at), backwards=True)
        gap = texts.length[at] * words.shape[2] - kept_v - kept_j
        unknown = np.where(gap > self._insertions, _CODE["too_many_insertions"], _CODE["no_scenario"])
        unknown[kept_j == 0] = _CODE["j_not_matching"]
        unknown[kept_v == 0] = _CODE["v_not_matching"]
        found[rest] = unknown
        return found

    def _of_genes(self, v_genes: tuple[int, ...], j_genes: tuple[int, ...]) -> int:
        """What the genes alone say; 0 where they do not."""
        v, j = (
            [k for k in genes if chosen[k]]
            for genes, chosen in zip((v_genes, j_genes), self._chosen, strict=True)
        )
        if not v or not j:
            return _CODE["j_never_chosen" if v else "v_never_chosen"]
        if len(self._p_dj) > 1 and not self._p_dj[np.ix_(v, j)].any():
            return _CODE["genes_never_together"]
        return 0


def _reached(shape: EndShape, p: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether a gene can be cut at each node of its trees, from the probabilities of parts."""
    found: NDArray[np.bool_] = np.bincount(shape.node, p, len(shape.child)) > 0
    return found


def _table_of(words: tuple[tuple[str, ...], ...]) -> NDArray[np.int8]:
    """The words of each code as numbers of bases, int8 (codes, most words, bases), -1 for none."""
    table = np.full((len(words), max(map(len, words)), len(words[0][0])), -1, np.int8)
    for row, some in zip(table, words, strict=True):
        row[: len(some)] = [["ACGT".index(base) for base in word] for word in some]
    return table


def _longest(
    shape: EndShape,
    possible: NDArray[np.bool_],
    words: NDArray[np.int8],
    texts: EncodedTexts,
    rows: _Ints,
    first: _Ints,
    root: NDArray[np.int32],
    *,
    backwards: bool = False,
) -> _Ints:
    """Bases of the longest part of a gene that each text begins with (or ends, `backwards`), 0 for none.

    Text ``rows[i]`` goes along the trees with roots ``root[first[i]:first[i + 1]]``; `possible`, (nodes,):
    whether a gene can be cut there.
    """
    kept, t = np.zeros(rows.size, np.int64), 0
    owner, node = np.repeat(np.arange(rows.size), np.diff(first)), root.astype(np.int64)
    while owner.size:
        on = t < texts.length[rows[owner]]
        owner, node = owner[on], node[on]
        at = rows[owner]
        code = texts.codes[texts.start[at] + (texts.length[at] - 1 - t if backwards else t)]
        way, word = np.nonzero(words[code, :, 0] >= 0)
        owner, node, bases = owner[way], node[way], words[code[way], word]
        for k in range(words.shape[2]):
            node = shape.child[node, bases[:, k]].astype(np.int64)
            on = node >= 0
            owner, node, bases = owner[on], node[on], bases[on]
            kept[owner[possible[node]]] = t * words.shape[2] + k + 1
        if owner.size > at.size:
            # Words that lead to one node go on as one.
            owner, node = np.divmod(np.unique(owner * len(shape.child) + node), len(shape.child))
        t += 1
    return kept


@dataclass(frozen=True, slots=True, repr=False)
class Pgen(Tabular):
    """Generation probabilities of n junctions; `to_arrow` has the columns status, as text, and pgen.

    Attributes
    ----------
    status
        uint8 (n,): index into `plait.vdj.model.PGEN_STATUSES`. ``"ok"`` where the probability is above zero;
        else a reason for having no number, or for zero.
    pgen
        float64 (n,); NaN where there is no number.
    provenance
        How the numbers were made.
    """

    status: NDArray[np.uint8]
    pgen: NDArray[np.float64]
    provenance: Provenance

    def __len__(self) -> int:
        return int(self.status.size)

    def _table(self, rows: int | None) -> pa.Table:
        pgen = pa.array(self.pgen, mask=np.isnan(self.pgen))
        return pa.table({"status": named_statuses(self), "pgen": pgen}).slice(0, rows)


class GenerationProbability:
    """Computes how probable junctions are under a model.

    Parameters
    ----------
    model
        The model.
    threads
        How many threads; by default those of the settings.
    device
        As for `plait.vdj.count_paths`: ``"cpu"``, ``"auto"`` (the first GPU that can be used, else the CPU),
        ``"cuda"``, ``"cuda:N"``, ``"cuda:all"`` or ``"reference"`` (plain Python).

    Raises
    ------
    InvalidInput
        If there is no such device.
    TargetUnavailable
        If CUDA is asked for and cannot be used.
    """

    def __init__(self, model: RecombinationModel, *, threads: int | None = None, device: str = "cpu") -> None:
        self.model = model
        self._target = resolve(device, threads)
        self._shapes = model_shapes(model)
        self._chain = weighted_chain(model, self._shapes)
        self._encoder = JunctionEncoder(model, shapes=self._shapes, missing="refused")
        self._reasons = ZeroReasons(model, self._shapes)

    def compute(
        self,
        junctions: Sequence[str | None] | pa.Array,
        v_call: Sequence[str | None] | pa.Array | None = None,
        j_call: Sequence[str | None] | pa.Array | None = None,
        *,
        kind: TextKind = "nt",
    ) -> Pgen:
        """Probabilities of junctions.

        Parameters
        ----------
        junctions
            Nucleotide or amino acid sequences from the conserved Cys to the conserved Phe or Trp, or motifs.
        v_call, j_call
            Genes or alleles, or lists of them, which each junction is made with; without, all functional
            genes of the model are summed over. A gene means all its alleles.
        kind
            What the junctions are: ``"nt"``, ``"aa"`` or ``"motif"``.

        Raises
        ------
        InvalidInput
            If columns are not of the same length or hold no texts, or there is no such kind.
        """
        column = as_column(junctions)
        try:
            batch = self._encoder.encode(column, v_call, j_call, kind=kind)
        except TooManySets:
            if len(column) == 1:
                raise
            return self._halves(column, v_call, j_call, kind)
        status, pgen = batch.status, np.full(len(column), np.nan)
        used: set[str] = set()
        for plain, some in split_texts(batch.parts, batch.texts, 0, batch.rows.size):
            texts = batch.texts.take(some)
            scratch = partial(make_scratch, self._chain, batch.parts, int(texts.length.max()), plain=plain)
            found = self._target.launch(WEIGHTS, WeighBatch(self._chain, batch.parts, texts, plain, scratch))
            pgen[batch.rows[some]] = found.values
            used.update(found.devices)
        zero = np.flatnonzero(pgen == 0)
        if zero.size:
            status[zero] = self._reasons.reasons(zero, *batch.columns)
        made = self.provenance(kind, v_call is not None, j_call is not None)
        return Pgen(status, pgen, replace(made, device=used_devices(used) or made.device))

    def _halves(self, junctions: pa.Array, v_call: Any, j_call: Any, kind: TextKind) -> Pgen:
        """The same, computed in two parts."""
        half = len(junctions) // 2
        columns = [None if c is None else as_column(c) for c in (junctions, v_call, j_call)]
        parts = [
            self.compute(*(None if c is None else c.slice(first, count) for c in columns), kind=kind)
            for first, count in ((0, half), (half, None))
        ]
        status = np.concatenate([part.status for part in parts])
        pgen = np.concatenate([part.pgen for part in parts])
        made = parts[0].provenance
        return Pgen(
            status, pgen, replace(made, device=used_devices(part.provenance.device for part in parts))
        )

    def knows(self, segment: str, call: str) -> bool:
        """Whether the model has the genes of a V or J call, with or without an anchor.

        Parameters
        ----------
        segment
            ``"v"`` or ``"j"``.
        call
            A name or a list of names.
        """
        return not self._encoder.calls[segment].resolve(call)[0].startswith("unknown_")

    def provenance(self, kind: TextKind, v_calls: bool, j_calls: bool) -> Provenance:
        """How numbers are made.

        Parameters
        ----------
        kind
            What the junctions are.
        v_calls, j_calls
            Whether the calls are used.
        """
        return Provenance(
            version=__version__,
            device=self._target.description,
            schedule="weighted_chain" if self.model.d else "weighted_pairs",
            algebra="probability",
            parameters={
                **self.model.identity(),
                "kind": kind,
                "v_calls": v_calls,
                "j_calls": j_calls,
            },
        )


#: Shares of the rows with a probability above zero, of which the summary has the probability.
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Bins of the common logarithm, which is exact to half of one of them, down to the least number there is.
_BINS_PER_DECADE: Final = 100
_DECADES: Final = 330
#: Upper end of each bin but the last, where numbers above 1 are, if rounding makes one.
_EDGES: Final = np.array(
    [10.0 ** (k / _BINS_PER_DECADE - _DECADES) for k in range(_BINS_PER_DECADE * _DECADES + 1)]
)


@dataclass
class PgenSummary(RowTotals):
    """Running totals of one column. Sums of blocks, in any order.

    `causes` has what was found when zero rows were put to the test; `foreign` counts calls that the model
    does not know, used or not, `called` rows with a V or J call.
    """

    causes: TableCauses = field(default_factory=TableCauses)
    foreign: BlamedCalls = field(default_factory=BlamedCalls)
    called: int = 0
    _bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_EDGES.size + 1, np.int64))

    def add(self, status: pa.Array, pgen: pa.Array, calls: Mapping[str, pa.Array]) -> None:
        """Add a block: its result columns, and the ``"v"`` and ``"j"`` calls of its rows that were used."""
        self.add_statuses(status, calls)
        values = pgen.filter(pc.equal(status, "ok")).to_numpy(zero_copy_only=False)
        self._bins += np.bincount(np.searchsorted(_EDGES, values), minlength=self._bins.size)

    @property
    def zeros(self) -> int:
        """Rows with a probability of zero."""
        return sum(self.statuses[reason] for reason in ZERO_REASONS)

    def remarks(self, model: RecombinationModel) -> list[str]:
        """What is to be said of the table as a whole: genes foreign to the model, and causes of zeros."""
        own = f"model {model.name}"
        loci = Counter(locus for gene in model.j if (locus := locus_of(gene.name)))
        locus = next(iter(loci.most_common(1)), ("", 0))[0]
        unknown = {segment: self.foreign.of(f"unknown_{segment}_call") for segment in "vj"}
        rows = self.zeros + self.statuses["ok"]
        genes = {gene.gene for gene in (*model.v, *model.j)}
        return [
            *foreign_sentences(unknown, self.called, locus=locus, own=own, genes=genes),
            *cause_sentences(self.causes, self.zeros, rows, what="generation probability", own=own),
        ]

    def log10_quantiles(self, shares: Sequence[float] = QUANTILES) -> list[float] | None:
        """Common logarithms of quantiles of the probabilities above zero, to 0.01; None if there are none."""
        upwards = np.cumsum(self._bins)
        if not upwards[-1]:
            return None
        places = np.searchsorted(upwards, [share * (upwards[-1] - 1) for share in shares], side="right")
        middle = (places - 0.5) / _BINS_PER_DECADE - _DECADES
        return [round(float(value), 2) for value in middle]

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        quantiles = self.log10_quantiles()
        named = [f"{share:g}" for share in QUANTILES]
        return {
            **super().as_dict(),
            "zeros": self.zeros,
            "zero_causes": self.causes.as_dict(),
            "foreign_calls": self.foreign.as_dict(),
            "log10_quantiles": None if quantiles is None else dict(zip(named, quantiles, strict=True)),
        }


_OUT_OF_FRAME: Final = "out_of_frame"


class PgenTotals(dict[TextKind, PgenSummary]):
    """Running totals of each column of probabilities."""

    def merge(self, other: PgenTotals) -> None:
        """Add the totals of other blocks; `other` is left unchanged."""
        for kind, summary in other.items():
            self.setdefault(kind, PgenSummary()).merge(summary)


@dataclass(frozen=True)
class PgenWork(RowWork[PgenTotals]):
    """Work whose result has probabilities of `kinds`; `places` is what the columns of a block are.

    `device` is one of the machine that computes, as for `plait.vdj.model.GenerationProbability`.
    """

    model: RecombinationModel
    places: JunctionColumns
    kinds: tuple[TextKind, ...] = ("nt",)
    device: str = "cpu"
    identity: IdentityLimit = ANY_IDENTITY

    @cached_property
    def engine(self) -> GenerationProbability:
        """What computes, in one thread: blocks are what runs in parallel."""
        return GenerationProbability(self.model, threads=1, device=self.device)

    @cached_property
    def _finders(self) -> dict[bool, CauseFinder]:
        """What looks for causes of zeros, of nucleotides and of amino acids (True)."""
        model = self.model
        ends = ends_of(
            [g.sequence[g.anchor :] for g in model.v if g.anchor is not None],
            [g.sequence[: g.anchor + 3] for g in model.j if g.anchor is not None],
        )
        insertions = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))
        insertions += max((len(d.sequence) for d in model.d), default=0)
        genes = {g.gene for g in model.v}
        return {acids: CauseFinder(ends, insertions, genes, acids=acids) for acids in (False, True)}

    @cached_property
    def _knows(self) -> Callable[[str, str], bool]:
        return cache(self.engine.knows)

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The result columns."""

    def provenance(self) -> list[dict[str, Any]]:
        """How the numbers of each kind are made."""
        used = self.places.v >= 0, self.places.j >= 0
        found = [self.engine.provenance(kind, *used).as_dict() for kind in self.kinds]
        for one in found:
            one["parameters"] |= self.identity.parameters
        return found

    def summary(self, columns: list[pa.Array], result: pa.RecordBatch) -> PgenTotals:
        """What came of the rows, by kind."""
        totals = PgenTotals()
        for kind in self.kinds:
            totals[kind] = summary = PgenSummary()
            summary.add(result[f"pgen_{kind}_status"], result[f"pgen_{kind}"], self.places.calls(columns))
            self._add_causes(summary, kind, columns, result)
        return totals

    def _add_causes(
        self, summary: PgenSummary, kind: TextKind, columns: Sequence[pa.Array], result: pa.RecordBatch
    ) -> None:
        """Add the causes found in a block, from the columns worked on and the result, to its summary."""
        named = self.places.named(columns)
        for segment, calls in named.items():
            encoded = pc.dictionary_encode(pc.fill_null(calls, ""))
            texts = encoded.dictionary.to_pylist()
            names = [f"unknown_{segment}_call" if t and not self._knows(segment, t) else "ok" for t in texts]
            summary.foreign.add(pa.array(names, pa.string()).take(encoded.indices), {segment: calls})
        if named:
            given = [pc.greater(pc.binary_length(pc.fill_null(calls, "")), 0) for calls in named.values()]
            summary.called += int(np.logical_or.reduce([np.asarray(one) for one in given]).sum())
        if kind == "motif":
            return
        acids = kind == "aa"
        junctions = self.places.amino_acids(columns) if acids else self.places.texts(columns)
        status = result[f"pgen_{kind}_status"]
        zero = np.asarray(pc.is_in(status, pa.array(ZERO_REASONS)))
        used = self.places.calls(columns)

        def possible(texts: Sequence[str], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
            v, j = (used[s].take(pa.array(rows)) if s in used else None for s in "vj")
            found: NDArray[np.bool_] = self.engine.compute(texts, v, j, kind=kind).pgen > 0
            return found

        counted = zero | np.asarray(pc.equal(status, "ok"))
        summary.causes.merge(self._finders[acids].causes(junctions, counted, zero, possible))

    def facts(self, summary: PgenTotals) -> dict[str, Any]:
        """The totals of each kind, and what is to be said of the table as a whole."""
        return {
            "rows": summary[self.kinds[0]].rows,
            **{f"pgen_{kind}": found.as_dict() for kind, found in summary.items()},
            "remarks": {kind: found.remarks(self.model) for kind, found in summary.items()},
        }


@dataclass(frozen=True)
class BlockPgen(PgenWork):
    """Generation probabilities of blocks; `log10` adds columns of common logarithms."""

    log10: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The result columns."""
        fields = []
        for kind in self.kinds:
            fields.append((f"pgen_{kind}", pa.float64()))
            if self.log10:
                fields.append((f"log10_pgen_{kind}", pa.float64()))
            fields.append((f"pgen_{kind}_status", pa.string()))
        return pa.schema(fields)

    def result(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        """Their probabilities."""
        calls = self.places.calls(columns)
        found: dict[str, Any] = {}
        devices = []
        for kind in self.kinds:
            acids = kind != "nt"
            texts = self.places.amino_acids(columns) if acids else self.places.texts(columns)
            pgen = self.engine.compute(texts, calls.get("v"), calls.get("j"), kind=kind)
            self.identity.mark(pgen.status, columns)
            pgen.pgen[self.identity.mutated(columns)] = np.nan
            devices.append(pgen.provenance.device)
            status = named_statuses(pgen)
            if acids and self.places.nucleotides >= 0:
                given = pc.greater(pc.binary_length(self.places.texts(columns)), 0)
                framed = pc.and_(pc.equal(status, "missing_junction"), pc.fill_null(given, False))
                status = pc.if_else(framed, _OUT_OF_FRAME, status)
            found[f"pgen_{kind}"] = pa.array(pgen.pgen, mask=np.isnan(pgen.pgen))
            found[f"pgen_{kind}_status"] = status
            if self.log10:
                above = pgen.pgen > 0
                # Not that of NumPy, whose last digit depends on the processor.
                log = [math.log10(x) if x > 0 else 0.0 for x in pgen.pgen.tolist()]
                found[f"log10_pgen_{kind}"] = pa.array(np.array(log), mask=~above)
        batch = pa.record_batch([found[name] for name in self.schema.names], schema=self.schema)
        return batch, used_devices(devices)


def named_statuses(pgen: Pgen) -> pa.Array:
    """The status of every row by its name."""
    return pa.array(PGEN_STATUSES, pa.string()).take(pa.array(pgen.status.astype(np.int32)))


_FLOAT: Final = pa.float64()
_ENDS: Final = ("v_3", "d_5", "d_3", "j_5")
_BASES: Final = "acgt"


@dataclass(frozen=True)
class BlockPosteriors(PgenWork):
    """What all scenarios of the rows of blocks have in common."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The result columns."""
        with_d = bool(self.model.d)
        fields = [("pgen_nt", _FLOAT), ("pgen_nt_status", pa.string())]
        for segment in "vdj" if with_d else "vj":
            fields += [(f"posterior_{segment}_call", pa.string()), (f"posterior_{segment}_share", _FLOAT)]
        fields += [(f"mean_{end}_deletion", _FLOAT) for end in _ENDS if with_d or not end.startswith("d")]
        fields += [(f"mean_n{k}_length", _FLOAT) for k in (1, 2) if with_d or k == 1]
        fields += [(f"mean_n_{base}", _FLOAT) for base in _BASES]
        return pa.schema([*fields, ("scenario_entropy", _FLOAT)])

    @cached_property
    def _finder(self) -> PosteriorFinder:
        return PosteriorFinder(self.model, threads=1)

    def provenance(self) -> list[dict[str, Any]]:
        """How the numbers are made."""
        return [{**made, "algebra": "expectation"} for made in super().provenance()]

    def result(self, columns: list[pa.Array]) -> tuple[pa.RecordBatch, str | None]:
        """Their posteriors."""
        calls = self.places.calls(columns)
        texts = self.places.texts(columns)
        pgen = self.engine.compute(texts, calls.get("v"), calls.get("j"))
        ok = np.flatnonzero(pgen.pgen > 0)
        some = pa.array(ok)
        chosen = {name: column.take(some) for name, column in calls.items()}
        found = self._finder.compute(texts.take(some), chosen.get("v"), chosen.get("j"))
        known = np.zeros(len(texts), np.bool_)
        known[ok] = True

        def spread(values: NDArray[Any]) -> pa.Array:
            out = np.zeros(known.size, values.dtype)
            out[ok] = values
            return pa.array(out, mask=~known)

        result: dict[str, pa.Array] = {
            "pgen_nt": pa.array(pgen.pgen, mask=np.isnan(pgen.pgen)),
            "pgen_nt_status": named_statuses(pgen),
            "scenario_entropy": spread(found.entropy),
        }
        for segment in "vdj":
            names = pa.array([gene.name for gene in getattr(self.model, segment)], pa.string())
            result[f"posterior_{segment}_call"] = (
                names.take(spread(getattr(found, segment))) if names else None
            )
            result[f"posterior_{segment}_share"] = spread(getattr(found, f"{segment}_probability"))
        for k, end in enumerate(_ENDS):
            result[f"mean_{end}_deletion"] = spread(found.deletions[:, k])
        for k in range(2):
            result[f"mean_n{k + 1}_length"] = spread(found.insertions[:, k])
        for k, base in enumerate(_BASES):
            result[f"mean_n_{base}"] = spread(found.inserted[:, k])
        return pa.record_batch([result[name] for name in self.schema.names], schema=self.schema), None


#: What is computed: of nucleotides, of amino acids, of both, of motifs of amino acids, or of what is there.
PgenOf: TypeAlias = Literal["auto", "nt", "aa", "nt,aa", "motif"]

#: Rows in a block: enough that its thread is busy for some tenths of a second.
_BLOCK_ROWS: Final = 1 << 15
_FEWEST_ROWS: Final = 1 << 10
#: The same where a GPU computes: enough that it is worth a copy.
_GPU_ROWS: Final = 1 << 16
#: Blocks worked on at a time: one thread reads and one writes, however many compute.
_MOST_BLOCKS: Final = 64


def pgen_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    of: PgenOf = "auto",
    calls: GivenCalls = "ignore",
    log10: bool = False,
    min_v_identity: float | None = None,
    layout: LayoutChoice = AUTO,
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    device: str = "auto",
    progress: Callable[[Progress], None] | None = None,
    parts: PartSettings = ONE_FILE,
    columns: Sequence[str] | None = None,
) -> FinishedRun[PgenTotals]:
    """Write tables with the generation probabilities of all their rows.

    Every input row is in the output, in input order, with all its columns, and then ``pgen_nt`` and
    ``pgen_nt_status``, ``pgen_aa`` and ``pgen_aa_status``, or both. Beside the table stands a summary,
    ``OUTPUT.summary.json``. While the run lasts, computed blocks are kept in ``OUTPUT.checkpoint``.

    Parameters
    ----------
    inputs
        AIRR Rearrangement tables (TSV, plain or compressed, or Parquet), or of another `layout`.
    output
        The table: ``.parquet``, ``.tsv``, ``.tsv.gz`` or ``.tsv.zst``; or a folder of parts, whose name ends
        in a slash.
    model
        The model.
    of
        What is computed: ``"nt"``, ``"aa"`` or both; ``"auto"`` for those of which there is a column. Amino
        acids that a table lacks are translated. Motifs (``"motif"``: ``pgen_motif``) are read from the
        column of amino acids.
    calls
        Which calls are taken for what a row was made of; over others is summed.
    log10
        Whether there are common logarithms, too.
    min_v_identity
        Rows whose ``v_identity`` (a share, or per cent) is lower are mutated: they have that status and no
        probability. By default 0.98 for immunoglobulins and 0 for T cell receptors.
    layout
        Layout of the inputs, as of `plait.vdj.sharing`, or ``"lines"`` for text without a header line.
    threads
        Blocks worked on at a time; the output does not depend on it.
    executor
        Where blocks are worked on; by default so many threads of this process. The output is the same.
    resume
        Take over the blocks that a stopped run of the same inputs and parameters has computed.
    device
        As for `plait.vdj.model.GenerationProbability`; one of the machine that computes. Values of a GPU are
        within 1e-12 of those of the CPU, relative.
    progress
        Called after every block or part.
    parts
        How a folder of parts is cut.
    columns
        The columns to write, in this order, of those of the inputs and of the result; all by default. Of the
        inputs, what is left out is not read.

    Raises
    ------
    InvalidInput
        If there is no input, the output cannot be, or a run to resume differs.
    FormatError
        If an input is not what it should be, or the disk is full.
    TargetUnavailable
        If CUDA is asked for and cannot be used.
    """
    if layout == LINES and of == "auto":
        raise InvalidInput(
            "of", found="'auto' for lines without a header", expected="'nt', 'aa', 'nt,aa' or 'motif'"
        )
    executor = executor or LocalExecutor(threads)
    table = open_junctions(
        inputs,
        layout=layout,
        acids=of in ("auto", "aa", "motif") or (of, layout) == ("nt,aa", LINES),
        nucleotides=layout != LINES or of.startswith("nt"),
        calls=calls,
        block_rows=_block_rows(device, executor),
        fewest_rows=_FEWEST_ROWS,
    )
    locus = model.v[0].name if model.v else ""
    identity = IdentityLimit.of(min_v_identity, locus, table.columns, table.reader.schema.names)
    work = BlockPgen(model, table.places, _kinds(table, of, inputs[0]), device, identity, log10)
    return _run(table, work, inputs, output, executor, resume, progress, parts, columns)


def posterior_files(
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    model: RecombinationModel,
    *,
    calls: GivenCalls = "ignore",
    layout: LayoutChoice = AUTO,
    threads: int | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    parts: PartSettings = ONE_FILE,
    columns: Sequence[str] | None = None,
) -> FinishedRun[PgenTotals]:
    """Write tables with what all scenarios of each row have in common.

    Every input row is in the output, in input order, with all its columns, and then its generation
    probability, the most probable gene of each kind, means of deletions and insertions over all scenarios,
    and their entropy; see `plait.vdj.model.expectations.Posteriors`. Parameters, errors, summary and
    checkpoint are as of `pgen_files`.
    """
    executor = executor or LocalExecutor(threads)
    table = open_junctions(
        inputs,
        layout=layout,
        acids=False,
        calls=calls,
        block_rows=_FEWEST_ROWS,
        fewest_rows=_FEWEST_ROWS // 4,
    )
    work = BlockPosteriors(model, table.places)
    return _run(table, work, inputs, output, executor, resume, progress, parts, columns)


def _run(
    table: JunctionTable,
    work: PgenWork,
    inputs: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    executor: Executor,
    resume: bool,
    progress: Callable[[Progress], None] | None,
    parts: PartSettings,
    columns: Sequence[str] | None,
) -> FinishedRun[PgenTotals]:
    with table.reader as reader:
        rows = RearrangementRows(reader.schema, work.schema).only(columns)
        if columns is not None:
            reader.read_only({*table.columns, *rows.inputs})
        run = RowRun(
            reader=reader,
            inputs=inputs,
            columns=table.columns,
            work=work,
            provenance=asked_where_done(executor, type(work).provenance, work),
            rows=rows,
            summary=PgenTotals({kind: PgenSummary() for kind in work.kinds}),
            output=output,
            parts=parts,
            most=_MOST_BLOCKS,
            metadata={"layout": reader.layout.name},
        )
        return run_rows(run, executor, resume=resume, progress=progress)


def _block_rows(device: str, executor: Executor) -> int:
    """Most rows of a block: the same wherever blocks go, if a GPU is asked for by name."""
    check_device(device)
    there = device.startswith("cuda") or (
        not executor.elsewhere and resolve(device, 1).name.startswith("cuda")
    )
    return _GPU_ROWS if there else _BLOCK_ROWS


def _kinds(table: JunctionTable, of: PgenOf, path: object) -> tuple[TextKind, ...]:
    """What is computed, from what was asked for and what is there."""
    places = table.places
    if of == "auto":
        there = {"nt": places.nucleotides >= 0, "aa": places.acids >= 0}
        return cast(tuple[TextKind, ...], tuple(kind for kind, found in there.items() if found))
    if of == "motif" and places.acids < 0:
        raise FormatError(
            str(path), found="no column of amino acids", expected="motifs in the column of amino acids"
        )
    return cast(tuple[TextKind, ...], tuple(of.split(",")))
