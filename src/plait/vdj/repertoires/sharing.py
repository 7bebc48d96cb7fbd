"""In how many individuals each clonotype occurs, and in which: from tables and files, to tables and files.

Rows are grouped block by block, brought into order by clonotype and subject on disk, and clonotypes are told
from there, the most shared ones first: memory does not grow with the number of rows or clonotypes.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import InvalidInput, one_of
from plait.formats.atomic import check_different
from plait.formats.files import beside, is_dataset
from plait.formats.layouts import AUTO, ConvertedFile, LayoutChoice, TableInput, check_layout, layout_of
from plait.formats.rearrangements import RearrangementReader, reblock, roles_of
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, run_starts, whole_runs
from plait.formats.tables import check_tables, open_table
from plait.run.executor import Executor, LocalExecutor, Progress
from plait.types import Tabular
from plait.vdj.calls import STATUSES, ClonotypeKey
from plait.vdj.repertoires.expected import (
    FALSE_DISCOVERIES,
    ClonotypeGeneration,
    ExpectedSharing,
    GenerationSettings,
    ObservedSharing,
)
from plait.vdj.repertoires.grouped_rows import KINDS, ClonotypeGrouper, GroupedRows
from plait.vdj.repertoires.neighbours import distance_limit
from plait.vdj.repertoires.overlap import (
    PATH_COUNT,
    ConditionTest,
    Levels,
    Overlaps,
    clustered,
    is_matrix,
    write_matrix,
)

if TYPE_CHECKING:
    from plait.vdj.repertoires.sharing_parts import SharedRuns

_Source: TypeAlias = pa.Table | pa.RecordBatch | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_Path: TypeAlias = str | os.PathLike[str]
_Ints: TypeAlias = NDArray[np.int64]
#: Generation probabilities of clonotypes, and the status of each.
_Weighed: TypeAlias = tuple[NDArray[np.float64], pa.Array]

_BLOCK_ROWS = 65536
#: Blocks grouped at a time; putting them together, which one thread does, is slower than so many.
_MOST_BLOCKS = 4
#: Rows that wait in memory before they are put aside in order.
_WAITING_BYTES = 128 << 20
BATCH_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingSettings:
    """What is compared, and what is told of it.

    Attributes
    ----------
    key
        What makes a clonotype: ``cdr3nt`` or ``cdr3aa``, the junction as nucleotides or amino acids, behind
        it ``+v`` and ``+j`` if the gene is part of it, as ``cdr3aa+v``.
    subject
        Column that tells individuals apart; by default ``subject_id``, or what the layout has for it. Where a
        file has none, its name is its subject.
    layout
        Layout of the tables, ``"auto"``: recognised by the header; or a mapping of AIRR fields to columns.
    list_subjects
        Whether the names of the subjects stand beside each clonotype.
    condition
        Column with one of two conditions of the row's subject (or nothing): clonotypes that several subjects
        have are tested for being more common under one of them (Fisher's exact test, false discovery rates
        by Benjamini and Hochberg).
    mismatches, edits
        Clonotypes within so many mismatches, or edits, and with the same genes as far as they are part of the
        key are near each other.
    clusters
        ``"linkage"``: clonotypes are clustered by single linkage; ``"neighbours"``: each with those near it.
    """

    key: str = "cdr3nt+v+j"
    subject: str | None = None
    layout: LayoutChoice = AUTO
    list_subjects: bool = False
    condition: str | None = None
    mismatches: int | None = None
    edits: int | None = None
    clusters: Literal["linkage", "neighbours"] = "linkage"

    def __post_init__(self) -> None:
        """Check them."""
        ClonotypeKey.named(self.key)
        check_layout(self.layout)
        one_of("clusters", self.clusters, ("linkage", "neighbours"))
        if self.near:
            distance_limit(self.mismatches, self.edits, least=1)

    @property
    def near(self) -> bool:
        """Whether clonotypes near each other are looked for."""
        return self.mismatches is not None or self.edits is not None


class SharedRows:
    """Puts grouped blocks together: `add` all, `finish`, then take `clonotypes` and `pairs`, each once.

    Rows that wait are in `blocks`. `with_pairs`: whether pairs of clonotype and subject are wanted.
    """

    def __init__(
        self,
        grouper: ClonotypeGrouper,
        blocks: SpilledBlocks,
        settings: SharingSettings,
        generation: ClonotypeGeneration | None,
        *,
        with_pairs: bool,
        overlap_depth: int | None,
    ) -> None:
        self.grouper, self._blocks, self.settings = grouper, blocks, settings
        self.runs: SharedRuns | None = None
        self._key = grouper.key.columns
        self._generation, self._depth = generation, overlap_depth
        self.left_out: Counter[str] = Counter()
        self.rows: Counter[str] = Counter()
        self.copies: Counter[str] = Counter()
        self.conditions: dict[str, set[str]] = {}
        self._place = self.kind = 0
        self._path_counts: pa.DataType | None = None
        self._runs = self._sorted([*self._key, "subject"], self._combined)
        self.found = self._sorted(self._key, shared_first=True)
        self.paired = self._sorted([*self._key, "subject"], shared_first=True) if with_pairs else None
        self.expected: ExpectedSharing | None = None
        self.overlaps: pa.Table | None = None
        self.sets: pa.Table | None = None
        self.condition: ConditionTest | None = None

    def add(self, part: GroupedRows) -> None:
        """Add a block, the next one of the input."""
        self.rows.update(part.subjects)
        self.copies.update(part.copies)
        self.left_out.update(part.left_out)
        for subject, names in part.conditions.items():
            self.conditions.setdefault(subject, set()).update(names)
        table = part.table
        if self.grouper.counted:
            self._path_counts = table[PATH_COUNT].type
            self.kind = max(self.kind, self.grouper.kind_of(table[PATH_COUNT]))
            place = np.arange(self._place, self._place + table.num_rows)
            self._place += table.num_rows
            table = table.append_column("place", pa.array(place))
        for rows in table.combine_chunks().to_batches():
            self._runs.add(rows)

    def begin_totals(self, source: str) -> list[str]:
        """Begin sums over clonotypes, of none yet, when all rows are added; the subjects.

        `source` is where rows come from, for errors.
        """
        names = sorted(self.rows)
        if self.settings.condition is not None:
            self.condition = ConditionTest.of(source, self.settings.condition, self.conditions, names)
        self.levels = Levels(self._blocks, len(names), self.grouper.counted)
        return names

    def finish(self, source: str, executor: Executor) -> None:
        """Tell the clonotypes; `source` is where rows come from, for errors.

        Probabilities are computed by workers of an executor, if it has other processes.
        """
        names = self.begin_totals(source)
        subjects = pa.array(names, pa.large_string())
        overlaps = None
        if self._depth is not None:
            overlaps = Overlaps(names, [self.copies[name] for name in names], self._depth)
        observed, waiting = ObservedSharing.of_subjects(len(names)), list[int]()
        for pairs, first, columns, weighed in self._weighed(executor):
            sizes = np.diff(first, append=pairs.num_rows)
            of = np.repeat(np.arange(first.size), sizes)
            who = np.asarray(pc.index_in(pairs["subject"], value_set=subjects))
            self.levels.add(pa.record_batch(columns))
            if self.condition is not None:
                columns |= self.condition.counted(of, who, sizes)
            if overlaps is not None:
                overlaps.add(of, who, pairs[self.grouper.sums[-1]], pairs["rows"])
            if self.paired is not None:
                self.paired.add(
                    _without(pairs, PATH_COUNT, "place", *self.grouper.known).append_column(
                        "subjects", columns["subjects"].take(of)
                    )
                )
            if weighed is not None:
                columns |= _generated(weighed, sizes, observed, of, who)
                waiting.append(self._blocks.put(pa.record_batch(columns)))
            else:
                self.blank = pa.record_batch(columns)
                self.found.add(self.blank)
        if overlaps is not None:
            self.overlaps, self.sets = overlaps.table(), overlaps.sets()
        if self._generation is not None:
            self.expected = ExpectedSharing(self._generation, observed)
            self._add_chances(self.expected, waiting, int(observed.levels.sum()))

    def _weighed(
        self, executor: Executor
    ) -> Iterator[tuple[pa.RecordBatch, _Ints, dict[str, pa.Array], _Weighed | None]]:
        """Pairs of whole clonotypes: where each of these begins, their columns, and their probabilities."""
        held: deque[tuple[pa.RecordBatch, _Ints, dict[str, pa.Array]]] = deque()

        def clonotypes() -> Iterator[pa.RecordBatch]:
            for pairs in chain(whole_runs(self._runs.drain(), self._key), [self._blank_pairs()]):
                first = run_starts(pairs, self._key)
                held.append((pairs, first, self._told(pairs, first, np.diff(first, append=pairs.num_rows))))
                yield pairs.take(pa.array(first)).select([*self._key, *self.grouper.known])

        if self._generation is None:
            found: Generator[_Weighed | None, None, None] = (None for _ in clonotypes())
        elif executor.elsewhere and not self.grouper.known:
            found = executor.map(self._generation.pgen, clonotypes())
        else:
            found = (self._generation.pgen(batch) for batch in clonotypes())
        with closing(found):
            for weighed in found:
                yield (*held.popleft(), weighed)

    @property
    def total(self) -> int:
        """Rows added."""
        return self.rows.total() + self.left_out.total()

    def summary(self) -> dict[str, Any]:
        """Fields of `SharingSummary`."""
        return {
            "key": self.settings.key,
            "subjects": dict(sorted(self.rows.items())),
            "left_out": dict(self.left_out),
            "distribution": self.levels.table(),
            "expected": self.expected,
            "differing": None if self.condition is None else self.condition.differing(),
            "overlaps": self.overlaps,
            "sets": self.sets,
        }

    def clonotypes(self) -> Iterator[pa.RecordBatch]:
        """The clonotypes, those of most subjects first, then by their key; in the end no rows."""
        finished = FinishedRows(self.kind, self.condition)
        yield from map(finished, chain(self.found.drain(), [self.blank]))

    def pairs(self) -> Iterator[pa.RecordBatch]:
        """Clonotypes and subjects in the same order; in the end no rows."""
        drained = self.paired.drain() if self.paired is not None else iter(())
        yield from map(without_subjects, drained)
        yield self.blank_pairs

    @property
    def blank_pairs(self) -> pa.RecordBatch:
        """No rows of the table of clonotypes and subjects."""
        return _without(self._blank_pairs(), PATH_COUNT, "place", *self.grouper.known)

    def _blank_pairs(self) -> pa.RecordBatch:
        """No rows."""
        table = self.grouper.empty()
        if self.grouper.counted:
            table = table.append_column("place", pa.array([], pa.int64()))
            if self._path_counts is not None:
                at = table.schema.get_field_index(PATH_COUNT)
                table = table.set_column(at, PATH_COUNT, pa.array([], self._path_counts))
        return pa.RecordBatch.from_pydict({name: table[name].combine_chunks() for name in table.column_names})

    def _sorted(self, names: Sequence[str], combine: Any = None, *, shared_first: bool = False) -> SortedRuns:
        order: dict[str, Direction] = {"subjects": "descending"} if shared_first else {}
        order |= dict.fromkeys(names, "ascending")
        return SortedRuns(self._blocks, order, memory_bytes=_WAITING_BYTES, combine=combine)

    def _combined(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """One row of equal ones: sums, and the first path count."""
        starts = run_starts(rows, [*self._key, "subject"])
        if starts.size == rows.num_rows:
            return rows
        columns = {**_columns(rows.take(pa.array(starts))), **self._sums(rows, starts)}
        return pa.record_batch(columns, schema=rows.schema)

    def _sums(self, rows: pa.RecordBatch, starts: _Ints) -> dict[str, pa.Array]:
        """Sums over groups of rows, null where all are null; and the first path count with its place."""
        found: dict[str, pa.Array] = {}
        for name in self.grouper.sums:
            none = ~np.logical_or.reduceat(np.asarray(rows[name].is_valid()), starts)
            found[name] = pa.array(np.add.reduceat(np.asarray(rows[name].fill_null(0)), starts), mask=none)
        if self.grouper.counted:
            place = np.asarray(rows["place"]) + np.where(np.asarray(rows[PATH_COUNT].is_valid()), 0, 1 << 62)
            least = np.repeat(np.minimum.reduceat(place, starts), np.diff(starts, append=rows.num_rows))
            first = rows.take(pa.array(np.flatnonzero(place == least)))
            found |= {PATH_COUNT: first[PATH_COUNT], "place": first["place"]}
        return found

    def _told(self, pairs: pa.RecordBatch, first: _Ints, sizes: _Ints) -> dict[str, pa.Array]:
        """Columns of the clonotypes of pairs, of which each begins at `first` and has so many (`sizes`)."""
        taken = pairs.take(pa.array(first))
        columns = {name: taken[name] for name in self._key}
        columns["subjects"] = pa.array(sizes, pa.int32())
        columns |= {name: column for name, column in self._sums(pairs, first).items() if name != "place"}
        if self.settings.list_subjects:
            ends = pa.array(np.append(first, pairs.num_rows), pa.int32())
            columns["subject_ids"] = pa.ListArray.from_arrays(ends, pairs["subject"].cast(pa.string()))
        return columns

    def _add_chances(self, expected: ExpectedSharing, waiting: Sequence[int], tested: int) -> None:
        """Add what is expected of all clonotypes, of which `tested` are tested."""
        ranked = SortedRuns(self._blocks, {"p_sharing": "descending"}, memory_bytes=_WAITING_BYTES)
        rank = 0
        for rows in map(self._blocks.take, waiting):
            made = np.asarray(pc.equal(rows["pgen_status"], "ok"))
            pgen = np.where(made, np.asarray(rows["pgen"].fill_null(0)), 1.0)
            subjects, p = expected.chances(pgen, np.asarray(rows["subjects"]))
            rows = rows.append_column("expected_subjects", pa.array(subjects, mask=~made))
            rows = rows.append_column("p_sharing", pa.array(p, mask=~made))
            low = made & (p < 1)
            rank += int(low.sum())
            ranked.add(rows.filter(pa.array(low)))
            # Those of one subject are as expected, whatever the others are.
            rest = rows.filter(pa.array(~low))
            self.blank = rest.append_column("q_sharing", rest["p_sharing"])
            self.found.add(self.blank)
        self.blank = self.blank.slice(0, 0)
        least = 1.0
        for rows in whole_runs(ranked.drain(), ("p_sharing",)):
            starts = run_starts(rows, ("p_sharing",))
            ranks = rank - np.repeat(starts, np.diff(starts, append=rows.num_rows))
            q = np.minimum.accumulate(np.minimum(np.asarray(rows["p_sharing"]) * tested / ranks, least))
            expected.more_shared += int((q <= FALSE_DISCOVERIES).sum())
            self.found.add(rows.append_column("q_sharing", pa.array(q)))
            least, rank = float(q[-1]), rank - rows.num_rows


def _generated(
    weighed: _Weighed, sizes: _Ints, observed: ObservedSharing, of: _Ints, who: _Ints
) -> dict[str, pa.Array]:
    """Columns of generation probabilities; clonotypes that the model can make are added to `observed`."""
    pgen, status = weighed
    made = np.asarray(pc.equal(status, "ok"))
    observed.levels += np.bincount(sizes[made], minlength=observed.levels.size)
    observed.distinct += np.bincount(who[made[of]], minlength=observed.distinct.size)
    unknown = np.asarray(pc.is_in(status, pa.array(["nonproductive", *STATUSES[1:]])))
    return {"pgen": pa.array(pgen, mask=unknown), "pgen_status": status}


@dataclass(frozen=True, slots=True)
class FinishedRows:
    """Makes rows of the table of clonotypes of those that were sorted; can be pickled.

    `kind` is the place in `KINDS` of the type of path counts that are text.
    """

    kind: int
    condition: ConditionTest | None

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows, with all that could only be known when all were grouped."""
        columns = _columns(rows)
        if PATH_COUNT in columns and pa.types.is_large_string(columns[PATH_COUNT].type):
            columns[PATH_COUNT] = columns[PATH_COUNT].cast(KINDS[self.kind])
        if self.condition is not None:
            columns |= self.condition.tested(rows)
        return pa.record_batch(columns)


