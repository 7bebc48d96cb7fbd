"""ENVI headers: reading, writing and changing them, and which header goes with which data file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from plait.errors import FormatError, InvalidInput
from plait.formats.cubes.layout import AXES, CubeLayout, check_sample_type, layout_in
from plait.formats.files import input_errors

#: Types of samples by the number that the field "data type" has for them.
_TYPES: Final = {
    1: "u1",
    2: "i2",
    3: "i4",
    4: "f4",
    5: "f8",
    6: "c8",
    9: "c16",
    12: "u2",
    13: "u4",
    14: "i8",
    15: "u8",
}
_MOST_BYTES = 1 << 26
#: Characters of a value that a message shows.
_MOST_TOLD = 80


@dataclass(frozen=True, slots=True)
class EnviHeader:
    """An ENVI header; `path` is where it was read, for messages.

    `text` is the whole file, a character for each byte (Latin-1), to be written again byte for byte. `fields`
    has values by name in lower case, as they stand, braces included.
    """

    text: str
    fields: Mapping[str, str]
    path: str

    def values(self, name: str) -> tuple[str, ...] | None:
        """The entries of a list in braces, or None if the field is absent."""
        if name not in self.fields:
            return None
        text = self.fields[name].strip().removeprefix("{").removesuffix("}")
        return tuple(part.strip() for part in text.split(",") if part.strip())

    def numbers(self, name: str) -> tuple[float, ...] | None:
        """The entries of a list as numbers, or None if the field is absent or holds something else."""
        try:
            return tuple(float(value) for value in self.values(name) or ()) or None
        except ValueError:
            return None

    def layout(self) -> CubeLayout:
        """How samples lie in the data file.

        FormatError if a field is missing or wrong, or the file is compressed; InvalidInput if samples are not
        integers of 8, 16 or 32 bits.
        """
        for name in ("major frame offsets", "minor frame offsets", "file compression"):
            if any(value not in ("0", "0.0") for value in self.values(name) or ()):
                found = f"{name} = {_short(self.fields[name])}"
                hint = "let ENVI or GDAL write it as a plain file"
                raise FormatError(self.path, found=found, expected="a file of plain samples", hint=hint)
        number = self._whole("data type")
        if number not in _TYPES:
            expected = f"one of {', '.join(map(str, _TYPES))}"
            raise FormatError(self.path, found=f"data type = {number}", expected=expected)
        kind = np.dtype(_TYPES[number])
        check_sample_type(kind, f"{self.path}, data type = {number}")
        order = self._whole("byte order", None if kind.itemsize > 1 else 0)
        if order not in (0, 1):
            raise FormatError(self.path, found=f"byte order = {order}", expected="0 (little) or 1 (big)")
        sizes = {
            name: self._whole(field)
            for name, field in (("rows", "lines"), ("columns", "samples"), ("bands", "bands"))
        }
        return layout_in(
            self.path,
            **sizes,
            dtype=kind.newbyteorder(">" if order else "<"),
            axes=self._axes(sizes["bands"]),
            offset=self._whole("header offset", 0),
        )

    def _axes(self, bands: int) -> str:
        # Without bands to interleave the field says nothing.
        found = self.fields.get("interleave", "bsq" if bands == 1 else "").strip().lower()
        axes = next((axes for name, axes in AXES.items() if name == found), None)
        if axes is None:
            told = f"interleave = {_short(found)}" if found else "no field 'interleave'"
            raise FormatError(self.path, found=told, expected="bsq, bil or bip")
        return axes

    def _whole(self, name: str, default: int | None = None) -> int:
        if name not in self.fields:
            if default is not None:
                return default
            raise FormatError(self.path, found=f"no field {name!r}", expected=f"a line {name} = NUMBER")
        text = self.fields[name].strip()
        if not re.fullmatch(r"\+?[0-9]{1,18}", text):
            expected = "a whole number that is not negative"
            raise FormatError(self.path, found=f"{name} = {_short(text)}", expected=expected)
        return int(text)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_TOLD else f"{text[:_MOST_TOLD]}..."


class _Entry(NamedTuple):
    """A field, and where its value stands; the end is -1 if a brace is never closed."""

    name: str
    start: int
    end: int


def _entries(text: str) -> Iterator[_Entry]:
    """Fields in order. Braces may hold several lines; lines that begin with ; are comments."""
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        line = text[at:end]
        key, equals, value = line.partition("=")
        # A name has no braces: such a line is what is left of a value.
        if equals and key.strip() and not key.lstrip().startswith(";") and not {*"{}"} & {*key}:
            start = at + len(key) + 1 + len(value) - len(value.lstrip())
            stop = at + len(line.rstrip())
            if text[start : start + 1] == "{":
                stop = text.find("}", start) + 1 or -1
                end = len(text) if stop < 0 else _line_end(text, stop)
            yield _Entry(" ".join(key.lower().split()), start, max(start, stop) if stop >= 0 else -1)
        at = end + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def envi_type(kind: np.dtype[Any]) -> int:
    """The number that ENVI has for a type of samples; InvalidInput if it has none."""
    plain = kind.newbyteorder("=")
    for number, name in _TYPES.items():
        if np.dtype(name) == plain:
            return number
    hint = "write another format, such as .npy"
    raise InvalidInput("samples", found=plain.name, expected="a type that ENVI has", hint=hint)


def read_envi_header(path: str | os.PathLike[str]) -> EnviHeader:
    """Read an ENVI header; FormatError if the file cannot be read or is none."""
    with input_errors(path, "an ENVI header"):
        if os.path.getsize(path) > _MOST_BYTES:
            found = f"{os.path.getsize(path):,} bytes"
            raise FormatError(path, found=found, expected="the text header, not the data file")
        text = Path(path).read_bytes().decode("latin-1")
    return parse_envi_header(text, path)


def parse_envi_header(text: str, path: str | os.PathLike[str]) -> EnviHeader:
    """Read an ENVI header in memory, a character for each byte; FormatError, naming `path`, if it is none."""
    first = text.lstrip("\ufeff").removeprefix("\u00ef\u00bb\u00bf").partition("\n")[0].strip()
    if first != "ENVI":
        found = repr(first[:40]) if first.isprintable() else "binary data"
        raise FormatError(path, line=1, found=found, expected="'ENVI', with which ENVI headers begin")
    fields: dict[str, str] = {}
    for entry in _entries(text):
        if entry.end < 0:
            line = text.count("\n", 0, entry.start) + 1
            raise FormatError(path, line=line, found="a brace that is never closed", expected="'}'")
        fields[entry.name] = text[entry.start : entry.end]
    return EnviHeader(text=text, fields=fields, path=os.fspath(path))


def with_fields(text: str, fields: Mapping[str, str]) -> str:
    r"""A header with other values of some fields; all the rest stays as it is, byte for byte.

    Names are in lower case. A field that is not there yet is added at the end; one that is there several
    times, of which the last counts, gets the value everywhere.

    >>> with_fields("ENVI\nbands = 3\n; kept\n", {"bands": "4", "byte order": "1"})
    'ENVI\nbands = 4\n; kept\nbyte order = 1\n'
    """
    left = dict(fields)
    pieces, last = [], 0
    for entry in _entries(text):
        if entry.name in fields and entry.end >= 0:
            left.pop(entry.name, None)
            pieces += [text[last : entry.start], fields[entry.name]]
            last = entry.end
    pieces.append(text[last:])
    found = "".join(pieces)
    end = "\r\n" if "\r\n" in text else "\n"
    for name, value in left.items():
        found += ("" if found.endswith("\n") else end) + f"{name} = {value}{end}"
    return found


def layout_fields(layout: CubeLayout) -> dict[str, str]:
    """The fields that say how samples lie in a file, by name."""
    return {
        "samples": str(layout.columns),
        "lines": str(layout.rows),
        "bands": str(layout.bands),
        "header offset": str(layout.offset),
        "file type": "ENVI Standard",
        "data type": str(envi_type(layout.dtype)),
        "interleave": layout.interleave or layout.axes,
        "byte order": str(int(layout.byte_order == "big")),
    }


def new_envi_header(layout: CubeLayout, text: str | None = None) -> str:
    """The header of a data file, a character for each byte.

    `text` is a header with further fields; it stays as it is wherever it says what the layout says.
    """
    wanted = layout_fields(layout)
    if text is None:
        return "ENVI\n" + "".join(f"{name} = {value}\n" for name, value in wanted.items())
    found = parse_envi_header(text, "header")
    wanted.pop("file type")
    same: dict[str, str] = {}
    # What is wrong or absent there becomes right.
    with suppress(ValueError):
        same = layout_fields(found.layout())
    return with_fields(text, {name: value for name, value in wanted.items() if same.get(name) != value})


#: Suffixes of data files; programs write others, too, but look for these.
DATA_SUFFIXES: Final = (
    *[".img", ".dat", ".raw", ".bin", ".bsq", ".bil", ".bip", ".cube", ".sli", ".hyspex"],
    "",
)


def _there(folder: Path, names: list[str]) -> list[Path]:
    """The files of a folder that bear one of some names, whatever the case, in the order of the names."""
    with input_errors(folder, "a folder to read"):
        entries = {name.lower(): name for name in sorted(os.listdir(folder), reverse=True)}
    found = []
    for name in names:
        exact = folder / name
        path = exact if exact.is_file() else folder / entries.get(name.lower(), name)
        if path.is_file() and path not in found:
            found.append(path)
    return found


def header_of(path: str | os.PathLike[str]) -> Path | None:
    """The header of a data file: ``scene.img.hdr`` or ``scene.hdr``, or None."""
    data = Path(path)
    found = _there(data.parent, [f"{data.name}.hdr", f"{data.stem}.hdr"])
    return next((one for one in found if one != data), None)


def data_of(path: str | os.PathLike[str]) -> Path:
    """The data file of a header, such as ``scene.hdr`` or ``scene.img.hdr``.

    FormatError if there is none, or more than one.
    """
    header = Path(path)
    stem = header.stem if header.suffix.lower() == ".hdr" else header.name
    names = [stem] if Path(stem).suffix.lower() in DATA_SUFFIXES[:-1] else []
    names += [f"{stem}{suffix}" for suffix in DATA_SUFFIXES]
    found = [one for one in _there(header.parent, names) if one != header]
    if not found:
        expected = f"its data file beside it, such as {stem}.img"
        raise FormatError(path, found="no data file", expected=expected, hint="give the data file itself")
    if len(found) > 1 and found[0].name != stem:
        told = " and ".join(one.name for one in found)
        hint = "give the data file itself"
        raise FormatError(path, found=f"{told} beside it", expected="one data file", hint=hint)
    return found[0]


def header_name(data: str | os.PathLike[str]) -> Path:
    """The name that the header of a new data file gets.

    >>> header_name("out/scene.img").name, header_name("out/scene").name
    ('scene.hdr', 'scene.hdr')
    """
    return Path(data).with_suffix(".hdr") if Path(data).suffix else Path(f"{os.fspath(data)}.hdr")
