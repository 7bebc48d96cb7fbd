"""The germline sets that a run is asked to use."""

from __future__ import annotations

import os
from collections.abc import Sequence

from plait.errors import InvalidInput
from plait.vdj.germline import GermlineSet, load_germline

__all__ = ["Germlines", "germlines_of"]

#: A germline set, the name or path of one, or several of them.
Germlines = GermlineSet | str | os.PathLike[str] | Sequence[GermlineSet | str | os.PathLike[str]]


def germlines_of(
    given: Germlines, *, anchors: str | os.PathLike[str] | None = None
) -> tuple[GermlineSet, ...]:
    """Load germline sets.

    Parameters
    ----------
    given
        A set, the name or path of one, or a sequence of these. Text may hold several names with commas
        between, unless a file has that name.
    anchors
        CSV table of anchors that replace those of the set, where there is only one.

    Raises
    ------
    InvalidInput, FormatError
        As `plait.vdj.germline.load_germline`; and if there are anchors for several sets.

    Examples
    --------
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
