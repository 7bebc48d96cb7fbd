"""What the errors at single places are: distances at ends, and alignments at sites.

A module of its own: it looks at one place at a time, where the others look at many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait.lang.compile import kernel, shared

#: Operations of an alignment, for each step of it.
MATCH, MISMATCH, EXTRA, MISSING = 0, 1, 2, 3


@shared
def find_distances(
    codes: Any, sets: Any, lengths: Any, reach: Any, patterns: Any, places: Any, column: Any, out: Any
) -> None:
    """Edit distances of patterns that end at places, with a free start in the text.

    `codes` uint8 and `sets` (patterns, letters) uint8 match where they have one of the lowest four bits in
    common. Alignments have at most `reach` letters of the text, int64 (patterns,). Hits are sorted by pattern
    and place, int64 (hits,); `column` int64 (letters + 1,) is memory; `out` int64 (hits,) is changed in
    place.
    """
    pattern = -1
    at = 0
    for hit in range(places.size):
        begin = places[hit] - reach[patterns[hit]] + 1
        if patterns[hit] != pattern or begin > at:
            pattern = patterns[hit]
            at = begin
            for i in range(lengths[pattern] + 1):
                column[i] = i
        while at <= places[hit]:
            code = codes[at] & 15
            diagonal = 0
            for i in range(lengths[pattern]):
                above = column[i]
                other = min(above, column[i + 1]) + 1
                if sets[pattern, i] & code == 0:
                    diagonal += 1
                value = min(diagonal, other)
                diagonal = column[i + 1]
                column[i + 1] = value
            at += 1
        out[hit] = column[lengths[pattern]]


class SiteHits(NamedTuple):
    """Sites to align at: places in the codes, which way, letters there are, and patterns; int64 (hits,)."""

    places: Any
    onward: Any
    room: Any
    patterns: Any


class SitePaths(NamedTuple):
    """What is found, changed in place, int64: `errors` (hits, 3) are mismatches, extra and missing letters.

    The first is -1 where no alignment is within the limits. `steps` uint8 (hits, enough) are operations from
    the site on, `counts` (hits,) their number.
    """

    errors: Any
    steps: Any
    counts: Any


@shared
def _cost(codes: Any, hits: Any, hit: int, sets: Any, letter: int, at: int) -> int:
    """Mismatches, 0 or 1, of a letter of the pattern with one from the site on; very many where none is."""
    if at < 0 or at >= hits.room[hit]:
        return 1 << 20
    return 1 if sets[letter] & codes[hits.places[hit] + hits.onward * at] & 15 == 0 else 0


@shared
def _fill(codes: Any, hits: Any, hit: int, sets: Any, length: int, limits: Any, best: Any) -> None:
    """Fewest mismatches of the first letters of a pattern with numbers of extra and missing letters."""
    room = hits.room[hit]
    for extra in range(limits.extra + 1):
        for missing in range(limits.missing + 1):
            best[0, extra, missing] = 0 if missing == 0 and extra <= room else 1 << 20
    for i in range(length):
        for extra in range(limits.extra + 1):
            for missing in range(limits.missing + 1):
                at = i + extra - missing
                value = best[i, extra, missing] + _cost(codes, hits, hit, sets, i, at)
                if missing > 0:
                    value = min(value, best[i, extra, missing - 1])
                if extra > 0 and at < room:
                    value = min(value, best[i + 1, extra - 1, missing])
                best[i + 1, extra, missing] = value


@shared
def _choose(best: Any, length: int, limits: Any, mismatches: int, errors: Any) -> None:
    """Of the numbers of errors within limits those with fewest bulges, and then fewest mismatches."""
    errors[0] = -1
    for extra in range(limits.extra + 1):
        for missing in range(limits.missing + 1):
            found = best[length, extra, missing]
            bulges = extra + missing
            if found <= mismatches and found + bulges <= limits.errors:
                before = errors[1] + errors[2]
                if errors[0] < 0 or bulges < before or (bulges == before and found < errors[0]):
                    errors[0] = found
                    errors[1] = extra
                    errors[2] = missing


@shared
def _walk(codes: Any, hits: Any, hit: int, sets: Any, best: Any, length: int, late: bool, out: Any) -> int:
    """Write the operations, the last first; of equally good ones bulges that come `late` from the site on."""
    i, extra, missing = length, out.errors[hit, 1], out.errors[hit, 2]
    count = 0
    while i > 0 or extra > 0:
        value = best[i, extra, missing]
        bulge = 0
        if extra > 0 and best[i, extra - 1, missing] == value:
            bulge = 2
        elif missing > 0 and i > 0 and best[i - 1, extra, missing - 1] == value:
            bulge = 3
        cost = _cost(codes, hits, hit, sets, i - 1, i - 1 + extra - missing) if i > 0 else 1 << 20
        diagonal = i > 0 and best[i - 1, extra, missing] + cost == value
        if diagonal and (bulge == 0 or not late):
            bulge = cost
            i -= 1
        elif bulge == 2:
            extra -= 1
        else:
            missing -= 1
            i -= 1
        out.steps[hit, count] = bulge
        count += 1
    return count


@shared
def find_paths(
    codes: Any,
    hits: Any,
    sets: Any,
    lengths: Any,
    mismatches: Any,
    limits: Any,
    late: bool,
    best: Any,
    out: Any,
) -> None:
    """Alignments of patterns at sites, with fewest bulges, then fewest mismatches.

    `codes` and `sets` as in `find_distances`; `mismatches` int64 (patterns,), `limits` are `ErrorLimits`;
    `best` int64 (letters + 1, extra + 1, missing + 1) is memory.
    """
    for hit in range(hits.places.size):
        g = hits.patterns[hit]
        _fill(codes, hits, hit, sets[g], lengths[g], limits, best)
        _choose(best, lengths[g], limits, mismatches[g], out.errors[hit])
        if out.errors[hit, 0] >= 0:
            out.counts[hit] = _walk(codes, hits, hit, sets[g], best, lengths[g], late, out)


distances_kernel = kernel(find_distances)
paths_kernel = kernel(find_paths)
