"""Whole numbers that are in the order of the values they stand for, with fewer and fewer binary digits.

At level 0 the key of a whole number is the number itself, and that of a floating-point number its bits, as a
negative number for values below zero. At level k > 0 both are the bits of the floating-point number without
the lowest k: values rounded towards zero. A key of one level tells that of every higher one, and all keep
the order.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["COARSEST", "keys_of", "recoded", "values_of"]

_Ints: TypeAlias = NDArray[np.int64]

#: Level at which all values are one.
COARSEST: Final = 63
_SIGN: Final = np.int64(np.iinfo(np.int64).min)
_REST: Final = np.int64(np.iinfo(np.int64).max)


def keys_of(values: NDArray[Any], whole: bool, level: int) -> _Ints:
    """Keys of values.

    Parameters
    ----------
    values
        Whole or floating-point numbers.
    whole
        Whether keys of level 0 are those of whole numbers; all values are whole then.
    level
        Of the keys.

    Raises
    ------
    ValueError
        If a value is NaN.
    """
    numbers = np.asarray(values)
    if numbers.dtype.kind in "iub":
        return recoded(numbers.astype(np.int64), True, 0, whole, level)
    if np.isnan(numbers).any():
        raise ValueError("NaN has no rank")
    return recoded(_float_keys(numbers.astype(np.float64)), False, 0, whole, level)


def recoded(keys: NDArray[Any], whole: bool, level: int, to_whole: bool, to_level: int) -> _Ints:
    """Keys as those of another kind or of a higher level.

    Parameters
    ----------
    keys
        Keys.
    whole, level
        Their kind and level.
    to_whole, to_level
        Kind and level of the new ones.
    """
    wide = keys.astype(np.int64, copy=False)
    if whole and level == 0:
        if to_whole and to_level == 0:
            return wide
        wide = _float_keys(wide.astype(np.float64))
    shift = to_level - level
    return wide if shift == 0 else np.sign(wide) * (np.abs(wide) >> shift)


def values_of(keys: NDArray[Any], whole: bool, level: int) -> NDArray[Any]:
    """Values that keys stand for.

    Parameters
    ----------
    keys
        Keys.
    whole, level
        Their kind and level.
    """
    wide = keys.astype(np.int64)
    if whole and level == 0:
        return wide
    bits = np.abs(wide) << level
    return np.where(wide < 0, bits | _SIGN, bits).view(np.float64)


def _float_keys(values: NDArray[np.float64]) -> _Ints:
    bits = values.view(np.int64)
    return np.where(bits < 0, -(bits & _REST), bits)
