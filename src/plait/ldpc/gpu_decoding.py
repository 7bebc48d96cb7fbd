"""Min-sum on GPUs: two words a thread, all of a block in shared memory.

A module of its own: what CUDA runs, which is imported where a GPU is used.

Checks that share no bit do not see each other, so those of a level, each of which comes behind all earlier
checks of its bits, go side by side: answers are those of one check after the other.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.devices.cuda import cuda, cuda_kernel
from plait.devices.cuda_devices import POOL, device_facts
from plait.devices.cuda_target import CudaTarget
from plait.devices.ptx import instruction, on_halves
from plait.devices.target import over_threads
from plait.lang.compile import shared, types
from plait.ldpc.codes import Code
from plait.ldpc.decoding import BOUND, DecodeBatch, Found, to_units

#: Threads of the host for a device.
_COPYING: Final = 4
#: Words that are decoded together, at most.
_WORDS: Final = 1 << 12
#: Pairs of words of a block, and threads that are enough for a group.
_PAIRS: Final = (1, 2, 4)
_ENOUGH: Final = 48
#: Columns whose numbers have 16 bits.
_COLUMNS: Final = 1 << 16
_OCTETS: Final[Any] = types.int16
_WORD: Final[Any] = types.int32
_PLACE: Final[Any] = types.uint32
#: Columns of a check whose values stay in registers: most checks of codes that are in use have 6 or 7.
_FEW: Final = 7
#: In both halves of a word: 1, the largest number of 16 bits, and limits of sums and of what bits say.
_ONES, _FULL, _MOST, _BOUND = (np.int32(0x10001 * n) for n in (1, 0x7FFF, 127, BOUND))
_NOTHING, _LOW, _BOTH = (np.int32(n) for n in (0, 0x80, 0x8080))


def _octets(selector: int) -> Any:
    """Bytes of a word by number, one a digit, the lowest last; 8 more: what their sign fills a byte with."""

    def plain(a: Any, b: Any) -> Any:
        given = np.array([a], np.int32).view(np.int8)
        digits = [selector >> 4 * k & 15 for k in range(4)]
        return np.array([given[n & 7] >> 7 * (n >> 3) for n in digits], np.int8).view(np.int32)[0]

    return instruction(f"prmt.b32 $0,$1,$2,{selector:#06x};", plain=plain)


_add, _least, _largest = map(on_halves, ("add", "min", "max"))
_widened, _narrowed, _signs = _octets(0x9180), _octets(0x3120), _octets(0xBB99)


class _Plan(NamedTuple):
    """A code as a block takes it.

    `columns` uint16 (ones,): of the checks of a group the first columns, then the second ones, and so on.
    `groups` int32 (groups, 3): where a group begins there, its checks, and their columns; those of a group
    have no column in common, or are of one level and have as many as each other.
    """

    columns: NDArray[np.uint16]
    groups: NDArray[np.int32]


def plan_of(code: Code) -> _Plan:
    """Groups of checks that go side by side, in the order of checks wherever they share a column.

    The level of a check is one more than those of earlier checks that it shares a column with.
    """
    sizes, last = np.diff(code.starts), np.zeros(code.size, np.int64)
    levels = np.zeros_like(sizes)
    for m, (first, size) in enumerate(zip(code.starts[:-1], sizes, strict=True)):
        own = code.bits[first : first + size]
        levels[m] = last[own].max(initial=0)
        last[own] = levels[m] + 1
    kinds, number = np.unique(np.stack([levels, sizes], 1), axis=0, return_inverse=True)
    groups, columns, begun = [], [], 0
    for k, (_, size) in enumerate(kinds.tolist()):
        own = code.starts[:-1][np.flatnonzero(number.ravel() == k)]
        columns.append(code.bits[own + np.arange(size)[:, None]].ravel())
        groups.append((begun, own.size, size))
        begun += own.size * size
    return _Plan(np.concatenate(columns).astype(np.uint16), np.array(groups, np.int32))


@shared
def _held_within(value: Any) -> Any:
    return _largest(_least(value, _MOST), ~_MOST + _ONES)


@shared
def _heard(said: Any, message: Any) -> Any:
    """What is said of a bit without the check's own message, less one, and the magnitude."""
    value = _largest(_least(_add(said, message), _MOST - _ONES), ~_MOST)
    return value, _largest(_add(value, _ONES), ~value)


