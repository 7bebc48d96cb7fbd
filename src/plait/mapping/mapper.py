"""Map reads: every locus within the errors, in blocks of reads, each in a few passes over all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import resolve, spelled
from plait.errors import MOST_THREADS, InvalidInput, whole_fields
from plait.formats.fastq import RawReads, ReadBlock, checked_reads
from plait.formats.reads import join_reads, open_reads, slice_reads
from plait.lang.lanes import lanes_of
from plait.mapping.alignments import (
    ENDS,
    Diagonals,
    Loci,
    Paths,
    ReadGroup,
    exact_kernel,
    loci_kernel,
    paths_kernel,
)
from plait.mapping.genome import LONGEST_READ, MOST_ERRORS, Genome, References
from plait.mapping.index import LONGEST_SEED, NEIGHBOURS, Index
from plait.mapping.seeds import (
    GROUP,
    LETTER_TABLE,
    MANY_PLACES,
    BorderScratch,
    PackedReads,
    Seeds,
    diagonals_kernel,
    packed_reads,
    padded_letters,
    seeds_kernel,
    words_of,
)
from plait.mapping.verification import BEYOND, DIAGONALS, DiagonalBatch
from plait.run.executor import LocalExecutor
from plait.types import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

SHORTEST_READ: Final = 25
#: Letters of a piece without errors at the least; below, everything matches somewhere.
SHORTEST_PIECE: Final = 8
#: What can become of a read.
STATUSES: Final = ("mapped", "unmapped", "too_short", "too_long", "errors_too_many", "too_many_hits")
_MAPPED, _UNMAPPED, _SHORT, _LONG, _ERRORS, _MANY = range(6)
#: Reads of a block, and places at which those that are looked at together may begin.
BLOCK_READS: Final = 8192
_MOST_PLACES: Final = 1 << 22
#: Errors of a hundred letters where nothing is asked for.
_USUAL_RATE: Final = 5.0
_REPORT: Final = re.compile(r"all|best(?:\+(\d{1,2}))?")

_Path = str | os.PathLike[str]
#: A file or files of reads, or sequences by name.
Reads = _Path | Mapping[str, str | bytes] | Iterable[_Path]


@dataclass(frozen=True, kw_only=True)
class MapSettings:
    """How reads are mapped.

    Attributes
    ----------
    errors
        Most errors of a read, 0 to 31: substitutions, insertions and deletions.
    error_rate
        Instead, percent of its length, rounded down; 5 where neither is given.
    substitutions_only
        Whether insertions and deletions are left out.
    report
        ``"all"`` loci, the ``"best"`` of each read, or ``"best+N"``: those with up to N errors more than the
        best.
    max_hits
        A read with more loci has the status ``too_many_hits``, their number and no locus; otherwise there is
        no limit.
    threads
        Number of threads; otherwise ``PLAIT_THREADS``, or the processors there are.
    device
        Where places that pieces of a read give are checked; GPUs are named as for `plait.mapping.find`.
    """

    errors: int | None = None
    error_rate: float | None = None
    substitutions_only: bool = False
    report: str = "all"
    max_hits: int | None = None
    threads: int | None = None
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.errors is not None and self.error_rate is not None:
            raise InvalidInput("error_rate", found="errors too", expected="one or the other")
        whole_fields(self, "errors", most=MOST_ERRORS)
        whole_fields(self, "max_hits", least=1)
        whole_fields(self, "threads", least=1, most=MOST_THREADS)
        if self.error_rate is not None and not 0 <= self.error_rate <= 100 * MOST_ERRORS / LONGEST_READ:
            raise InvalidInput(
                "error_rate",
                found=self.error_rate,
                expected=f"0 to {100 * MOST_ERRORS / LONGEST_READ} percent",
            )
        if not _REPORT.fullmatch(self.report):
            raise InvalidInput(
                "report", found=repr(self.report), expected="all, best, or best+N with a number N"
            )

    @property
    def strata(self) -> int | None:
        """Errors more than the best that a locus may have; None for any."""
        found = _REPORT.fullmatch(self.report)
        assert found is not None
        return None if self.report == "all" else int(found[1] or 0)

    def errors_of(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Most errors of reads of these lengths, int64."""
        if self.errors is not None:
            return np.full(lengths.shape, self.errors, np.int64)
        rate = _USUAL_RATE if self.error_rate is None else self.error_rate
        # A hundredth of a letter keeps 0.07 * 100 from being less than 7.
        return np.minimum((lengths * rate / 100 + 1e-9).astype(np.int64), MOST_ERRORS)


