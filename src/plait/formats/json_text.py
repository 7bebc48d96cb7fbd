"""JSON that comes from files, which may hold anything."""

from __future__ import annotations

import json
import os
from typing import Any

from plait.errors import FormatError

__all__ = ["parse_json", "read_json"]


def parse_json(text: bytes, path: object, expected: str) -> Any:
    """Read JSON.

    Parameters
    ----------
    text
        The text.
    path
        Where it stood, for messages.
    expected
        What it should be, for messages.

    Raises
    ------
    FormatError
        If it is no JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise FormatError(path, found="brackets nested too deeply", expected=expected) from error
    except ValueError as error:
        raise FormatError(path, found=error, expected=expected) from error


def read_json(path: str | os.PathLike[str], expected: str, *, most: int) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path
        The file.
    expected
        What it should be, for messages.
    most
        Bytes that it may have.

    Raises
    ------
    FormatError
        If it cannot be read, is larger, or is no JSON.
    """
    try:
        with open(path, "rb") as file:
            text = file.read(most + 1)
    except OSError as error:
        raise FormatError(path, found=error.strerror or error, expected=expected) from error
    if len(text) > most:
        raise FormatError(path, found=f"more than {most:,} bytes", expected=expected)
    return parse_json(text, path, expected)
