"""Names of clonotypes and subjects: the columns that rows are grouped by, from tables of any source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import FormatError
from plait.vdj.calls import first_gene

#: The columns that make a clonotype: junction in upper case, first V gene, first J gene.
CLONOTYPE = ("junction", "v_gene", "j_gene")
#: Reads or molecules of one row; with no more of them, sums over 8 million rows fit.
_MOST_COPIES = 1 << 40


class GeneNames:
    """First genes of calls, as they are written; every distinct call is looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, calls: pa.Array) -> pa.Array:
        """The gene of every V or J call as text, empty where there is no call."""
        encoded = text_of(calls).dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        for call in texts:
            if call not in self._known:
                self._known[call] = first_gene(call)
        return pa.array([self._known[call] for call in texts], pa.large_string()).take(encoded.indices)


def named_rows(columns: Mapping[str, pa.Array], left_out: Counter[str]) -> NDArray[np.bool_]:
    """Which rows have names in all text columns; the others are added to `left_out` by reason.

    The first column that is blank is the reason.
    """
    kept: NDArray[np.bool_] = np.ones(len(next(iter(columns.values()))), np.bool_)
    for name, column in columns.items():
        blank = kept & ~np.asarray(pc.fill_null(pc.not_equal(column, ""), False))
        if blank.any():
            left_out[f"missing_{name}"] += int(blank.sum())
        kept &= ~blank
    return kept


def text_of(column: pa.Array) -> pa.Array:
    """A column as text, empty where it is null; any that Arrow can write as text."""
    return pc.fill_null(column.cast(pa.large_string()), "")


def whole_numbers(column: pa.Array, *, path: str, name: str) -> pa.Array:
    """A column of numbers of reads or molecules as whole numbers, null where it is null or blank.

    Numbers, or text with numbers; 12.0 is 12. FormatError, which names `path` and `name`, for anything else:
    text, a negative number, or one that no sequencer reaches, with which sums would not fit.
    """
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        texts = text_of(column)
        column = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)
    try:
        found = _as_int64(column)
    except pa.ArrowInvalid as error:
        raise FormatError(path, column=name, found=str(error), expected="whole numbers") from error
    least, most = pc.min_max(found).values()
    for value in (least.as_py(), most.as_py()):
        if value is not None and not 0 <= value <= _MOST_COPIES:
            raise FormatError(
                path, column=name, found=f"{value}", expected=f"whole numbers from 0 to {_MOST_COPIES}"
            )
    return found


def _as_int64(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        # Some programs write whole numbers as 12.0, for the sake of missing ones.
        return column.cast(pa.float64()).cast(pa.int64())
