"""Diagonals on GPUs: a thread looks at one, the band of diagonals around it side by side in a word.

A module of its own: what CUDA runs, which is imported where a GPU is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL, current_device, kept, uploaded
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads, stretches
from plait.dp.bitparallel.recurrences import ErrorLevels, reached
from plait.lang.algebras import BITS, choice
from plait.lang.compile import shared
from plait.mapping.genome import MOST_ERRORS
from plait.mapping.verification import BEYOND, WITHIN, DiagonalBatch, differing, word_at

_THREADS = 128
#: Diagonals of a stretch, at least, where there are several devices.
_LEAST = 1 << 12
_LEVELS = MOST_ERRORS + 1


@shared
def _mismatches(words: Any, at: Any, read: Any, length: Any, most: Any) -> Any:
    """As `plait.mapping.verification.mismatches`."""
    found = 0
    for word in range((length + 63) >> 6):
        if found <= most:
            found += cuda.popc(np.uint64(differing(words, at, read, length, word)))
    return found


@shared
def _letters_of_band(words: Any, at: Any, read: Any, i: Any, levels: Any, last: Any, errors: Any) -> None:
    """Levels after the letters from `i` to before `last` of a read, whose window begins at `at`.

    Bit d of level k is whether the letters so far, ending on diagonal d, have at most k errors: as
    `plait.mapping.verification.error_levels`.
    """
    band = ~(-1 << (2 * errors + 1))
    low, high = word_at(words, 0, at + i), word_at(words, 1, at + i)
    read_low, read_high = word_at(read, 0, i), word_at(read, 1, i)
    for j in range(last - i):
        mismatch = ((low >> j) ^ -((read_low >> j) & 1)) | ((high >> j) ^ -((read_high >> j) & 1))
        old = np.int64(0)
        new = np.int64(0)
        for k in range(errors + 1):
            here = levels[k]
            others = choice(BITS, choice(BITS, old, old >> 1), (new << 1) & band)
            new = np.int64(reached(ErrorLevels(), BITS, here, mismatch, others))
            levels[k] = new
            old = here


@cuda_kernel(
    lambda: [
        (
            *[np.zeros((1, 3), np.int64), np.zeros((1, 1, 3), np.int64)],
            *[np.zeros(1, np.int64)] * 3,
            True,
            np.zeros(1, np.uint8),
        )
    ]
)
def check_diagonals(
    words: Any, reads: Any, lengths: Any, errors: Any, keys: Any, edits: Any, out: Any
) -> None:
    """What `plait.mapping.verification.check_kernel` finds; `edits`: not with substitutions alone."""
    at = cuda.grid(1)
    if at >= keys.size:
        return
    row, place = keys[at] >> 32, keys[at] & 0xFFFFFFFF
    read, length, most = reads[row], lengths[row], errors[row]
    found = _mismatches(words, place, read, length, most)
    if found > most:
        found = BEYOND
        if edits and most > 0:
            levels = cuda.local.array(_LEVELS, np.int64)
            for k in range(most + 1):
                levels[k] = ~(-1 << (2 * most + 1))
            # As many letters at a time as have all their windows in the words that are loaded.
            for i in range(0, length, 64 - 2 * most):
                last = min(i + 64 - 2 * most, length)
                _letters_of_band(words, place - most, read, i, levels, last, most)
            if levels[most] != 0:
                found = WITHIN
    out[at] = found


def check_batch(batch: DiagonalBatch, target: CudaTarget) -> NDArray[np.uint8]:
    """What is found of diagonals, which are shared out over the devices."""

    def run(stretch: tuple[int, int]) -> NDArray[np.uint8]:
        own = batch.keys[slice(*stretch)]
        with POOL.slot(target.devices) as slot:
            words = kept(current_device(), batch.words, lambda: uploaded(batch.words))
            out = slot.room("found", own.size, np.uint8)
            check_diagonals.launch(
                -(-own.size // _THREADS),
                _THREADS,
                words,
                *(slot.upload(name, getattr(batch.reads, name)) for name in ("words", "lengths", "errors")),
                slot.upload("keys", own),
                batch.edits,
                out,
                stream=slot.stream,
            )
            found = slot.download("found", out)
            slot.wait()
            return found.copy()

    if not batch.keys.size:
        return np.zeros(0, np.uint8)
    own = stretches(len(target.devices), batch.keys.size, _LEAST)
    return np.concatenate(over_threads(len(target.devices), own, run))
