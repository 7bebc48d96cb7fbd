"""Which diagonals have a read within its errors: 64 of them in each word, then where exactly it ends.

Nothing is left out that is within the errors, but letters that match nothing may count as A: what is exact
stands in `plait.mapping.alignments`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.target import Problem, Target, interpreted
from plait.lang.compile import kernel, shared
from plait.lang.lanes import host_lanes, load, population, splat, store

#: A distance that is not known yet, and no more than the errors.
WITHIN = 254
#: More than the errors.
BEYOND = 255
#: Diagonals that are worth the start of a GPU which was not asked for by name.
_WORTH: Final = 1 << 18


#: Bits of a word in the lower halves of stretches of 64, 32, ..., 2 bits.
HALVES: Final = (
    0x00000000FFFFFFFF,
    0x0000FFFF0000FFFF,
    0x00FF00FF00FF00FF,
    0x0F0F0F0F0F0F0F0F,
    0x3333333333333333,
    0x5555555555555555,
)


class LaneScratch(NamedTuple):
    """Memory of pairs that are checked together, one in each bit of a group of w words; rows of words, int64.

    `read` (2, 64 n, w): planes of reads, complemented, as long as the longest, and `before` (64 n, w), where
    a shorter one has no letter yet; `text` (2, 64 m, w): planes of windows; `levels` (2 e + 3, e + 1, w),
    flat over the first two: whether a diagonal has at most so many errors. `places` (64 w,) numbers of the
    pairs.
    """

    read: Any
    text: Any
    before: Any
    levels: Any
    places: Any


@shared
def word_at(words: Any, plane: int, at: Any) -> Any:
    """64 letters of a plane of int64 (words, 3) from a place on."""
    word, bit = at >> 6, at & 63
    if bit == 0:
        return words[word, plane]
    low = (words[word, plane] >> bit) & ~(-1 << (64 - bit))
    return low | (words[word + 1, plane] << (64 - bit))


@shared
def differing(words: Any, at: int, read: Any, length: int, word: int) -> Any:
    """Bits of the letters of a word in which a read, int64 (words, 3), differs from the text at a place."""
    place = at + 64 * word
    other = (word_at(words, 0, place) ^ read[word, 0]) | (word_at(words, 1, place) ^ read[word, 1])
    other |= word_at(words, 2, place) | read[word, 2]
    return other & ~(-1 << (length - 64 * word)) if length - 64 * word < 64 else other


@shared
def mismatches(words: Any, at: int, read: Any, length: int, most: int) -> int:
    """Letters in which a read, int64 (words, 3), differs from the text at a place; counted until > `most`."""
    found = 0
    for word in range((length + 63) >> 6):
        found += population(differing(words, at, read, length, word))
        if found > most:
            break
    return found


@kernel
def check_kernel(
    lanes: Any, words: Any, reads: Any, keys: Any, longest: int, errors: int, scratch: Any, out: Any
) -> None:
    """Look at diagonals, `keys` as of `plait.mapping.seeds`, of reads with at most `errors`: `out` uint8.

    It is the number of mismatches where they are few enough, else `WITHIN` or `BEYOND`; without scratch
    memory (no rows of `scratch.places`) there are substitutions alone.
    """
    pairs = 0
    room = scratch.places.size
    for item in range(keys.size):
        row, at = keys[item] >> 32, keys[item] & 0xFFFFFFFF
        length = reads.lengths[row]
        found = mismatches(words, at, reads.words[row], length, errors)
        out[item] = found if found <= errors else BEYOND
        if found > errors and room > 0:
            _add_pair(words, at - errors, reads.words[row], longest - length, longest, errors, scratch, pairs)
            scratch.places[pairs] = item
            pairs += 1
            if pairs == room:
                _check_pairs(lanes, longest, errors, scratch, pairs, out)
                pairs = 0
    if pairs > 0:
        _check_pairs(lanes, longest, errors, scratch, pairs, out)


@shared
def _add_pair(
    words: Any, at: int, read: Any, lacking: int, longest: int, errors: int, scratch: Any, pair: int
) -> None:
    """Words of a pair, letters at the ends of the rows; a word belongs to one pair until it is transposed."""
    groups = scratch.read.shape[2]
    line, group = pair // groups, pair % groups
    for word in range((longest + 63) >> 6):
        place = 64 * word - lacking
        for plane in range(2):
            scratch.read[plane, 64 * word + line, group] = ~word_from(read, plane, place)
        scratch.before[64 * word + line, group] = -1 if place <= -64 else ~(-1 << max(-place, 0))
    for word in range((longest + 2 * errors + 63) >> 6):
        place = at - lacking + 64 * word
        for plane in range(2):
            scratch.text[plane, 64 * word + line, group] = word_at(words, plane, place)


@shared
def word_from(read: Any, plane: int, at: int) -> Any:
    """64 letters of a plane of a read; before it there are none."""
    if at >= 0:
        return word_at(read, plane, at)
    return read[0, plane] << -at if at > -64 else 0


@shared
def transpose(lanes: Any, rows: Any, first: int, masks: Any) -> None:
    """Exchange bits and rows of 64 rows of groups from `first` on: bit i of row k becomes bit k of row i."""
    step = 32
    for level in range(6):
        mask, bits = splat(lanes, masks[level]), splat(lanes, step)
        for block in range(first, first + 64, 2 * step):
            for row in range(block, block + step):
                a, b = load(lanes, rows, row, 0), load(lanes, rows, row + step, 0)
                moved = ((a >> bits) ^ b) & mask
                store(lanes, rows, row, 0, a ^ (moved << bits))
                store(lanes, rows, row + step, 0, b ^ moved)
        step >>= 1


@shared
def _check_pairs(lanes: Any, longest: int, errors: int, scratch: Any, pairs: int, out: Any) -> None:
    for word in range((longest + 63) >> 6):
        transpose(lanes, scratch.before, 64 * word, HALVES)
        for plane in range(2):
            transpose(lanes, scratch.read[plane], 64 * word, HALVES)
    for word in range((longest + 2 * errors + 63) >> 6):
        for plane in range(2):
            transpose(lanes, scratch.text[plane], 64 * word, HALVES)
    error_levels(lanes, longest, errors, scratch)
    groups = scratch.read.shape[2]
    for pair in range(pairs):
        bits = scratch.levels[0, pair % groups]
        out[scratch.places[pair]] = WITHIN if (bits >> (pair // groups)) & 1 else BEYOND


@shared
def error_levels(lanes: Any, letters: int, errors: int, scratch: Any) -> None:
    """Whether pairs have an alignment with at most `errors`: into row 0 of the levels, one pair in each bit.

    Row ``(d + 1) (errors + 1) + k`` of the levels is whether the letters so far, ending on diagonal d, have
    at most k errors; text before and behind is free. Each letter is paired (k, or k - 1 with a mismatch),
    stands alone (k - 1 on the next diagonal) or comes behind a letter of the text alone (k - 1 on the one
    before).
    """
    levels, width = scratch.levels, errors + 1
    band = 2 * errors + 1
    everywhere = splat(lanes, -1)
    nowhere = splat(lanes, 0)
    for k in range(width):
        store(lanes, levels, k, 0, nowhere)
        store(lanes, levels, (band + 1) * width + k, 0, nowhere)
        for d in range(1, band + 1):
            store(lanes, levels, d * width + k, 0, everywhere)
    for i in range(letters):
        high, low = load(lanes, scratch.read[1], i, 0), load(lanes, scratch.read[0], i, 0)
        before = load(lanes, scratch.before, i, 0)
        for d in range(1, band + 1):
            same = high ^ load(lanes, scratch.text[1], i + d - 1, 0)
            same = (same & (low ^ load(lanes, scratch.text[0], i + d - 1, 0))) | before
            own = d * width
            fewer = load(lanes, levels, own, 0)
            store(lanes, levels, own, 0, fewer & same)
            for k in range(1, width):
                here = load(lanes, levels, own + k, 0)
                beside = load(lanes, levels, own - width + k - 1, 0) | load(
                    lanes, levels, own + width + k - 1, 0
                )
                store(lanes, levels, own + k, 0, (here & same) | fewer | beside)
                fewer = here
    found = nowhere
    for d in range(1, band + 1):
        found = found | load(lanes, levels, d * width + errors, 0)
    store(lanes, levels, 0, 0, found)


class DiagonalBatch(NamedTuple):
    """Diagonals to look at, with `reads` and `keys` as of `plait.mapping.seeds`.

    `words` int64 (words, 3) are planes of the text; `edits`: reads may have insertions and deletions, too.
    """

    words: NDArray[np.int64]
    reads: Any
    keys: NDArray[np.int64]
    edits: bool


def _check_on_cpu(call: Any, batch: DiagonalBatch, target: Target) -> NDArray[np.uint8]:
    """What `check_kernel` finds of diagonals; those of reads with as many errors together."""
    reads, keys, lanes = batch.reads, batch.keys, host_lanes()
    found = np.empty(keys.size, np.uint8)
    errors = reads.errors[keys >> 32]
    for most in np.unique(errors).tolist():
        which = errors == most
        own = keys if which.all() else keys[which]
        longest = int(reads.lengths[own >> 32].max(initial=1))
        out = np.empty(own.size, np.uint8)
        scratch = _lane_scratch(lanes.width, longest, most, edits=batch.edits)
        call(lanes, batch.words, reads, own, longest, most, scratch, out)
        found[which] = out
    return found


def _lane_scratch(width: int, longest: int, errors: int, *, edits: bool) -> LaneScratch:
    rows = 64 * ((longest + 63) >> 6)
    window = 64 * ((longest + 2 * errors + 63) >> 6)
    return LaneScratch(
        np.zeros((2, rows, width), np.int64),
        np.zeros((2, window, width), np.int64),
        np.zeros((rows, width), np.int64),
        np.zeros(((2 * errors + 3) * (errors + 1), width), np.int64),
        np.zeros(64 * width if edits and errors else 0, np.int64),
    )


#: What is found of the diagonals of a `DiagonalBatch`, uint8 (keys,), as by `check_kernel`.
DIAGONALS: Final = Problem(
    "diagonals of reads",
    cpu=partial(_check_on_cpu, check_kernel),
    reference=partial(_check_on_cpu, interpreted(check_kernel)),
    cuda="plait.mapping.gpu_verification:check_batch",
    worth=lambda batch: batch.keys.size >= _WORTH,
)
