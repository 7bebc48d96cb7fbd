"""What commands say of devices: warnings and errors in the words of options."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest

from plait.cli.options import RunParameters
from plait.devices import cuda_target as device_trials
from plait.errors import DeviceFailure, DeviceMemoryError, InvalidInput, TargetUnavailable

FIX = "choose another one, or use device='cpu'"


@pytest.fixture
def listing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let ``plait germline list`` do something else."""
    return lambda does: monkeypatch.setattr("plait.cli.germline.bundled_germlines", does)


@pytest.mark.parametrize(
    "error",
    [
        DeviceFailure("cuda:0", reason="a kernel stopped", fix=FIX),
        DeviceMemoryError("cuda:0", needed=1, free=0, fix=FIX),
        TargetUnavailable("cuda", reason="there is none", fix=FIX),
    ],
)
def test_errors(plait: Any, listing: Any, error: Exception) -> None:
    def fail() -> None:
        raise error

    listing(fail)
    found = plait("germline", "list")
    assert (found.status, found.err.count("\n")) == (2, 1)
    assert found.err.endswith("; choose another one, or use --device cpu\n")


def test_other_errors_stay_as_they_are(plait: Any, listing: Any) -> None:
    def fail() -> None:
        raise InvalidInput("text", found="device='cpu'", expected="another")

    listing(fail)
    assert "found device='cpu'" in plait("germline", "list").err


def test_a_warning_is_a_line(plait: Any, listing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn() -> tuple[()]:
        device_trials.leave((0,), DeviceFailure("cuda:0", reason="a kernel stopped", fix=FIX))
        device_trials.leave((0,), DeviceFailure("cuda:0", reason="a kernel stopped", fix=FIX))
        warnings.warn("from elsewhere", UserWarning, stacklevel=1)
        return ()

    monkeypatch.setattr(device_trials._Found, "process", -1)
    listing(warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        # pytest records what is shown by the function that it found.
        monkeypatch.setattr(warnings, "showwarning", lambda *words: print("other", *words[:1]))
        found = plait("germline", "list")
    assert found.status == 0 and "other from elsewhere" in found.out
    told = "device 'cuda:0' failed: a kernel stopped; choose another one, or use --device cpu"
    warned = [line for line in found.err.splitlines() if line.startswith("plait: warning: ")]
    assert warned == [f"plait: warning: {told}; the CPU does it instead"]


def test_the_driver_is_asked_ahead_where_it_may_be_used_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()
    monkeypatch.setattr("plait.devices.driver.probe", asked.set)
    RunParameters().ask_driver("auto")
    assert asked.wait(60)
    monkeypatch.setattr("plait.cli.options.Thread", None)
    RunParameters().ask_driver("cpu")
    RunParameters().ask_driver("reference")
    RunParameters(executor="dask").ask_driver("cuda")