@dataclass(frozen=True, slots=True, eq=False)
class HitRows:
    """Columns of loci, one entry each, in order of read, distance, place and strand.

    `read` and `contig` are numbers, `start` and `end` 0-based and half-open in the contig, `strand` is 1
    where the reverse complement is found; int64. `runs` int64 (loci, most) and `differences` uint8 (loci,
    most) are the CIGAR as in BAM and the text of the tag MD, of which `run_counts` and `difference_sizes` are
    used.
    """

    read: NDArray[np.int64]
    strand: NDArray[np.int64]
    contig: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    distance: NDArray[np.int64]
    runs: NDArray[np.int64]
    run_counts: NDArray[np.int64]
    differences: NDArray[np.uint8]
    difference_sizes: NDArray[np.int64]

    def __len__(self) -> int:
        return self.read.size

    def taken(self, which: Any) -> HitRows:
        """Some of the rows, by number or by a mask."""
        return HitRows(*(getattr(self, field.name)[which] for field in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class MappedReads:
    """Reads with their loci; numbers in `hits` are of these reads.

    `statuses` uint8 are places in `STATUSES`, `counts` int64 numbers of loci, also of those that are not
    kept, and `mates` 1 or 2 for each read, or 0.
    """

    reads: ReadBlock
    mates: NDArray[np.int64]
    statuses: NDArray[np.uint8]
    counts: NDArray[np.int64]
    hits: HitRows


class Mapper:
    """Maps blocks of reads to an index; `map_block` may be called by many threads."""

    def __init__(self, index: Index, settings: MapSettings) -> None:
        self.index = index
        self.settings = settings
        genome = index.genome
        # Without contigs there is one of nothing, so that kernels need not ask.
        starts = genome.starts if genome.starts.size else np.full(1, 1024, np.int64)
        lengths = genome.lengths if genome.starts.size else np.zeros(1, np.int64)
        self._contigs = np.ascontiguousarray(np.stack([starts, starts + lengths], axis=1))
        # Blocks are what threads share.
        self._target = resolve(settings.device, 1)

    def map_block(self, reads: ReadBlock, mates: NDArray[np.int64]) -> list[MappedReads]:
        """Map reads, all of them, in as many parts as keep memory bounded."""
        found: list[MappedReads] = []
        first = 0
        while first < len(reads) or not found:
            part = slice_reads(reads, first, len(reads))
            one, done = self._map_some(part, mates[first:])
            found.append(one)
            first += max(done, 1)
        return found

    def _map_some(self, reads: ReadBlock, mates: NDArray[np.int64]) -> tuple[MappedReads, int]:
        """Map reads from the first on, as many as have not too many places together; and how many."""
        lengths = reads.lengths
        errors = self.settings.errors_of(lengths)
        statuses = np.full(len(reads), _UNMAPPED, np.uint8)
        statuses[lengths // (errors + 1) < SHORTEST_PIECE] = _ERRORS
        statuses[lengths < SHORTEST_READ] = _SHORT
        statuses[lengths > LONGEST_READ] = _LONG
        used = np.where(statuses == _UNMAPPED, lengths, 0)
        errors = np.where(used > 0, errors, 0)
        packed, loci, done = (
            self._with_errors(reads, used, errors) if errors.any() else self._exact(reads, used)
        )
        statuses, counts, hits = self._reported(statuses[:done], self._aligned(packed, loci))
        own = reads if done == len(reads) else slice_reads(reads, 0, done)
        return MappedReads(own, mates[:done], statuses, counts, hits), done

    def _exact(self, reads: ReadBlock, lengths: NDArray[np.int64]) -> tuple[PackedReads, Loci, int]:
        """Loci of reads without errors, of these lengths, in one pass over them."""
        words, room = words_of(lengths), 2 * len(reads) + 1024
        planes = np.empty((2 * GROUP, words, 3), np.int64)
        group = ReadGroup(LETTER_TABLE, planes, *np.empty((4, 2 * GROUP), np.int64))
        letters, lanes = padded_letters(reads.letters, words), lanes_of(64)
        arrays, contigs = self.index.arrays, self._contigs
        while True:
            out = Loci(*np.empty((4, room), np.int64))
            done, count = exact_kernel(lanes, arrays, contigs, letters, reads.starts, lengths, group, out)
            if done or not lengths.size:
                break
            room *= 4
        packed = PackedReads(planes[:0], np.repeat(lengths, 2), lengths[:0])
        return packed, Loci(*(column[:count] for column in out)), done

    def _with_errors(
        self, reads: ReadBlock, lengths: NDArray[np.int64], errors: NDArray[np.int64]
    ) -> tuple[PackedReads, Loci, int]:
        """Loci of reads with errors; of pieces without any there are places, and these are looked at."""
        packed = packed_reads(reads.letters, reads.starts, lengths, errors)
        rows = packed.lengths.size
        most = int(packed.errors.max(initial=0)) + 1
        seeds = Seeds(*(np.empty((rows, most), np.int64) for _ in range(3)))
        totals = np.empty(rows, np.int64)
        arrays = self.index.arrays
        longest = int(packed.lengths.max(initial=0))
        scratch = BorderScratch(
            np.empty((longest + 1, LONGEST_SEED + NEIGHBOURS + 1), np.int64),
            np.empty((most + 1, longest + 1), np.int64),
            np.empty((most, longest + 1), np.int64),
        )
        seeds_kernel(arrays, packed, MANY_PLACES, scratch, seeds, totals)
        ends = np.cumsum(totals[::2] + totals[1::2])
        done = max(1, int(np.searchsorted(ends, _MOST_PLACES, "right")))
        done = min(done, len(reads))
        keys = np.empty(int(ends[done - 1]) if done else 0, np.int64)
        diagonals_kernel(arrays.entries, packed, seeds, 0, 2 * done, keys)
        return packed, self._loci(packed, _unique(keys)), done

    def _loci(self, packed: PackedReads, keys: NDArray[np.int64]) -> Loci:
        edits = not self.settings.substitutions_only
        found = self._target.launch(DIAGONALS, DiagonalBatch(self.index.arrays.words, packed, keys, edits))
        good = found != BEYOND
        keys, found = keys[good], found[good]
        # Without errors, or with substitutions alone, each place is a locus.
        each = (
            np.full(keys.size, True) if self.settings.substitutions_only else packed.errors[keys >> 32] == 0
        )
        parts = []
        if each.any():
            parts.append(self._inside(packed, keys[each], found[each]))
        if not each.all():
            parts += self._by_edits(packed, keys[~each], found[~each])
        return _all_loci(parts)

    def _aligned(self, packed: PackedReads, loci: Loci) -> HitRows:
        count = loci.rows.size
        most = int(loci.distances.max(initial=0))
        # Each error and what is between two of them is a run; a number, a sign and a letter in MD.
        out = Paths(
            np.empty(count, np.int64),
            np.zeros((count, 2 * most + 1), np.int64),
            np.empty((count, 6 * most + 4), np.uint8),
            np.empty((2, count), np.int64),
        )
        runs = np.empty(2 * most + 1, np.int64)
        words = self.index.arrays.words
        paths_kernel(words, self._contigs, packed, loci, _diagonals(packed, most), runs, out)
        begins = self._contigs[loci.contigs, 0]
        return HitRows(
            loci.rows >> 1,
            loci.rows & 1,
            loci.contigs,
            out.starts - begins,
            loci.ends + 1 - begins,
            loci.distances,
            out.cigars,
            out.sizes[0],
            out.differences,
            out.sizes[1],
        )

    def _inside(self, packed: PackedReads, keys: NDArray[np.int64], found: NDArray[np.uint8]) -> Loci:
        """Diagonals on which a read is inside a contig, with their mismatches."""
        rows, starts = keys >> 32, keys & 0xFFFFFFFF
        ends = starts + packed.lengths[rows] - 1
        contigs = np.maximum(np.searchsorted(self._contigs[:, 0], starts, "right") - 1, 0)
        inside = (starts >= self._contigs[contigs, 0]) & (ends < self._contigs[contigs, 1])
        return Loci(rows[inside], ends[inside], found[inside].astype(np.int64), contigs[inside])

    def _by_edits(self, packed: PackedReads, keys: NDArray[np.int64], found: NDArray[np.uint8]) -> list[Loci]:
        diagonals = _diagonals(packed, int(packed.errors.max()))
        parts: list[Loci] = []
        first, room = 0, 2 * keys.size + 1024
        while first < keys.size:
            out = Loci(*(np.empty(room, np.int64) for _ in range(4)))
            after, count = loci_kernel(
                self.index.arrays.words, self._contigs, packed, keys, found, first, diagonals, out
            )
            parts.append(Loci(*(column[:count] for column in out)))
            if after == first:
                room *= 4
            first = after
        return parts

    def _reported(
        self, statuses: NDArray[np.uint8], hits: HitRows
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64], HitRows]:
        """The loci that are asked for, in order, with statuses and numbers of loci of all reads."""
        strata = self.settings.strata
        if strata is not None and len(hits):
            best = np.full(statuses.size, MOST_ERRORS, np.int64)
            np.minimum.at(best, hits.read, hits.distance)
            hits = hits.taken(hits.distance <= best[hits.read] + strata)
        counts = np.bincount(hits.read, minlength=statuses.size).astype(np.int64)
        statuses[counts > 0] = _MAPPED
        if self.settings.max_hits is not None:
            statuses[counts > self.settings.max_hits] = _MANY
            hits = hits.taken(statuses[hits.read] == _MAPPED)
        if bool(np.all(hits.read[1:] > hits.read[:-1])):
            return statuses, counts, hits
        order = np.lexsort((hits.strand, hits.start, hits.contig, hits.distance, hits.read))
        return statuses, counts, hits.taken(order)


def _all_loci(parts: list[Loci]) -> Loci:
    if len(parts) == 1:
        return parts[0]
    nothing = [np.zeros(0, np.int64)]
    return Loci(*(np.concatenate([part[k] for part in parts] or nothing) for k in range(4)))


def _diagonals(packed: PackedReads, errors: int) -> Diagonals:
    count = ENDS + 2 * errors
    return Diagonals(
        np.empty((count, packed.words.shape[1]), np.int64), np.empty((errors + 1, count + 2), np.int64)
    )


def _unique(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    keys.sort()
    if not keys.size:
        return keys
    new = np.empty(keys.size, np.bool_)
    new[0] = True
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return keys[new]


class ReadUnit(NamedTuple):
    """Reads that are mapped together, and which mates they are; `first` is the number of the first one."""

    reads: ReadBlock
    mates: NDArray[np.int64]
    first: int

    @property
    def name(self) -> str:
        """What they are called in errors."""
        return f"reads {self.first + 1:,} to {self.first + len(self.reads):,}"


def read_units(
    reads: Reads, mates: _Path | Iterable[_Path] | None = None, block_reads: int | None = None
) -> Iterator[ReadUnit]:
    """Reads, block by block in the order of the input; blocks and errors as of `open_reads`."""
    first = 0
    for block, own in _blocks(reads, mates, block_reads):
        yield ReadUnit(block, own, first)
        first += len(block)


def mapped_blocks(
    mapper: Mapper, reads: Reads, mates: _Path | Iterable[_Path] | None = None
) -> Iterator[MappedReads]:
    """Reads with their loci, block by block in the order of the input; errors as of `read_units`."""
    executor = LocalExecutor(mapper.settings.threads)
    units = read_units(reads, mates)
    return chain.from_iterable(executor.map(lambda unit: mapper.map_block(unit.reads, unit.mates), units))


def _blocks(
    reads: Reads, mates: Any, block_reads: int | None
) -> Iterator[tuple[ReadBlock, NDArray[np.int64]]]:
    if isinstance(reads, Mapping):
        yield from _in_memory(reads, mates)
        return
    paths = reads if isinstance(reads, str | os.PathLike) else list(reads)
    others = mates if mates is None or isinstance(mates, str | os.PathLike) else list(mates)
    with open_reads(paths, others, block_reads=block_reads) as files:
        for item in files:
            if item.mates is None:
                yield item.reads, np.zeros(len(item.reads), np.int64)
            else:
                yield _paired(item.reads, item.mates), np.tile(np.array([1, 2]), len(item.reads))


def _in_memory(reads: Mapping[str, Any], mates: Any) -> Iterator[tuple[ReadBlock, NDArray[np.int64]]]:
    if mates is not None:
        raise InvalidInput("mates", found="mates of reads in memory", expected="files of both")
    texts = [text.encode() if isinstance(text, str) else bytes(text) for text in reads.values()]
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    letters = np.frombuffer(bytearray(b"".join(texts)), np.uint8)
    lines = np.arange(len(texts), dtype=np.int64)
    block, _ = checked_reads(RawReads("reads", 0, list(reads), letters, starts, None, lines))
    for first in range(0, len(block), BLOCK_READS):
        part = slice_reads(block, first, min(first + BLOCK_READS, len(block)))
        yield part, np.zeros(len(part), np.int64)


def _paired(reads: ReadBlock, mates: ReadBlock) -> ReadBlock:
    """First and second mates in turn."""
    both = join_reads([reads, mates])
    count = len(reads)
    order = np.arange(2 * count).reshape(2, count).T.ravel()
    lengths = both.lengths[order]
    starts = np.zeros(2 * count + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    places = np.repeat(both.starts[:-1][order] - starts[:-1], lengths) + np.arange(int(starts[-1]))
    names = [name for pair in zip(reads.names, mates.names, strict=True) for name in pair]
    qualities = None if both.qualities is None else both.qualities[places]
    return ReadBlock(names, both.letters[places], starts, qualities)


@dataclass(frozen=True, eq=False, repr=False)
class Hits(Tabular):
    """Loci of reads, column by column.

    `to_arrow` has the columns read, strand, contig, start, end (0-based and half-open), distance, cigar and
    md.

    Attributes
    ----------
    names
        Names of the reads.
    statuses
        What became of each read: ``"mapped"``, ``"unmapped"``, ``"too_short"``, ``"too_long"``,
        ``"errors_too_many"`` or ``"too_many_hits"``.
    counts
        Loci of each read, also of those of which none are kept. Shape (reads,).
    genome
        The contigs.
    rows
        The loci.
    """

    names: tuple[str, ...]
    statuses: tuple[str, ...]
    counts: NDArray[np.int64]
    genome: Genome
    rows: HitRows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def cigar(self) -> list[str]:
        """CIGAR of each locus, with = and X."""
        return _cigars(self.rows)

    def _table(self, rows: int | None) -> pa.Table:
        import pyarrow as pa

        some = self.rows if rows is None else self.rows.taken(slice(rows))
        differences = zip(some.differences, some.difference_sizes.tolist(), strict=True)
        columns = {
            "read": [self.names[k] for k in some.read.tolist()],
            "strand": ["+-"[k] for k in some.strand.tolist()],
            "contig": [self.genome.names[k] for k in some.contig.tolist()],
            "start": some.start,
            "end": some.end,
            "distance": some.distance,
            "cigar": _cigars(some),
            "md": [own[:size].tobytes().decode() for own, size in differences],
        }
        text, whole = pa.string(), pa.int64()
        kinds = {"start": whole, "end": whole, "distance": whole}
        return pa.table({name: pa.array(own, kinds.get(name, text)) for name, own in columns.items()})


def _cigars(rows: HitRows) -> list[str]:
    return [
        "".join(f"{run >> 4}{'MIDNSHP=X'[run & 15]}" for run in own[:count])
        for own, count in zip(rows.runs.tolist(), rows.run_counts.tolist(), strict=True)
    ]


def map_reads(
    reads: Reads,
    reference: Index | References,
    *,
    mates: _Path | Iterable[_Path] | None = None,
    **settings: Any,
) -> Hits:
    """Map reads of 25 to 400 letters: every locus within the errors, on both strands.

    Parameters
    ----------
    reads
        A file or files (FASTQ or FASTA, plain, gzip or zstd), or sequences by name.
    reference
        An `Index`, or a FASTA file or sequences by name, of which an index is made.
    mates
        Files of second mates, one for each of the reads; they are mapped on their own, behind their first
        mates.
    **settings
        See `MapSettings`.

    Returns
    -------
    Hits
        All loci, in order of the reads, and of each read those with fewest errors first.

    Raises
    ------
    InvalidInput
        If a setting is wrong.
    FormatError
        If a file is not what it should be.

    Examples
    --------
    >>> found = map_reads(
    ...     {"read": "ACGTTGCAGGATTTACCGATAACGT"}, {"chr1": "GGACGTTGCAGGATTACCGATAACGTCC"}, errors=1
    ... )
    >>> found.rows.start.tolist(), found.rows.distance.tolist(), found.cigar
    ([2], [1], ['11=1I13='])
    """
    chosen = MapSettings(**settings)
    index = reference if isinstance(reference, Index) else Index.build(reference, threads=chosen.threads)
    names: list[str] = []
    statuses: list[str] = []
    counts, rows = [np.zeros(0, np.int64)], []
    for block in mapped_blocks(Mapper(index, chosen), reads, mates):
        rows.append((len(names), block.hits))
        names += block.reads.names
        statuses += [STATUSES[k] for k in block.statuses.tolist()]
        counts.append(block.counts)
    return Hits(tuple(names), tuple(statuses), np.concatenate(counts), index.genome, _joined(rows))


def _joined(parts: list[tuple[int, HitRows]]) -> HitRows:
    columns: dict[str, Any] = {}
    for field in fields(HitRows):
        own = [getattr(part, field.name) for _, part in parts]
        if field.name == "read":
            own = [column + first for column, (first, _) in zip(own, parts, strict=True)]
        if field.name in ("runs", "differences"):
            most = max((column.shape[1] for column in own), default=1)
            own = [np.pad(column, ((0, 0), (0, most - column.shape[1]))) for column in own]
        kind = np.uint8 if field.name == "differences" else np.int64
        nothing = np.zeros((0, 1) if field.name in ("runs", "differences") else 0, kind)
        columns[field.name] = np.concatenate(own) if own else nothing
    return HitRows(**columns)


spelled(map_reads, MapSettings)
