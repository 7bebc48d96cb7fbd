"""CCSDS 121.0 in plain Python: a coder that chooses among all codes that a block may have."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from plait.hyperspectral.ccsds121 import RiceParameters

__all__ = ["encode_rice"]


def _field(value: int, bits: int) -> str:
    return format(value, f"0{bits}b") if bits else ""


def _mapped(samples: Sequence[int], low: int, high: int) -> list[int]:
    """Differences of neighbours as whole numbers; the first stands for nothing."""
    found = [0]
    for before, one in itertools.pairwise(samples):
        difference, room = one - before, min(before - low, high - before)
        if 0 <= difference <= room:
            found.append(2 * difference)
        elif -room <= difference < 0:
            found.append(-2 * difference - 1)
        else:
            found.append(room + abs(difference))
    return found


def encode_rice(
    samples: Sequence[int],
    p: RiceParameters,
    choose: Callable[[list[str]], str] = lambda codes: min(codes, key=len),
) -> bytes:
    """A stream of samples.

    Parameters
    ----------
    samples
        They are filled up to whole blocks with the last one, or without prediction with zeros.
    p
        How to code them.
    choose
        Picks one of the codes of a block.
    """
    low = -(1 << (p.depth - 1)) if p.signed else 0
    fill = samples[-1] if p.preprocessed else 0
    samples = [*samples, *[fill] * (-len(samples) % p.block_size)]
    out = ""
    length = p.block_size * p.reference_interval
    for first in range(0, len(samples), length):
        own = samples[first : first + length]
        if p.preprocessed:
            numbers = _mapped(own, low, low + (1 << p.depth) - 1)
            out += _interval(numbers, _field(own[0] & ((1 << p.depth) - 1), p.depth), p, choose)
        else:
            out += _interval([one & ((1 << p.depth) - 1) for one in own], "", p, choose)
        if p.padded:
            out += "0" * (-len(out) % 8)
    out += "0" * (-len(out) % 8)
    return int(out, 2).to_bytes(len(out) // 8, "big") if out else b""


def _interval(
    numbers: list[int], reference: str, p: RiceParameters, choose: Callable[[list[str]], str]
) -> str:
    label = (1 if p.depth <= 2 else 2) if p.restricted else 3 if p.depth <= 8 else 4 if p.depth <= 16 else 5
    blocks = [numbers[k : k + p.block_size] for k in range(0, len(numbers), p.block_size)]
    out, at = "", 0
    while at < len(blocks):
        own = reference if at == 0 else ""
        if any(blocks[at]):
            out += choose(_codes(blocks[at], own, label, p.depth))
            at += 1
            continue
        end = min(at + 64 - at % 64, len(blocks))
        run = next((k for k in range(at, end) if any(blocks[k])), end) - at
        count = run - 1 if run <= 4 else 4 if at + run == end else run
        out += "0" * (label + 1) + own + "0" * count + "1"
        at += run
    return out


def _codes(block: list[int], reference: str, label: int, depth: int) -> list[str]:
    """All codes of a block; of the first one of an interval the first number is not coded."""
    values = block[1:] if reference else block
    found = ["1" * label + reference + "".join(_field(value, depth) for value in values)]
    if max(block) < 200:
        pairs = zip(block[::2], block[1::2], strict=True)
        units = "".join("0" * ((a + b) * (a + b + 1) // 2 + b) + "1" for a, b in pairs)
        found.append("0" * label + "1" + reference + units)
    for k in range((1 << label) - 2):
        if max(values) >> k < 300:
            high = "".join("0" * (value >> k) + "1" for value in values)
            rest = "".join(_field(value & ((1 << k) - 1), k) for value in values)
            found.append(_field(k + 1, label) + reference + high + rest)
    return found
