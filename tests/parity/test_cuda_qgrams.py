"""Similarities of q-grams on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from plait.qgrams import gpu_similarity, similar, similarities

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


def drawn(seed: int, count: int, longest: int, letters: bytes) -> list[bytes]:
    rng = random.Random(seed)
    return [bytes(rng.choices(letters, k=rng.randint(0, longest))) for _ in range(count)]


@pytest.mark.parametrize("others", [drawn(2, 300, 30, b"ACG"), None])
def test_matrices_and_pairs(others: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*drawn(1, 5, 25, b"ACGT"), b"A" * 700, b"", b"ACGT" * 5]
    given = (texts if others is not None else texts * 3), others
    # The CPU does it.
    whole, expected = (similarities(*given, q=2, device=name) for name in ("cuda", "cpu"))
    assert np.array_equal(whole, expected)
    # A piece of 256 targets at a time, and no room for pairs at first.
    monkeypatch.setattr(gpu_similarity, "_TABLE", 2 * 256 * 30)
    monkeypatch.setattr(gpu_similarity, "_ROOM", 2)
    for least in (0.2, 0.6):
        found, wanted = (similar(*given, q=2, at_least=least, device=name) for name in ("cuda", "cpu"))
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
