"""What is searched, piece by piece; scores of many queries with all of it, and the best targets."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.align.batches import (
    CellProgress,
    PairSweep,
    against,
    block_query,
    code_list,
    reach_of,
    score_pieces,
    stretches,
)
from plait.align.database import SequenceDatabase, is_database, open_database, pack_sequences
from plait.align.letters import (
    ALPHABETS,
    CODES,
    PAD_CODE,
    common_kind,
    count_sample,
    encode_residues,
    masked_records,
)
from plait.align.scoring import NO_CODE, Scoring, free_ends_of
from plait.align.settings import Kind
from plait.devices.target import CpuTarget, Target
from plait.dp.pairs.blocks import (
    BLOCK_LANES,
    COLUMN_STEP,
    CPU_SHAPE,
    BestBatch,
    BlockBatch,
    SweepShape,
    TargetBlocks,
    best_of_scores,
    joined,
    raised,
    sweep_shape,
)
from plait.dp.pairs.inter_sequence import BlockQuery
from plait.dp.pairs.launches import BEST_TARGETS, BLOCK_SCORES
from plait.dp.pairs.lists import FreeEnds
from plait.dp.pairs.rows import RowSweep, row_sweep
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import NameRegister, Sequences, read_fasta
from plait.formats.files import check_readable
from plait.run.executor import LocalExecutor

#: What is searched as files: a packed database, or the path of one, or of FASTA files.
DatabaseFiles = SequenceDatabase | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: Residues of the longest sequence that is packed: 64 lanes have to be as long.
_LONGEST_PACKED: Final = 1 << 17
#: Residues of entries of FASTA files that are kept until they are aligned; others are read again.
_KEPT_RESIDUES: Final = 1 << 28


#: Residues that take as long as what a target takes besides its own.
_BESIDE: Final = 12

#: A residue swept in a pair of its own costs as much time as so many residues in lanes,
_LONE_RESIDUE: Final = 16
#: and the pair itself as much as so many more.
_LONE_PAIR: Final = 1 << 16


class TargetPart(NamedTuple):
    """Neighbouring blocks; `records`, (blocks, 64), are the record in each lane, -1 in lanes without one."""

    blocks: TargetBlocks
    records: NDArray[np.int64]

    @property
    def columns(self) -> int:
        """Columns of all blocks."""
        return int(self.blocks.first_columns[-1] - self.blocks.first_columns[0])

    def between(self, first: int, last: int) -> TargetPart:
        """The blocks `first` to `last`, exclusive, without a copy."""
        return TargetPart(self.blocks.between(first, last), self.records[first:last])


class LoneTarget(NamedTuple):
    """A target that is swept on its own.

    `codes`, of `plait.align.letters.ALPHABETS`, are those of all of it or a stretch of it; `length` is always
    the residues of all of it.
    """

    record: int
    codes: NDArray[np.uint8]
    length: int


class TargetChunk(NamedTuple):
    """A piece of a database: `parts` go into lanes, `lone` targets do not.

    `share` is the share of the whole database that ends with this piece, 0 to 1, as far as it is known.
    """

    parts: tuple[TargetPart, ...]
    lone: tuple[LoneTarget, ...]
    share: float

    @property
    def residues(self) -> int:
        """Residues of all targets."""
        packed = sum(int(part.blocks.lengths.sum(dtype=np.int64)) for part in self.parts)
        return packed + sum(target.length for target in self.lone)


def lone_lanes(lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """How many of the first targets of each block are so long that they had better be swept on their own.

    All lanes of a block wait for the longest target. Without the first k targets, the others wait for number
    k + 1. `lengths`, (blocks, 64), are residues, falling within each block; returns (blocks,).
    """
    width = lengths.shape[1]
    lone = np.zeros((len(lengths), width + 1), np.int64)
    np.cumsum(_LONE_RESIDUE * lengths.astype(np.int64) + _LONE_PAIR, axis=1, out=lone[:, 1:])
    rest = np.zeros_like(lone)
    rest[:, :-1] = width * lengths.astype(np.int64)
    best: NDArray[np.int64] = np.argmin(lone + rest, axis=1)
    return best


def make_chunk(
    database: SequenceDatabase,
    first: int,
    last: int,
    *,
    share: float,
    records: NDArray[np.int64] | None = None,
    lone: tuple[LoneTarget, ...] = (),
    alone: int = 0,
) -> TargetChunk:
    """A piece of packed targets: the blocks `first` to `last`, exclusive; `share` as in `TargetChunk`.

    `records` has the number of each record of `database` in all that is searched, if that is another one;
    `lone` are targets besides; `alone` is residues from which a target may be swept on its own.
    """
    order = database.order[first * BLOCK_LANES : last * BLOCK_LANES]
    numbers = order if records is None else np.where(order < 0, -1, records[order])
    blocks = TargetBlocks(
        database.packed, database.first_columns[first : last + 1], database.lengths[first:last]
    )
    whole = TargetPart(blocks, numbers.reshape(-1, BLOCK_LANES))
    long = np.count_nonzero(blocks.lengths[:, 0] >= max(alone, 1))
    counts = np.minimum(lone_lanes(blocks.lengths[:long]), (blocks.lengths[:long] >= alone).sum(axis=1))
    longest = list(lone)
    parts = []
    begin = 0
    for block in np.flatnonzero(counts).tolist():
        if block > begin:
            parts.append(whole.between(begin, block))
        begin = block + 1
        shorter, longer = _split(whole.between(block, block + 1), int(counts[block]))
        parts += shorter
        longest += longer
    if begin < last - first:
        parts.append(whole.between(begin, last - first))
    return TargetChunk(tuple(parts), tuple(longest), share)


def _split(part: TargetPart, count: int) -> tuple[list[TargetPart], Iterator[LoneTarget]]:
    """A block without its first targets, and those."""
    (packed, first_columns, lengths), records = part
    start = int(first_columns[0])
    longer = (
        LoneTarget(int(records[0, lane]), packed[start : start + size, lane].copy(), size)
        for lane, size in enumerate(lengths[0, :count].tolist())
    )
    rest, numbers = lengths.copy(), records.copy()
    rest[0, :count], numbers[0, :count] = 0, -1
    columns = -(-int(rest.max()) // COLUMN_STEP) * COLUMN_STEP
    if not columns:
        # Empty targets score nothing.
        return [], longer
    blocks = TargetBlocks(packed, np.array([start, start + columns], np.int64), rest)
    return [TargetPart(blocks, numbers)], longer


class Entry(NamedTuple):
    """A record of what is searched, `record` from 0; `codes` are of `plait.align.letters.ALPHABETS`."""

    record: int
    name: str
    description: str
    codes: NDArray[np.uint8]


def matrix_columns(scoring: Scoring, kind: Kind) -> NDArray[np.uint8]:
    """Index into the matrix for each code of a packed database; `NO_CODE` where it has none."""
    columns: NDArray[np.uint8] = scoring.matrix.codes[np.frombuffer(ALPHABETS[kind].encode(), np.uint8)]
    return columns


class PackedSource:
    """A packed database; `shape` is what a piece of it should be like."""

    def __init__(self, database: SequenceDatabase, shape: SweepShape = CPU_SHAPE) -> None:
        self._database = database
        self._shape = shape
        path = getattr(database, "path", None)
        self.kind = database.kind
        self.paths: tuple[str, ...] = () if path is None else (path,)
        self.sequences = len(database)
        self.residues = database.residues
        self.longest = database.longest

    def chunks(self, scoring: Scoring) -> Iterator[TargetChunk]:
        """All of it, piece by piece."""
        database = self._database
        if not database.blocks:
            return
        missing = matrix_columns(scoring, self.kind) == NO_CODE
        first_columns = database.first_columns
        done, first = 0, 0
        tasks = self._shape.tasks or 1
        # As few rounds of all tasks as can be: what is sent at the beginning of each is waited for.
        columns = int(first_columns[-1])
        rounds = max(round(columns * BLOCK_LANES / (self._shape.database_bytes * tasks)), 1)
        work = np.cumsum((database.lengths + _BESIDE).sum(axis=1, dtype=np.int64))
        ends = np.arange(1, rounds * tasks + 1) * int(work[-1]) // (rounds * tasks)
        # Files are looked at as they are read.
        doubted = not self.paths and database.highest_code > PAD_CODE
        for last in distinct(np.searchsorted(work, ends) + 1).tolist():
            codes = database.columns(int(first_columns[first]), int(first_columns[last]))
            # Lanes must not be given any number.
            if doubted and int(codes.max(initial=0)) > PAD_CODE:
                raise self._damaged(f"a residue in blocks {first} to {last - 1}")
            if missing.any():
                self._check(scoring, missing, first, last, codes)
            done += int(database.lengths[first:last].sum(dtype=np.int64))
            yield make_chunk(
                database, first, last, share=done / max(self.residues, 1), alone=self._shape.alone
            )
            first = last

    def _check(
        self, scoring: Scoring, missing: NDArray[np.bool_], first: int, last: int, codes: NDArray[np.uint8]
    ) -> None:
        """Refuse letters that the matrix lacks."""
        database = self._database
        lacks = np.zeros(256, np.bool_)
        lacks[: missing.size] = missing
        if not lacks[codes].any():
            return
        records = database.order[first * BLOCK_LANES : last * BLOCK_LANES]
        for record in np.sort(records[records >= 0]).tolist():
            letters = np.frombuffer(database.letters(record).encode("ascii"), np.uint8)
            path = self.paths[0] if self.paths else None
            offsets = np.array([0, letters.size], np.int64)
            scoring.encode_letters(letters, offsets=offsets, names=[database.names[record]], path=path)

    def _damaged(self, what: str) -> FormatError:
        return FormatError(
            self.paths[0] if self.paths else "database",
            found=f"{what} that is none",
            expected="codes of residues",
            hint="the file was not written by plait: build it again with 'plait search index'",
        )

    def entries(self, records: NDArray[np.int64]) -> Iterator[Entry]:
        """Some of the records."""
        if not records.size:
            return
        database = self._database
        blocks, lanes = np.divmod(database.slots[records], BLOCK_LANES)
        sizes = database.lengths[blocks, lanes].astype(np.int64)
        firsts, edges = database.first_columns[blocks], np.append(0, np.cumsum(sizes))
        places = zip(firsts.tolist(), (firsts + sizes).tolist(), lanes.tolist(), strict=True)
        codes = np.concatenate([database.columns(first, last)[:, lane] for first, last, lane in places])
        wrong = np.flatnonzero(codes >= len(database.alphabet))
        if wrong.size:
            record = int(records[np.searchsorted(edges, wrong[0], "right") - 1])
            raise self._damaged(f"a residue of {database.names[record]!r}")
        for record, (first, last) in zip(records.tolist(), pairwise(edges.tolist()), strict=True):
            own = codes[first:last]
            yield Entry(record, database.names[record], database.descriptions[record], own)


class FastaSource:
    """FASTA files, packed as they are read; their records are numbered through.

    `kind` None looks at the first letters of each file; `otherwise` is what they are if letters do not say
    it. `shape` is what a piece should be like.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        kind: Kind | None,
        *,
        otherwise: Kind | None = None,
        allow_duplicate_names: bool = False,
        mask_lower_case: bool = False,
        shape: SweepShape = CPU_SHAPE,
    ) -> None:
        self._shape = shape
        self._masked = mask_lower_case
        self.paths = tuple(os.fspath(path) for path in paths)
        sizes = [check_readable(path).st_size for path in self.paths]
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        self._names = None if allow_duplicate_names else NameRegister()
        self.sequences = self.residues = 0
        self._counted = False
        self._pending: deque[tuple[int, Sequences]] = deque()
        self._kept: dict[int, Entry] = {}
        self.kind = kind or common_kind({path: count_sample(path) for path in self.paths}, otherwise)

    def _blocks(self) -> Iterator[tuple[int, Sequences]]:
        """Records, with the number of their file."""
        for number, path in enumerate(self.paths):
            for sequences in read_fasta(path, block_residues=self._shape.database_bytes):
                yield number, masked_records(sequences, self.kind) if self._masked else sequences

    def chunks(self, scoring: Scoring) -> Iterator[TargetChunk]:
        """All of it, piece by piece."""
        self._pending.clear()
        self._kept.clear()
        missing = matrix_columns(scoring, self.kind) == NO_CODE
        record = 0
        for number, sequences in self._blocks():
            path = self.paths[number]
            self._count(path, sequences)
            if missing.any():
                scoring.encode_records(path, sequences)
            self._pending.append((record, sequences))
            yield self._chunk(number, sequences, record)
            record += len(sequences)
        self._counted, self._names = True, None

    def _count(self, path: str, sequences: Sequences) -> None:
        if self._counted:
            return
        self.sequences += len(sequences)
        self.residues += sequences.letters.size
        for duplicate in self._names.add(path, sequences) if self._names else ():
            raise duplicate.error("give it another name, or allow duplicate names")

    def _chunk(self, file: int, sequences: Sequences, record: int) -> TargetChunk:
        path = self.paths[file]
        numbers = record + np.arange(len(sequences))
        packed = sequences
        lone: tuple[LoneTarget, ...] = ()
        long = sequences.lengths > _LONGEST_PACKED
        if long.any():
            packed, alone = _taken(sequences, ~long), _taken(sequences, long)
            codes = np.frombuffer(encode_residues(path, alone, self.kind), np.uint8)
            pieces = np.split(codes, alone.offsets[1:-1])
            lone = tuple(map(LoneTarget, numbers[long].tolist(), pieces, alone.lengths.tolist()))
            numbers = numbers[~long]
        database = pack_sequences(packed, path, kind=self.kind)
        share = float(self._starts[file] + sequences.bytes_read) / float(self._starts[-1])
        least = self._shape.alone
        return make_chunk(database, 0, database.blocks, records=numbers, share=share, lone=lone, alone=least)

    def keep(self, records: NDArray[np.int64]) -> None:
        """Keep these records of the next piece and those before, as many as there is room for."""
        first, sequences = self._pending.popleft()
        wanted = set(records.tolist())
        self._kept = {record: entry for record, entry in self._kept.items() if record in wanted}
        room = _KEPT_RESIDUES - sum(entry.codes.size for entry in self._kept.values())
        lengths = sequences.lengths
        for record in records[(records >= first) & (records < first + len(sequences))].tolist():
            room -= int(lengths[record - first])
            if room < 0:
                break
            self._kept[record] = self._entry(sequences, first, record)

    def _entry(self, sequences: Sequences, first: int, record: int) -> Entry:
        index = record - first
        codes = np.frombuffer(sequences.sequence(index).translate(CODES[self.kind]), np.uint8)
        return Entry(record, sequences.names[index], sequences.descriptions[index], codes)

    def entries(self, records: NDArray[np.int64]) -> Iterator[Entry]:
        """Some of the records; the files are read again if they have not all been kept."""
        if all(record in self._kept for record in records.tolist()):
            for record in records.tolist():
                yield self._kept[record]
            return
        first = found = 0
        for _, sequences in self._blocks():
            last = first + len(sequences)
            for record in records[(records >= first) & (records < last)].tolist():
                yield self._entry(sequences, first, record)
                found += 1
            if found == records.size:
                return
            first = last
        raise FormatError(
            self.paths[-1],
            found=f"only {first:,} sequences when read again",
            expected=f"{self.sequences:,}, as before",
            hint="files must not change while they are searched",
        )


