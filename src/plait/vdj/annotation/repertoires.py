"""Names of the repertoires that files of reads hold."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from plait.errors import InvalidInput

__all__ = ["repertoire_names"]

_SUFFIXES: Final = re.compile(
    r"(\.(fastq|fq|fasta|fa|fna|ffn|seq|txt))?(\.(gz|bgz|bgzf|zst|bz2|xz))?$", re.IGNORECASE
)

_FIRST_MATE: Final = re.compile(r"[._-]R?1(_001)?$", re.IGNORECASE)


def repertoire_names(
    paths: Sequence[str | os.PathLike[str]], given: Sequence[str] | None, *, paired: bool = False
) -> tuple[str, ...]:
    """A name for the repertoire of each file.

    Parameters
    ----------
    paths
        Files of reads.
    given
        Names that were asked for, one for each file; files of one name are one repertoire. If None, the
        names of the files without folders and suffixes, which must differ.
    paired
        Whether these are files of first mates, whose names may end in ``_1``, ``_R1`` or ``_R1_001``; that is
        left out too.

    Raises
    ------
    InvalidInput
        If there are more or fewer names than files, a name is empty or cannot stand in a table, or two files
        would get one name that nobody asked for.
    """
    if given is None:
        names = [_SUFFIXES.sub("", Path(path).name) or Path(path).name for path in paths]
        if paired:
            names = [_FIRST_MATE.sub("", name) or name for name in names]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InvalidInput(
                "repertoire_ids",
                found=f"{repeated[0]!r} as the name of several files",
                expected="files with different names",
                hint="name the repertoire of each (--repertoire-id); files of one name are one repertoire",
            )
        return tuple(names)
    if len(given) != len(paths):
        raise InvalidInput(
            "repertoire_ids",
            found=f"{len(given)} for {len(paths)} files",
            expected="one for each file",
        )
    for name in given:
        if not name.strip() or any(symbol in name for symbol in "\t\r\n\0"):
            raise InvalidInput("repertoire_ids", found=repr(name), expected="a name, without tabs")
    return tuple(given)
