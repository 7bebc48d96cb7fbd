"""What became of the reads of files, as JSON and as a table."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plait.formats.atomic import AtomicFile, output_errors, write_json
from plait.formats.files import beside
from plait.vdj.reads.annotator import ReadSummary
from plait.vdj.reads.rearrangements import STATUSES

_TOP_GENES = 3
_SHARES = 6
#: Names of files may hold what would end a cell.
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What became of the reads of one file, or of two files of mates.

    `input` says what was unusual about the files: duplicate_names, empty_reads, dots and so on. `clonotypes`
    are those of the repertoire, if they were counted.
    """

    path: str
    mate_path: str | None
    repertoire_id: str
    summary: ReadSummary
    input: Mapping[str, int | bool]
    clonotypes: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        facts = {
            "path": self.path,
            "mate_path": self.mate_path,
            "repertoire_id": self.repertoire_id,
            "input": dict(self.input),
            "clonotypes": self.clonotypes,
        }
        return facts | self.summary.as_dict(STATUSES)

    def row(self) -> dict[str, str]:
        """The same as cells of a table, with the most frequent genes and the shares of statuses."""
        counts = self.summary
        found: dict[str, Any] = {
            "repertoire_id": self.repertoire_id,
            "path": self.path,
            "mate_path": self.mate_path,
            "reads": counts.reads,
            "merged_pairs": counts.merged_pairs,
            "sequences": counts.sequences,
            "rows": counts.rows,
            "mean_length": counts.mean_length,
            "mean_quality": counts.mean_quality,
            "duplicate_names": self.input["duplicate_names"],
            "empty_reads": self.input["empty_reads"],
            "forward": counts.forward,
            "reverse": counts.reverse,
        }
        for status in STATUSES:
            found[status] = counts.statuses[status]
            found[f"{status}_share"] = (
                counts.statuses[status] / counts.sequences if counts.sequences else None
            )
        found |= {
            "productive": counts.productive,
            "frame_shifted": counts.out_of_frame,
            "with_stop_codon": counts.stop_codon,
            "median_junction_length": counts.junction_length(0.5),
            "most_frequent_v": _most_frequent(counts.v_genes),
            "most_frequent_j": _most_frequent(counts.j_genes),
            "clonotypes": self.clonotypes,
        }
        return {name: _cell(value) for name, value in found.items()}


def total_of(files: Sequence[FileReport]) -> ReadSummary:
    """Counts of all files together."""
    total = ReadSummary()
    for file in files:
        total.merge(file.summary)
    return total


def write_reports(
    output: str | os.PathLike[str], files: Sequence[FileReport], facts: Mapping[str, Any]
) -> tuple[Path, Path]:
    """Write ``OUTPUT.summary.json``, with further `facts`, and ``OUTPUT.summary.tsv``; their paths."""
    json_path, table_path = (beside(output, f".summary.{end}") for end in ("json", "tsv"))
    rows = [file.row() for file in files]
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    with AtomicFile(table_path) as file, output_errors(table_path):
        file.stream.write(("\n".join(lines) + "\n").encode("utf-8", "backslashreplace"))
    total = total_of(files).as_dict(STATUSES)
    write_json(json_path, {**facts, "total": total, "files": [file.as_dict() for file in files]})
    return json_path, table_path


def _most_frequent(genes: Counter[str]) -> str:
    most = sorted(genes.items(), key=lambda item: (-item[1], item[0]))[:_TOP_GENES]
    return ",".join(f"{gene}:{count}" for gene, count in most)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.{_SHARES}g}" if isinstance(value, float) else str(value).translate(_ESCAPES)
