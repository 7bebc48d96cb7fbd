"""Random numbers on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.random import Mrg32k3a, Mt19937, Sobol, gpu_streams
from plait.random.draws import Draws, Exponential, Normal, Uniform

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


@pytest.mark.parametrize(
    ("make", "shape", "piece"),
    [
        (lambda: Mrg32k3a(5).skip(3), (300,), 1 << 20),
        (lambda: Mrg32k3a(6), (1000,), 600),
        (lambda: Sobol(2, skip=5, seed=1), (2, 600), 500),
        (lambda: Mt19937(5).skip(700), (6000,), 5000),
        (lambda: Mt19937(5), (700,), 1000),
        (lambda: Mt19937(5).skip(3), (9,), 1000),
    ],
)
def test_numbers(make: Any, shape: tuple[int, ...], piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    source = make()
    monkeypatch.setattr(gpu_streams, "_PIECE", piece)
    monkeypatch.setattr(gpu_streams, "_BITS", 8)
    monkeypatch.setattr(gpu_streams, "_SPAN", 896)
    ends = []
    kinds = ((source._word, "uint32"), (Uniform(1 - 2.0**-53), "float64"), (Normal(), "float64"))
    few = isinstance(source, Mt19937)
    for kind, dtype in kinds[:1] if few else (*kinds, (Exponential(), "float64")):
        unit = source._inner if dtype == "float64" else source._unit
        found, expected = np.empty(shape, dtype), np.empty(shape, dtype)
        for target, out in ((CudaTarget((0,)), found), (CpuTarget(1), expected)):
            ends.append(target.launch(source._problem, Draws(kind, unit, source._source, out)))
        np.testing.assert_array_equal(found, expected)
    if few:
        after = [Mt19937(key=end.key, pos=end.place).raw(2000, device="cpu") for end in ends]
        assert all(np.array_equal(one, after[0]) for one in after)
