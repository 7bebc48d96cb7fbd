"""What searches of texts for short patterns launch on each device."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted, over_threads, stretches
from plait.dp.bitparallel.striped import (
    COLUMNS,
    PIECE,
    SITES_BESIDE,
    ErrorLimits,
    Found,
    PatternRows,
    Planes,
    Stages,
    edits_kernel,
    encode_kernel,
    levels_kernel,
    mismatches_kernel,
    sites_kernel,
    stripe_kernel,
)
from plait.lang.algebras import BITS
from plait.lang.lanes import host_lanes, lanes_of

#: The bit that every code of a text has: a set of this one alone matches any letter, and any other code.
ALWAYS: Final = 16
#: Letters of a chunk of text, whose planes stay in the second-level cache, and most in each of its segments.
_CHUNK: Final = 1 << 19
_WIDTH: Final = 2048
#: Letters that are looked through for a PAM, or encoded, in one go at the least.
_SITE_LETTERS: Final = 1 << 20
#: Sites that are looked at together.
_SITES: Final = 1 << 15
#: Longest pattern with its errors.
LONGEST: Final = 128
#: Codes of nothing that stand before and behind a text.
MARGIN: Final = _WIDTH + 2 * LONGEST
#: Letters and patterns that are worth the start of a GPU which was not asked for by name.
_WORTH: Final = 1 << 36
#: Letters that are looked at together.
OCTETS: Final = lanes_of(64)
_FIRST_ROOM: Final = 1 << 12


class TextBatch(NamedTuple):
    """Patterns to look for in a text; what `width` asks for is for tests.

    `codes` are uint8, sets of letters as the lowest 4 bits and `ALWAYS`, with `MARGIN` codes of nothing else
    before and behind the `letters` of the text. `patterns` are sets, uint8 (patterns, letters), `lengths` and
    `limits` int64 (patterns,): letters of each, and errors that it may have.
    """

    codes: NDArray[np.uint8]
    letters: int
    patterns: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    limits: NDArray[np.int64]
    width: int = _WIDTH
    lanes: int = 0


class PamSites(NamedTuple):
    """Sites beside the places of a text at which a PAM begins: behind it, or before it if `onward` is -1.

    `letters` are sets, uint8, of which so many may mismatch. `ranges` int64 (ranges, 2), in order, are the
    first and the last places that count, from the first letter of the text on.
    """

    letters: NDArray[np.uint8]
    mismatches: int
    ranges: NDArray[np.int64]


class SiteBatch(NamedTuple):
    """Patterns to compare with a text at sites, from each one on, or backwards where `onward` is -1.

    `sites` are places in `text.codes`, int64 in order, or those beside a PAM; `text.limits` are mismatches.
    `limits` are those of other errors.
    """

    text: TextBatch
    sites: NDArray[np.int64] | PamSites
    onward: int
    limits: ErrorLimits


#: Numbers of patterns and places, int64 (hits,), by pattern and then by place.
Places = tuple[NDArray[np.int64], NDArray[np.int64]]


class SitePlaces(NamedTuple):
    """Numbers of patterns and their sites in `text.codes`, as `Places`, and how many sites there are."""

    patterns: NDArray[np.int64]
    places: NDArray[np.int64]
    sites: int


class _Kernels(NamedTuple):
    stripe: Any
    mismatches: Any
    edits: Any
    levels: Any


_COMPILED: Final = _Kernels(stripe_kernel, mismatches_kernel, edits_kernel, levels_kernel)
_INTERPRETED: Final = _Kernels(*map(interpreted, _COMPILED))


def encoded(letters: NDArray[np.uint8], sets: NDArray[np.uint8], threads: int = 1) -> NDArray[np.uint8]:
    """Codes of a text with its margins, of which the size is a multiple of 64.

    `sets` uint8 (32,) are those of letters by their lowest five bits, as for `TextBatch`.
    """
    codes = np.empty_like(letters)
    table = np.zeros((2, 32), np.uint8)
    table[0] = sets | ALWAYS
    table[1, :3] = 31, 63, ALWAYS
    rows, out = letters.reshape(-1, 64), codes.reshape(-1, 64)

    def run(stretch: tuple[int, int]) -> None:
        encode_kernel(OCTETS, rows[slice(*stretch)], table, out[slice(*stretch)])

    over_threads(threads, stretches(threads, len(rows), _SITE_LETTERS // 64), run)
    return codes


def pam_sites(codes: NDArray[np.uint8], pam: PamSites, onward: int, threads: int) -> NDArray[np.int64]:
    """Sites beside the PAMs of a text, places in its codes in order."""
    numbers = np.array([1, pam.mismatches], np.uint8)

    behind = pam.letters.size if onward == 1 else -1

    def run(stretch: tuple[int, int]) -> NDArray[np.int64]:
        # Of this, no more memory is used than there are sites.
        sites = np.empty(stretch[1] - stretch[0] + SITES_BESIDE, np.int64)
        begin, end = (first + MARGIN + at for at in stretch)
        count = sites_kernel(OCTETS, codes[None], begin, end, pam.letters, numbers, behind, sites)
        return sites[:count]

    if not len(pam.ranges):
        return np.zeros(0, np.int64)
    first, last = int(pam.ranges[0, 0]), int(pam.ranges[-1, 1]) + 1
    parts = over_threads(threads, stretches(threads, last - first, _SITE_LETTERS), run)
    found = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if len(pam.ranges) > 1:
        places = found - (MARGIN + behind)
        which = np.searchsorted(pam.ranges[:, 0], places, "right") - 1
        found = found[places <= pam.ranges[which, 1]]
    return found


class PatternSets(NamedTuple):
    """Patterns by numbers of sets, and the sets, uint8 (sets,)."""

    patterns: PatternRows
    sets: NDArray[np.uint8]


def numbered(batch: TextBatch, multiple: int) -> PatternSets:
    """Patterns with letters that match anything behind, up to a multiple of some letters."""
    longest = -(-batch.patterns.shape[1] // multiple) * multiple
    sets = np.full((batch.lengths.size, longest), ALWAYS, np.uint8)
    beside = np.arange(longest) < batch.lengths[:, None]
    sets[beside] = batch.patterns[beside[:, : batch.patterns.shape[1]]]
    kinds, rows = np.unique(sets, return_inverse=True)
    lengths = -(-batch.lengths // multiple) * multiple
    numbers = rows.reshape(sets.shape).astype(np.int64)
    return PatternSets(PatternRows(numbers, lengths, batch.limits.astype(np.int64)), kinds)


class _Search:
    """Patterns made ready, and memory of one thread."""

    def __init__(self, batch: TextBatch, multiple: int) -> None:
        self.lanes = lanes_of(batch.lanes) if batch.lanes else host_lanes(64)
        self.places = 64 * self.lanes.width
        self.batch = batch
        self.patterns, self.sets = numbered(batch, multiple)
        self.tile = self.words(64 * self.sets.size)
        self.piece = self.words(PIECE)
        self.hits = np.zeros(_FIRST_ROOM, np.int64)

    def words(self, rows: int) -> NDArray[np.int64]:
        """Memory for planes, or for a state: no group of lanes crosses a line of the cache."""
        room = np.zeros(rows * self.lanes.width + 8, np.int64)
        first = -room.ctypes.data % 64 // 8
        return room[first : first + rows * self.lanes.width].reshape(rows, self.lanes.width)

    def stripe(
        self,
        kernels: _Kernels,
        starts: NDArray[np.int64],
        onward: int,
        columns: int,
        words: NDArray[np.int64],
    ) -> None:
        """Planes of the text from each of `starts`, (groups, lanes), on."""
        codes = self.batch.codes[None]
        kernels.stripe(OCTETS, self.lanes, codes, starts, onward, columns, self.sets, self.tile, words)

    def found(self, span: int, call: Callable[[Found], int]) -> Places:
        """What a kernel finds, with room enough."""
        while True:
            count = call(Found(self.hits, span, self.piece))
            if count <= self.hits.size:
                # Sorted by number of the pattern and by place at once.
                hits = np.sort(self.hits[:count])
                return hits // span, hits % span
            self.hits = np.zeros(count, np.int64)


def in_order(parts: Iterable[Places]) -> Places:
    """Places of stretches of a text, one behind the other, by pattern and place."""
    whole = [places for places in parts if places[0].size]
    if not whole:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    patterns = np.concatenate([patterns for patterns, _ in whole])
    places = np.concatenate([places for _, places in whole])
    # Chunks are in the order of places, so that a stable sort by pattern is all.
    order = np.argsort(patterns, kind="stable")
    return patterns[order], places[order]


def _stretches(items: int, threads: int) -> list[tuple[int, int]]:
    count = max(1, min(items, 1 if threads == 1 else 4 * threads))
    return list(pairwise(items * k // count for k in range(count + 1)))


def _chunks(batch: TextBatch, places: int) -> list[tuple[int, int]]:
    """First place and letters a segment of each chunk of the text."""
    width = min(batch.width, _CHUNK // places, -(-batch.letters // places))
    width = -(-max(width, 1) // COLUMNS) * COLUMNS
    return [(first, width) for first in range(0, batch.letters, places * width)]


def _in_chunks(
    kernels: _Kernels,
    batch: TextBatch,
    target: Target,
    *,
    multiple: int,
    before: int,
    behind: int,
    call: Callable[[_Search, Planes], Callable[[Found], int]],
) -> Places:
    """What is found in the chunks of a text, with columns before and behind those whose places count."""

    def run(stretch: tuple[int, int]) -> list[Places]:
        search = _Search(batch, multiple)
        found: list[Places] = []
        for first, width in chunks[slice(*stretch)]:
            columns = before + width + behind
            if not found:
                words = search.words(columns * search.sets.size)
            starts = MARGIN + first - before + np.arange(search.places, dtype=np.int64)[None] * width
            # Segments behind the text are margin and nothing else.
            np.minimum(starts, batch.codes.size - (columns + 63 & -64), out=starts)
            search.stripe(kernels, starts, 1, columns, words)
            count = search.sets.size
            planes = Planes(words, count, count, before + width, width, 1)
            patterns, places = search.found(search.places * width, call(search, planes))
            inside = places + first < batch.letters
            found.append((patterns[inside], places[inside] + first))
        return found

    chunks = _chunks(batch, 64 * (batch.lanes or host_lanes(64).width))
    return in_order(
        chain.from_iterable(over_threads(target.threads, _stretches(len(chunks), target.threads), run))
    )


def _mismatches_of(kernels: _Kernels, search: _Search, planes: Planes) -> Callable[[Found], int]:
    rows = np.zeros(search.patterns.sets.shape[1], np.int64)
    flat = planes._replace(words=planes.words.reshape(1, -1))
    return lambda found: int(kernels.mismatches(search.lanes, BITS, flat, search.patterns, rows, found))


def _run_mismatches(kernels: _Kernels, batch: TextBatch, target: Target) -> Places:
    def call(search: _Search, planes: Planes) -> Callable[[Found], int]:
        return _mismatches_of(kernels, search, planes)

    behind = int(batch.lengths.max(initial=0)) + COLUMNS
    return _in_chunks(kernels, batch, target, multiple=4, before=0, behind=behind, call=call)


def _run_edits(kernels: _Kernels, batch: TextBatch, target: Target) -> Places:
    warm = -(-int((batch.lengths + batch.limits).max(initial=0)) // COLUMNS) * COLUMNS

    def call(search: _Search, planes: Planes) -> Callable[[Found], int]:
        longest = search.patterns.sets.shape[1]
        plan, rows = np.zeros((longest, 3), np.int64), np.zeros(longest, np.int64)
        stages = Stages(plan, rows, search.words(2 * longest), search.words(2 * longest + 16))
        flat = planes._replace(words=planes.words.reshape(1, -1))
        return lambda found: int(
            kernels.edits(search.lanes, BITS, flat, search.patterns, warm, stages, found)
        )

    return _in_chunks(kernels, batch, target, multiple=1, before=warm, behind=0, call=call)


def _run_sites(kernels: _Kernels, batch: SiteBatch, target: Target) -> SitePlaces:
    text, onward, limits = batch.text, batch.onward, batch.limits
    sites = batch.sites
    if isinstance(sites, PamSites):
        sites = pam_sites(text.codes, sites, onward, target.threads)
    bulges = bool(limits.extra or limits.missing)

    def run(stretch: tuple[int, int]) -> list[Places]:
        search = _Search(text, 1 if bulges else 4)
        columns = search.patterns.sets.shape[1] + max(limits.extra, int(bulges))
        count, places = search.sets.size, search.places
        most = max(_SITES // places, 1)
        words = search.words(most * columns * count)
        starts = np.empty(most * places, np.int64)
        found: list[Places] = []
        for first in range(places * stretch[0], min(places * stretch[1], sites.size), places * most):
            own = sites[first : min(first + places * most, places * stretch[1])]
            groups = -(-own.size // places)
            # Lanes without a site see margin and nothing else.
            starts[: own.size], starts[own.size :] = own, 2 * LONGEST
            grouped = starts.reshape(most, places)[:groups]
            search.stripe(kernels, grouped, onward, columns, words)
            planes = Planes(words, count, columns * count, groups, 1, places)
            found.append(_of_sites(kernels, search, planes, limits if bulges else None, first))
        return found

    groups = -(-sites.size // (64 * (text.lanes or host_lanes(64).width)))
    patterns, which = in_order(
        chain.from_iterable(over_threads(target.threads, _stretches(groups, target.threads), run))
    )
    return SitePlaces(patterns, sites[which], sites.size)


def _of_sites(
    kernels: _Kernels, search: _Search, planes: Planes, limits: ErrorLimits | None, first: int
) -> Places:
    def levels_of(limits: ErrorLimits) -> Callable[[Found], int]:
        levels = int(search.batch.limits.max(initial=0)) + 1
        state = search.words(levels * (max(limits.extra, 1) + 1) * (max(limits.missing, 1) + 1) + 1)
        return lambda found: int(
            kernels.levels(search.lanes, BITS, planes, search.patterns, limits, state, found)
        )

    call = _mismatches_of(kernels, search, planes) if limits is None else levels_of(limits)
    patterns, places = search.found(search.places * planes.width, call)
    return patterns, places + first


def _worth(batch: TextBatch) -> bool:
    return batch.letters * int(batch.lengths.size) >= _WORTH


def _problem(name: str, run: Any, cuda: str, worth: Callable[[Any], bool]) -> Problem[Any, Any]:
    return Problem(
        name,
        cpu=partial(run, _COMPILED),
        reference=partial(run, _INTERPRETED),
        cuda=f"plait.dp.bitparallel.gpu_striped:{cuda}",
        worth=worth,
    )


#: Places where patterns begin within their numbers of mismatches, in a `TextBatch`.
MISMATCH_STARTS: Final = _problem("places with few mismatches", _run_mismatches, "mismatch_batch", _worth)
#: Places where patterns end within their numbers of edits, in a `TextBatch`.
EDIT_ENDS: Final = _problem("places with few edits", _run_edits, "edit_batch", _worth)
#: Sites of a `SiteBatch`, by number, at which patterns are within limits.
SITE_MATCHES: Final = _problem(
    "sites with few errors", _run_sites, "site_batch", lambda batch: _worth(batch.text)
)
