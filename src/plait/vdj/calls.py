"""From a column of V or J calls to allele indices, with a reason where there is none."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.names import split_call

__all__ = ["AMBIGUITY_POLICIES", "Ambiguity", "CallResolver", "first_gene", "first_name"]

Ambiguity = Literal["first", "all", "fail"]
AMBIGUITY_POLICIES: tuple[Ambiguity, ...] = ("first", "all", "fail")


def first_name(call: str | None) -> str:
    """The first name in a call, as it is written, without score.

    >>> first_name("TRBV12-3*01(346), TRBV12-4*01")
    'TRBV12-3*01'
    """
    names = split_call(call or "")
    return names[0] if names else ""


def first_gene(call: str | None) -> str:
    """The first gene of a call, as it is written, without allele and score.

    >>> first_gene("TRBV12-3*01(346), TRBV12-4*01")
    'TRBV12-3'
    """
    return first_name(call).partition("*")[0]


class CallResolver:
    """Resolves the calls of one segment; every distinct call text is looked up once.

    Parameters
    ----------
    germline
        The alleles.
    segment
        ``"V"`` or ``"J"``.
    policy
        What a list of several alleles means: its ``"first"`` one, ``"all"`` of them, or ``"fail"``. A gene
        name is not a list: it means the gene's allele with the lowest number.
    """

    def __init__(self, germline: GermlineSet, segment: Literal["V", "J"], policy: Ambiguity) -> None:
        if policy not in AMBIGUITY_POLICIES:
            raise InvalidInput(
                "ambiguous", found=repr(policy), expected="one of " + ", ".join(AMBIGUITY_POLICIES)
            )
        self._germline = germline
        self._segment: Literal["V", "J"] = segment
        self._policy = policy
        self._known: dict[str | None, tuple[str, tuple[int, ...]]] = {}

    def resolve(self, calls: pa.Array) -> tuple[NDArray[np.int64], list[tuple[str, tuple[int, ...]]]]:
        """Resolve a column.

        Returns
        -------
        codes : ndarray of int64 (n,)
            For each row, which of `found` it is.
        found : list of (reason, alleles)
            Reason ``""`` and one or more allele indices, or a reason and no allele.
        """
        encoded = pc.dictionary_encode(calls, null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, [self._look_up(text) for text in encoded.dictionary.to_pylist()]

    def _look_up(self, text: str | None) -> tuple[str, tuple[int, ...]]:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._decide(text)
        return found

    def _decide(self, text: str | None) -> tuple[str, tuple[int, ...]]:
        name = self._segment.lower()
        if text is None or not text.strip():
            return f"missing_{name}_call", ()
        named = self._germline.resolve_all(text, self._segment)
        if len(set(named)) > 1 and self._policy == "fail":
            return f"ambiguous_{name}_call", ()
        kept = named[:1] if self._policy == "first" else named
        alleles = tuple(dict.fromkeys(index for index in kept if index is not None))
        if len(alleles) < len(set(kept)) or not kept:
            return f"unknown_{name}_call", ()
        if any(self._germline.alleles(self._segment)[index].anchor is None for index in alleles):
            return f"no_{name}_anchor", ()
        return "", alleles
