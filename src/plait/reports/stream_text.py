"""A compressed cube in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait.reports.plain_text import aligned

__all__ = ["stream_text"]


#: Lists of wavelengths are as wide as they like.
_WIDEST = 76


def stream_text(found: Mapping[str, Any]) -> str:
    """A compressed cube in words.

    Parameters
    ----------
    found
        As `plait.hyperspectral.describe.describe` gives it.
    """
    kind = "a plain stream" if found["kind"] == "stream" else f"a container of {found['blocks']:,} blocks"
    if found["checksums"]:
        kind += " with checksums"
    signed = "signed" if found["signed"] else "unsigned"
    lines = [
        f"{found['path']}: {kind}, {found['bytes']:,} bytes, {found['bits_per_sample']:.3f} bits a sample",
        f"{found['rows']:,} rows x {found['columns']:,} columns x {found['bands']:,} bands, "
        f"{signed} samples of {found['dynamic_range']} bits",
    ]
    rows = [(name, _value(value)) for name, value in found["parameters"].items()]
    lines += ["parameters", *aligned(rows, "<<")]
    if "origin" in found:
        origin = dict(found["origin"])
        header = origin.pop("header")
        rows = [(name, _value(value)) for name, value in origin.items() if value not in ("", 0)]
        lines += ["came from", *aligned(rows, "<<")]
        lines += ["header", *(f"  {_short(line)}" for line in header.splitlines())] if header else []
    return "\n".join(lines)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return f"a table of {len(value):,}"
    return str(value)


def _short(line: str) -> str:
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 4]} ..."
