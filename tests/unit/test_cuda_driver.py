"""Whether CUDA can be used: every reason why not, with a driver that pretends."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plait.devices import driver as cuda_driver
from plait.devices.driver import probe, usable
from plait.devices.target import resolve

H200 = ("NVIDIA H200", (9, 0), 132, 150_000_000_000)
V100 = ("Tesla V100", (7, 0), 80, 16_000_000_000)


class Driver:
    """What the driver's library would say."""

    def __init__(self, *devices: tuple[Any, ...], status: int = 0, version: int = 13_000) -> None:
        self.devices = devices
        self.status = status
        self.version = version
        self.begun: list[int] = []

    def cuInit(self, flags: int) -> int:  # noqa: N802
        return self.status

    def cuDriverGetVersion(self, number: Any) -> int:  # noqa: N802
        number._obj.value = self.version
        return 0

    def cuDeviceGetCount(self, number: Any) -> int:  # noqa: N802
        number._obj.value = len(self.devices)
        return 0

    def cuDeviceGet(self, device: Any, number: int) -> int:  # noqa: N802
        device._obj.value = number
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:  # noqa: N802
        name.value = self.devices[device.value][0].encode()
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, device: Any) -> int:  # noqa: N802
        memory._obj.value = self.devices[device.value][3]
        return 0

    def cuDeviceGetUuid(self, uuid: Any, device: Any) -> int:  # noqa: N802
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:  # noqa: N802
        self.begun.append(device.value)
        return self.status

    def cuDeviceGetAttribute(self, value: Any, which: int, device: Any) -> int:  # noqa: N802
        _, (major, minor), multiprocessors, _ = self.devices[device.value]
        value._obj.value = {75: major, 76: minor, 16: multiprocessors, 97: 227 << 10}[which]
        return 0


