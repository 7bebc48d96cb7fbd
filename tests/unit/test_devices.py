"""Names of devices: what each means here, and what a wrong or absent one is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from plait.devices import target as devices
from plait.devices.cuda_target import CudaTarget
from plait.devices.driver import DriverDevice, DriverFacts
from plait.devices.target import DEVICES, check_device, resolve, used_devices
from plait.errors import InvalidInput, TargetUnavailable
from plait.types import Availability

NEW = DriverDevice(0, "NVIDIA H200", (9, 0), 132, 10**11)
OLD = DriverDevice(1, "Tesla V100", (7, 0), 80, 10**10)


@pytest.fixture
def have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four devices, of which the second is too old, and the last of another generation."""
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(devices, "usable", lambda: Availability(True))
    four = (NEW, OLD, NEW._replace(number=2), NEW._replace(number=3, name="A100", capability=(8, 0)))
    facts = DriverFacts((13, 0), four)
    monkeypatch.setattr(devices, "probe", lambda: facts)
    monkeypatch.setattr("plait.devices.cuda_target.probe", lambda: facts)


@pytest.fixture
def have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setattr(devices, "usable", lambda: Availability(False, "no luck", "try again"))


@pytest.mark.parametrize("name", [*DEVICES[:4], "cuda:0", "cuda:12", "cuda:all"])
def test_a_good_name(name: str) -> None:
    check_device(name)


@pytest.mark.parametrize("name", ["", "gpu", "CUDA", "cuda:", "cuda:-1", "cuda:x", "cuda:1.0", "cuda:²", 0])
def test_a_wrong_name(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"device: found .*, expected one of auto, cpu, reference, cuda"):
        resolve(name)


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_a_wrong_number_of_threads(threads: int) -> None:
    with pytest.raises(InvalidInput, match="threads"):
        resolve("cpu", threads)


def test_devices_that_were_used_are_named_once_and_gpus_first() -> None:
    gpu, other = "cuda:0 (NVIDIA H200)", "cuda:1 (NVIDIA A100)"
    assert used_devices([]) == ""
    assert used_devices(["cpu", gpu, "cpu"]) == f"{gpu} and cpu"
    assert used_devices([f"{gpu} and cpu", gpu, "cpu", other]) == f"{gpu} and {other} and cpu"


@pytest.mark.usefixtures("have_none")
def test_without_a_device() -> None:
    assert [resolve(name).name for name in ("auto", "cpu", "reference")] == ["cpu", "cpu", "reference"]
    for name in ("cuda", "cuda:0", "cuda:all"):
        with pytest.raises(TargetUnavailable) as caught:
            resolve(name)
        found = caught.value
        assert (found.target, found.reason, found.fix) == (name, "no luck", "try again")


@pytest.mark.usefixtures("have")
@pytest.mark.parametrize(
    ("name", "numbers"), [("cuda", (0,)), ("cuda:0", (0,)), ("cuda:3", (3,)), ("cuda:all", (0, 2))]
)
def test_with_devices(name: str, numbers: tuple[int, ...]) -> None:
    target = resolve(name, 3)
    assert isinstance(target, CudaTarget)
    assert (target.devices, target.host.threads, target.sparing) == (numbers, 3, False)


@pytest.mark.usefixtures("have")
def test_auto_takes_the_first_and_spares_small_batches() -> None:
    target = resolve("auto")
    assert isinstance(target, CudaTarget)
    assert (target.name, target.sparing) == ("cuda:0", True)
    assert target.description == "cuda:0 (NVIDIA H200)"


@pytest.mark.usefixtures("have")
def test_descriptions_name_each_model_once() -> None:
    assert resolve("cuda:all").description == "cuda:0,2 (NVIDIA H200)"
    assert resolve("cpu").description == "cpu"


@pytest.mark.usefixtures("have")
@pytest.mark.parametrize(
    ("name", "reason"),
    [("cuda:1", "Tesla V100 has compute capability 7.0"), ("cuda:4", "there is no such device")],
)
def test_a_device_that_is_not_there(name: str, reason: str) -> None:
    with pytest.raises(TargetUnavailable, match=reason) as caught:
        resolve(name)
    assert caught.value.fix.endswith("cuda:0, cuda:2, cuda:3")


def test_the_simulator_serves_those_who_ask_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert [resolve(name).name for name in ("auto", "cuda", "cuda:3")] == ["cpu", "cuda:0", "cuda:3"]


def test_choosing_a_device_loads_no_compiler() -> None:
    program = (
        "import sys; from plait.devices.target import resolve; resolve('auto'); resolve('cpu')\n"
        "print(*(name for name in ('numba', 'numba_cuda', 'cuda') if name in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
