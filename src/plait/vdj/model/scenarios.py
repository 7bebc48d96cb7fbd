"""The most probable ways in which a junction was made, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.dp.chain.best import (
    SCENARIO_FIELDS,
    BestLists,
    Heap,
    InsertionWeights,
    ScenarioOutput,
    ScenarioQueries,
    ScenarioScratch,
    ScenarioTables,
    SegmentWeights,
    scenario_kernel,
)
from plait.errors import InvalidInput
from plait.vdj.model.gene_ends import GivenGenes
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel
from plait.vdj.model.texts import EncodedTexts
from plait.vdj.reads.columns import edges_of, take_groups

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
#: Scenarios that are searched for at a time, of all texts together.
_AT_A_TIME = 1 << 20
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to make a junction.

    Attributes
    ----------
    probability
        Of choosing all of this.
    v, d, j
        Indices of the genes; d is -1 in a chain without D.
    v_deletion, d5_deletion, d3_deletion, j_deletion
        Nucleotides taken away; below zero, P nucleotides that are kept.
    v_end, d_start, d_end, j_start
        Where the parts lie in the junction, 0-based, ends exclusive; N nucleotides are between.
    """

    probability: float
    v: int
    d: int
    j: int
    v_deletion: int
    d5_deletion: int
    d3_deletion: int
    j_deletion: int
    v_end: int
    d_start: int
    d_end: int
    j_start: int


@dataclass(frozen=True, slots=True)
class Scenarios:
    """The most probable scenarios of n junctions; all arrays have one entry for each scenario.

    `row` is the junction it makes, in order; `rank` is from 0, the most probable one. `fields` is (total,
    11), see `plait.dp.chain.best.SCENARIO_FIELDS`; deletions are numbered from the longest P extension.
    """

    row: _Ints
    rank: _Ints
    probability: _Floats
    fields: NDArray[np.int32]


