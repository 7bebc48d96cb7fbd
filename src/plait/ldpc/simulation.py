"""Rates of errors of a code on a channel with white Gaussian noise, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput, in_range, whole
from plait.ldpc.codes import Code
from plait.ldpc.decoding import decode

#: Words that are decoded at a time.
_BLOCK = 512
#: Of the normal distribution, for intervals of 95 %.
_Z = 1.959963984540054


class ErrorRates(NamedTuple):
    """Errors of information at signal-to-noise ratios; each array has one number for each of them.

    Attributes
    ----------
    ebn0
        Energy of a bit of information by density of noise, in dB.
    words, word_errors, bit_errors, undetected
        Words, those with wrong information, their wrong bits, and those that are another word of the code.
    iterations
        Mean number.
    wer, wer_low, wer_high
        Share of words with errors, and its interval of 95 % (Wilson).
    ber, ber_low, ber_high
        Share of bits with errors, and its interval of 95 %, from the scatter of words.
    """

    ebn0: NDArray[np.float64]
    words: NDArray[np.int64]
    word_errors: NDArray[np.int64]
    bit_errors: NDArray[np.int64]
    undetected: NDArray[np.int64]
    iterations: NDArray[np.float64]
    wer: NDArray[np.float64]
    wer_low: NDArray[np.float64]
    wer_high: NDArray[np.float64]
    ber: NDArray[np.float64]
    ber_low: NDArray[np.float64]
    ber_high: NDArray[np.float64]


def simulate(
    code: Code,
    ebn0: Sequence[float],
    *,
    words: int = 10_000,
    errors: int = 100,
    seed: int = 1,
    progress: Callable[[float, int], None] | None = None,
    **settings: Any,
) -> ErrorRates:
    """Send random words over a channel with white Gaussian noise, and decode them.

    Parameters
    ----------
    code
        The code.
    ebn0
        Energies of a bit of information by density of noise, in dB; bits are sent as 1 and -1.
    words
        Most words at each of them.
    errors
        So many words with errors are enough; the block of 512 words in which they occur is the last one.
    seed
        Which words and noise; they depend on nothing else but the ratio.
    progress
        Called with the ratio and the words sent at it so far.
    **settings
        Those of `decode`.

    Returns
    -------
    ErrorRates
        Errors, rates and their intervals.

    Raises
    ------
    InvalidInput
        If a number is out of range.

    Examples
    --------
    >>> from plait.ldpc import code_named
    >>> found = simulate(code_named("wimax-576"), [1.0, 4.0], words=200)
    >>> bool(found.wer[0] > 0.2), int(found.word_errors[1])
    (True, 0)
    """
    words, errors = whole("words", words, 1), whole("errors", errors, 1)
    seed = whole("seed", seed, 0, 2**64 - 1)
    if not code.k:
        raise InvalidInput("code", found=f"no bits of information in {code.name}", expected="one or more")
    for ratio in ebn0:
        in_range("ebn0", ratio, -100, 100)
    rows = [_point(code, float(ratio), words, errors, seed, progress, settings) for ratio in ebn0]
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 12
    return ErrorRates(*columns)


def _point(
    code: Code, ratio: float, words: int, errors: int, seed: int, progress: Any, settings: dict[str, Any]
) -> tuple[float, ...]:
    variance = code.n / code.k / 2 / 10 ** (ratio / 10)
    sent = wrong = undetected = steps = 0
    bits, squares = 0, 0
    while sent < words and wrong < errors:
        # A stream of its own for each ratio and block, whatever is simulated besides.
        place = [0, sent, round(ratio * 1e6) % 2**64, 0]
        rng = np.random.Generator(np.random.Philox(key=seed, counter=place))
        count = min(_BLOCK, words - sent)
        information = rng.integers(0, 2, (count, code.k), np.uint8)
        received = 1 - 2.0 * code.encode(information)
        received += math.sqrt(variance) * rng.standard_normal(received.shape)
        done = decode(received * (2 / variance), code, **settings)
        each = (done.information != information).sum(axis=1)
        sent, steps = sent + count, steps + int(done.iterations.sum())
        wrong += int((each > 0).sum())
        undetected += int(((each > 0) & done.found).sum())
        bits, squares = bits + int(each.sum()), squares + int((each**2).sum())
        if progress is not None:
            progress(ratio, sent)
    share, spread = wrong / sent, _Z**2 / sent
    middle, half = share + spread / 2, _Z * math.sqrt((share * (1 - share) + spread / 4) / sent)
    ber = bits / sent / code.k
    scatter = _Z * math.sqrt(max(squares / sent - (bits / sent) ** 2, 0) / sent) / code.k
    wilson = (middle - half) / (1 + spread) if wrong else 0.0, (middle + half) / (1 + spread)
    counts = ratio, sent, wrong, bits, undetected, steps / sent
    return *counts, share, *wilson, ber, max(ber - scatter, 0), ber + scatter
