"""Parameters by name, whichever part of the header they belong to, and the same as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from plait.errors import FormatError, InvalidInput
from plait.hyperspectral.parameters import StreamParameters
from plait.hyperspectral.predictor_parameters import Representatives, WeightOffsets
from plait.hyperspectral.presets import CODER_KINDS
from plait.hyperspectral.supplementary import SupplementaryTable

__all__ = ["named_parameters", "read_parameters", "tables_of", "typed"]

#: Parameters that are made of several numbers.
_PARTS: Final[dict[str, type]] = {"weight_offsets": WeightOffsets, "representatives": Representatives}
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
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise FormatError(path, found=error, expected="a JSON file with parameters by name") from error
    if isinstance(found, dict) and isinstance(found.get("parameters"), dict):
        found = found["parameters"]
    if not isinstance(found, dict):
        raise FormatError(path, found=type(found).__name__, expected="an object with parameters by name")
    try:
        return typed(found)
    except (TypeError, InvalidInput) as error:
        expected = "parameters by name, as plait hsi info --json prints them"
        raise FormatError(path, found=error, expected=expected) from error


def typed(found: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as JSON has them, with lists as tuples and parts as what they are.

    Parameters
    ----------
    found
        Parameters by name.
    """
    plain = {name: _tuples(value) for name, value in found.items()}
    for name, kind in _PARTS.items():
        if isinstance(plain.get(name), Mapping):
            plain[name] = kind(**_known(name, kind, plain[name]))
    if "supplementary" in plain:
        plain["supplementary"] = tuple(
            SupplementaryTable(**_known("supplementary", SupplementaryTable, one))
            for one in plain["supplementary"]
        )
    return plain


def _known(name: str, kind: type, found: Mapping[str, Any]) -> Mapping[str, Any]:
    names = {field.name for field in fields(kind)} if is_dataclass(kind) else set()
    if left := sorted(set(found) - names):
        raise InvalidInput(name, found=", ".join(left), expected=", ".join(sorted(names)))
    return found


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