Installs = Callable[..., None]


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """The answers are kept, so they are forgotten around each test."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    cuda_driver._probe.cache_clear()
    cuda_driver._libraries.cache_clear()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Installs:
    """Have a driver, or none, with device files or without, and versions of what is installed."""

    def have(
        driver: Driver | None, files: bool = True, visible: str | None = None, **versions: str | None
    ) -> None:
        _forget()
        monkeypatch.setattr(cuda_driver, "load_driver", lambda: driver)
        monkeypatch.setattr(cuda_driver.sys, "platform", "linux")
        place = tmp_path / "nvidiactl"
        if files:
            place.touch()
        monkeypatch.setattr(cuda_driver, "_FILES", place)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        found: dict[str, str | None] = {"numpy": "2.4.6", "numba_cuda": "0.30.4", "cuda_bindings": "13.5.0"}
        found |= {"nvidia_nvvm": None, "nvidia_nvjitlink": None} | versions
        monkeypatch.setattr(cuda_driver.importlib.util, "find_spec", lambda name: found.get(name))

        def version(distribution: str) -> str:
            told = found[distribution.replace("-", "_")]
            if told is None:
                raise cuda_driver.importlib.metadata.PackageNotFoundError(distribution)
            return told

        monkeypatch.setattr(cuda_driver.importlib.metadata, "version", version)

    return have


def test_devices_are_described(install: Installs) -> None:
    install(Driver(H200, V100, version=13_010))
    facts = probe()
    assert (facts.version, facts.reason) == ((13, 1), "")
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    shared = 227 << 10
    assert [tuple(device) for device in facts.devices] == [(0, *H200, uuid, shared), (1, *V100, uuid, shared)]
    assert usable() == (True, "", "")


REASONS = {
    "no-driver": (None, {"files": False}, "the CUDA driver library was not found", "install NVIDIA's driver"),
    "bare-container": (None, {}, "but device files are here", "--gpus all"),
    "hidden": (Driver(status=100), {"visible": ""}, "CUDA_VISIBLE_DEVICES='' leaves no", "set it to"),
    "hidden-by-number": (Driver(), {"visible": "-1"}, "CUDA_VISIBLE_DEVICES='-1'", "such as 0"),
    "no-files": (Driver(status=100), {"files": False}, "no device files", "--gpus all"),
    "no-device": (Driver(), {}, "the driver finds no device", "nvidia-smi"),
    "forked": (Driver(status=3), {}, "before this process was forked", "'spawn'"),
    "stub": (Driver(status=34), {}, "stub", "LD_LIBRARY_PATH"),
    "updated": (Driver(status=803), {}, "of different versions", "restart"),
    "broken": (Driver(status=999), {}, "does not start (error 999)", "nvidia-smi"),
    "too-old-a-device": (Driver(V100), {}, "Tesla V100 has compute capability 7.0, and 8.0 is needed", "cpu"),
    "numba-cuda": (Driver(H200), {"numba_cuda": None}, "numba-cuda is not installed", "plait[cuda13]"),
    "bindings": (Driver(H200), {"cuda_bindings": None}, "cuda-bindings is not", "plait[cuda13]"),
    "numpy": (Driver(H200), {"numpy": "2.5.0"}, "does not work with NumPy 2.5", "numpy<2.5"),
    "old-driver": (
        Driver(H200, version=12_040),
        {},
        "the driver serves CUDA 12.4, and the installed libraries are of CUDA 13",
        "update the driver, or pip install 'numba-cuda[cu12]'",
    ),
    # What pip leaves of CUDA 13 is found before what it installs for CUDA 12.
    "leftovers": (
        Driver(H200, version=12_040),
        {"cuda_bindings": "12.9.10", "nvidia_nvvm": "13.5.37", "nvidia_nvjitlink": "13.5.37"},
        "the driver serves CUDA 12.4, and nvidia-nvvm, nvidia-nvjitlink are of CUDA 13",
        "pip uninstall nvidia-nvvm nvidia-nvjitlink",
    ),
    # There are no libraries of numba-cuda for CUDA 11.
    "very-old-driver": (
        Driver(H200, version=11_080),
        {},
        "the driver serves CUDA 11.8, and the installed libraries are of CUDA 13",
        "update the driver, or use device='cpu'",
    ),
}


@pytest.mark.parametrize(("driver", "having", "reason", "fix"), REASONS.values(), ids=REASONS)
def test_a_reason_and_a_fix(
    install: Installs, driver: Driver | None, having: dict[str, Any], reason: str, fix: str
) -> None:
    install(driver, **having)
    able = usable()
    assert not able.ok
    assert reason in able.reason
    assert fix in able.fix


def test_macos_has_none(install: Installs, monkeypatch: pytest.MonkeyPatch) -> None:
    install(None)
    monkeypatch.setattr(cuda_driver.sys, "platform", "darwin")
    assert usable().reason == "there is no CUDA for macOS"


def test_one_good_device_is_enough(install: Installs) -> None:
    install(Driver(V100, H200))
    assert usable().ok


def test_older_libraries_serve_an_older_driver(install: Installs) -> None:
    install(Driver(H200, version=12_080), cuda_bindings="12.9.4")
    assert usable().ok
    install(Driver(H200), cuda_bindings="12.9.4", nvidia_nvvm="13.5.37", nvidia_nvjitlink="13.5.37")
    assert usable().ok


@pytest.mark.parametrize("status", [0, 999])
def test_devices_that_are_named_begin_once(
    status: int, install: Installs, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(H200, H200)
    install(driver)
    monkeypatch.setattr(cuda_driver, "_begin", cuda_driver._begin.__wrapped__)
    assert resolve("auto").name == "cuda:0"
    assert not driver.begun
    driver.status = status
    monkeypatch.setattr(cuda_driver, "_begin", functools.cache(cuda_driver._begin))
    for name in ("cuda:all", "cuda"):
        resolve(name)
    for thread in threading.enumerate():
        if thread.name == "plait-begin":
            thread.join()
    assert sorted(driver.begun) == [0, 1]


def test_a_fork_asks_again(install: Installs, monkeypatch: pytest.MonkeyPatch) -> None:
    install(Driver(H200))
    assert not probe().reason
    monkeypatch.setattr(cuda_driver, "load_driver", lambda: Driver(status=3))
    assert not probe().reason
    monkeypatch.setattr(cuda_driver.os, "getpid", lambda: -1)
    assert "forked" in probe().reason
