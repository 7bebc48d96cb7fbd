"""What the driver is told of a launch; a pretended driver, so no device is needed."""

from __future__ import annotations

import ctypes
import importlib.util
import struct
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

if importlib.util.find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'plait[cuda13]'", allow_module_level=True)

from support.cuda_build import typeof

from plait.devices import cuda
from plait.devices.cuda_devices import translate
from plait.errors import DeviceFailure


class Pair(NamedTuple):
    """A number and an array within an argument."""

    number: Any
    array: Any


class Held:
    """An array on a device, as far as a launch looks at it."""

    def __init__(self, values: Any, place: int | None) -> None:
        self.size, self.dtype, self.shape, self.strides = (
            values.size,
            values.dtype,
            values.shape,
            values.strides,
        )
        self.device_ctypes_pointer = ctypes.c_void_p(place)


class Driver:
    """Keeps the last launch, and what was loaded and asked for."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.shape: tuple[int, ...] = ()
        self.handles: tuple[Any, ...] = ()
        self.words = b""
        self.done = list[Any]()

    def cuModuleLoadData(self, module: Any, code: bytes) -> int:  # noqa: N802  # the driver's names
        """Each has a number of its own."""
        self.done.append(("loaded", code))
        module._obj.value = 76 + len(self.done)
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:  # noqa: N802
        """That of the module."""
        assert name == b"entry"
        function._obj.value = module.value
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:  # noqa: N802
        """Dynamic shared memory."""
        assert attribute == 8
        self.done.append(("asked", function.value, value))
        return self.status

    def cuGetErrorName(self, status: int, name: Any) -> int:  # noqa: N802
        """As the driver calls it."""
        name._obj.value = {701: b"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", 1: b"CUDA_ERROR_INVALID_VALUE"}[status]
        return 0

    def cuLaunchKernel(self, handle: Any, *rest: Any) -> int:  # noqa: N802
        """Read the arguments where they are said to be."""
        shape, (stream, parameters, extra) = rest[:7], rest[7:]
        self.shape = tuple(one.value for one in shape)
        self.handles = (handle.value, stream.value, parameters)
        assert (extra[0], extra[2], extra[4]) == (1, 2, None)
        size = ctypes.c_size_t.from_address(extra[3]).value
        self.words = ctypes.string_at(extra[1], size)
        return self.status


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Driver]]:
    def make(values: tuple[Any, ...], status: int = 0) -> tuple[Any, Driver]:
        driver = Driver(status)
        monkeypatch.setattr(cuda, "load_driver", lambda: driver)
        layout = "".join(map(cuda.format_of, map(typeof, values)))
        return cuda._Loaded(cuda._Code(b"entry", layout.encode(), b"code")), driver

    return make


def test_every_kind_of_argument(loaded: Callable[..., tuple[Any, Driver]]) -> None:
    table = np.zeros((3, 5), np.float32)
    values = (np.uint8(200), -3, np.float32(0.5), Pair(np.int16(-2), table), True, 2.5, ())
    start, driver = loaded(values)
    arguments = (*values[:3], Pair(np.int16(-2), Held(table, 4096)), *values[4:])
    start.launch((4, 2), np.int32(64), arguments, SimpleNamespace(handle=9), 1000)
    assert driver.shape == (4, 2, 1, 64, 1, 1, 1000)
    assert driver.handles == (77, 9, None)
    # As C lays out a struct of these members.
    wanted = (200, -3, 0.5, -2, 0, 0, 15, 4, 4096, 3, 5, 20, 4, True, 2.5)
    assert struct.unpack("@BqfhPPnnPnnnn?d", driver.words) == wanted


def test_no_stream_and_an_empty_array(loaded: Callable[..., tuple[Any, Driver]]) -> None:
    empty = np.zeros(0, np.int64)
    start, driver = loaded((empty,))
    start.launch(1, 32, (Held(empty, None),), 0, 0)
    assert driver.handles == (77, None, None)
    assert struct.unpack("@PPnnPnn", driver.words) == (0, 0, 0, 8, 0, 0, 0)


def test_what_the_driver_refuses(loaded: Callable[..., tuple[Any, Driver]]) -> None:
    start, _ = loaded((1,), status=701)
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES") as told:
        start.launch(1, 32, (1,), 0, 0)
    assert isinstance(translate(told.value, "cuda:0"), DeviceFailure)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[list[int], Driver]:
    """Two devices of one generation, the first one current, and their driver; nothing is kept so far."""
    current, driver = [0], Driver()

    def device() -> Any:
        return SimpleNamespace(id=current[0], compute_capability=(9, 0))

    monkeypatch.setattr(cuda, "load_driver", lambda: driver)
    monkeypatch.setattr(cuda, "SIMULATED", False)
    monkeypatch.setattr(cuda, "cuda", SimpleNamespace(get_current_device=device))
    monkeypatch.setattr(cuda, "stem_of", lambda name, sources, *facts: f"{tmp_path}/{'-'.join(facts)}"[:200])
    return current, driver


def compiled(monkeypatch: pytest.MonkeyPatch) -> tuple[cuda.CudaKernel, list[Any]]:
    """A kernel of one number, and what it was compiled for."""
    kernel, done = cuda.CudaKernel(lambda number: None, None, {}), list[Any]()

    def compile_it(arguments: tuple[Any, ...]) -> Any:
        done.append(arguments)
        return cuda._Code(b"entry", b"q", b"co\nde")

    monkeypatch.setattr(kernel, "_compiled", compile_it)
    return kernel, done


def test_other_devices_take_what_the_first_has_compiled(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[list[int], Driver]
) -> None:
    """Once each, and again for more shared memory."""
    (current, driver), (kernel, done) = devices, compiled(monkeypatch)
    for number in (0, 1, 0, 1):
        current[0] = number
        kernel.launch(3, 64, 9)
        assert driver.handles[0] == 77 + number and struct.unpack("q", driver.words) == (9,)
    assert done == [(9,)] and driver.done == [("loaded", b"co\nde")] * 2
    driver.done.clear()
    for _ in range(2):
        kernel.launch(3, 64, 9, shared=60 << 10)
    assert driver.done == [("asked", 78, 60 << 10)] and driver.shape[-1] == 60 << 10
    driver.status = 1
    with pytest.raises(DeviceFailure, match=r"cannot have 61441 bytes .* CUDA_ERROR_INVALID_VALUE"):
        kernel.launch(3, 64, 9, shared=61441)


def test_what_is_kept_is_not_compiled_again(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[list[int], Driver]
) -> None:
    """In another process, which has other objects."""
    driver = devices[1]
    first, done = compiled(monkeypatch)
    first.prepare(7)
    assert done == [(7,)] and not driver.done
    again, anew = compiled(monkeypatch)
    again.launch(1, 32, 8)
    assert not anew and driver.done == [("loaded", b"co\nde")]
    again.launch(1, 32, np.int32(8))
    assert len(anew) == 1
