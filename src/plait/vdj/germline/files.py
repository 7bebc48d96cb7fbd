"""Small text files in and out, plain or gzip, with the errors of `plait.errors`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.files import read_text as read_text

PathLike = str | os.PathLike[str]

_FASTA_SUFFIXES = (".fasta", ".fa", ".fna", ".fas")


def fasta_stem(name: str) -> str | None:
    """A file name without its FASTA suffix (and ``.gz``), or None if it has none.

    >>> fasta_stem("TRBV.fasta.gz"), fasta_stem("TRBV.txt")
    ('TRBV', None)
    """
    bare = name[:-3] if name.lower().endswith(".gz") else name
    suffix = next((s for s in _FASTA_SUFFIXES if bare.lower().endswith(s)), None)
    return None if suffix is None else bare[: -len(suffix)]


def write_texts(texts: Mapping[Path, str]) -> None:
    """Write text files, content by path, so that none of them is ever seen half-written.

    Nothing is put in place before all of it is on disk. InvalidInput or FormatError if one cannot be written.
    """
    with ExitStack() as stack:
        for path, text in texts.items():
            file = stack.enter_context(AtomicFile(path))
            with output_errors(path):
                file.stream.write(text.encode("utf-8"))
                file.stream.flush()
