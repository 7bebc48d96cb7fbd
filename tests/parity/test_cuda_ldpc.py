"""Parity-check codes on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.ldpc import Code, gpu_decoding
from plait.ldpc.decoding import _DECODING, DecodeBatch

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]
CODE = Code("small", 8, [[0, 1, 2, 4], [0, 1, 3, 5], [0, 2, 3, 6], [4, 5, 6, 7], [7]])


@pytest.mark.parametrize(("method", "kind"), [("min-sum", np.int8), ("sum-product", np.float32)])
@pytest.mark.parametrize("layered", [False, True])
def test_words(method: Any, kind: Any, layered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_decoding, "_WORDS", 7)
    ratios = np.random.default_rng(1).normal(1, 2, (17, 8))
    batch = DecodeBatch(CODE, ratios, method, layered, 4, kind)
    expected = CpuTarget(1).launch(_DECODING, batch)
    assert 0 < expected[2].sum() < 17
    found = CudaTarget((0,)).launch(_DECODING, batch)
    if method == "min-sum":
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        units = batch._replace(ratios=np.clip(np.rint(ratios * 4), -127, 127).astype(np.int8))
        again = CudaTarget((0,)).launch(_DECODING, units)
        assert all(np.array_equal(a, b) for a, b in zip(again, expected, strict=True))
    else:
        # The CPU does it.
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def drawn(size: int, degrees: list[int]) -> Code:
    """Checks of such degrees, of columns that are drawn."""
    rng = np.random.default_rng(3)
    return Code("drawn", size, [rng.choice(size, n, replace=False).tolist() for n in degrees])


@pytest.mark.parametrize("layered", [False, True])
@pytest.mark.parametrize("free", [1 << 15, 100])
def test_min_sum_of_any_checks(layered: bool, free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those of 6 and 7 columns stay in registers; what shared memory does not hold the CPU does.
    facts = gpu_decoding.device_facts(0)._replace(shared_per_block=free)
    monkeypatch.setattr(gpu_decoding, "device_facts", lambda device: facts)
    code = drawn(40, [1, 2, 6, 6, 7, 12, 3, 6, 7, 2, 1])
    for scale in (3.0, 30.0):
        ratios = np.random.default_rng(1).normal(scale / 3, scale, (19, 40))
        ratios[ratios < -scale] = 0
        batch = DecodeBatch(code, ratios, "min-sum", layered, 3, np.int8)
        found, expected = (target.launch(_DECODING, batch) for target in (CudaTarget((0,)), CpuTarget(1)))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        assert not expected[2].all()
