"""Map from file to file, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.atomic import TextOutput, check_output, file_or_standard_output, output_format
from plait.mapping.genome import Genome
from plait.mapping.index import Index, is_index
from plait.mapping.mapper import BLOCK_READS, STATUSES, Mapper, MapSettings, ReadUnit, read_units
from plait.mapping.records import (
    MAP_FORMATS,
    TEXT_FORMATS,
    MapqRule,
    TableFormat,
    provenance_text,
    table_schema,
)
from plait.run.executor import Executor, LocalExecutor
from plait.types import Provenance

if TYPE_CHECKING:
    from plait.formats.tables import PartSettings

_Path = str | os.PathLike[str]


@dataclass(slots=True)
class MapSummary:
    """What mapping has done: reads by what became of them, and loci written."""

    genome: Genome
    statuses: dict[str, int]
    loci: int = 0

    @property
    def reads(self) -> int:
        """Reads of all kinds."""
        return sum(self.statuses.values())


@dataclass(frozen=True)
class BlockMapper:
    """Maps reads wherever it is called, and encodes their loci in a format, one of `MAP_FORMATS`."""

    index: Index
    settings: MapSettings
    format: str
    mapq: MapqRule = "none"

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockMapper, (self.index, self.settings, self.format, self.mapq)

    @cached_property
    def mapper(self) -> Mapper:
        """What maps."""
        return Mapper(self.index, self.settings)

    @cached_property
    def form(self) -> Any:
        """What encodes."""
        genome = self.index.genome
        return (
            TableFormat(genome) if self.format == "parquet" else TEXT_FORMATS[self.format](genome, self.mapq)
        )

    def __call__(self, unit: ReadUnit) -> list[tuple[Any, NDArray[np.int64]]]:
        """What is written of the reads, in pieces; with each the reads of every status, and the loci."""
        return [
            (
                self.form.encode(one),
                np.append(np.bincount(one.statuses, minlength=len(STATUSES)), len(one.hits)),
            )
            for one in self.mapper.map_block(unit.reads, unit.mates)
        ]


def map_files(
    reads: Sequence[_Path],
    reference: _Path,
    output: _Path | None = None,
    settings: MapSettings | None = None,
    *,
    mates: Sequence[_Path] | None = None,
    format: str | None = None,
    mapq: MapqRule = "none",
    command: str = "",
    progress: Callable[[int], None] | None = None,
    executor: Executor | None = None,
    resume: bool = False,
    parts: PartSettings | None = None,
) -> MapSummary:
    """Map the reads of files and write their loci; `reference` is a FASTA file or an index.

    `output` None or ``-`` is standard output, a name that ends in a slash a folder of parts; `format` one of
    `MAP_FORMATS`, if the file name does not say it. `progress` is told how many reads are done, in this
    thread. The `executor`, by default threads of this process, maps and writes the parts; elsewhere,
    `reference` has to be an index. `resume` takes over the parts that a run which was stopped has finished.
    `InvalidInput` if a setting is wrong; `FormatError` if a file is not what it should be, or the output
    cannot be written.
    """
    how = MapSettings() if settings is None else settings
    kind = output_format(output, format, MAP_FORMATS, standard="sam", by_name=("parquet", "bam"))
    inputs = [*reads, *(mates or ()), reference]
    path = file_or_standard_output(output)
    if path is not None:
        check_output(path, inputs)
    if resume and (path is None or not path.endswith("/")):
        expected = "a folder of parts, whose name ends in a slash: other outputs begin anew"
        raise InvalidInput("resume", found=f"the output {path or '-'!r}", expected=expected)
    index = Index.open(reference) if is_index(reference) else Index.build(reference, threads=how.threads)
    work = BlockMapper(index, how, kind, mapq)
    summary = MapSummary(index.genome, dict.fromkeys(STATUSES, 0))

    def count(totals: NDArray[np.int64]) -> None:
        for name, number in zip(STATUSES, totals[:-1].tolist(), strict=True):
            summary.statuses[name] += number
        summary.loci += int(totals[-1])
        if progress:
            progress(summary.reads)

    executor = executor or LocalExecutor(how.threads)
    if path is not None and path.endswith("/"):
        from plait.mapping.map_parts import write_parts

        write_parts(work, reads, mates, path, executor, count, resume=resume, settings=parts)
        return summary
    with _opened(work, output, inputs, command) as write:
        # A GPU is given as much as it was measured with.
        units = read_units(list(reads), mates, None if how.device == "cpu" else BLOCK_READS)
        results = executor.map(work, units, named=attrgetter("name"), size=bytes_of)
        with closing(results):
            for encoded, totals in chain.from_iterable(results):
                write(encoded)
                count(totals)
    return summary


@contextmanager
def _opened(
    work: BlockMapper, output: _Path | None, inputs: Sequence[_Path], command: str
) -> Iterator[Callable[[Any], object]]:
    """Takes what is written of reads, into a file or to standard output."""
    if work.format == "parquet":
        from plait.formats.tables import open_table

        assert output is not None
        with open_table(output, table_schema(), metadata=metadata_of(work), inputs=inputs) as table:
            yield table.write
        return
    with TextOutput(output, inputs=inputs) as text:
        text.write(work.form.head(__version__, command))
        yield text.write
        text.write(work.form.end())


def bytes_of(unit: ReadUnit) -> int:
    """Bytes of a block of reads, about."""
    return sum(array.nbytes for array in (unit.reads.letters, unit.reads.qualities) if array is not None)


def metadata_of(work: BlockMapper) -> dict[str, str]:
    """What a table tells of how it was made."""
    return provenance_text(provenance_of(work.settings, work.index.genome).as_dict())


def provenance_of(how: MapSettings, genome: Genome) -> Provenance:
    """How loci are made."""
    parameters = {
        "errors": how.errors,
        "error_rate": how.error_rate,
        "substitutions_only": how.substitutions_only,
        "report": how.report,
        "max_hits": how.max_hits,
        "reference": genome.source,
        "reference_digest": genome.digest,
        "contigs": len(genome.names),
        "letters": genome.letters,
    }
    return Provenance(
        version=__version__, device="cpu", schedule="seeds", algebra="unit edits", parameters=parameters
    )