class ScenarioFinder:
    """Finds the most probable scenarios of junctions.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: RecombinationModel) -> None:
        self.model = model
        self._tables = _tables(model)

    def best(
        self,
        junction: str,
        count: int = 10,
        *,
        v: Sequence[int] | None = None,
        j: Sequence[int] | None = None,
    ) -> list[Scenario]:
        """The most probable scenarios of one junction, the best first.

        Parameters
        ----------
        junction
            From the conserved Cys to the conserved Phe or Trp: A, C, G and T.
        count
            How many, at most.
        v, j
            Indices of genes that it may be made with; by default all functional ones.

        Raises
        ------
        InvalidInput
            If the junction has other letters, or `count` is out of range.
        """
        if set(junction) - set("ACGT"):
            raise InvalidInput("junction", found=repr(junction), expected="A, C, G and T")
        codes = np.array(["ACGT".index(letter) for letter in junction], np.uint8)
        lists = [
            self._functional(self.model.v) if v is None else v,
            self._functional(self.model.j) if j is None else j,
        ]
        v_list, j_list = (np.array(genes, np.int32) for genes in lists)
        queries = ScenarioQueries(
            codes,
            np.array([0]),
            np.array([codes.size]),
            np.array([0, v_list.size]),
            v_list,
            np.array([0, j_list.size]),
            j_list,
        )
        found = self._search(queries, count)
        return [
            self._scenario(value, fields)
            for value, fields in zip(found.probability.tolist(), found.fields.tolist(), strict=True)
        ]

    def search(
        self, texts: EncodedTexts, rows: _Ints, v: GivenGenes, j: GivenGenes, count: int = 10
    ) -> Scenarios:
        """The most probable scenarios of many junctions.

        Parameters
        ----------
        texts
            A column of nucleotide sequences.
        rows
            Which ones; they have no ambiguous letters.
        v, j
            The genes that each row of the column may be made of.
        count
            How many of each, at most.

        Returns
        -------
        Scenarios
            ``row`` counts `rows`.

        Raises
        ------
        InvalidInput
            If `count` is out of range.
        """
        (v_first, v_list), (j_first, j_list) = (_spread(given, rows) for given in (v, j))
        queries = ScenarioQueries(
            texts.codes, texts.start[rows], texts.length[rows], v_first, v_list, j_first, j_list
        )
        return self._search(queries, count)

    def _search(self, queries: ScenarioQueries, count: int) -> Scenarios:
        if not 1 <= count <= _MOST:
            raise InvalidInput("count", found=count, expected=f"1 to {_MOST:,}")
        n = queries.length.size
        scratch = _scratch(self._tables, int(queries.length.max(initial=0)), count)
        step = max(1, _AT_A_TIME // count)
        out = ScenarioOutput(
            np.zeros(min(step, n), np.int64),
            np.zeros((min(step, n), count)),
            np.zeros((min(step, n), count, len(SCENARIO_FIELDS)), np.int32),
        )
        parts = []
        for first in range(0, n, step):
            last = min(first + step, n)
            some = queries._replace(
                start=queries.start[first:last],
                length=queries.length[first:last],
                v_first=queries.v_first[first : last + 1],
                j_first=queries.j_first[first : last + 1],
            )
            scenario_kernel(self._tables, some, 0, last - first, scratch, out)
            there = np.arange(count) < out.count[: last - first, None]
            row, rank = np.nonzero(there)
            values, fields = out.value[: last - first], out.fields[: last - first]
            parts.append(Scenarios(first + row, rank, values[there], fields[there]))
        if not parts:
            nothing = np.zeros(0, np.int64)
            return Scenarios(nothing, nothing, np.zeros(0), np.zeros((0, len(SCENARIO_FIELDS)), np.int32))
        joined = [
            [getattr(part, name) for part in parts] for name in ("row", "rank", "probability", "fields")
        ]
        return Scenarios(*(np.concatenate(pieces) for pieces in joined))

    def _functional(self, genes: Sequence[ModelGene]) -> list[int]:
        return [k for k, gene in enumerate(genes) if gene.functional]

    def _scenario(self, probability: float, fields: Sequence[int]) -> Scenario:
        v, d, j, v_cut, d5_cut, d3_cut, j_cut, v_end, d_start, d_end, j_start = fields
        v_most, d5_most, d3_most, j_most = self.model.palindromes
        none = d < 0
        return Scenario(
            probability=probability,
            v=v,
            d=d,
            j=j,
            v_deletion=v_cut - v_most,
            d5_deletion=0 if none else d5_cut - d5_most,
            d3_deletion=0 if none else d3_cut - d3_most,
            j_deletion=j_cut - j_most,
            v_end=v_end,
            d_start=d_start,
            d_end=d_end,
            j_start=j_start,
        )


def _tables(model: RecombinationModel) -> ScenarioTables:
    return ScenarioTables(
        v=_segment(
            [model.extended("V", k) for k in range(len(model.v))], model.p_v[:, None] * model.p_v_deletions
        ),
        d=_segment([model.extended("D", k) for k in range(len(model.d))], model.p_d_deletions),
        j=_segment([model.extended("J", k)[::-1] for k in range(len(model.j))], model.p_j_deletions),
        joint=np.ascontiguousarray(model.p_dj),
        left=InsertionWeights(
            np.ascontiguousarray(model.p_vd_length), model.vd_first, np.ascontiguousarray(model.vd_steps)
        ),
        right=InsertionWeights(
            np.ascontiguousarray(model.p_dj_length), model.dj_first, np.ascontiguousarray(model.dj_steps)
        ),
    )


def _segment(genes: Sequence[str], weight: _Floats) -> SegmentWeights:
    bases = np.array(["ACGT".index(letter) for text in genes for letter in text], np.uint8)
    first = np.concatenate([[0], np.cumsum([len(text) for text in genes])]).astype(np.int64)
    return SegmentWeights(bases, first, np.ascontiguousarray(weight))


def _scratch(tables: ScenarioTables, longest: int, count: int) -> ScenarioScratch:
    """Memory for junctions of up to `longest` bases."""
    places = longest + 1 if tables.d.first.size > 1 else 1
    begins = places * tables.joint.shape[1]
    (v, v_cuts), (j, j_cuts) = tables.v.weight.shape, tables.j.weight.shape
    ends, starts = _lists(places, min(count, v)), _lists(begins, min(count, j))
    left, right = _lists(places, min(count, v * v_cuts)), _lists(begins, min(count, j * j_cuts))
    heap = Heap(np.zeros(count), np.zeros(count, np.int64), np.zeros((count, 6), np.int32))
    inserted = np.zeros((2, longest + 1, longest + 1))
    return ScenarioScratch(inserted[0], inserted[1], ends, starts, left, right, heap)


def _lists(number: int, most: int) -> BestLists:
    return BestLists(
        np.zeros(number, np.int64), np.zeros((number, most)), np.zeros((number, most, 2), np.int32)
    )


def _spread(given: GivenGenes, rows: _Ints) -> tuple[_Ints, NDArray[np.int32]]:
    """Genes of the given rows, one list after the other: where each begins, and the genes."""
    sizes = np.array([len(genes) for genes in given.genes], np.int64)
    flat = np.array([gene for genes in given.genes for gene in genes], np.int32)
    at, first = take_groups(edges_of(sizes), given.codes[rows])
    return first, flat[at]
