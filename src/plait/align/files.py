"""Align the sequences of whole files: streamed in batches, in bounded memory, results in input order."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain, compress, groupby
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.align.aligner import Aligner
from plait.align.batches import CellProgress, CodeList, PairBatch, code_list, complement_codes, join_codes
from plait.align.letters import common_kind, count_sample
from plait.align.results import Alignment, Alignments, join_alignments
from plait.align.scoring import Scoring, make_scoring
from plait.align.settings import THE_BEST, Kind, Pairing, WhichAlignments
from plait.align.statistics import KarlinAltschul, karlin_altschul
from plait.align.table_writers import PairTableWriter
from plait.align.writers import (
    DEFAULT_COLUMNS,
    AlignedPair,
    AlignmentWriter,
    alignment_format,
    check_columns,
    needs_alignment,
    open_alignments,
)
from plait.alphabets import reverse_complement
from plait.errors import FormatError, InvalidInput, PlaitError, Unsupported
from plait.formats.atomic import file_or_standard_output
from plait.formats.fasta import DuplicateName, NameRegister, Sequences
from plait.formats.fastq import read_sequences
from plait.run.executor import LocalExecutor
from plait.types import Provenance

_Path = str | os.PathLike[str]


def scoring_of_files(
    paths: Sequence[_Path],
    *,
    matrix: _Path | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    kind: Kind | None = None,
) -> Scoring:
    """The scoring that is asked for, with defaults that suit the sequences of FASTA files.

    As `plait.align.scoring.make_scoring`, but `match` and `mismatch` may stand in the place of a matrix, 2
    and -3 if one is left out. Without `matrix` and `kind`, the first letters of all files say what they are,
    see `plait.align.letters.kind_of`. `InvalidInput` if a setting is wrong or does not go with another, or
    the files hold different kinds of sequences, or what may be of either; `FormatError` if a file cannot be
    read.
    """
    if matrix is None and kind is None:
        kind = common_kind({os.fspath(path): count_sample(path) for path in paths})
    return make_scoring(matrix, gap_open, gap_extend, kind=kind, match=match, mismatch=mismatch)


#: Bytes of text in a block.
_BLOCK_BYTES: Final = 1 << 24
#: A file is kept in memory up to so many residues, names taken as so many more each.
_MOST_KEPT: Final = 1 << 26
_NAME_RESIDUES: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class CodedBlock:
    """Consecutive records of a file, from number `first` (0-based); `codes` are indices into the matrix."""

    sequences: Sequences
    codes: CodeList
    first: int

    def __len__(self) -> int:
        return len(self.codes)


class CodedFile:
    """A FASTA or FASTQ file, read as often as needed; a small one is kept when it has been read once.

    It is small if it has at most `most_kept` residues, each name taken as 64 more.
    """

    def __init__(
        self, path: str | os.PathLike[str], scoring: Scoring, *, most_kept: int = _MOST_KEPT
    ) -> None:
        self.path = os.fspath(path)
        self._scoring = scoring
        self._most_kept = most_kept
        self._kept: list[CodedBlock] | None = None

    def blocks(self) -> Iterator[CodedBlock]:
        """All records; `FormatError` if it is no such file, or a letter is not in the matrix."""
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[CodedBlock] = []
        first = size = 0
        for sequences in read_sequences(self.path, block_residues=_BLOCK_BYTES):
            codes = self._scoring.encode_records(self.path, sequences)
            block = CodedBlock(sequences, CodeList(codes, sequences.offsets), first)
            first += len(block)
            size += codes.size + _NAME_RESIDUES * len(block)
            if size <= self._most_kept:
                kept.append(block)
            else:
                kept.clear()
            yield block
        if size <= self._most_kept:
            self._kept = kept


#: Records among which names that come again are looked for where nothing depends on it.
_MOST_NAMES: Final = 1 << 22
#: A batch has at most so many pairs, residues and cells, or one pair.
_MOST_PAIRS: Final = 1 << 15
_MOST_RESIDUES: Final = 1 << 23
_MOST_CELLS: Final = 1 << 32


@dataclass(frozen=True, slots=True, eq=False)
class PairStretch:
    """Pairs of records of two blocks: ``query_rows[k]`` of one with ``target_rows[k]`` of the other.

    Rows are numbers of records in the blocks, (pairs,).
    """

    queries: CodedBlock
    query_rows: NDArray[np.int64]
    targets: CodedBlock
    target_rows: NDArray[np.int64]

    def __len__(self) -> int:
        return self.query_rows.size

    @property
    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Residues of the queries and of the targets, shape (pairs,) each."""
        return self.queries.codes.sizes[self.query_rows], self.targets.codes.sizes[self.target_rows]

    @property
    def has_one_query(self) -> bool:
        """Whether one query is paired with all the targets."""
        return bool(self.query_rows[0] == self.query_rows[-1])

    @property
    def target_range(self) -> tuple[int, int]:
        """Number of the first target, and of the one after the last; they are neighbours."""
        return int(self.target_rows[0]), int(self.target_rows[-1]) + 1

    def rows(self) -> Iterator[tuple[int, int]]:
        """Numbers of the records of each pair."""
        return zip(self.query_rows.tolist(), self.target_rows.tolist(), strict=True)

    def part(self, first: int, last: int) -> PairStretch:
        """The pairs `first` to `last`, exclusive."""
        rows = slice(first, last)
        return PairStretch(self.queries, self.query_rows[rows], self.targets, self.target_rows[rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a first pass over the files has found.

    `records` are those of the queries and of the targets; `cells` are those of all matrices, in the band if
    there is one; `duplicates` has, for each file that has one, its first name that comes again, and how many
    do.
    """

    records: tuple[int, int]
    pairs: int
    cells: int
    duplicates: tuple[tuple[DuplicateName, int], ...]


class _Census:
    """Counts what the blocks of a file hold while they pass by."""

    def __init__(self, file: CodedFile, width: int, unique: bool) -> None:
        self._file = file
        self._width = width
        self._unique = unique
        self._register: NameRegister | None = NameRegister()
        self.records = self.residues = self.columns = 0
        #: Cells of each record with all records before it.
        self.cells_with_earlier = 0
        self.duplicates: list[tuple[DuplicateName, int]] = []

    def blocks(self) -> Iterator[CodedBlock]:
        for block in self._file.blocks():
            sizes = block.codes.sizes
            columns = np.minimum(sizes, self._width)
            before = np.cumsum(sizes) - sizes
            self.cells_with_earlier += int(columns @ before) + self.residues * int(columns.sum())
            self.records += len(block)
            self.residues += int(sizes.sum())
            self.columns += int(columns.sum())
            self._look_for_duplicates(block)
            yield block

    def _look_for_duplicates(self, block: CodedBlock) -> None:
        if not self._unique and self.records > _MOST_NAMES:
            self._register = None
        if self._register is None:
            return
        found = self._register.add(self._file.path, block.sequences)
        if found and self._unique:
            raise _not_unique(found[0])
        if found:
            first, count = self.duplicates[0] if self.duplicates else (found[0], 0)
            self.duplicates = [(first, count + len(found))]


def _not_unique(duplicate: DuplicateName) -> FormatError:
    error = duplicate.error()
    return FormatError(
        error.path,
        line=error.line,
        found=error.found,
        expected=error.expected,
        hint="SAM refers to targets by name; rename it, or choose another format",
    )


class FilePairs:
    """The pairs of the sequences of two files, or of one: every record with all that follow it there.

    `InvalidInput` if the pairing does not go with the number of files.
    """

    def __init__(self, queries: CodedFile, targets: CodedFile | None, pairing: Pairing) -> None:
        if pairing not in ("order", "all", "one"):
            raise InvalidInput("pairs", found=repr(pairing), expected="order, all or one")
        if targets is None and pairing != "all":
            raise InvalidInput(
                "pairs",
                found=f"{pairing!r} and one file",
                expected="two files, or 'all' for every pair of records of one file",
            )
        self._queries = queries
        self._targets = targets
        self._pairing = pairing

    def survey(self, *, width: int | None = None, unique_targets: bool = False) -> Survey:
        """Read the files once, to count and to check them.

        `width` is how many columns of a row are visited, if there is a band. `InvalidInput` if the numbers of
        records do not go with the pairing; `FormatError` if a file is no FASTA file, a letter is not in the
        matrix, or a target's name comes again and `unique_targets` forbids it.
        """
        width = np.iinfo(np.int64).max if width is None else width
        if self._targets is None:
            own = _Census(self._queries, width, unique_targets)
            _run_through(own.blocks())
            count = own.records
            if count == 1:
                raise InvalidInput(
                    "pairs",
                    found=f"a single sequence in {self._queries.path}",
                    expected="two files, or one with several sequences",
                )
            return Survey(
                records=(count, count),
                pairs=count * (count - 1) // 2,
                cells=own.cells_with_earlier,
                duplicates=tuple(own.duplicates),
            )
        rows = _Census(self._queries, width, False)
        columns = _Census(self._targets, width, unique_targets)
        if self._pairing == "order":
            pairs = cells = 0
            for stretch in _in_order(rows.blocks(), columns.blocks()):
                sizes = stretch.sizes
                pairs += len(stretch)
                cells += int(sizes[0] @ np.minimum(sizes[1], width))
        else:
            _run_through(rows.blocks())
            _run_through(columns.blocks())
            pairs, cells = rows.records * columns.records, rows.residues * columns.columns
        self._check_counts(rows.records, columns.records)
        return Survey(
            records=(rows.records, columns.records),
            pairs=pairs,
            cells=cells,
            duplicates=(*rows.duplicates, *columns.duplicates),
        )

    def _check_counts(self, queries: int, targets: int) -> None:
        own = f"{queries:,} in {self._queries.path}"
        other = f"{targets:,} in {self._targets.path}" if self._targets else ""
        if self._pairing == "order" and queries != targets:
            hint = "one query with all targets is --pairs one, each with each is --pairs all"
            raise InvalidInput(
                "pairs",
                found=f"sequences: {own} and {other}",
                expected="as many of each to pair them by their order",
                hint=hint,
            )
        if self._pairing == "one" and queries != 1:
            raise InvalidInput(
                "pairs",
                found=f"sequences: {own}",
                expected="a single one to pair with all targets",
                hint="each with each is --pairs all",
            )

    def stretches(self) -> Iterator[PairStretch]:
        """All pairs in order of the queries, and for each query in order of the targets."""
        if self._targets is None:
            return _within(self._queries)
        if self._pairing == "order":
            return _in_order(self._queries.blocks(), self._targets.blocks())
        return _all_against_all(self._queries, self._targets)


def _run_through(blocks: Iterable[CodedBlock]) -> None:
    for _ in blocks:
        pass


def _in_order(queries: Iterator[CodedBlock], targets: Iterator[CodedBlock]) -> Iterator[PairStretch]:
    i = j = 0
    left, right = next(queries, None), next(targets, None)
    while left is not None and right is not None:
        count = min(len(left) - i, len(right) - j)
        yield PairStretch(left, np.arange(i, i + count), right, np.arange(j, j + count))
        i, j = i + count, j + count
        if i == len(left):
            left, i = next(queries, None), 0
        if j == len(right):
            right, j = next(targets, None), 0
    # The survey counts the records of both, also where one file has more.
    _run_through(queries)
    _run_through(targets)


def _all_against_all(queries: CodedFile, targets: CodedFile) -> Iterator[PairStretch]:
    for block in queries.blocks():
        for row in range(len(block)):
            for other in targets.blocks():
                yield PairStretch(block, np.full(len(other), row), other, np.arange(len(other)))


def _within(file: CodedFile) -> Iterator[PairStretch]:
    for block in file.blocks():
        for row in range(len(block)):
            number = block.first + row
            for other in file.blocks():
                rows = np.arange(max(number + 1 - other.first, 0), len(other))
                if rows.size:
                    yield PairStretch(block, np.full(rows.size, row), other, rows)


def batches_of(stretches: Iterable[PairStretch], *, width: int | None = None) -> Iterator[list[PairStretch]]:
    """Put pairs together to batches of bounded memory and work, in order; `width` as in `survey`."""
    held: list[PairStretch] = []
    load = 0.0
    for stretch in stretches:
        loads = np.cumsum(_loads(stretch, width))
        first = 0
        while first < len(stretch):
            done = float(loads[first - 1]) if first else 0.0
            last = int(np.searchsorted(loads, done + 1.0 - load, "right"))
            if last <= first and not held:
                last = first + 1
            if last > first:
                held.append(stretch.part(first, last))
                load += float(loads[last - 1]) - done
                first = last
            if first < len(stretch):
                yield held
                held, load = [], 0.0
    if held:
        yield held


def _loads(stretch: PairStretch, width: int | None) -> NDArray[np.float64]:
    """The share of a batch that each pair takes: of its pairs, residues or cells, whichever is most."""
    rows, columns = stretch.sizes
    visited = columns if width is None else np.minimum(columns, width)
    by_cells = rows * visited.astype(np.float64) / _MOST_CELLS
    by_residues = (rows + columns) / _MOST_RESIDUES
    return np.maximum(np.maximum(by_cells, by_residues), 1.0 / _MOST_PAIRS)


def codes_of(batch: Sequence[PairStretch]) -> PairBatch:
    """The codes of all pairs of a batch."""
    return PairBatch(
        join_codes([s.queries.codes.take(s.query_rows) for s in batch]),
        join_codes([s.targets.codes.take(s.target_rows) for s in batch]),
    )


#: Parts of a batch for each thread, where pairs are aligned one by one.
_PARTS_PER_THREAD: Final = 4
#: Targets from which a query is worth a call of its own.
_FEWEST_TARGETS: Final = 16


class _Stopped(Exception):
    """Nobody waits for the results any more."""


class _Meter:
    """Counts cells for several threads, and ends their work where it can be ended."""

    def __init__(self, total: int, progress: Callable[[CellProgress], None] | None) -> None:
        self._lock = Lock()
        self._total = total
        self._progress = progress
        self._cells = 0
        self.stopped = False

    def add(self, cells: int) -> None:
        if self.stopped:
            raise _Stopped
        with self._lock:
            # Tiles that an alignment passes through are visited twice.
            self._cells = min(self._cells + cells, self._total)
            if self._progress is not None:
                self._progress(CellProgress(self._cells, self._total))


_Batch = list[PairStretch]


#: Of pairs: scores, where those alone are asked for, or alignments; lists of these where there may be
#: several; and two of either with both strands.
_Found = Sequence[Any]


class _Line(NamedTuple):
    """An alignment of a pair of a stretch, or its score; `turned`: of the reverse complement of the query."""

    pair: int
    rank: int
    turned: bool
    score: int
    alignment: Alignment | None


def _parts(batch: _Batch) -> Iterator[_Batch]:
    """The stretches in which one query meets enough targets each by itself, the others together."""
    for alone, stretches in groupby(batch, lambda s: s.has_one_query and len(s) >= _FEWEST_TARGETS):
        if alone:
            yield from ([stretch] for stretch in stretches)
        else:
            yield list(stretches)


def _joined(parts: Iterable[_Found]) -> _Found:
    """Results one behind the other: alignments stay columns."""
    own = list(parts)
    alignments = [part for part in own if isinstance(part, Alignments)]
    return join_alignments(alignments) if alignments else list(chain.from_iterable(own))


def band_width(aligner: Aligner) -> int | None:
    """Columns of a row that are visited; None if there is no band."""
    return None if aligner.band is None else max(aligner.band[1] - aligner.band[0] + 1, 0)


class FileRun:
    """Everything that is fixed for one run.

    `names` are the columns of a table, empty for other formats; `statistics` are for bit scores and E-values,
    if they are asked for; `cells` are those of all pairs; `progress` is called often, from several threads.
    """

    def __init__(
        self,
        aligner: Aligner,
        names: Sequence[str],
        *,
        scores_only: bool,
        statistics: KarlinAltschul | None,
        cells: int,
        progress: Callable[[CellProgress], None] | None,
        which: WhichAlignments,
    ) -> None:
        self._which = which
        self._complements = complement_codes(aligner.scoring) if which.strand == "both" else None
        #: Pairs of which nothing has been written.
        self.without = 0
        self._aligner = aligner
        self._names = names
        self._scores_only = scores_only
        self._statistics = statistics
        self._meter = _Meter(cells, progress)
        self._executor = LocalExecutor(aligner.target.threads)

    def write(self, files: FilePairs, writer: AlignmentWriter) -> None:
        """Align all pairs and write what is found, in order.

        The pair that cannot be aligned is named in the `InvalidInput` or `Unsupported`.
        """
        batches = batches_of(files.stretches(), width=band_width(self._aligner))
        with closing(self._ahead(batches)) as found:
            for batch, results in found:
                first = 0
                for stretch in batch:
                    self._write_stretch(stretch, results[first : first + len(stretch)], writer)
                    first += len(stretch)

    def _ahead(self, batches: Iterator[_Batch]) -> Generator[tuple[_Batch, _Found], None, None]:
        """Results of batches; the next batch is worked on while the caller writes the last one."""
        with ThreadPoolExecutor(1, thread_name_prefix="plait-align") as pool:
            try:
                under_way: tuple[_Batch, Future[_Found]] | None = None
                for batch in batches:
                    following = batch, pool.submit(self._compute, batch)
                    if under_way is not None:
                        yield under_way[0], under_way[1].result()
                    under_way = following
                if under_way is not None:
                    yield under_way[0], under_way[1].result()
            finally:
                # After Ctrl-C the pool waits for its work, which may be one pair of a million residues each.
                self._meter.stopped = True

    def _compute(self, batch: _Batch) -> _Found:
        try:
            if self._complements is not None:
                return self._on_both_strands(codes_of(batch), self._complements)
            if self._which.several is not None:
                return self._align(codes_of(batch))
            if self._aligner.limited or self._aligner.traceback != "auto":
                return self._align(codes_of(batch))
            return _joined(map(self._align_part, _parts(batch)))
        except PlaitError:
            self._name_the_pair(batch)
            raise

    def _align_part(self, part: _Batch) -> _Found:
        if len(part) > 1 or not part[0].has_one_query:
            return self._align(codes_of(part))
        query = part[0].queries.codes[int(part[0].query_rows[0])]
        targets = part[0].targets.codes.between(*part[0].target_range)
        if self._scores_only:
            scores: _Found = self._aligner.score_many(query, targets, self._meter.add).tolist()
            return scores
        return self._aligner.align_many(query, targets, self._meter.add)

    def _on_both_strands(self, codes: PairBatch, complements: NDArray[np.uint8]) -> _Found:
        """Results of the queries as they are, and of their reverse complements."""
        turned = [complements[codes.queries[k][::-1]] for k in range(len(codes))]
        other = self._align(PairBatch(code_list(turned), codes.targets))
        return list(zip(self._align(codes), other, strict=True))

    def _align(self, codes: PairBatch) -> _Found:
        several = self._which.several
        if several is not None:
            pairs = (codes.only(np.array([k])) for k in range(len(codes)))
            return [self._aligner.best_of_pair(pair, several, self._meter.add) for pair in pairs]
        if self._aligner.limited:
            return self._align_one_by_one(codes)
        if self._scores_only:
            scores: _Found = self._aligner.score_codes(codes, self._meter.add).tolist()
            return scores
        return self._aligner.align_codes(codes, self._meter.add)

    def _align_one_by_one(self, codes: PairBatch) -> _Found:
        """Bands and X-drop have no schedule for many pairs: parts of the batch side by side."""
        width = band_width(self._aligner)

        def part(rows: NDArray[np.int64]) -> _Found:
            own = codes.only(rows)
            scored = self._scores_only
            found = self._aligner.score_codes(own).tolist() if scored else self._aligner.align_codes(own)
            columns = own.targets.sizes if width is None else np.minimum(own.targets.sizes, width)
            self._meter.add(int(own.queries.sizes @ columns))
            return found

        count = min(len(codes), _PARTS_PER_THREAD * self._executor.threads)
        parts = np.array_split(np.arange(len(codes)), count)
        return _joined(self._executor.map(part, parts))

    def _name_the_pair(self, batch: _Batch) -> None:
        """Raise the error of the first pair that cannot be aligned, with its names."""
        codes = codes_of(batch)
        pairs = (
            (stretch.queries.sequences.names[i], stretch.targets.sequences.names[j])
            for stretch in batch
            for i, j in stretch.rows()
        )
        for k, (query, target) in enumerate(pairs):
            try:
                self._align(codes.only(np.array([k])))
            except Unsupported as error:
                raise Unsupported(f"{query} and {target}: {error.what}", why=error.why) from error
            except InvalidInput as error:
                what = f"{error.what} for {query} and {target}"
                raise InvalidInput(
                    what, found=error.found, expected=error.expected, hint=error.hint
                ) from error

    def _write_stretch(self, stretch: PairStretch, results: _Found, writer: AlignmentWriter) -> None:
        at_once = not self._which and not {*_AS_READ} & {*self._names}
        if at_once and isinstance(writer, PairTableWriter):
            writer.write_columns(self._columns(stretch, results))
            return
        lines = [line for k, result in enumerate(results) for line in self._lines(k, result)]
        pairs, scores = [line.pair for line in lines], [line.score for line in lines]
        rows, columns = stretch.sizes
        bits, evalues = self._of_scores(scores, rows[pairs], columns[pairs])
        worth = [self._which.takes(*own) for own in zip(scores, evalues, strict=True)]
        self.without += len(stretch) - len({k for k, good in zip(pairs, worth, strict=True) if good})
        queries, targets = stretch.queries.sequences, stretch.targets.sequences
        places = list(stretch.rows())
        row, letters = -1, b""
        for line, bit_score, evalue in compress(zip(lines, bits, evalues, strict=True), worth):
            i, j = places[line.pair]
            if i != row:
                row, letters = i, queries.sequence(i)
            writer.write(
                AlignedPair(
                    query_name=queries.names[i],
                    target_name=targets.names[j],
                    query=reverse_complement(letters.decode("latin-1")).encode() if line.turned else letters,
                    target=targets.sequence(j),
                    score=line.score,
                    alignment=line.alignment,
                    mode=self._aligner.mode,
                    bit_score=bit_score,
                    evalue=evalue,
                    rank=line.rank,
                    strand="-" if line.turned else "+",
                    quality=queries.quality(i)[:: -1 if line.turned else 1],
                )
            )

    def _lines(self, pair: int, result: Any) -> list[_Line]:
        """What is to be written of a pair, best first; of equal scores that of the query as it is."""
        strands = result if self._complements is not None else (result,)
        several = self._which.several
        found = [
            _Line(pair, 0, turned > 0, *((one, None) if self._scores_only else (one.score, one)))
            for turned, of_strand in enumerate(strands)
            for one in (of_strand if several is not None else (of_strand,))
        ]
        if len(strands) > 1:
            found.sort(key=lambda line: -line.score)
        best = found[: 1 if several is None else several.most]
        return [line._replace(rank=rank) for rank, line in enumerate(best, 1)]

    def _of_scores(
        self, scores: Sequence[int], rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[Sequence[float | None], Sequence[float | None]]:
        """Bit scores and E-values; None for each without statistics."""
        if self._statistics is None:
            return [None] * len(scores), [None] * len(scores)
        own = np.array(scores, np.int64)
        evalues = self._statistics.evalue(own, rows, columns)
        return self._statistics.bit_score(own).tolist(), evalues.tolist()

    def _columns(self, stretch: PairStretch, results: _Found) -> list[Sequence[object]]:
        """All columns but those with letters, of all pairs at once: ten times faster than pair by pair."""
        queries, targets = stretch.queries.sequences.names, stretch.targets.sequences.names
        found = results if isinstance(results, Alignments) else None
        scores = results if found is None else found.score.tolist()
        bits, evalues = self._of_scores(scores, *stretch.sizes)
        makers: dict[str, Callable[[], Sequence[object]]] = {
            "query": lambda: [queries[i] for i in stretch.query_rows.tolist()],
            "target": lambda: [targets[j] for j in stretch.target_rows.tolist()],
            "score": lambda: scores,
            "bit_score": lambda: bits,
            "evalue": lambda: evalues,
            "query_length": lambda: stretch.sizes[0].tolist(),
            "target_length": lambda: stretch.sizes[1].tolist(),
            "mode": lambda: [self._aligner.mode] * len(stretch),
            "rank": lambda: [1] * len(stretch),
            "strand": lambda: ["+"] * len(stretch),
            "cigar": lambda: [] if found is None else found.cigars,
        }
        return [makers[name]() if name in makers else getattr(found, name).tolist() for name in self._names]


_STATISTICS: Final = ("bit_score", "evalue")
_AS_READ: Final = ("query_aligned", "target_aligned")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedFiles:
    """A finished run.

    `output` is None for standard output; `alignments` are those written; `left_out` are those of them that
    the format has no line for (SAM, PAF: no residues are paired), `without` the pairs of which none is asked
    for; `cells` are those of all matrices, in the band if there is one; `notes` tell what is odd about the
    input.
    """

    output: str | None
    pairs: int
    alignments: int
    left_out: int
    without: int
    cells: int
    notes: tuple[str, ...]


def align_files(
    queries: _Path,
    targets: _Path | None,
    output: _Path | None,
    aligner: Aligner,
    *,
    pairs: Pairing | None = None,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    score_only: bool = False,
    md: bool = False,
    which: WhichAlignments = THE_BEST,
    command: str = "",
    progress: Callable[[CellProgress], None] | None = None,
) -> AlignedFiles:
    """Align the sequences of two files, FASTA or FASTQ, or those of one, and write what is found.

    The files (plain, gzip or zstd) are read twice: first to count and check everything. Small ones are kept
    in memory then. If `targets` is larger than that, it is read again for every query where all are paired
    with all. `output` None is standard output; `format`, `columns`, `md` and `command` are as for
    `plait.align.writers.open_alignments`.

    `pairs` is ``"order"``, the first query with the first target and so on (default for two files),
    ``"all"``, every query with every target, or every record of one file with all that follow it (default for
    one), or ``"one"``, the single query with every target. `score_only` leaves out the alignments; so it is
    too if the columns need none. `which` of the alignments of a pair are written. `progress` is called often,
    from several threads.

    `InvalidInput` if settings do not go together, or the numbers of records do not go with the pairing;
    `FormatError` if a file is not what it should be, or the disk is full; `Unsupported` if the format cannot
    hold these alignments, or a pair needs too much memory; the bytes are named.
    """
    pairing: Pairing = pairs or ("all" if targets is None else "order")
    if score_only and format is None and file_or_standard_output(output) is None:
        format = "tsv"
    chosen = alignment_format(output, format)
    table = chosen not in ("text", "sam", "paf")
    _check_which(which, aligner, score_only)
    names = check_columns(columns) if columns is not None or not table else _usual_columns(which, score_only)
    if score_only and (not table or needs_alignment(names)):
        _refuse_scores(chosen if not table else names)
    statistics = _statistics(aligner, names, which)
    read = CodedFile(queries, aligner.scoring)
    files = FilePairs(read, None if targets is None else CodedFile(targets, aligner.scoring), pairing)
    surveyed = files.survey(width=band_width(aligner), unique_targets=chosen == "sam")
    run = FileRun(
        aligner,
        names if table else (),
        scores_only=table and not needs_alignment(names) and which.several is None,
        statistics=statistics,
        cells=surveyed.cells * (2 if which.strand == "both" else 1),
        progress=progress,
        which=which,
    )
    inputs = [path for path in (queries, targets) if path is not None]
    writer = open_alignments(
        output,
        scoring=aligner.scoring,
        provenance=_provenance(aligner, pairing, score_only, which),
        format=chosen,
        columns=names if table else columns,
        targets=_names_and_lengths(inputs[-1]) if chosen == "sam" else (),
        command=command,
        inputs=inputs,
        md=md,
    )
    with writer:
        run.write(files, writer)
    return AlignedFiles(
        output=file_or_standard_output(output),
        pairs=surveyed.pairs,
        alignments=writer.pairs,
        left_out=writer.left_out,
        without=run.without,
        cells=surveyed.cells,
        notes=tuple(_notes(surveyed)),
    )


def _usual_columns(which: WhichAlignments, score_only: bool) -> tuple[str, ...]:
    """The columns of a table for which none are chosen."""
    names = tuple(name for name in DEFAULT_COLUMNS if not (score_only and needs_alignment([name])))
    more = (("rank", which.several is not None), ("strand", which.strand == "both"))
    return (*names[:2], *(name for name, wanted in more if wanted), *names[2:])


def _refuse_scores(shown: str | tuple[str, ...]) -> None:
    if isinstance(shown, str):
        raise InvalidInput(
            "format",
            found=f"{shown} for scores alone",
            expected="tsv, jsonl or parquet",
            hint=f"{shown} shows alignments",
        )
    needing = next(name for name in shown if needs_alignment([name]))
    raise InvalidInput(
        "columns",
        found=f"{needing!r} for scores alone",
        expected="columns that need no alignment",
    )


def _check_which(which: WhichAlignments, aligner: Aligner, score_only: bool) -> None:
    if which.several is not None:
        aligner.checked_best(which.several)
        if score_only:
            raise InvalidInput("best", found="several for scores alone", expected="one, or their alignments")
    if which.evalue is not None and not which.evalue >= 0:
        raise InvalidInput("evalue", found=repr(which.evalue), expected="a number of at least 0")


def _statistics(aligner: Aligner, names: Sequence[str], which: WhichAlignments) -> KarlinAltschul | None:
    wanted = [("columns", name) for name in names if name in _STATISTICS]
    wanted += [("evalue", "a limit")] if which.evalue is not None else []
    if not wanted:
        return None
    what, asked = wanted[0]
    if aligner.mode != "local":
        raise InvalidInput(
            what,
            found=f"{asked!r} in mode {aligner.mode!r}",
            expected="statistics of local alignments only",
        )
    found, reason = karlin_altschul(aligner.scoring)
    if found is None:
        raise InvalidInput(what, found=repr(asked), expected="a scoring that has it", hint=reason)
    return found


def _names_and_lengths(path: _Path) -> Iterator[tuple[str, int]]:
    for block in read_sequences(path):
        yield from zip(block.names, block.lengths.tolist(), strict=True)


def _provenance(aligner: Aligner, pairing: str, score_only: bool, which: WhichAlignments) -> Provenance:
    scoring = aligner.scoring
    content = scoring.matrix.letters.encode() + scoring.matrix.scores.tobytes()
    return Provenance(
        version=__version__,
        device=aligner.target.description,
        schedule="row_sweep" if aligner.limited else "inter_sequence, antidiagonal, tiles",
        algebra="MaxPlus",
        parameters={
            "pairs": pairing,
            "mode": aligner.mode,
            "free_ends": None if aligner.free_ends is None else list(aligner.free_ends),
            "matrix": scoring.matrix.name,
            "matrix_digest": hashlib.blake2b(content, digest_size=8).hexdigest(),
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
            "band": None if aligner.band is None else list(aligner.band),
            "x_drop": aligner.x_drop,
            "score_only": score_only,
            **({"which": asdict(which)} if which else {}),
        },
    )


def _notes(surveyed: Survey) -> Iterator[str]:
    for first, count in surveyed.duplicates:
        others = f" (so it is with {count:,} records)" if count > 1 else ""
        yield (
            f"{first.path}, line {first.line}: the name {first.name!r} was there before{others}; "
            "results cannot be told apart by name"
        )
