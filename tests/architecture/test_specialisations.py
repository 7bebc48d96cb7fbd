"""Combinations of types are counted by kernel; what drawn cases alone ask for is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.specialisations import MOST, Specialisations

from plait.lang import compile as _jit


@given(st.none())
def drawn(value: None) -> None:
    """A test of drawn cases."""


def fixed() -> None:
    """Any other."""


@pytest.mark.parametrize(("test", "failed"), [(fixed, True), (drawn, False)])
def test_too_many_are_told(monkeypatch: pytest.MonkeyPatch, test: Any, failed: bool) -> None:
    monkeypatch.setattr(_jit, "kernel", _jit.kernel)
    plugin = Specialisations(gate=True)
    function = SimpleNamespace(__module__="plait.dp", __qualname__="planted")
    kernel = SimpleNamespace(py_func=function, _dispatcher=None, _loaded={"b": None}, _locks={"b": None})
    plugin._kernels = [kernel]
    call = plugin.pytest_runtest_call(SimpleNamespace(obj=test))  # type: ignore[arg-type]
    next(call)
    for number in range(MOST):
        kernel._locks[number] = kernel._loaded[number] = None
    with pytest.raises(StopIteration):
        call.send(None)
    session: Any = SimpleNamespace(config=SimpleNamespace(), exitstatus=pytest.ExitCode.OK)
    plugin.pytest_sessionfinish(session)
    assert (session.exitstatus == pytest.ExitCode.TESTS_FAILED) == failed
    told = [f"plait.dp.planted with {MOST + 1} specialisations, at most {MOST}"] if failed else []
    assert plugin._too_many() == told
