"""Decoding on GPUs: a thread has a word, and words beside each other have their messages side by side.

A module of its own: what CUDA runs, which is imported where a GPU is used.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL
from plait.devices.cuda_target import CudaTarget
from plait.devices.target import over_threads
from plait.lang.lanes import lanes_of
from plait.ldpc.decoding import DecodeBatch, decode_words, messages_of
from plait.ldpc.messages import Parities, SignedLeast

_ONE: Final = lanes_of(1)
_THREADS: Final = 64
#: Words that are decoded together, at most, and bytes of their messages.
_WORDS, _BYTES = 1 << 14, 1 << 33


def _examples() -> list[tuple[Any, ...]]:
    found = []
    for kind, alg, size in ((np.int32, SignedLeast, 4), (np.float32, Parities, 4)):
        rows = np.zeros((2, 2), kind)
        code, limits = (np.zeros(1, np.int64),) * 2, (np.int64(1), True, np.int64(1))
        words, counts = np.zeros((2, 1, 1), np.int32), np.zeros(1, np.int64)
        found.append((alg(*[kind(1)] * size), code, rows, (rows,) * 5, limits, words, counts, counts))
    return found


@cuda_kernel(_examples)
def decode_each(
    algebra: Any, code: Any, prior: Any, memory: Any, limits: Any, words: Any, counts: Any, found: Any
) -> None:
    """What `decode_words` does, for one word of `words` int32 (2, bits, words)."""
    t = cuda.grid(1)
    if t < found.size:
        own = words[:, :, t]
        place = _ONE, t
        found[t] = decode_words(place, algebra, code, prior, memory, limits, own, counts[t : t + 1])


def decode_batch(
    batch: DecodeBatch, target: CudaTarget
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """Bits, iterations and whether words are of the code; integers have 32 bits and the limits of 8."""
    code, kind = batch.code, np.int32 if batch.method == "min-sum" else batch.kind
    own = batch._replace(kind=kind)
    if batch.ratios.dtype == np.int8:
        own = own._replace(ratios=batch.ratios.astype(kind))
    count, longest = len(own.ratios), int(np.diff(code.starts).max(initial=1))
    bits, iterations = np.empty((count, code.size), np.uint8), np.empty(count, np.int64)
    found = np.empty(count, bool)
    most = max(min(_WORDS, _BYTES // (16 * (code.bits.size + 4 * code.size))), 1)

    def one(first: int) -> None:
        part = own.ratios[first : first + most]
        width = len(part)
        algebra, prior, nothing = messages_of(own, part, width)
        rows = len(nothing)
        with POOL.slot(target.devices) as slot:
            told = slot.room("messages", (rows * code.bits.size, width), kind)
            told.copy_to_device(np.tile(nothing, (code.bits.size, 1)), stream=slot.stream)
            given = slot.upload("prior", prior)
            sums = slot.upload("sums", prior)
            said = slot.room("said", prior.shape, kind)
            own_room, later = (slot.room(name, (rows * longest, width), kind) for name in ("own", "later"))
            words = slot.upload("words", np.zeros((2, code.size, width), np.int32))
            counts = slot.upload("counts", np.zeros(width, np.int64))
            good = slot.upload("good", np.zeros(width, np.int64))
            graph = slot.upload("bits", code.bits), slot.upload("starts", code.starts)
            limits = np.int64(batch.iterations), batch.layered, np.int64(1)
            memory = sums, said, told, own_room, later
            arguments = algebra, graph, given, memory, limits, words, counts, good
            decode_each.launch(-(-width // _THREADS), _THREADS, *arguments, stream=slot.stream)
            back = [slot.download(name, array) for name, array in (("w", words), ("c", counts), ("g", good))]
            slot.wait()
            bits[first : first + width] = back[0][1].T
            iterations[first : first + width] = back[1]
            found[first : first + width] = back[2] & 1

    over_threads(len(target.devices), range(0, count, most), one)
    return bits, iterations, found
