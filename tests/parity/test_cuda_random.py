"""Random numbers on GPUs, or in the simulator, against the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from plait.devices.cuda_target import CudaTarget
from plait.devices.target import CpuTarget
from plait.random import Mrg32k3a, Sobol, gpu_streams
from plait.random.draws import Draws, Exponential, Normal, Uniform

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]


@pytest.mark.parametrize(
    ("source", "shape", "piece"),
    [
        (Mrg32k3a(5).skip(3), (300,), 1 << 20),
        (Mrg32k3a(6), (1000,), 600),
        (Sobol(2, skip=5, seed=1), (2, 600), 500),
    ],
)
def test_numbers(source: Any, shape: tuple[int, ...], piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_streams, "_PIECE", piece)
    monkeypatch.setattr(gpu_streams, "_BITS", 8)
    kinds = ((source._word, "uint32"), (Uniform(1 - 2.0**-53), "float64"), (Normal(), "float64"))
    for kind, dtype in (*kinds, (Exponential(), "float64")):
        unit = source._inner if dtype == "float64" else source._unit
        found, expected = np.empty(shape, dtype), np.empty(shape, dtype)
        for target, out in ((CudaTarget((0,)), found), (CpuTarget(1), expected)):
            target.launch(source._problem, Draws(kind, unit, source._source(), out))
        if isinstance(kind, (Normal, Exponential)):
            np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
        else:
            np.testing.assert_array_equal(found, expected)
