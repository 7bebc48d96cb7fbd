"""Align the sequences of whole files: streamed in batches, in bounded memory, results in input order."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from plait._version import __version__
from plait.align.aligner import Aligner
from plait.align.coded_files import CodedFile
from plait.align.file_pairs import FilePairs, Pairing, Survey
from plait.align.file_runs import AlignProgress, FileRun, band_width
from plait.align.output import alignment_format, open_alignments
from plait.align.pairs import DEFAULT_COLUMNS, check_columns, needs_alignment
from plait.align.statistics import KarlinAltschul, karlin_altschul
from plait.errors import InvalidInput
from plait.formats.fasta import read_fasta
from plait.formats.output import file_or_standard_output
from plait.types import Provenance

__all__ = ["AlignedFiles", "align_files"]

_Path = str | os.PathLike[str]

_STATISTICS: Final = ("bit_score", "evalue")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedFiles:
    """A finished run.

    Attributes
    ----------
    output
        The file; None for standard output.
    pairs, left_out
        Pairs aligned, and those of them that the format has no line for (SAM: no residues are paired).
    cells
        Cells of their matrices, in the band if there is one.
    notes
        What is odd about the input.
    """

    output: str | None
    pairs: int
    left_out: int
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
    command: str = "",
    progress: Callable[[AlignProgress], None] | None = None,
) -> AlignedFiles:
    """Align the sequences of two FASTA files, or those of one with each other, and write what is found.

    The files are read twice: first to count and check everything. Small ones are kept in memory then. If
    `targets` is larger than that, it is read again for every query where all are paired with all.

    Parameters
    ----------
    queries, targets
        The files; plain, gzip or zstd. Without `targets` every record of `queries` is paired with all that
        follow it.
    output
        The file to write, or None for standard output.
    aligner
        All settings of the alignments.
    pairs
        ``"order"``: the first query with the first target and so on; ``"all"``: every query with every
        target; ``"one"``: the single query with every target. By default ``"order"`` for two files and
        ``"all"`` for one.
    format, columns, md
        As for `plait.align.output.open_alignments`.
    score_only
        Leave out the alignments; so it is too if the columns need none.
    command
        The command line, for headers.
    progress
        Called often, from several threads.

    Returns
    -------
    AlignedFiles
        What was done.

    Raises
    ------
    InvalidInput
        If settings do not go together, or the files have other numbers of records than the pairing asks for.
    FormatError
        If a file is not what it should be, or the disk is full.
    Unsupported
        If the format cannot hold these alignments, or a pair needs too much memory; the bytes are named.
    """
    pairing: Pairing = pairs or ("all" if targets is None else "order")
    if score_only and format is None and file_or_standard_output(output) is None:
        format = "tsv"
    chosen = alignment_format(output, format)
    table = chosen not in ("text", "sam")
    if columns is not None or not table:
        names = check_columns(columns)
    else:
        names = tuple(name for name in DEFAULT_COLUMNS if not (score_only and needs_alignment([name])))
    if score_only and (not table or needs_alignment(names)):
        _refuse_scores(chosen if not table else names)
    statistics = _statistics(aligner, names) if table else None
    read = CodedFile(queries, aligner.scoring)
    files = FilePairs(read, None if targets is None else CodedFile(targets, aligner.scoring), pairing)
    surveyed = files.survey(width=band_width(aligner), unique_targets=chosen == "sam")
    run = FileRun(
        aligner,
        names if table else (),
        scores_only=table and not needs_alignment(names),
        statistics=statistics,
        cells=surveyed.cells,
        progress=progress,
    )
    inputs = [path for path in (queries, targets) if path is not None]
    writer = open_alignments(
        output,
        scoring=aligner.scoring,
        provenance=_provenance(aligner, pairing, score_only),
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
        pairs=writer.pairs,
        left_out=writer.left_out,
        cells=surveyed.cells,
        notes=tuple(_notes(surveyed)),
    )


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


def _statistics(aligner: Aligner, names: Sequence[str]) -> KarlinAltschul | None:
    asked = next((name for name in names if name in _STATISTICS), None)
    if asked is None:
        return None
    if aligner.mode != "local":
        raise InvalidInput(
            "columns",
            found=f"{asked!r} in mode {aligner.mode!r}",
            expected="statistics of local alignments only",
        )
    found, reason = karlin_altschul(aligner.scoring)
    if found is None:
        raise InvalidInput("columns", found=repr(asked), expected="a scoring that has it", hint=reason)
    return found


def _names_and_lengths(path: _Path) -> Iterator[tuple[str, int]]:
    for block in read_fasta(path):
        yield from zip(block.names, block.lengths.tolist(), strict=True)


def _provenance(aligner: Aligner, pairing: str, score_only: bool) -> Provenance:
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
        },
    )


def _notes(surveyed: Survey) -> Iterator[str]:
    for first, count in surveyed.duplicates:
        others = f" (so it is with {count:,} records)" if count > 1 else ""
        yield (
            f"{first.path}, line {first.line}: the name {first.name!r} was there before{others}; "
            "results cannot be told apart by name"
        )
