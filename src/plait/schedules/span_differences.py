"""Places where spans of texts differ from spans of entries, symbol by symbol.

Symbols are small numbers; `UNKNOWN` is one that is not known. A text may be read mirrored: from its end, and
with the partner of each symbol, which is 3 minus it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared

__all__ = ["UNKNOWN", "Differing", "Spans", "count_differing", "list_differing"]

UNKNOWN = 4


class Spans(NamedTuple):
    """Spans to compare.

    Attributes
    ----------
    texts, entries
        Symbols of all texts and of all entries; int8.
    text_starts
        Where each text begins, and the end of the last; int64, shape (n + 1,).
    mirrored
        Whether each text is read mirrored; bool, shape (n,).
    text_offsets
        Where the span begins in the text, as it is read; int64, shape (n,).
    entry_places
        Where the span begins among the symbols of the entries; int64, shape (n,).
    lengths
        Symbols of the span; int64, shape (n,).
    """

    texts: Any
    entries: Any
    text_starts: Any
    mirrored: Any
    text_offsets: Any
    entry_places: Any
    lengths: Any


class Differing(NamedTuple):
    """Differing places, one after the other.

    Attributes
    ----------
    text
        The text; int64.
    place
        Place in the span; int64.
    symbol
        Symbol of the text, perhaps `UNKNOWN`; int8.
    """

    text: Any
    place: Any
    symbol: Any


@shared
def _symbol(spans: Any, text: int, place: int) -> int:
    """Symbol of a text as it is read."""
    at = spans.text_offsets[text] + place
    if spans.mirrored[text]:
        found = int(spans.texts[spans.text_starts[text + 1] - 1 - at])
        return found if found == UNKNOWN else 3 - found
    return int(spans.texts[spans.text_starts[text] + at])


@shared
def count_differing(spans: Any, text: int, most: int) -> int:
    """Differing symbols, both known, among at most so many of the first."""
    count = 0
    for place in range(min(spans.lengths[text], most)):
        own = int(spans.entries[spans.entry_places[text] + place])
        found = _symbol(spans, text, place)
        if found != own and found != UNKNOWN and own != UNKNOWN:
            count += 1
    return count


@shared
def list_differing(spans: Any, text: int, out: Any, at: int) -> Any:
    """List, from `at` on, where a text differs or is not known, and the entry is; returns the end."""
    for place in range(spans.lengths[text]):
        own = int(spans.entries[spans.entry_places[text] + place])
        found = _symbol(spans, text, place)
        if found != own and own != UNKNOWN:
            out.text[at] = text
            out.place[at] = place
            out.symbol[at] = found
            at += 1
    return at
