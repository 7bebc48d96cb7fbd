"""Parity-check codes on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.ldpc import gpu_decoding
from plait.ldpc.codes import code_of
from plait.ldpc.decoding import _DECODING, DecodeBatch

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]
CODE = code_of("small", 8, [[0, 1, 2, 4], [0, 1, 3, 5], [0, 2, 3, 6], [4, 5, 6, 7], [7]])


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
        assert np.array_equal(found[0], expected[0]) and np.array_equal(found[2], expected[2])