def _taken(sequences: Sequences, which: NDArray[np.bool_]) -> Sequences:
    """Some of the records."""
    indices = np.flatnonzero(which).tolist()
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sequences.lengths[which])])
    return Sequences(
        [sequences.names[i] for i in indices],
        [sequences.descriptions[i] for i in indices],
        sequences.letters[np.repeat(which, sequences.lengths)],
        offsets,
        sequences.lines[which],
    )


#: What is searched. Records are numbered through, from 0.
Source = PackedSource | FastaSource


def open_source(
    database: DatabaseFiles,
    kind: Kind | None = None,
    *,
    otherwise: Kind | None = None,
    allow_duplicate_names: bool = False,
    mask_lower_case: bool = False,
    shape: SweepShape = CPU_SHAPE,
) -> Source:
    """What to search: a packed database, or the path of one, or of FASTA files.

    `kind` is what it must be, by default what the packed database or the first letters of FASTA say;
    `otherwise` is what FASTA is if its letters do not say it; with `mask_lower_case` lower-case letters of
    FASTA are taken as X or N; `shape` is what the target that sweeps it likes to be given at a time.
    `InvalidInput` if there is no file, or a packed database among others, or the database is of another kind,
    or its letters do not say of which; `FormatError` if a file is neither a database nor FASTA.
    """
    if isinstance(database, SequenceDatabase):
        if kind not in (None, database.kind):
            raise InvalidInput(
                "database", found=f"a database of kind {database.kind!r}", expected=f"one of kind {kind!r}"
            )
        return PackedSource(database, shape)
    paths = [database] if isinstance(database, str | os.PathLike) else list(database)
    if not paths:
        raise InvalidInput("database", found="no file", expected="a packed database, or FASTA files")
    packed = [path for path in paths if is_database(path)]
    if packed and len(paths) > 1:
        raise InvalidInput(
            "database",
            found=f"{os.fspath(packed[0])!r}, a packed database, among {len(paths)} files",
            expected="one packed database, or any number of FASTA files",
        )
    if packed:
        return PackedSource(open_database(packed[0], kind=kind), shape)
    return FastaSource(
        paths,
        kind,
        otherwise=otherwise,
        allow_duplicate_names=allow_duplicate_names,
        mask_lower_case=mask_lower_case,
        shape=shape,
    )


