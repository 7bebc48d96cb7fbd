"""JSON from files that nobody has checked: it is read, or it is an error that names the file."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final, NoReturn

from plait.errors import FormatError
from plait.formats.compression import check_readable, input_errors

#: Lists and objects in one another. Python's own limit depends on who calls.
_DEEPEST: Final = 64
_UTF8_MARK: Final = b"\xef\xbb\xbf"
#: The text of what may be half of a character beyond the first 65,536.
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: str | os.PathLike[str], expected: str, *, most: int = 1 << 26) -> Any:
    """Content of a JSON file, as of `parse_json`.

    `expected` is what it should be, for errors, `most` the bytes that it may have. FormatError if it cannot
    be read or has more, or what `parse_json` refuses.
    """
    size = check_readable(path).st_size
    if size > most:
        raise FormatError(path, found=f"{size:,} bytes", expected=f"{expected}, of at most {most:,} bytes")
    with input_errors(path, expected):
        content = Path(path).read_bytes()
    return parse_json(content, path, expected=expected)


def parse_json(text: str | bytes, path: object, expected: str) -> Any:
    """Content of JSON text, as `json.loads` gives it; bytes are UTF-8.

    Names are unique, no number is NaN, and nothing is nested so deep that a function that calls itself could
    not walk it. FormatError if it is anything else; it names `path` and says what was `expected`.
    """
    try:
        plain = text.removeprefix(_UTF8_MARK).decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        found = f"a byte that is no UTF-8 text at position {error.start}"
        raise FormatError(path, found=found, expected=expected) from error

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise FormatError(path, found=f"the name {twice[:40]!r} twice in one object", expected=expected)
        return found

    def no_number(word: str) -> NoReturn:
        raise FormatError(path, line=line_of(word), found=f"{word}, which is no number", expected=expected)

    def line_of(pattern: str) -> int | None:
        """Where the first one stands that is in no text, as far as its surroundings tell."""
        place = re.search(rf"(?<=[\s\[:,]){pattern}(?=[\s\]}},])", plain)
        return plain.count("\n", 0, place.start()) + 1 if place else None

    try:
        content = json.loads(plain, object_pairs_hook=unique, parse_constant=no_number)
    except json.JSONDecodeError as error:
        raise FormatError(
            path, line=error.lineno, found=f"no JSON ({error.msg})", expected=expected
        ) from error
    except RecursionError:
        raise _too_deep(path, expected) from None
    except FormatError:
        raise
    except ValueError as error:
        # Python refuses to read integers of thousands of digits.
        line = line_of(r"-?\d{4000,}")
        found = "a number of thousands of digits"
        raise FormatError(path, line=line, found=found, expected=expected) from error
    _check_depth(content, path, expected)
    if _SURROGATE.search(plain):
        try:
            json.dumps(content, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            found = f"half of a character, {error.object[error.start]!a}"
            raise FormatError(path, found=found, expected=expected) from None
    return content


def _check_depth(content: Any, path: object, expected: str) -> None:
    level = [content]
    for _ in range(_DEEPEST):
        level = [
            item
            for one in level
            for item in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(item, list | dict)
        ]
        if not level:
            return
    raise _too_deep(path, expected)


def _too_deep(path: object, expected: str) -> FormatError:
    found = f"brackets nested too deeply, more than {_DEEPEST} in one another"
    return FormatError(path, found=found, expected=expected)
