"""Parameters by name, whichever part of the header they belong to, and the same as JSON."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from typing import Any, Final

from plait.errors import FormatError, InvalidInput
from plait.formats.json_text import read_json
from plait.hyperspectral.parameters import StreamParameters
from plait.hyperspectral.predictor_parameters import Representatives, WeightOffsets
from plait.hyperspectral.presets import CODER_KINDS
from plait.hyperspectral.supplementary import SupplementaryTable

__all__ = ["named_parameters", "outside_tables", "read_parameters", "tables_of", "typed"]

#: Parameters that are made of several numbers.
_PARTS: Final[dict[str, type]] = {"weight_offsets": WeightOffsets, "representatives": Representatives}
#: No file of parameters is larger.
_MOST_BYTES: Final = 1 << 28
#: Tables that a stream may use and not carry, by the name that `parse_header` has for them.
_TABLES: Final = ("weight_table", "weight_offsets", "accumulator_table", "initial_sums")


def named_parameters(parameters: StreamParameters) -> dict[str, Any]:
    """All parameters but those of the image by name, ready for JSON.

    Parameters
    ----------
    parameters
        What the header of a stream says.

    Returns
    -------
    dict
        What is None is left out.
    """
    coder = parameters.coder
    found: dict[str, Any] = {
        "coder": next(name for name, kind in CODER_KINDS.items() if type(coder) is kind),
        **asdict(parameters.predictor),
        **asdict(coder),
    }
    for name in ("order", "interleaving_depth", "output_word_size", "user_field"):
        found[name] = getattr(parameters, name)
    if parameters.order != "bi":
        del found["interleaving_depth"]
    # Whether the header carries a table says nothing where there is none.
    for table, carried in (
        ("weight_table", "weight_table_in_header"),
        ("accumulator_table", "table_in_header"),
    ):
        if found.get(table) is None:
            found.pop(carried, None)
    if parameters.supplementary:
        found["supplementary"] = [asdict(table) for table in parameters.supplementary]
    return {name: value for name, value in found.items() if value is not None}


def read_parameters(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Parameters by name from a JSON file, as ``plait hsi info --json`` prints them.

    Parameters
    ----------
    path
        The file; the object itself, or one that has it as ``parameters``.

    Returns
    -------
    dict
        As the presets take them.

    Raises
    ------
    FormatError
        If it is no such file, or a name is unknown.
    """
    found = read_json(path, "a JSON file with parameters by name", most=_MOST_BYTES)
    if isinstance(found, dict) and isinstance(found.get("parameters"), dict):
        found = found["parameters"]
    if not isinstance(found, dict):
        raise FormatError(path, found=type(found).__name__, expected="an object with parameters by name")
    try:
        return typed(found)
    except InvalidInput as error:
        expected = "parameters by name, as plait hsi info --json prints them"
        raise FormatError(path, found=error, expected=expected) from error


def typed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them, with lists as tuples and parts as what they are.

    Parameters
    ----------
    found
        Parameters by name.

    Raises
    ------
    InvalidInput
        If a part has other names than it should have, or lists lie too deep in one another.
    """
    try:
        plain = {name: _tuples(value) for name, value in found.items()}
    except RecursionError as error:
        expected = "numbers, and lists of them"
        raise InvalidInput("parameters", found="lists nested too deeply", expected=expected) from error
    for name, kind in _PARTS.items():
        if plain.get(name) is not None:
            plain[name] = _made(name, kind, plain[name])
    if "supplementary" in plain:
        tables = plain["supplementary"]
        if not isinstance(tables, tuple):
            raise InvalidInput("supplementary", found=reprlib.repr(tables), expected="a list of tables")
        plain["supplementary"] = tuple(_made("supplementary", SupplementaryTable, one) for one in tables)
    return plain


def _made(name: str, kind: type, found: Any) -> Any:
    if not isinstance(found, Mapping):
        if isinstance(found, kind):
            return found
        raise InvalidInput(name, found=reprlib.repr(found), expected="an object with parameters by name")
    names = {field.name for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    left, missing = sorted(set(found) - names), sorted(needed - set(found))
    if left or missing:
        told = ", ".join(left) if left else f"no {', '.join(missing)}"
        raise InvalidInput(name, found=told, expected=", ".join(sorted(names)))
    return kind(**found)


def _tuples(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_tuples(one) for one in value)
    return {key: _tuples(one) for key, one in value.items()} if isinstance(value, Mapping) else value


def tables_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """Tables that a stream may use and not carry, for those who decompress it.

    Parameters
    ----------
    found
        Parameters by name, as `read_parameters` gives them.
    """
    tables = {name: found[name] for name in _TABLES if found.get(name) is not None}
    representatives = found.get("representatives")
    if isinstance(representatives, Representatives) and not isinstance(representatives.damping, int):
        tables["damping"] = representatives.damping
    return tables


def outside_tables(parameters: StreamParameters) -> dict[str, Any]:
    """Tables that a stream may use and not carry, of those that it was made with.

    Parameters
    ----------
    parameters
        Of the stream.
    """
    predictor, coder = parameters.predictor, parameters.coder
    found: dict[str, Any] = {
        "weight_table": predictor.weight_table,
        "weight_offsets": predictor.weight_offsets,
        "accumulator_table": getattr(coder, "accumulator_table", None),
    }
    if predictor.representatives is not None and not isinstance(predictor.representatives.damping, int):
        found["damping"] = predictor.representatives.damping
    return {name: table for name, table in found.items() if table is not None}
