"""What is searched: packed databases and FASTA files, piece by piece."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from plait.align.database import SequenceDatabase, is_database, open_database, pack_sequences
from plait.align.scoring import (
    ALPHABETS,
    CODES,
    NO_CODE,
    PAD_CODE,
    Scoring,
    common_kind,
    count_sample,
    encode_residues,
)
from plait.align.settings import Kind
from plait.dp.pairs.blocks import BLOCK_LANES, COLUMN_STEP, CPU_SHAPE, SweepShape, TargetBlocks
from plait.errors import FormatError, InvalidInput
from plait.formats.compression import check_readable
from plait.formats.fasta import NameRegister, Sequences, read_fasta

#: What can be searched: a packed database, or the path of one, or of FASTA files.
Database = SequenceDatabase | str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

#: Residues of the longest sequence that is packed: 64 lanes have to be as long.
_LONGEST_PACKED: Final = 1 << 17
#: Residues of entries of FASTA files that are kept until they are aligned; others are read again.
_KEPT_RESIDUES: Final = 1 << 28


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
        packed, first_columns, lengths = self.blocks
        blocks = TargetBlocks(packed, first_columns[first : last + 1], lengths[first:last])
        return TargetPart(blocks, self.records[first:last])


class LoneTarget(NamedTuple):
    """A target that is swept on its own.

    `codes`, of `plait.align.scoring.ALPHABETS`, are those of all of it or a stretch of it; `length` is always
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
    counts = lone_lanes(blocks.lengths)
    if alone:
        counts = np.minimum(counts, (blocks.lengths >= alone).sum(axis=1))
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
    if begin < len(counts):
        parts.append(whole.between(begin, len(counts)))
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
    """A record of what is searched, `record` from 0; `codes` are of `plait.align.scoring.ALPHABETS`."""

    record: int
    name: str
    description: str
    codes: NDArray[np.uint8]


class Source(Protocol):
    """What is searched."""

    @property
    def kind(self) -> Kind:
        """What the sequences are."""
        ...

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files; none if it is in memory."""
        ...

    @property
    def sequences(self) -> int:
        """Number of sequences; of FASTA files, those read so far."""
        ...

    @property
    def residues(self) -> int:
        """Their residues."""
        ...

    def chunks(self, scoring: Scoring) -> Iterator[TargetChunk]:
        """All of it, piece by piece, every letter one of the matrix."""
        ...

    def keep(self, records: NDArray[np.int64]) -> None:
        """Called after each piece: only these records, of this one and those before, may be asked for."""
        ...

    def entries(self, records: NDArray[np.int64]) -> Iterator[Entry]:
        """Some of the records, by rising number."""
        ...


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

    def chunks(self, scoring: Scoring) -> Iterator[TargetChunk]:
        """All of it, piece by piece."""
        database = self._database
        missing = matrix_columns(scoring, self.kind) == NO_CODE
        first_columns = database.first_columns
        done, first = 0, 0
        while first < database.blocks:
            most = first_columns[first] + self._shape.database_bytes // BLOCK_LANES
            last = max(first + 1, int(np.searchsorted(first_columns, most, "right")) - 1)
            codes = database.columns(int(first_columns[first]), int(first_columns[last]))
            # Lanes must not be given any number.
            if int(codes.max(initial=0)) > PAD_CODE:
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

    def keep(self, records: NDArray[np.int64]) -> None:
        """Nothing to do: all of it stays at hand."""

    def entries(self, records: NDArray[np.int64]) -> Iterator[Entry]:
        """Some of the records."""
        for record in records.tolist():
            database = self._database
            codes = database.sequence(record)
            name = database.names[record]
            if codes.max(initial=0) >= len(database.alphabet):
                raise self._damaged(f"a residue of {name!r}")
            yield Entry(record, name, database.descriptions[record], codes)


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
        shape: SweepShape = CPU_SHAPE,
    ) -> None:
        self._shape = shape
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
                yield number, sequences

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
                scoring.encode_letters(
                    sequences.letters,
                    offsets=sequences.offsets,
                    names=sequences.names,
                    path=path,
                    lines=sequences.lines,
                )
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
        for record in records[(records >= first) & (records < first + len(sequences))].tolist():
            room -= int(sequences.lengths[record - first])
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


def open_source(
    database: Database,
    kind: Kind | None = None,
    *,
    otherwise: Kind | None = None,
    allow_duplicate_names: bool = False,
    shape: SweepShape = CPU_SHAPE,
) -> Source:
    """What to search: a packed database, or the path of one, or of FASTA files.

    `kind` is what it must be, by default what the packed database or the first letters of FASTA say;
    `otherwise` is what FASTA is if its letters do not say it; `shape` is what the target that sweeps it likes
    to be given at a time. `InvalidInput` if there is no file, or a packed database among others, or the
    database is of another kind, or its letters do not say of which; `FormatError` if a file is neither a
    database nor FASTA.
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
    names = allow_duplicate_names
    return FastaSource(paths, kind, otherwise=otherwise, allow_duplicate_names=names, shape=shape)