def without_subjects(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of the table of clonotypes and subjects of those that were sorted."""
    return _without(rows, "subjects")


def _columns(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(rows.schema.names, rows.columns, strict=True))


def _without(rows: pa.RecordBatch, *names: str) -> pa.RecordBatch:
    return rows.select([name for name in rows.schema.names if name not in names])


@dataclass(frozen=True, slots=True)
class RankCorrelation:
    """Spearman's rank correlation, from -1 to 1, of n pairs; NaN where one of the two does not vary."""

    rho: float
    n: int


@dataclass(frozen=True, kw_only=True)
class SharingSummary:
    """How clonotypes are shared, without their tables.

    Attributes
    ----------
    key
        What makes a clonotype, as in `SharingSettings`.
    subjects
        Every subject with its number of rows, in alphabetical order.
    left_out
        Rows that are in no clonotype, by reason.
    distribution
        Clonotypes by the number of subjects that have them: columns subjects, clonotypes and rows; where
        there are path counts also counted (clonotypes that have one), zero_counts, and path_count_q25,
        path_count_median and path_count_q75 over the counted ones.
    expected
        What generation leads to expect, if that was asked for.
    differing
        Clonotypes with ``q_condition`` up to 0.05, and all that were tested, if conditions were asked for.
    overlaps, sets
        How alike any two subjects are, and how many clonotypes each set of subjects has in common and none of
        the others, if overlaps were asked for. Of more than twelve subjects, sets are of those with most
        reads.
    """

    key: str
    subjects: Mapping[str, int]
    left_out: Mapping[str, int]
    distribution: pa.Table
    expected: ExpectedSharing | None = None
    differing: tuple[int, int] | None = None
    overlaps: pa.Table | None = None
    sets: pa.Table | None = None

    @property
    def rows(self) -> int:
        """All input rows, those left out included."""
        return sum(self.subjects.values()) + sum(self.left_out.values())


@dataclass(frozen=True, kw_only=True, repr=False)
class SharingTable(Tabular, SharingSummary):
    """How clonotypes are shared, with their tables; `to_arrow` gives `clonotypes`.

    Attributes
    ----------
    clonotypes
        One row per clonotype: junction (or junction_aa), v_gene and j_gene as far as the key has them,
        subjects (int32), rows, and duplicate_count and path_count (of nucleotides) where the input has them;
        then what was asked for. The most shared ones first, then by the columns of the key.
    by_subject
        One row per clonotype and subject, in the same order: the columns of the key, subject, rows, and
        duplicate_count where the input has it.
    """

    clonotypes: pa.Table
    by_subject: pa.Table

    def _table(self, rows: int | None) -> pa.Table:
        return self.clonotypes.slice(0, rows)

    def correlation(self) -> RankCorrelation:
        """Spearman's rank correlation of path count and number of subjects, over clonotypes with a count.

        Raises
        ------
        InvalidInput
            If the input had no path counts.
        """
        if PATH_COUNT not in self.clonotypes.column_names:
            raise InvalidInput(
                "path_count",
                found="a table without this column",
                expected="an output of plait vdj count",
            )
        counts = self._path_counts()
        known = ~np.isnan(counts)
        ranks = _ranks(counts[known]), _ranks(self.clonotypes["subjects"].to_numpy()[known])
        n = int(known.sum())
        if n == 0 or any(np.all(r == r[0]) for r in ranks):
            return RankCorrelation(float("nan"), n)
        return RankCorrelation(float(np.corrcoef(*ranks)[0, 1]), n)

    def _path_counts(self) -> NDArray[np.float64]:
        """The path counts as floating-point numbers, rounded above 2^53; NaN where there is none."""
        column = self.clonotypes[PATH_COUNT].cast(pa.float64(), safe=False)
        values: NDArray[np.float64] = column.to_numpy()
        return values


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    mean: NDArray[np.float64] = (last - (sizes - 1) / 2)[place]
    return mean


def sharing(
    source: _Source,
    *,
    settings: SharingSettings | None = None,
    generation: GenerationSettings | None = None,
    overlap_depth: int | None = None,
    subject: str | None = None,
    layout: LayoutChoice = AUTO,
    executor: Executor | None = None,
) -> SharingTable:
    """Count in how many individuals each clonotype occurs, and how often in each.

    Junctions are compared in upper case. The V and the J gene are the first gene of the call, as it is
    written, without its allele; so tables of one naming style belong together.

    Parameters
    ----------
    source
        An Arrow table, or one or more files as for ``plait vdj count``, outputs of it included.
    settings
        What a clonotype is and what is told of it; by default junction, V and J gene, and counts alone.
    generation
        The model whose expectation every clonotype is compared with: columns ``pgen``, ``pgen_status``,
        ``expected_subjects``, ``p_sharing`` and ``q_sharing``.
    overlap_depth
        Number of reads to which every subject is thinned out for the depth-corrected overlaps of any two, 0
        for that of the smallest one; by default there are no overlaps.
    subject, layout
        As in `settings`, where they are given there.
    executor
        Where rows of files are grouped, before they are put together here; by default in this process. The
        tables are the same.

    Returns
    -------
    SharingTable
        The clonotypes, whatever the order and the partition of the input.

    Raises
    ------
    InvalidInput
        If there is no source or no such layout.
    FormatError
        If a file is not what it should be, or there is no column of subjects.

    Notes
    -----
    Rows are put aside in a temporary folder where they are many; what is held in the end is the tables. A
    clonotype's path count is its first one in input order that is not null; counts of different alleles of a
    gene can differ.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from plait.vdj import sharing
    >>> table = pa.table(
    ...     {
    ...         "junction": ["TGTGCCTTC", "tgtgccttc", "TGTAGCTTC"],
    ...         "v_call": ["TRBV1*01", "TRBV1*01", "TRBV1*01"],
    ...         "j_call": ["TRBJ1-1*01"] * 3,
    ...         "subject_id": ["a", "b", "a"],
    ...     }
    ... )
    >>> sharing(table).clonotypes.select(["junction", "subjects"]).to_pylist()
    [{'junction': 'TGTGCCTTC', 'subjects': 2}, {'junction': 'TGTAGCTTC', 'subjects': 1}]
    """
    wanted = settings or SharingSettings(subject=subject, layout=layout)
    with (
        TemporaryDirectory(prefix="plait-") as folder,
        _shared(source, wanted, generation, Path(folder) / "rows", True, overlap_depth, executor) as found,
    ):
        clonotypes = pa.Table.from_batches(found.clonotypes())
        pairs = pa.Table.from_batches(found.pairs())
        return SharingTable(
            clonotypes=_with_clusters(clonotypes, pairs, wanted), by_subject=pairs, **found.summary()
        )


class _Columns(NamedTuple):
    """Columns of a source, and names of those that have a role."""

    schema: pa.Schema
    roles: Mapping[str, str]


@contextmanager
def _shared(
    source: _Source,
    settings: SharingSettings,
    generation: GenerationSettings | None,
    folder: Path,
    with_pairs: bool,
    overlap_depth: int | None,
    executor: Executor | None,
    progress: Callable[[Progress], None] | None = None,
    known: Sequence[str] = (),
    in_parts: bool = False,
) -> Iterator[SharedRows]:
    """The clonotypes of a source, with rows put aside in a folder; `in_parts`: in `runs`, by workers."""
    key = ClonotypeKey.named(settings.key)
    made = None if generation is None else ClonotypeGeneration(generation, key)

    def shared(name: str, table: _Columns, blocks: SpilledBlocks) -> SharedRows:
        grouper = ClonotypeGrouper(name, table.schema, table.roles, settings, known)
        return SharedRows(grouper, blocks, settings, made, with_pairs=with_pairs, overlap_depth=overlap_depth)

    if isinstance(source, pa.Table | pa.RecordBatch):
        chosen = layout_of("the table", settings.layout, source.schema.names, required=key.required)
        table = ConvertedFile(TableInput(source), chosen, {})
        roles = roles_of(table.schema, key.required)
        with SpilledBlocks(folder) as blocks:
            found = shared("the table", _Columns(table.schema, roles), blocks)
            for block in table.batches(_BLOCK_ROWS):
                found.add(found.grouper(block))
            found.finish("the table", LocalExecutor(1))
            yield found
        return
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if not paths:
        raise InvalidInput("paths", found="no input file", expected="at least one")
    with RearrangementReader(
        paths,
        layout=settings.layout,
        block_rows=_BLOCK_ROWS,
        required=key.required,
        named="subject_id" if settings.subject is None else None,
    ) as reader:
        name = ", ".join(path for path, _, _ in reader.identities)
        columns = _Columns(reader.schema, reader.roles)
        ClonotypeGrouper(name, reader.schema, reader.roles, settings)
        with SpilledBlocks(folder) as blocks:
            found = shared(name, columns, blocks)
            work = executor or LocalExecutor(1)

            def told() -> None:
                if progress is not None:
                    progress(Progress(found.total, reader.bytes_read(), reader.total_bytes))

            _group(found, reader, name, blocks, work, told, in_parts)
            yield found


def _group(
    found: SharedRows,
    reader: RearrangementReader,
    name: str,
    blocks: SpilledBlocks,
    executor: Executor,
    told: Callable[[], None],
    in_parts: bool,
) -> None:
    """Group all rows of a reader, here or, in parts, where the workers are."""
    if in_parts:
        from plait.vdj.repertoires.sharing_parts import grouped_by_workers

        found.runs = grouped_by_workers(found, reader, name, blocks, executor, told)
        return
    with closing(_grouped_blocks(reader, found.grouper, executor)) as parts:
        for part in parts:
            found.add(part)
            told()
    reader.check_unchanged()
    found.finish(name, executor)


def _grouped_blocks(
    reader: RearrangementReader, grouper: ClonotypeGrouper, executor: Executor
) -> Generator[GroupedRows, None, None]:
    """Blocks grouped one by one; workers read Parquet by themselves, text is sent to them."""
    ranges = reader.ranges(grouper.columns) if executor.elsewhere else None
    if ranges is not None:
        return executor.map(grouper, ranges, named=lambda part: part.name)
    blocks = (block.select(grouper.columns) for block in reader)
    return executor.map(grouper, blocks, most=_MOST_BLOCKS, size=lambda block: int(block.nbytes))


def _with_clusters(clonotypes: pa.Table, pairs: pa.Table, settings: SharingSettings) -> pa.Table:
    if not settings.near:
        return clonotypes
    return clustered(
        clonotypes,
        pairs,
        ClonotypeKey.named(settings.key).columns,
        mismatches=settings.mismatches,
        edits=settings.edits,
        linkage=settings.clusters == "linkage",
    )


def share_files(
    inputs: Sequence[_Path],
    output: _Path,
    *,
    settings: SharingSettings | None = None,
    generation: GenerationSettings | None = None,
    by_subject: _Path | None = None,
    overlap: _Path | None = None,
    overlap_depth: int = 0,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    sources: Sequence[_Path] | None = None,
    known: Sequence[str] = (),
) -> SharingSummary:
    """Count sharing over files, as `plait.vdj.sharing`, and write it to `output`.

    `sources` are what the inputs were made from, if these are not to be named in the tables; `known` those of
    their columns that are as `plait.vdj.repertoires.expected.KNOWN`. `by_subject` is the table of clonotypes
    and subjects, or an AnnData file or zarr store of it, `overlap` the table of pairs of subjects, if
    they are wanted.
    """
    wanted = settings or SharingSettings()
    as_matrix = by_subject is not None and is_matrix(by_subject)
    check_different(output, by_subject, overlap)
    check_tables(inputs, output, None if as_matrix else by_subject, overlap)
    folder, depth = beside(output, ".sorting"), None if overlap is None else overlap_depth
    with_pairs = wanted.near or by_subject is not None
    in_parts = _by_workers(wanted, generation, known, [output, by_subject, overlap], executor)
    with _shared(
        inputs, wanted, generation, folder, with_pairs, depth, executor, progress, known, in_parts
    ) as found:
        told = SharingSummary(**found.summary())
        facts = _facts(wanted, generation, told)
        made_from = facts | {"inputs": [os.path.realpath(path) for path in sources or inputs]}
        if found.runs is not None:
            found.runs.write(output, _metadata(made_from), inputs)
            if by_subject is not None:
                made_from["inputs"].append(os.path.realpath(output))
                found.runs.write(by_subject, _metadata(made_from), [*inputs, output], pairs=True)
            return told
        clonotypes, pairs = found.clonotypes(), found.pairs()
        if wanted.near or as_matrix:
            table, of_subjects = pa.Table.from_batches(clonotypes), pa.Table.from_batches(pairs)
            table = _with_clusters(table, of_subjects, wanted)
            clonotypes, pairs = iter(table.to_batches()), iter(of_subjects.to_batches())
        _write(output, clonotypes, made_from, inputs)
        made_from["inputs"].append(os.path.realpath(output))
        if by_subject is not None and as_matrix:
            names = ClonotypeKey.named(wanted.key).columns
            write_matrix(by_subject, table, of_subjects, list(told.subjects), names, json.dumps(facts))
        elif by_subject is not None:
            _write(by_subject, pairs, made_from, [*inputs, output])
        if told.overlaps is not None and overlap is not None:
            none = pa.RecordBatch.from_pylist([], schema=told.overlaps.schema)
            _write(overlap, chain(told.overlaps.to_batches(), [none]), made_from, [*inputs, output])
    return told


def _by_workers(
    settings: SharingSettings,
    generation: GenerationSettings | None,
    known: Sequence[str],
    outputs: Sequence[_Path | None],
    executor: Executor | None,
) -> bool:
    """Whether workers can write all: what is told of a clonotype needs no others, and all are datasets."""
    output, by_subject, overlap = outputs
    alone = generation is None and overlap is None and not settings.near and not known
    folders = is_dataset(output or "") and (by_subject is None or is_dataset(by_subject))
    return alone and folders and executor is not None and executor.elsewhere


def _metadata(facts: Mapping[str, Any]) -> dict[str, str]:
    return {"plait.sharing": json.dumps(facts, sort_keys=True)}


def _facts(
    settings: SharingSettings, generation: GenerationSettings | None, told: SharingSummary
) -> dict[str, Any]:
    """What a table was made from, but for its inputs."""
    facts: dict[str, Any] = {
        "version": __version__,
        "rows": told.rows,
        "subjects": dict(told.subjects),
        "left_out": dict(told.left_out),
    }
    if told.key != SharingSettings().key:
        facts["key"] = told.key
    if settings.near:
        facts |= {"mismatches": settings.mismatches, "edits": settings.edits, "clusters": settings.clusters}
    if generation is not None and told.expected is not None:
        made = {**generation.model.identity(), "seed": generation.seed}
        facts["expected"] = {**made, **told.expected.as_dict()}
    return facts


def _write(
    output: _Path, batches: Iterator[pa.RecordBatch], facts: Mapping[str, Any], inputs: Sequence[_Path]
) -> None:
    """Write rows as a table, of at least one batch."""
    first = next(batches)
    with open_table(output, first.schema, metadata=_metadata(facts), inputs=inputs) as writer:
        for batch in reblock(chain([first], batches), BATCH_ROWS):
            writer.write(batch)