@shared
def _value(held: Any, place: Any) -> Any:
    """Two numbers of 8 bits, as 16 bits each."""
    return _widened(np.int32(held[place]), _NOTHING)


@shared
def _keep(held: Any, place: Any, value: Any) -> None:
    held[place] = np.int16(_narrowed(value, _NOTHING))


@shared
def _tells(least: Any, second: Any) -> Any:
    """What is told by the least magnitude and by the second, and both with the other sign."""
    one = least - (least >> 2 & np.int32(0x003F003F))
    two = second - (second >> 2 & np.int32(0x003F003F))
    return one, two, _add(~one, _ONES), _add(~two, _ONES)


@shared
def _message(value: Any, size: Any, least: Any, tells: Any, signs: Any) -> Any:
    """What a check tells a bit that says `value`, less one: whose own is the least is told the second.

    Where it says 0 the sign may be either, as its own counts twice, and others are told 0.
    """
    others = _signs(_add(size ^ least, _FULL), _NOTHING)
    minus = _signs(signs ^ value, _NOTHING)
    one = (tells[2] & minus) | (tells[0] & ~minus)
    two = (tells[3] & minus) | (tells[1] & ~minus)
    return (one & others) | (two & ~others)


@shared
def _step_of_few(held: Any, places: Any, sums: Any, said: Any, at: Any, apart: Any, degree: Any) -> None:
    """What `_step` does, for a degree that the compiler knows: then values stay in registers."""
    values, sizes = cuda.local.array(_FEW, _WORD), cuda.local.array(_FEW, _WORD)
    bits = cuda.local.array(_FEW, _PLACE)
    own = _after(places[0], _after(np.uint32(at * places[2]), places[3]))
    onward = np.uint32(apart * places[2])
    for k in range(degree):
        bits[k] = _bit(places, np.uint32(at + np.uint32(np.uint32(k) * apart)))
    least = second = _BOUND
    signs = np.int32(0)
    for k in range(degree):
        old = _value(held, _after(own, np.uint32(np.uint32(k) * onward)))
        values[k], sizes[k] = _heard(_value(held, _after(said, bits[k])), old)
    for k in range(degree):
        second, least = _least(second, _largest(least, sizes[k])), _least(least, sizes[k])
        signs ^= values[k]
    tells = _tells(least, second)
    for k in range(degree):
        message, bit = _message(values[k], sizes[k], least, tells, signs), _after(sums, bits[k])
        _keep(held, _after(own, np.uint32(np.uint32(k) * onward)), ~message)
        rest = _add(values[k], _ONES) if said == sums else _value(held, bit)
        _keep(held, bit, _held_within(_add(rest, message)))


@shared
def _step(held: Any, places: Any, sums: Any, said: Any, at: Any, apart: Any, degree: Any) -> None:
    """Renew the messages of a check on two words; messages are held with all bits changed.

    `places`: where messages begin in `held`, the columns of checks, pairs of words, and the pair. `at`: the
    first column of the check, `apart` from the next one.
    """
    least = second = _BOUND if degree > 1 else _MOST
    signs, place = np.int32(0), at
    begun = own = _after(places[0], _after(np.uint32(at * places[2]), places[3]))
    onward = np.uint32(apart * places[2])
    for _ in range(degree):
        value, size = _heard(_value(held, _after(said, _bit(places, place))), _value(held, own))
        _keep(held, own, value)
        second, least = _least(second, _largest(least, size)), _least(least, size)
        signs ^= value
        place, own = _after(place, apart), _after(own, onward)
    tells = _tells(least, second)
    place, own = at, begun
    for _ in range(degree):
        bit, value = _after(sums, _bit(places, place)), _value(held, own)
        onto = _add(value, _ONES)
        message = _message(value, _largest(onto, ~value), least, tells, signs)
        _keep(held, own, ~message)
        rest = onto if said == sums else _value(held, bit)
        _keep(held, bit, _held_within(_add(rest, message)))
        place, own = _after(place, apart), _after(own, onward)


