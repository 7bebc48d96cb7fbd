"""Map from file to file, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from plait._version import __version__
from plait.formats.atomic import TextOutput, check_output, file_or_standard_output, output_format
from plait.mapping.genome import Genome
from plait.mapping.index import Index, is_index
from plait.mapping.mapper import STATUSES, MappedReads, Mapper, MapSettings, mapped_blocks
from plait.mapping.records import (
    MAP_FORMATS,
    TEXT_FORMATS,
    MapqRule,
    TableFormat,
    provenance_text,
    table_schema,
)
from plait.types import Provenance

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
) -> MapSummary:
    """Map the reads of files and write their loci; `reference` is a FASTA file or an index.

    `output` None or ``-`` is standard output; `format` one of `MAP_FORMATS`, if the file name does not say
    it. `progress` is told how many reads are done, in this thread. `InvalidInput` if a setting is wrong;
    `FormatError` if a file is not what it should be, or the output cannot be written.
    """
    how = MapSettings() if settings is None else settings
    kind = output_format(output, format, MAP_FORMATS, standard="sam", by_name=("parquet", "bam"))
    inputs = [*reads, *(mates or ()), reference]
    path = file_or_standard_output(output)
    if path is not None:
        check_output(path, inputs)
    index = Index.open(reference) if is_index(reference) else Index.build(reference, threads=how.threads)
    mapper = Mapper(index, how)
    summary = MapSummary(index.genome, dict.fromkeys(STATUSES, 0))

    def finish(form: Any) -> Callable[[MappedReads], tuple[Any, Any, int]]:
        return lambda block: (form.encode(block), block.statuses, len(block.hits))

    write: Any
    with ExitStack() as stack:
        if kind == "parquet":
            from plait.formats.tables import open_table

            assert path is not None
            form: Any = TableFormat(index.genome)
            metadata = provenance_text(_provenance(how, index.genome).as_dict())
            write = stack.enter_context(
                open_table(path, table_schema(), metadata=metadata, inputs=inputs)
            ).write
        else:
            form = TEXT_FORMATS[kind](index.genome, mapq)
            head = form.head(__version__, command)
            out = stack.enter_context(TextOutput(output, inputs=inputs))
            out.write(head)
            write = out.write
        for encoded, statuses, loci in mapped_blocks(mapper, list(reads), mates, finish=finish(form)):
            write(encoded)
            summary.loci += loci
            for number, name in enumerate(STATUSES):
                summary.statuses[name] += int((statuses == number).sum())
            if progress:
                progress(summary.reads)
        if kind != "parquet":
            write(form.end())
    return summary


def _provenance(how: MapSettings, genome: Genome) -> Provenance:
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
