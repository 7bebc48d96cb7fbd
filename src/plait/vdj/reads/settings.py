"""Settings of annotation, and the germline sets that a run is asked to use."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from plait.errors import InvalidInput
from plait.vdj.germline import GermlineSet, load_germline

#: Reasons in order of precedence; the first that holds is given, ``"ok"`` if none does.
STATUSES: Final = (
    "too_short",
    "too_long",
    "no_v",
    "no_j",
    "wrong_order",
    "too_many_errors",
    "no_anchor",
    "low_quality",
    "out_of_frame",
    "stop_codon",
    "ok",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationSettings:
    """Limits of what is taken for a rearrangement.

    Attributes
    ----------
    min_length, max_length
        Bases of a read; others are ``too_short`` and ``too_long``.
    max_error_rate
        Largest share of mismatches and gaps in the aligned germline outside the junction. A base that may be
        the one of the germline, such as N, does not count; a gap counts once.
    min_junction_quality
        Least Phred quality of any base of the junction; 0 for no limit. Reads without qualities pass.
    min_d_length
        Bases that must match for a D allele to be called.
    max_anchor_distance
        How far outside its alignment an anchor codon may reach, in bases. The codon is then taken from the
        diagonal of the alignment's nearer end.
    max_p_length
        Longest palindromic (P) extension of a gene's end.
    productive_only
        Whether an unproductive rearrangement has a reason too: ``out_of_frame`` or ``stop_codon``.
    alignment_parts
        Whether to give the aligned parts of each gene, and the translations of the alignments, as columns of
        their own.

    Raises
    ------
    InvalidInput
        If a limit makes no sense.
    """

    min_length: int = 20
    max_length: int = 10_000
    max_error_rate: float = 0.15
    min_junction_quality: int = 15
    min_d_length: int = 5
    max_anchor_distance: int = 12
    max_p_length: int = 4
    productive_only: bool = False
    alignment_parts: bool = False

    def __post_init__(self) -> None:
        """Check every limit."""
        for name, least, most in (
            ("min_length", 0, None),
            ("max_length", 1, None),
            ("min_junction_quality", 0, 93),
            ("min_d_length", 1, None),
            ("max_anchor_distance", 0, None),
            ("max_p_length", 0, 16),
        ):
            object.__setattr__(self, name, _whole(name, getattr(self, name), least, most))
        if self.min_length > self.max_length:
            raise InvalidInput(
                "min_length", found=self.min_length, expected=f"at most max_length, {self.max_length}"
            )
        rate = self.max_error_rate
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise InvalidInput("max_error_rate", found=repr(rate), expected="a number from 0 to 1")
        for name in ("productive_only", "alignment_parts"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(name, found=repr(getattr(self, name)), expected="True or False")


def _whole(name: str, value: Any, least: int, most: int | None) -> int:
    wanted = f"a whole number of at least {least}" if most is None else f"a whole number, {least} to {most}"
    if isinstance(value, bool):
        raise InvalidInput(name, found=repr(value), expected=wanted)
    try:
        number = operator.index(value)
    except TypeError as error:
        raise InvalidInput(name, found=repr(value), expected=wanted) from error
    if not least <= number <= (math.inf if most is None else most):
        raise InvalidInput(name, found=number, expected=wanted)
    return number


#: A germline set, the name or path of one, or several of them.
Germlines = GermlineSet | str | os.PathLike[str] | Sequence[GermlineSet | str | os.PathLike[str]]


def germlines_of(
    given: Germlines, *, anchors: str | os.PathLike[str] | None = None
) -> tuple[GermlineSet, ...]:
    """Load germline sets: a set, the name or path of one, or a sequence of these.

    Text may hold several names with commas between, unless a file has that name. `anchors` is a CSV table of
    anchors that replace those of the set; InvalidInput if there are several sets. Further errors as
    `plait.vdj.germline.load_germline`.

    >>> [one.locus for one in germlines_of("mouse_trb,mouse_tra")]
    ['TRB', 'TRA']
    """
    items: Sequence[GermlineSet | str | os.PathLike[str]]
    if isinstance(given, str):
        items = [given] if os.path.exists(given) else [name.strip() for name in given.split(",")]
    else:
        items = [given] if isinstance(given, GermlineSet | os.PathLike) else given
    if anchors is None:
        return tuple(item if isinstance(item, GermlineSet) else load_germline(item) for item in items)
    if len(items) != 1 or isinstance(items[0], GermlineSet):
        raise InvalidInput(
            "anchors",
            found=f"{len(items)} germline sets",
            expected="the name or path of one set",
        )
    return (load_germline(items[0], anchors=anchors),)
