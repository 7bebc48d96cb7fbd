"""Which header goes with which data file: ENVI's names follow several habits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from plait.errors import FormatError

__all__ = ["DATA_SUFFIXES", "data_of", "header_name", "header_of"]

#: Suffixes of data files; programs write others, too, but look for these.
DATA_SUFFIXES: Final = (
    ".img",
    ".dat",
    ".raw",
    ".bin",
    ".bsq",
    ".bil",
    ".bip",
    ".cube",
    ".sli",
    ".hyspex",
    "",
)


def _there(folder: Path, names: list[str]) -> list[Path]:
    """The files of a folder that bear one of some names, whatever the case, in the order of the names."""
    try:
        entries = {name.lower(): name for name in sorted(os.listdir(folder), reverse=True)}
    except OSError as error:
        raise FormatError(folder, found=error.strerror or error, expected="a folder to read") from error
    found = []
    for name in names:
        exact = folder / name
        path = exact if exact.is_file() else folder / entries.get(name.lower(), name)
        if path.is_file() and path not in found:
            found.append(path)
    return found


def header_of(path: str | os.PathLike[str]) -> Path | None:
    """The header of a data file: ``scene.img.hdr`` or ``scene.hdr``, or None.

    Parameters
    ----------
    path
        The data file.
    """
    data = Path(path)
    found = _there(data.parent, [f"{data.name}.hdr", f"{data.stem}.hdr"])
    return next((one for one in found if one != data), None)


def data_of(path: str | os.PathLike[str]) -> Path:
    """The data file of a header.

    Parameters
    ----------
    path
        The header, such as ``scene.hdr`` or ``scene.img.hdr``.

    Raises
    ------
    FormatError
        If there is none, or more than one.
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
