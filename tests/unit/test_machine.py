"""The report on a machine: everything that can be found out, and no failure on what cannot."""

from __future__ import annotations

import ctypes
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from plait.devices import cuda_target as device_trials
from plait.devices import driver as device_monitor
from plait.devices.driver import DriverDevice, DriverFacts
from plait.errors import DeviceFailure
from plait.reports import doctor as machine
from plait.reports.doctor import EXTRAS, doctor_text, examine
from plait.types import Availability

H200 = DriverDevice(0, "NVIDIA H200", (9, 0), 132, 150 << 30, "GPU-1")
V100 = DriverDevice(1, "Tesla V100", (7, 0), 80, 16 << 30, "GPU-2")


@pytest.fixture
def have(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Pretend devices: ``have(facts, able, trial)``; ``trial`` is what trying one gives or raises."""
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PLAIT_THREADS", "3")

    def pretend(facts: DriverFacts, able: Availability, trial: str | Exception = "") -> None:
        def tried(number: int) -> str:
            found = trial if number == 0 else ""
            if isinstance(found, Exception):
                raise found
            return found

        monkeypatch.setattr(device_trials._Found, "process", -1)
        monkeypatch.setattr(machine, "probe", lambda: facts)
        monkeypatch.setattr(machine, "usable", lambda: able)
        monkeypatch.setattr(machine, "driver_release", lambda: "580.95.05")
        monkeypatch.setattr(machine, "free_bytes", lambda uuid: 140 << 30 if uuid == "GPU-1" else None)
        fake = type(sys)("plait.devices.cuda_devices")
        fake.try_device = tried  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "plait.devices.cuda_devices", fake)

    return pretend


def lines_of(text: str) -> str:
    assert max(map(len, text.splitlines())) <= 80
    return " ".join(text.split())


def test_with_devices(have: Any) -> None:
    have(DriverFacts((13, 0), (H200, V100)), Availability(True))
    found = examine()
    text = lines_of(doctor_text(found))
    assert "cuda:0 NVIDIA H200 9.0 132 150.0 140.0" in text
    assert "cuda:1 Tesla V100 7.0 80 16.0 -" in text
    assert "cuda:1: Tesla V100 has compute capability 7.0, and 8.0 is needed" in text
    assert "driver 580.95.05, for CUDA up to 13.0" in text
    assert "--device cuda yes: cuda:0 --device auto means cuda:0" in text
    assert "threads 3 of" in text


@pytest.mark.parametrize(
    ("trial", "told"),
    [
        ("a small kernel gives wrong results", "a small kernel gives wrong results"),
        (DeviceFailure("cuda:0", reason="a kernel stopped", fix="again"), "device 'cuda:0' failed: a kernel"),
        (RuntimeError("no symbol\nmore"), "a small kernel does not run: RuntimeError: no symbol"),
        (ImportError("cannot import name"), "a small kernel does not run: ImportError: cannot"),
    ],
)
def test_a_device_that_does_not_run(have: Any, trial: Any, told: str) -> None:
    have(DriverFacts((13, 0), (H200,)), Availability(True), trial)
    found = examine()
    assert not found.cuda.usable
    assert told in found.cuda.problem
    text = lines_of(doctor_text(found))
    assert f"--device cuda no: cuda:0: {told[:20]}" in text
    assert "use --device cpu, and see the page on GPUs" in text
    assert "--device auto means cpu" in text
    assert examine(try_devices=False).cuda.usable


def test_the_device_that_a_name_means_has_to_run(have: Any) -> None:
    """As for `plait.devices.target.resolve`, which takes the first one, whatever the others do."""
    have(DriverFacts((13, 0), (H200, H200._replace(number=1))), Availability(True), "it stopped")
    text = lines_of(doctor_text(examine()))
    assert "--device cuda no: cuda:0: it stopped; use --device cuda:1 or --device cpu" in text
    assert "--device auto means cpu" in text
    have(DriverFacts((13, 0), (V100._replace(number=0), H200._replace(number=1))), Availability(True), "no")
    assert "--device cuda yes: cuda:1 --device auto means cuda:1" in lines_of(doctor_text(examine()))


def test_without_a_device(have: Any) -> None:
    have(DriverFacts(None, (), "there is none", "get one"), Availability(False, "there is none", "get one"))
    text = lines_of(doctor_text(examine()))
    assert "--device cpu yes --device cuda no: there is none; get one --device auto means cpu" in text
    assert "driver" not in text


def test_what_is_wrong_is_told(have: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    have(DriverFacts(None, ()), Availability(False, "none", "none"))
    monkeypatch.setenv("PLAIT_THREADS", "many")
    (tmp_path / "file").touch()
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "file"))
    found = examine()
    assert found.threads is None and "PLAIT_THREADS: found 'many'" in found.threads_problem
    assert "cannot be written" in found.cache.problem
    assert "cannot be written" in lines_of(doctor_text(found))


def test_the_cache_is_measured(have: Any, tmp_path: Path) -> None:
    have(DriverFacts(None, ()), Availability(False, "none", "none"))
    (tmp_path / "cache" / "deep").mkdir(parents=True)
    (tmp_path / "cache" / "deep" / "code").write_bytes(bytes(3000))
    found = examine().cache
    assert (found.entries, found.bytes, found.problem) == (1, 3000, "")


def test_it_is_json(have: Any) -> None:
    have(DriverFacts((13, 0), (H200,)), Availability(True))
    plain = json.loads(json.dumps(examine().as_dict()))
    assert plain["cuda"]["devices"][0]["model"] == "NVIDIA H200"
    assert isinstance(plain["extras"], list) and plain["packages"]["numpy"]


def test_extras_are_those_of_the_project(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) - set(EXTRAS) == {"docs", "test"}
    for name, packages in EXTRAS.items():
        assert all(any(wanted.startswith(package) for wanted in extras[name]) for package in packages)


class Monitor:
    """NVIDIA's monitoring library."""

    def nvmlDeviceGetHandleByUUID(self, uuid: bytes, handle: Any) -> int:  # noqa: N802
        handle._obj.value = 7
        return 0 if uuid == b"GPU-1" else 2

    def nvmlDeviceGetMemoryInfo(self, handle: ctypes.c_void_p, memory: Any) -> int:  # noqa: N802
        assert handle.value == 7
        memory._obj.free = 1234
        return 0

    def nvmlSystemGetDriverVersion(self, text: Any, size: int) -> int:  # noqa: N802
        text.value = b"580.95.05"
        return 0


def test_the_monitor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_monitor, "_load_monitor", Monitor)
    assert device_monitor.free_bytes("GPU-1") == 1234
    assert device_monitor.free_bytes("GPU-2") is None
    assert device_monitor.driver_release() == "580.95.05"
    monkeypatch.setattr(device_monitor, "_load_monitor", lambda: None)
    assert device_monitor.free_bytes("GPU-1") is None
    assert device_monitor.driver_release() is None
