"""Annotate reads in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from plait.errors import FormatError, InvalidInput
from plait.formats.fastq import RawReads, ReadBlock, checked_reads
from plait.formats.reads import open_reads, slice_reads
from plait.run.local import LocalExecutor
from plait.types import Provenance
from plait.vdj.reads.annotator import ReadAnnotator
from plait.vdj.reads.settings import AnnotationSettings, Germlines, germlines_of
from plait.vdj.reads.summary import ReadSummary

_BLOCK_READS = 4096
_BLOCK_BASES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """Annotated reads.

    Attributes
    ----------
    table
        One row for each read, in order, with AIRR columns, and `annotation_status`: ``ok`` where the junction
        is known, otherwise the reason why it is not.
    summary
        What became of the reads, counted.
    provenance
        How the rows were made.
    """

    table: pa.Table
    summary: ReadSummary
    provenance: Provenance


def annotate(
    reads: Any,
    *,
    germline: Germlines,
    mates: Any = None,
    settings: AnnotationSettings | None = None,
    device: str = "auto",
    threads: int | None = None,
    **limits: Any,
) -> Annotations:
    """Find V, D, J and the junction of every read.

    Parameters
    ----------
    reads
        Sequences (n,): str in a sequence, a NumPy array or an Arrow array, IUPAC letters of either case; or a
        `plait.formats.fastq.ReadBlock`, which has names and qualities too; or the path of a FASTQ or
        FASTA file as `pathlib.Path`. For what does not fit memory there is
        `plait.vdj.reads.annotate_files`.
    germline
        A germline set, the name or path of one, or several of them; each read is called in the set that it
        matches best.
    mates
        The second mate of each read, in the form of `reads`, as sequenced. Mates that overlap are merged; of
        others both count when alleles are chosen.
    settings
        Limits beyond which a read has a reason in the place of ``ok``.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or
        ``"reference"`` (plain Python).
    threads
        CPU threads; all processors this process may use by default.
    **limits
        Fields of `AnnotationSettings` in the place of `settings`: ``max_error_rate=0.1`` and so on.

    Returns
    -------
    Annotations
        Rows in the order of the reads.

    Raises
    ------
    InvalidInput
        If an argument is wrong, a sequence holds what is no nucleotide code, or `mates` are not as many.
    FormatError
        If a file is not what it should be.
    TargetUnavailable
        If a GPU is asked for and cannot be used.

    Examples
    --------
    >>> from plait.vdj import annotate
    >>> v = "TCAGACATCTGTGTACTTCTGTGCCAGCAG"
    >>> j = "GAACAGTACTTCGGTCCCGGCACCAGGCTCACGGTTTTAG"
    >>> found = annotate([v + "TTGGGACTGGTAT" + j, "ACGTTGCAAG" * 5], germline="mouse_trb")
    >>> found.table["annotation_status"].to_pylist(), found.table["junction_aa"].to_pylist()
    (['ok', 'no_v'], ['CASSWDWYEQYF', None])
    """
    if settings is None:
        settings = AnnotationSettings(**limits)
    elif limits:
        raise InvalidInput("settings", found=f"also {', '.join(limits)}", expected="one or the other")
    annotator = ReadAnnotator(germlines_of(germline), settings=settings, device=device)
    executor = LocalExecutor(threads)
    batches, summary = [], ReadSummary()
    with closing(
        executor.map(lambda pair: annotator.annotate(*pair), _counted(reads, mates, summary))
    ) as found:
        for rows, part in found:
            batches.append(rows)
            summary.merge(part)
    summary.rows = summary.sequences
    table = pa.Table.from_batches(batches, schema=annotator.schema)
    return Annotations(table=table, summary=summary, provenance=annotator.provenance)


def _counted(reads: Any, mates: Any, summary: ReadSummary) -> Iterator[tuple[ReadBlock, ReadBlock | None]]:
    for first, second in _blocks(reads, mates):
        summary.add_reads([first] if second is None else [first, second], reads=len(first))
        yield first, second


def _blocks(reads: Any, mates: Any) -> Iterator[tuple[ReadBlock, ReadBlock | None]]:
    """Reads and mates in blocks that do not depend on threads."""
    if _is_path(reads) or _is_path(mates):
        if not (_is_path(reads) and (mates is None or _is_path(mates))):
            raise InvalidInput("mates", found="a path beside sequences", expected="both of one form")
        with open_reads(reads, mates, block_reads=_BLOCK_READS) as files:
            for item in files:
                yield item.reads, item.mates
        return
    first = _block_of(reads, "reads")
    second = None if mates is None else _block_of(mates, "mates")
    if second is not None and len(second) != len(first):
        raise InvalidInput(
            "mates", found=f"{len(second)} for {len(first)} reads", expected="one for each read"
        )
    for start, end in _pieces(first.starts):
        part = slice_reads(first, start, end)
        yield part, None if second is None else slice_reads(second, start, end)


def _is_path(given: Any) -> bool:
    return isinstance(given, os.PathLike)


def _block_of(given: Any, what: str) -> ReadBlock:
    """Reads of any form but a path as a block."""
    if isinstance(given, ReadBlock):
        return given
    texts = _texts(given, what)
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=starts[1:])
    try:
        # A letter beyond ASCII becomes a question mark, which is refused as what it stands for would be.
        letters = np.frombuffer("".join(texts).encode("ascii", "replace"), np.uint8)
        names = [str(number) for number in range(len(texts))]
        raw = RawReads(what, 0, names, letters, starts, None, np.arange(1, len(texts) + 1))
        return checked_reads(raw)[0]
    except FormatError as error:
        raise InvalidInput(what, found=error.found, expected=error.expected, hint=error.hint) from None


def _texts(given: Any, what: str) -> list[str]:
    if isinstance(given, pa.Array | pa.ChunkedArray):
        given = given.to_pylist()
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise InvalidInput(
            what,
            found=repr(given)[:60],
            expected="sequences in a list or array, a ReadBlock, or a file as pathlib.Path",
        )
    found: list[Any] = list(given)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise InvalidInput(what, found=f"{text!r:.60} at {number}", expected="sequences as text")
    return found


def _pieces(starts: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    """First read and end of each block."""
    first, n = 0, starts.size - 1
    while first < n:
        last = int(np.searchsorted(starts, starts[first] + _BLOCK_BASES, "right")) - 1
        end = min(max(last, first + 1), first + _BLOCK_READS, n)
        yield first, end
        first = end
