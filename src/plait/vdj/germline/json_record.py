"""One object of an AIRR JSON file, whose fields are checked as they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from plait.errors import FormatError
from plait.vdj.germline.files import PathLike

__all__ = ["Record"]

#: Longer than any germline gene, with its reference sequence around it.
_LARGEST: Final = 10**9
_DIGITS: Final = re.compile(r"[0-9]{1,10}")


class Record:
    """A JSON object with typed access to its fields.

    Parameters
    ----------
    path
        The file, for messages.
    value
        What stands at this place of the file.
    label
        Name of the place, for messages.

    Raises
    ------
    FormatError
        If the value is no object.
    """

    def __init__(self, path: PathLike, value: object, label: str) -> None:
        if not isinstance(value, Mapping):
            raise FormatError(path, found=f"{_kind(value)} as {label}", expected="an object")
        self.path = path
        self.fields: Mapping[str, object] = value
        self.label = label

    def error(self, key: str, found: str, expected: str) -> FormatError:
        """A `FormatError` at a field of this object."""
        return FormatError(self.path, column=key, found=f"{found} in {self.label}", expected=expected)

    def text(self, key: str, default: str | None = None) -> str:
        """A string; the default if it is missing or null, and an error if there is no default."""
        value = self.fields.get(key)
        if value is None:
            if default is None:
                raise self.error(key, "nothing" if key not in self.fields else "null", "a string")
            return default
        if not isinstance(value, str):
            raise self.error(key, _kind(value), "a string")
        return value

    def integer(self, key: str) -> int | None:
        """A positive integer, or None if it is missing or null."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
            raise self.error(key, repr(value)[:40], "a positive integer")
        return value

    def boolean(self, key: str) -> bool | None:
        """A truth value, or None if it is missing or null."""
        value = self.fields.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.error(key, repr(value)[:40], "true or false")

    def child(self, key: str) -> Record | None:
        """An object inside this one, or None if it is missing or null."""
        value = self.fields.get(key)
        return None if value is None else Record(self.path, value, f"{key} of {self.label}")

    def records(self, key: str, required: bool = False) -> list[Record]:
        """The objects of a list; empty if it is missing or null, unless it is required."""
        value = self.fields.get(key)
        if value is None and not required:
            return []
        if not isinstance(value, list):
            raise self.error(key, "nothing" if value is None else _kind(value), "a list")
        return [
            Record(self.path, item, _label(item, f"{key}[{i}] of {self.label}"))
            for i, item in enumerate(value)
        ]

    def names(self, key: str) -> tuple[str, ...]:
        """The non-empty strings of a list; empty if it is missing or null."""
        value = self.fields.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(key, _kind(value), "a list of strings")
        return tuple(item for item in value if isinstance(item, str) and item)

    def species(self) -> str:
        """The species: the label of an ontology term, or a plain string; empty if missing."""
        value = self.fields.get("species")
        if isinstance(value, Mapping):
            return Record(self.path, value, f"species of {self.label}").text("label", default="")
        return self.text("species", default="")

    def orders(self) -> tuple[dict[str, tuple[str, ...]], tuple[tuple[str, str], ...] | None]:
        """The joining rules ``d_j_order`` and ``d_d_order`` as in `GermlineSet`."""
        d_j = self.fields.get("d_j_order") or {}
        if not isinstance(d_j, Mapping) or not all(_is_names(prefixes) for prefixes in d_j.values()):
            raise self.error("d_j_order", repr(d_j)[:60], "an object of D gene to list of J gene prefixes")
        d_d = self.fields.get("d_d_order")
        if d_d is None:
            return {gene: tuple(prefixes) for gene, prefixes in d_j.items()}, None
        if not isinstance(d_d, list) or not all(_is_names(pair) and len(pair) == 2 for pair in d_d):
            raise self.error("d_d_order", repr(d_d)[:60], "a list of pairs of D genes, or null")
        return {gene: tuple(prefixes) for gene, prefixes in d_j.items()}, tuple((a, b) for a, b in d_d)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _label(item: object, place: str) -> str:
    label = item.get("label") if isinstance(item, Mapping) else None
    return label if isinstance(label, str) and label else place


def _kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a truth value", int: "a number", float: "a number", str: "a string", list: "a list"}
    return kinds.get(type(value), "an object")
