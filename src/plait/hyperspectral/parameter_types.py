"""Whether parameters are of the kinds that their annotations say: JSON files may hold anything."""

from __future__ import annotations

import reprlib
import types
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from plait.errors import InvalidInput

__all__ = ["check_types"]

_WORDS: Final = {
    int: "a whole number",
    bool: "true or false",
    str: "a text",
    types.NoneType: "nothing",
}


def check_types(part: Any) -> None:
    """Check the fields of a part of the parameters, and of the parts that it is made of.

    Raises
    ------
    InvalidInput
        If one is of another kind than its annotation says.
    """
    kind: type = type(part)
    for name, hint in _hints(kind).items():
        value = getattr(part, name)
        if not _fits(value, hint):
            raise InvalidInput(name, found=reprlib.repr(value), expected=_words(hint))
        for one in value if isinstance(value, tuple) else (value,):
            if is_dataclass(one):
                check_types(one)


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    kind = get_origin(hint)
    if kind in (Union, types.UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if kind is Literal:
        # Which words there are, the checks of values say.
        return isinstance(value, str)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _words(hint: Any) -> str:
    kind = get_origin(hint)
    if kind in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(one) for one in get_args(hint)))
    if kind is tuple:
        inner = get_args(hint)[0]
        return "a list of lists of whole numbers" if get_origin(inner) is tuple else "a list"
    return "a text" if kind is Literal else _WORDS.get(hint, getattr(hint, "__name__", str(hint)))
