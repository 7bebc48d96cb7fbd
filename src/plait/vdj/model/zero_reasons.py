"""Why a junction cannot be made under a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np

from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.results import STATUSES

__all__ = ["PGEN_STATUSES", "ZERO_REASONS", "ZeroReasons"]

#: Reasons for a generation probability of zero, in the order in which they are looked for.
ZERO_REASONS: Final = (
    "v_never_chosen",
    "j_never_chosen",
    "genes_never_together",
    "v_not_matching",
    "j_not_matching",
    "too_many_insertions",
    "no_scenario",
)
#: Every value of the status column: ``"ok"``, reasons for having no number, and reasons for zero.
PGEN_STATUSES: Final = (*STATUSES, *ZERO_REASONS)

#: The longest part of a gene that fits is 0: none does.
_NONE = 0


class ZeroReasons:
    """Finds reasons for zeros.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: RecombinationModel) -> None:
        self._model = model
        self._longest_d = max((len(model.extended("D", k)) for k in range(len(model.d))), default=0)
        self._insertions = sum(int(np.flatnonzero(p)[-1]) for p in (model.p_vd_length, model.p_dj_length))

    @cached_property
    def _texts(self) -> tuple[list[str], list[str]]:
        """Ends of V, and of J read backwards."""
        v = [self._model.extended("V", k) for k in range(len(self._model.v))]
        j = [self._model.extended("J", k)[::-1] for k in range(len(self._model.j))]
        return v, j

    def reason(self, words: Sequence[Sequence[str]], v: Sequence[int], j: Sequence[int]) -> str:
        """Why a text cannot be made, one of `ZERO_REASONS`.

        Parameters
        ----------
        words
            What may stand at each place: nucleotides, or codons.
        v, j
            The genes that it may be made of.
        """
        model = self._model
        p_dj = model.p_dj.sum(axis=1)
        v, j = [k for k in v if model.p_v[k] > 0], [k for k in j if p_dj[:, k].max() > 0]
        if not v or not j:
            return "j_never_chosen" if v else "v_never_chosen"
        if len(p_dj) > 1 and not p_dj[np.ix_(v, j)].any():
            return "genes_never_together"
        v_texts, j_texts = self._texts
        backwards = [[word[::-1] for word in found] for found in reversed(words)]
        kept_v = max(_longest(words, v_texts[k], model.p_v_deletions[k]) for k in v)
        kept_j = max(_longest(backwards, j_texts[k], model.p_j_deletions[k]) for k in j)
        if kept_v == _NONE or kept_j == _NONE:
            return "j_not_matching" if kept_v else "v_not_matching"
        gap = sum(len(found[0]) for found in words) - kept_v - kept_j
        return "too_many_insertions" if gap > self._insertions else "no_scenario"


def _longest(
    words: Sequence[Sequence[str]], text: str, deletions: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> int:
    """Length of the longest possible part of an end that begins like a text."""
    at = 0
    for found in words:
        # Not all letters of a word need to be of the gene.
        size = max(_alike(word, text[at : at + len(word)]) for word in found)
        at += size
        if size < len(found[0]):
            break
    possible = [
        kept
        for kept in range(1, at + 1)
        if len(text) - kept < deletions.size and deletions[len(text) - kept] > 0
    ]
    return max(possible, default=_NONE)


def _alike(word: str, part: str) -> int:
    size = 0
    while size < len(part) and word[size] == part[size]:
        size += 1
    return size