@shared
def _after(place: Any, distance: Any) -> Any:
    """A place so far behind another one; sums that are not cut at once have 64 bits."""
    return np.uint32(np.uint32(place) + np.uint32(distance))


@shared
def _bit(places: Any, place: Any) -> Any:
    """Where a column of a check is among sums."""
    return _after(np.uint32(np.uint32(places[1][place]) * places[2]), places[3])


@shared
def _wrong(held: Any, places: Any, sums: Any, groups: Any) -> Any:
    """Signs of the words in which some check of this thread fails; it looks until both have."""
    found, pairs = np.int32(0), places[2]
    for g in range(groups.shape[0]):
        if found == _BOTH:
            break
        apart = np.uint32(groups[g, 1])
        for j in range(cuda.threadIdx.x // pairs, apart, cuda.blockDim.x // pairs):
            parity, place = np.int32(0), np.uint32(groups[g, 0] + j)
            for _ in range(groups[g, 2]):
                parity ^= np.int32(held[_after(sums, _bit(places, place))])
                place = _after(place, apart)
            found |= parity & _BOTH
    return found


@shared
def _receive(held: Any, ratios: Any, pairs: Any, word: Any) -> None:
    """Put what was received of the block's words, from `word` on, into sums; what is no word is right."""
    for p in range(pairs):
        one, two = word + 2 * p, word + 2 * p + 1
        for n in range(cuda.threadIdx.x, ratios.shape[1], cuda.blockDim.x):
            a = np.int32(ratios[one, n]) if one < ratios.shape[0] else _MOST
            b = np.int32(ratios[two, n]) if two < ratios.shape[0] else _MOST
            held[n * pairs + p] = np.int16((a & np.int32(0xFF)) | (b << 8))


@shared
def _settle(held: Any, pairs: Any, word: Any, new: Any, out: Any, count: Any, good: Any) -> None:
    """Write the words of a pair that are done, both or either, by bits of `new`."""
    bits, counts, found = out
    for side in range(2):
        w = word + side
        if new & (_LOW << 8 * side) and w < bits.shape[0]:
            for n in range(cuda.threadIdx.x, bits.shape[1], cuda.blockDim.x):
                bits[w, n] = np.uint8((np.int32(held[n * pairs]) >> 8 * side + 7) & 1)
            if cuda.threadIdx.x == 0:
                counts[w], found[w] = count, good & (_LOW << 8 * side) != 0


@shared
def _iterate(held: Any, places: Any, sums: Any, said: Any, groups: Any) -> None:
    """Renew all messages once."""
    begin, step = cuda.threadIdx.x // places[2], cuda.blockDim.x // places[2]
    for g in range(groups.shape[0]):
        first, apart, degree = groups[g, 0], np.uint32(groups[g, 1]), groups[g, 2]
        for j in range(begin, apart, step):
            at = np.uint32(first + j)
            if degree == 6:
                _step_of_few(held, places, sums, said, at, apart, 6)
            elif degree == 7:
                _step_of_few(held, places, sums, said, at, apart, 7)
            else:
                _step(held, places, sums, said, at, apart, degree)
        cuda.syncthreads()


_LIMITS: Final = (np.int32(1), True, np.uint32(1))
_OUT: Final = (np.zeros((1, 1), np.uint8), np.zeros(1, np.int64), np.zeros(1, np.bool_))
_PLAN: Final = _Plan(np.zeros(1, np.uint16), np.zeros((1, 3), np.int32))


@cuda_kernel(lambda: [(_PLAN, np.zeros((1, 1), np.int8), _LIMITS, _OUT)], max_registers=96)
def decode_pairs(plan: Any, ratios: Any, limits: Any, out: Any) -> None:
    """Decode `ratios` int8 (words, columns) by min-sum."""
    wrong = cuda.shared.array(_PAIRS[-1], _WORD)
    held = cuda.shared.array(0, _OCTETS)
    iterations, layered, pairs = limits
    thread, threads, size = cuda.threadIdx.x, cuda.blockDim.x, ratios.shape[1] * pairs
    p, word, sums = np.uint32(thread % pairs), cuda.blockIdx.x * 2 * pairs, np.uint32(0)
    said = sums if layered else np.uint32(size)
    messages = np.uint32(said + size)
    for k in range(thread, plan.columns.size * pairs, threads):
        held[messages + k] = np.int16(-1)
    places = messages, plan.columns, pairs, p
    _receive(held, ratios, pairs, word)
    done, every = np.int32(0), np.int32((1 << 2 * pairs) - 1)
    for count in range(iterations + 1):
        if thread < pairs:
            wrong[thread] = 0
        cuda.syncthreads()
        cuda.atomic.or_(wrong, p, _wrong(held, places, sums, plan.groups))
        cuda.syncthreads()
        for q in range(pairs):
            good = ~wrong[q] & _BOTH
            new = _BOTH if count == iterations else good
            new &= ~(((done >> 2 * q & 1) << 7) | ((done >> 2 * q + 1 & 1) << 15))
            if new != 0:
                _settle(held[q:], pairs, word + 2 * q, new, out, count, good)
                done |= np.int32(((new >> 7 & 1) | (new >> 14 & 2)) << 2 * q)
        if done == every:
            return
        cuda.syncthreads()
        if not layered:
            # What was said is kept, and sums are what was received.
            for k in range(thread, size, threads):
                held[said + k] = held[k]
            cuda.syncthreads()
            _receive(held, ratios, pairs, word)
            cuda.syncthreads()
        _iterate(held, places, sums, said, plan.groups)


def decode_batch(batch: DecodeBatch, target: CudaTarget) -> Found | None:
    """Bits, iterations and whether words are of the code; None of sum-product, and of codes without room."""
    count, size, ones = len(batch.ratios), batch.code.size, batch.code.bits.size
    rows = size * (1 if batch.layered else 2) + ones
    free = device_facts(target.devices[0]).shared_per_block - 4 * _PAIRS[-1]
    fit = [n for n in _PAIRS if 2 * rows * n <= free]
    if batch.method != "min-sum" or not fit or not ones or size > _COLUMNS:
        return None
    out: Any = np.empty((count, size), np.uint8), np.empty(count, np.int64), np.empty(count, bool)
    plan = plan_of(batch.code)
    side = plan.groups[:, 1].mean()
    # Few words a block, so that there are many blocks, but as many as fill a warp or two with a group.
    pairs = next((n for n in fit if side * n >= _ENOUGH), fit[-1])
    # Where several blocks share a multiprocessor, fewer threads are better than one a check.
    share, shared = 0.9 if 4 * rows * pairs <= free else 1.25, 2 * rows * pairs
    threads = min(max(int(share * side * pairs) // 32 * 32, 32), 512)
    limits = np.int32(batch.iterations), batch.layered, np.uint32(pairs)

    def one(first: int) -> None:
        part = batch.ratios[first : first + _WORDS]
        with POOL.slot(target.devices) as slot:
            given = slot.upload("given", (plan, to_units(part, np.empty(part.shape, np.int8))))
            held = [slot.room(f"out {k}", (len(part), *a.shape[1:]), a.dtype) for k, a in enumerate(out)]
            blocks, more = -(-len(part) // (2 * pairs)), {"stream": slot.stream, "shared": shared}
            decode_pairs.launch(blocks, threads, *given, limits, tuple(held), **more)
            found = [slot.download(f"out {k}", array) for k, array in enumerate(held)]
            slot.wait()
            for whole, values in zip(out, found, strict=True):
                whole[first : first + _WORDS] = values

    # Those of the host that copy are more than those that wait.
    over_threads(len(target.devices) * _COPYING, range(0, count, _WORDS), one)
    return out[0], out[1], out[2]
