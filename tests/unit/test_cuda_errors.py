"""What CUDA reports becomes an error of plait that says what to do."""

from __future__ import annotations

import pytest

from plait.devices.cuda_devices import translate
from plait.errors import DeviceFailure, DeviceMemoryError, PlaitError


def test_memory() -> None:
    error = RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
    found = translate(error, "cuda:1", lambda: 5 << 20)
    assert isinstance(found, DeviceMemoryError) and isinstance(found, MemoryError)
    assert (found.device, found.needed, found.free) == ("cuda:1", None, 5 << 20)
    assert "'cuda:1' has too little memory (free: 5 MiB); close other programs" in str(found)
    unknown = translate(error, "cuda:1")
    assert "has too little memory; close" in str(unknown)


@pytest.mark.parametrize("call", ["cuMemHostAlloc", "cuMemHostRegister", "cuMemAllocHost_v2"])
def test_memory_of_the_host(call: str) -> None:
    error = RuntimeError(f"[2] Call to {call} results in CUDA_ERROR_OUT_OF_MEMORY")
    found = translate(error, "cuda:1", lambda: 5 << 20)
    assert isinstance(found, DeviceMemoryError) and found.of_host and found.free is None
    assert str(found).startswith(
        "this machine has too little memory from which device 'cuda:1' can copy; close"
    )
    device = translate(RuntimeError("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"), "cuda:1")
    assert isinstance(device, DeviceMemoryError) and not device.of_host


@pytest.mark.parametrize(
    ("code", "reason", "fix"),
    [
        ("ILLEGAL_ADDRESS", "memory that is not its own", "start plait again"),
        ("LAUNCH_TIMEOUT", "drives a display", "without a display"),
        ("ECC_UNCORRECTABLE", "could not be corrected", "nvidia-smi"),
        ("SOMETHING_NEW", "the driver reports an error", "start plait again"),
    ],
)
def test_a_failure(code: str, reason: str, fix: str) -> None:
    found = translate(RuntimeError(f"CUDA_ERROR_{code}: and so on"), "cuda:0")
    assert isinstance(found, DeviceFailure) and isinstance(found, RuntimeError | PlaitError)
    assert reason in found.reason and f"CUDA_ERROR_{code}" in found.reason
    assert fix in found.fix
    assert str(found).startswith("device 'cuda:0' failed: ")


@pytest.mark.parametrize("error", [ValueError("no"), MemoryError(), KeyError("CUDA")])
def test_other_errors_are_not_ours(error: Exception) -> None:
    assert translate(error, "cuda:0") is None
