"""What the driver is told of a launch; a pretended driver, so no device is needed."""

from __future__ import annotations

import ctypes
import importlib.util
import struct
from collections.abc import Callable
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
    """Keeps the last launch."""

    def __init__(self, status: int = 0) -> None:
        self.status = status
        self.shape: tuple[int, ...] = ()
        self.handles: tuple[Any, ...] = ()
        self.words = b""

    def cuLaunchKernel(self, handle: Any, *rest: Any) -> int:  # noqa: N802  # the driver's name
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
        code = SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=77))
        kernel = SimpleNamespace(argument_types=tuple(map(typeof, values)), _codelibrary=code)
        return cuda._Loaded(kernel, 0), driver

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


def test_arrays_of_the_host_are_left_to_the_compiler() -> None:
    array = np.zeros(2)
    assert cuda._on_host((1, Pair(2, array)))
    assert not cuda._on_host((1, Pair(2, Held(array, 1))))


def test_other_devices_take_what_the_first_has_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once each, and again for more shared memory."""
    current, done = [0], list[Any]()

    class Dispatcher:
        def __init__(self) -> None:
            code = SimpleNamespace(get_cufunc=self.load)
            made = SimpleNamespace(argument_types=(typeof(1),), _codelibrary=code)
            self.overloads = {(typeof(1),): made}
            self.typeof_pyval = typeof

        def load(self) -> Any:
            done.append(("loaded", current[0]))
            return SimpleNamespace(handle=current[0], device=SimpleNamespace(id=current[0]))

        def __getitem__(self, shape: Any) -> Callable[..., None]:
            return lambda *arguments: done.append(("compiled", *shape, *arguments))

    kernel = cuda.CudaKernel(lambda number: None, None, {})
    driver, dispatcher = Driver(), Dispatcher()
    monkeypatch.setattr(cuda, "load_driver", lambda: driver)
    monkeypatch.setattr(cuda, "SIMULATED", False)
    device = SimpleNamespace(get_current_device=lambda: SimpleNamespace(id=current[0]))
    monkeypatch.setattr(cuda, "cuda", device)
    monkeypatch.setattr(kernel, "_dispatcher", lambda arguments: dispatcher)
    monkeypatch.setattr(kernel, "_ask_for_shared", lambda made, shared: done.append(("asked", shared)))
    kernel.launch(2, 32, 7)
    assert done == [("compiled", 2, 32, 0, 0, 7)]
    done.clear()
    for number in (1, 0, 1, 0):
        current[0] = number
        kernel.launch(3, 64, 9)
        assert driver.handles[0] == (number or None) and struct.unpack("q", driver.words) == (9,)
    assert done == [("loaded", 1), ("loaded", 0)]
    done.clear()
    for _ in range(2):
        kernel.launch(3, 64, 9, shared=60 << 10)
    assert done == [("asked", 60 << 10), ("loaded", 0)] and driver.shape[-1] == 60 << 10
