"""Map reads into a folder of parts, which are written where reads are mapped.

A module of its own: other outputs do without Arrow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.formats.checkpoints import digest_of
from plait.formats.datasets import Folder, PartFile, Parts, PartWriter, rows_of_part
from plait.formats.files import identify
from plait.formats.tables import ONE_FILE, PartSettings
from plait.mapping.map_files import BlockMapper, bytes_of, metadata_of, provenance_of
from plait.mapping.mapper import BLOCK_READS, STATUSES, ReadUnit, read_units
from plait.mapping.records import table_schema
from plait.run.datasets import WorkedPart, open_dataset
from plait.run.executor import Executor
from plait.run.rows import Remade
from plait.settings import package_digest

_Path = str | os.PathLike[str]
#: Blocks of a part, and parts worked on at a time in this process, at most.
_MOST_BLOCKS: Final = 16
_MOST_PARTS: Final = 12


class _Part(NamedTuple):
    """Reads that become part `number`."""

    number: int
    units: tuple[ReadUnit, ...]


@dataclass(frozen=True)
class PartOfLoci(Remade):
    """Maps the reads of a part and writes it, wherever it is called."""

    work: BlockMapper
    parts: Parts
    folder: Folder

    def __call__(self, part: _Part) -> WorkedPart:
        """Write a part."""
        writer, totals = PartWriter(part.number, self.parts), np.zeros(len(STATUSES) + 1, np.int64)
        for unit in part.units:
            for rows, found in self.work(unit):
                writer.write(rows)
                totals += found
        return WorkedPart(writer.finish(self.folder), int(totals[:-1].sum()), totals)


def write_parts(
    work: BlockMapper,
    reads: Sequence[_Path],
    mates: Sequence[_Path] | None,
    output: str,
    executor: Executor,
    count: Callable[[NDArray[np.int64]], None],
    *,
    resume: bool,
    settings: PartSettings | None,
) -> None:
    """Map all reads into a folder of parts, which are written where reads are mapped."""
    inputs, settings = [*reads, *(mates or ())], settings or ONE_FILE
    parts = Parts(table_schema(), metadata_of(work), settings.partition).check()
    blocks = max(1, min(rows_of_part(settings) // BLOCK_READS, _MOST_BLOCKS))
    key = {
        "provenance": provenance_of(work.settings, work.index.genome).as_dict(),
        "sources": package_digest(),
        "inputs": [list(identity) for identity in identify(inputs)[1]],
        "mates": mates is not None,
        "part_blocks": blocks,
    }
    units = read_units(list(reads), mates, BLOCK_READS)
    groups = iter(lambda: tuple(islice(units, blocks)), ())
    with open_dataset(
        output, parts, key=key, inputs=[*inputs, work.index.genome.source], resume=resume
    ) as made:
        files = list[PartFile]()
        results = made.results(
            executor,
            PartOfLoci(work, parts, made.output.folder),
            (_Part(number, group) for number, group in enumerate(groups)),
            digest=lambda part: digest_of(*(data for unit in part.units for data in _data_of(unit))),
            named=lambda _, part: " and ".join(unit.name for unit in part.units),
            totals=np.zeros(len(STATUSES) + 1, np.int64),
            most=_MOST_PARTS,
            size=lambda part: sum(map(bytes_of, part.units)),
        )
        with closing(results):
            for found in results:
                files += found.files
                count(found.totals)
        made.finish(files, None)


def _data_of(unit: ReadUnit) -> Iterator[Any]:
    """All that a block of reads holds."""
    yield "\n".join(unit.reads.names).encode("utf-8", "surrogatepass")
    yield from (unit.mates, unit.reads.letters, unit.reads.starts)
    if unit.reads.qualities is not None:
        yield unit.reads.qualities