#: Scores of targets that are waited for before they are sorted out.
_PENDING: Final = 1 << 12


class Found(NamedTuple):
    """Targets of queries: numbers of both, scores, and residues of the targets; arrays of one length."""

    queries: NDArray[np.int64]
    records: NDArray[np.int64]
    scores: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Found:
        """Some of them, by number, by mark or by place."""
        return Found(*(column[which] for column in self))


_NOTHING: Final = Found(*np.zeros((4, 0), np.int64))

#: Gives, for queries, scores and lengths of targets, a number of which less is better.
TieRule = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]]
#: Gives a score for each query, which may grow with what is known.
Least = Callable[[], Sequence[int]]
#: Marks those that count, by the same.
Marks = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]


def no_tie_rule(queries: object, scores: NDArray[np.int64], lengths: object) -> NDArray[np.float64]:
    """Equal scores are equally good."""
    return np.zeros(len(scores))


def distinct(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values that there are, rising; `numpy.unique` loads much that nothing else here needs."""
    ordered = np.sort(values)
    found: NDArray[np.int64] = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


class Rankings:
    """The `most` best targets of each query, of those that score at least `least`, as far as that is known.

    Highest score first, then what `tie_rule` says, then lowest number. Of each query are `forms` swept, which
    have neighbouring numbers: the best one of a target counts, the first of equal ones. What `mark` does not
    mark is not wanted, but takes its place: it is there where there is no place for all.
    """

    def __init__(
        self, most: int, least: Least, tie_rule: TieRule, mark: Marks | None = None, forms: int = 1
    ) -> None:
        #: Of each form; lower scores need not be offered.
        self.floors = np.repeat(np.array(least(), np.int64), forms)
        self.most, self._least = most, least
        self._forms = forms
        self._tie_rule = tie_rule
        self._kept = [_NOTHING]
        self._size = self._sorted = 0
        self._mark, self._unmarked = mark, [_NOTHING]

    def add(self, found: Found) -> None:
        """Offer some targets, each once for a form; of one that is offered again, the best score counts."""
        # So many targets of one form are known, of which none is offered twice at a time.
        floors = raised(found.queries, found.scores, self.floors, self.most)
        if floors is not self.floors:
            self.floors = np.repeat(floors.reshape(-1, self._forms).max(axis=1), self._forms)
        self._kept.append(found.take(found.scores >= self.floors[found.queries]))
        self._size += len(self._kept[-1].records)
        if self._size > 2 * self._sorted + _PENDING:
            self.best()

    def raise_floors(self) -> None:
        """Ask again what targets score at the least, when more of them are known."""
        self.floors = np.maximum(self.floors, np.repeat(np.array(self._least(), np.int64), self._forms))

    def worth_adding(self, found: Found) -> Found:
        """Those of some targets that may be among the best, and count; others may be added meanwhile."""
        floors = raised(found.queries, found.scores, self.floors, self.most)
        found = found.take(found.scores >= floors[found.queries])
        if self._mark is not None and found.records.size:
            good = self._mark(found.queries, found.scores, found.lengths)
            self._unmarked.append(found.take(~good))
            found = found.take(good)
        return found

    def best(self) -> Found:
        """The best targets so far of each query, in order; the others are forgotten."""
        if len(self._kept) > 1:
            # What is not marked is ranked of queries for which there is no place for all; threads add to it.
            rest = joined([self._unmarked.pop() for _ in range(len(self._unmarked))])
            found = joined([rest, *self._kept])
            own = found.queries // self._forms
            crowded = (np.bincount(own) > self.most)[own]
            self._unmarked.append(rest.take(~crowded[: len(rest.queries)]))
            ranked = crowded | (np.arange(own.size) >= len(rest.queries))
            found, own = found.take(ranked), own[ranked]
            order = np.lexsort((found.queries, -found.scores, found.records, own))
            # Of each target the best.
            new = np.diff(found.records[order], prepend=-1) | np.diff(own[order], prepend=-1)
            found, own = found.take(order[new != 0]), own[order[new != 0]]
            order = np.lexsort((found.records, self._ties(found), -found.scores, own))
            found, own = found.take(order), own[order]
            places = np.arange(own.size) - np.searchsorted(own, own)
            last = places == self.most - 1
            self.floors.reshape(-1, self._forms)[own[last]] = found.scores[last, np.newaxis]
            self._kept = [found.take(places < self.most)]
            self._size = self._sorted = len(self._kept[0].records)
        return self._kept[0]

    def _ties(self, found: Found) -> NDArray[np.float64]:
        # Asked once for equal arguments, which so give equal numbers wherever in an array they stand.
        own = found.queries // self._forms * self._forms
        order = np.lexsort((found.lengths, found.scores, own))
        asked = np.stack([own, found.scores, found.lengths])[:, order]
        new = (np.diff(asked, axis=1, prepend=-1) != 0).any(axis=0)
        ties = np.empty(order.size)
        ties[order] = self._tie_rule(*asked[:, new])[np.cumsum(new) - 1]
        return ties


LOCAL: Final = free_ends_of("local")
#: Tasks of a piece of the database for each thread, at the least.
_TASKS: Final = 4
#: Residues of the longest query that is swept in lanes: a thread needs 128 bytes for each.
_LONGEST_IN_LANES: Final = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class SearchQuery:
    """A query, ready to be swept: `letters` that are aligned, and `codes`, indices into the matrix.

    `in_lanes` is for targets in lanes; None if the query is empty, or too long for them. `frame` is that of a
    translation (1 to 3, -1 to -3), else 0, and `residues` those of what was read. `profile` are scores of
    each position with the codes of the matrix, (m, codes), if it has its own, and `k` the K of their
    statistics, if it is another than that of the matrix.
    """

    name: str
    letters: bytes
    codes: NDArray[np.uint8]
    in_lanes: BlockQuery | None
    frame: int = 0
    residues: int = 0
    profile: NDArray[np.int32] | None = None
    k: float | None = None

    def rows(self, target: NDArray[np.uint8], pairs: PairSweep) -> RowSweep:
        """One target, as indices into the matrix, for a query that has scores of its own."""
        assert self.profile is not None
        return row_sweep(
            np.arange(len(self.profile)),
            target,
            self.profile,
            gap_open=pairs.scoring.gap_open,
            gap_extend=pairs.scoring.gap_extend,
            free=pairs.free,
            interpreted=pairs.interpreted,
        )


def search_query(
    name: str,
    letters: bytes,
    codes: NDArray[np.uint8],
    scoring: Scoring,
    columns: NDArray[np.uint8],
    free: FreeEnds = LOCAL,
    *,
    frame: int = 0,
    residues: int | None = None,
    profile: NDArray[np.int32] | None = None,
    k: float | None = None,
) -> SearchQuery:
    """Prepare a query; `columns` are `matrix_columns` of the database, the others as in `SearchQuery`."""
    in_lanes = None
    if 0 < codes.size <= _LONGEST_IN_LANES:
        if profile is None:
            in_lanes = block_query(codes, scoring, free, columns)
        else:
            scores = profile[:, np.where(columns == NO_CODE, 0, columns)]
            costs = scoring.gap_open, scoring.gap_extend
            in_lanes = BlockQuery(np.arange(codes.size), scores, *costs, free)
    whole = codes.size if residues is None else residues
    return SearchQuery(name, letters, codes, in_lanes, frame, whole, profile, k)


class _Task(NamedTuple):
    """Some queries, and some targets of a chunk: in lanes, or one on its own; or neither."""

    queries: Sequence[int]
    part: TargetPart | None
    lone: LoneTarget | None
    #: Residues of the targets.
    residues: int
    #: Share of the database that ends with the chunk, cells of the chunk, whether it is done with this.
    share: float
    work: int
    last: bool


class _Done(NamedTuple):
    """What is worth offering, and all that was found of each query, if it is wanted."""

    task: _Task
    best: Found
    all: Sequence[Found]
    cells: int


def _shares(part: TargetPart, cells: int, rows: int) -> Iterator[TargetPart]:
    first_columns = part.blocks.first_columns
    step = max(cells // (BLOCK_LANES * max(rows, 1)), 1)
    first, blocks = 0, len(part.records)
    while first < blocks:
        last = int(np.searchsorted(first_columns, first_columns[first] + step, "right")) - 1
        last = min(max(last, first + 1), blocks)
        yield part.between(first, last)
        first = last


def _groups(queries: Sequence[SearchQuery], residues: int, shape: SweepShape) -> Iterator[list[int]]:
    """Numbers of the queries that are swept together; empty ones are not swept."""
    group: list[int] = []
    rows = 0
    for number, query in enumerate(queries):
        size = query.codes.size
        full = len(group) == shape.queries or (rows + size) * residues > shape.most_cells
        if group and (full or query.in_lanes is None):
            yield group
            group, rows = [], 0
        if query.in_lanes is not None:
            group.append(number)
            rows += size
        elif size:
            yield [number]
    if group:
        yield group


def _tasks(
    queries: Sequence[SearchQuery], chunks: Iterator[TargetChunk], shape: SweepShape, threads: int
) -> Iterator[_Task]:
    rows = [query.codes.size for query in queries]
    for chunk in chunks:
        columns = sum(part.columns for part in chunk.parts)
        cells = sum(rows) * BLOCK_LANES * columns // (_TASKS * threads)
        cells = min(max(cells, shape.least_cells), shape.most_cells)
        # The last task is known to be the last: it is told what to do once there is no other.
        task = _Task((), None, None, 0, chunk.share, sum(rows) * chunk.residues, False)
        for group in _groups(queries, chunk.residues, shape):
            for part in chunk.parts:
                for share in _shares(part, cells, sum(rows[number] for number in group)):
                    if task.queries:
                        yield task
                    residues = int(share.blocks.lengths.sum(dtype=np.int64))
                    task = task._replace(queries=group, part=share, lone=None, residues=residues)
            for number in group:
                for lone in chunk.lone:
                    for stretch, residues in _stretches(queries[number], lone, shape.stretches):
                        if task.queries:
                            yield task
                        task = task._replace(queries=[number], part=None, lone=stretch, residues=residues)
        yield task._replace(last=True)


def _stretches(query: SearchQuery, lone: LoneTarget, times: int) -> Iterator[tuple[LoneTarget, int]]:
    """A target in stretches, if it can be cut, each with the residues that no other has."""
    reach = _reach(query, lone)
    if reach is None:
        yield lone, lone.length
        return
    for first, last, own in stretches(lone.length, reach, times):
        yield lone._replace(codes=lone.codes[first:last]), own


def _reach(query: SearchQuery, lone: LoneTarget) -> int | None:
    """As `reach_of`; None, too, where the query does not go into lanes."""
    own = query.in_lanes
    return None if own is None else reach_of(own, lone.length)


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    """Runs tasks, any number of them at a time; `columns` are those of the matrix."""

    pairs: PairSweep
    queries: Sequence[SearchQuery]
    rankings: Rankings
    columns: NDArray[np.uint8]
    keep_all: bool

    def run(self, task: _Task) -> _Done:
        found: Sequence[Found] = ()
        if task.part is not None:
            best, found = self._in_lanes(task.queries, task.part)
        else:
            if task.lone is not None:
                found = [self._lone(number, task.lone) for number in task.queries]
            best = joined([_NOTHING, *found])
        rows = sum(self.queries[number].codes.size for number in task.queries)
        kept = found if self.keep_all else ()
        return _Done(task, self.rankings.worth_adding(best), kept, task.residues * rows)

    def _in_lanes(self, numbers: Sequence[int], part: TargetPart) -> tuple[Found, Sequence[Found]]:
        """What may be among the best, and all if it is wanted, or has to be found anyway."""
        packed, first_columns, lengths = part.blocks
        # What is empty would score in other modes than local; it is never a hit.
        used = (part.records >= 0) & (lengths > 0)
        queries = [self.queries[number] for number in numbers]
        if queries[0].in_lanes is None:
            blocks, lanes = np.nonzero(used)
            starts, sizes = first_columns[blocks], lengths[blocks, lanes]
            codes = [
                packed[start : start + size, lane]
                for start, size, lane in zip(starts.tolist(), sizes.tolist(), lanes.tolist(), strict=True)
            ]
            found = [self._one_by_one(number, part.records[used], codes) for number in numbers]
            return joined([_NOTHING, *found]), found
        in_lanes = [query.in_lanes for query in queries if query.in_lanes is not None]
        target = self._target(queries)
        floors = self.rankings.floors[list(numbers)].tolist()
        batch = BestBatch(in_lanes, part.blocks, floors, self.rankings.most)
        found = []
        if self.keep_all:
            scores = target.launch(BLOCK_SCORES, BlockBatch(in_lanes, part.blocks))
            best = best_of_scores(scores, batch)
            records, residues = part.records[used], lengths[used].astype(np.int64)
            for number, own in zip(numbers, scores, strict=True):
                found.append(Found(np.full(records.size, number), records, own[used], residues))
        else:
            best = target.launch(BEST_TARGETS, batch)
        records, residues = part.records.ravel(), lengths.ravel().astype(np.int64)
        own = np.array(numbers)[best.queries]
        return Found(own, records[best.lanes], best.scores, residues[best.lanes]), found

    def _target(self, queries: Sequence[SearchQuery]) -> Target:
        """What sweeps blocks: what GPUs keep of a query is for as many letters as sequences have."""
        own = any(query.profile is not None for query in queries)
        return CpuTarget(1) if own and self.pairs.target.devices else self.pairs.target

    def _lone(self, number: int, lone: LoneTarget) -> Found:
        query = self.queries[number]
        record = np.array([lone.record], np.int64)
        reach = _reach(query, lone)
        if query.in_lanes is None or reach is None:
            return self._one_by_one(number, record, [lone.codes])
        pieces = score_pieces(query.in_lanes, lone.codes, reach, self._target([query]))
        return Found(np.array([number]), record, pieces.scores.max(keepdims=True), np.array([lone.length]))

    def _one_by_one(self, number: int, records: NDArray[np.int64], codes: list[NDArray[np.uint8]]) -> Found:
        query, numbers = self.queries[number], np.full(records.size, number)
        targets = code_list([self.columns[own] for own in codes])
        if query.profile is not None:
            swept = (query.rows(targets[k], self.pairs).score().score for k in range(len(targets)))
            return Found(numbers, records, np.fromiter(swept, np.int64, len(targets)), targets.sizes)
        results = self.pairs.results(against(query.codes, targets), keep=False)
        return Found(numbers, records, results.scores, targets.sizes)


def sweep_all(
    pairs: PairSweep,
    queries: Sequence[SearchQuery],
    source: Source,
    rankings: Rankings,
    *,
    threads: int,
    first: int = 0,
    swept: int = 0,
    report: Callable[[int, Found], None] | None = None,
    progress: Callable[[CellProgress], None] | None = None,
) -> int:
    """Sweep all queries against all targets, reading them once; returns the cells of all matrices so far.

    Of `threads` tasks at a time each uses `pairs`, with one thread. `rankings` change in place. `first`
    queries and `swept` cells were done before. `report` is called in this thread with the number of a query
    and the scores of some targets, until all are told; `progress`, too, in this thread.
    """
    worker = _Worker(pairs, queries, rankings, matrix_columns(pairs.scoring, source.kind), report is not None)
    shape = sweep_shape(pairs.target)
    threads = shape.tasks or threads
    executor = LocalExecutor(threads, waiting=shape.waiting * threads)
    cells, done, before = 0, 0, 0.0

    def chunks() -> Iterator[TargetChunk]:
        for chunk in source.chunks(pairs.scoring):
            rankings.raise_floors()
            yield chunk

    results = executor.map(worker.run, _tasks(queries, chunks(), shape, threads))
    with closing(results):
        for task, best, found, size in results:
            rankings.add(best)
            if report is not None:
                for number, own in zip(task.queries, found, strict=True):
                    report(first + number, own)
            cells, done = cells + size, done + size
            if progress is not None:
                share = before + (task.share - before) * min(done / max(task.work, 1), 1.0)
                total = max(round(cells / share), cells) if share else 0
                progress(CellProgress(swept + cells, swept + total))
            if task.last:
                if isinstance(source, FastaSource):
                    source.keep(distinct(rankings.best().records))
                done, before = 0, task.share
    return swept + cells
