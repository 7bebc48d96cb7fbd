"""What is annotated: the reads of files, or with UMIs a consensus of each molecule."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.checkpoints import digest_of
from plait.formats.fastq import ReadBlock
from plait.formats.reads import ReadFiles
from plait.formats.umis import UmiPlace, take_umis
from plait.run.rows import Progress
from plait.vdj.clonotypes.umis import UmiCollector, UmiCounts, UmiSettings
from plait.vdj.reads.summary import ReadSummary

#: Bytes of reads that wait in memory until they are sorted by UMI; the peak is about six times as much.
_WAITING_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Umis:
    """Where unique molecular identifiers stand.

    Molecules with fewer reads than `min_reads` are left out; `ratio` as in `UmiSettings`, None: take UMIs as
    they are.
    """

    place: UmiPlace
    min_reads: int = 1
    ratio: float | None = None

    @property
    def settings(self) -> UmiSettings:
        """What makes a molecule."""
        return UmiSettings(min_reads=self.min_reads, umi_ratio=self.ratio, memory_bytes=_WAITING_BYTES)


class ReadUnit(NamedTuple):
    """Reads that are annotated together, of file number `file`, from 0; `mates` may be None.

    Of molecules, `file` is the first one of their repertoire, `counts` the reads behind each, `first` None
    and `summary` empty, as their reads have been counted before. Otherwise `first` is the number of the first
    of these reads in their file, from 0.
    """

    file: int
    reads: ReadBlock
    mates: ReadBlock | None
    counts: NDArray[np.int64] | None
    summary: ReadSummary
    first: int | None = None


def unit_digest(unit: ReadUnit) -> bytes:
    """Digest of what a block holds: its reads, and where they belong."""
    names = "\n".join(unit.reads.names).encode("utf-8", "surrogatepass")
    return digest_of(str(unit.file).encode(), names, *_arrays(unit))


def unit_bytes(unit: ReadUnit) -> int:
    """Bytes of letters and qualities of a block."""
    return sum(array.nbytes for array in _arrays(unit))


def _arrays(unit: ReadUnit) -> list[NDArray[Any]]:
    """All arrays of a block; an empty one for those that there are not."""
    found: list[NDArray[Any] | None] = [unit.counts]
    for reads in (unit.reads, unit.mates):
        found += [None] * 3 if reads is None else [reads.letters, reads.starts, reads.qualities]
    return [np.zeros(0, np.uint8) if array is None else array for array in found]


class ReadSource:
    """Blocks of reads, or of the consensus reads of molecules, which depend on the files alone.

    Reads with UMIs that do not fit memory are put aside beside `output`. `progress` is called as reads are
    collected and as `done` is told of results. `collected` counts the reads with UMIs of each file.
    InvalidInput if UMIs are to stand in mates that there are not.
    """

    def __init__(
        self,
        reader: ReadFiles,
        names: Sequence[str],
        umis: Umis | None,
        output: str | os.PathLike[str],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        if umis is not None and umis.place.needs_mates and reader.mate_paths is None:
            raise InvalidInput(
                "umi", found="a place in the second mates", expected="files of second mates, or another place"
            )
        self._reader = reader
        self.names = tuple(names)
        self._umis = umis
        self._folder = f"{os.fspath(output)}.umi-reads"
        self._progress = progress
        self._annotated = self._collected_reads = self._used_reads = 0
        self.collected = [ReadSummary() for _ in names]
        self.umi_counts: UmiCounts | None = None

    def __iter__(self) -> Iterator[ReadUnit]:
        return self._items() if self._umis is None else self._molecules(self._umis)

    @property
    def described(self) -> dict[str, object] | None:
        """The UMIs, ready for JSON; None without."""
        if self._umis is None:
            return None
        place = self._umis.place
        pattern = None if place.pattern is None else place.pattern.pattern
        return {"name": pattern, "parts": [list(part) for part in place.parts], **asdict(self._umis.settings)}

    def named(self, index: int, unit: ReadUnit) -> str:
        """What a block is called in messages."""
        path = self._reader.paths[unit.file]
        if unit.first is None:
            return f"block {index}, molecules of {str(path)!r}"
        return f"reads {unit.first} to {unit.first + len(unit.reads) - 1} of {str(path)!r}"

    def done(self, unit: ReadUnit) -> None:
        """Take note that a block has been annotated."""
        self._annotated += len(unit.reads)
        if self._progress is None:
            return
        read, total = self._reader.bytes_read(), self._reader.total_bytes
        if unit.counts is not None:
            # Collecting the reads was half of the way.
            self._used_reads += int(unit.counts.sum())
            read, total = total + total * self._used_reads // max(self._collected_reads, 1), 2 * total
        self._progress(Progress(self._annotated, read, total))

    def _items(self) -> Generator[ReadUnit, None, None]:
        for item in self._reader:
            yield ReadUnit(
                item.file, item.reads, item.mates, None, _summary(item.reads, item.mates), item.first
            )

    def _molecules(self, umis: Umis) -> Generator[ReadUnit, None, None]:
        with UmiCollector(self._folder, umis.settings) as collector:
            for item in self._reader:
                self.collected[item.file].merge(_summary(item.reads, item.mates))
                taken = take_umis(item.reads, item.mates, umis.place)
                collector.add(taken.reads, taken.mates, taken.umis, self.names[item.file])
                self._collected_reads += len(item.reads)
                if self._progress is not None:
                    read = self._reader.bytes_read()
                    self._progress(Progress(self._collected_reads, read, 2 * self._reader.total_bytes))
            for found in collector.finish():
                file = self.names.index(found.repertoire)
                yield ReadUnit(file, found.reads, found.mates, found.counts, ReadSummary())
            self.umi_counts = collector.counts


def _summary(reads: ReadBlock, mates: ReadBlock | None) -> ReadSummary:
    found = ReadSummary()
    found.add_reads([reads] if mates is None else [reads, mates], reads=len(reads))
    return found
