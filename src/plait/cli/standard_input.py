"""Standard input in the place of a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from plait.errors import InvalidInput

__all__ = ["HYPHEN", "files_of", "with_hyphens"]

#: What stands for standard input or output.
HYPHEN: Final = "-"
_OUTPUT: Final = ("-o", "--output")


def with_hyphens(words: Sequence[str]) -> list[str]:
    """The words of a command line, with lone hyphens written so that they are no options.

    >>> with_hyphens(["align", "-", "b.fa", "-o", "-"])
    ['align', './-', 'b.fa', '--output=-']
    """
    found: list[str] = []
    for word in words:
        if word == HYPHEN and found and found[-1] in _OUTPUT:
            found[-1] = f"{_OUTPUT[1]}={HYPHEN}"
        else:
            found.append(f"./{HYPHEN}" if word == HYPHEN else word)
    return found


@contextmanager
def files_of(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The same files, with one that holds what comes by standard input in the place of ``-``.

    It is a temporary file, because files are read more than once.

    Raises
    ------
    InvalidInput
        If two of them are ``-``.
    """
    asked = [path for path in paths if str(path) == HYPHEN]
    if not asked:
        yield list(paths)
        return
    if len(asked) > 1:
        raise InvalidInput("-", found="standard input as two files", expected="one of them at the most")
    from plait.formats.atomic import output_errors

    with TemporaryDirectory(prefix="plait-") as folder:
        kept = Path(folder) / "standard-input"
        with output_errors(kept), kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [kept if path in asked else path for path in paths]
