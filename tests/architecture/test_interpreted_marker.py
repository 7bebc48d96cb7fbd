"""``interpreted(alone=True)``: what compiles nothing runs once, with the compiler off."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = """
import pytest

from plait.lang.compile import kernel

@kernel
def entry(a):
    return a + 1

@pytest.mark.interpreted(alone=True)
def test_plain():
    pass

@pytest.mark.interpreted
@pytest.mark.parametrize("a", [1, pytest.param(2, marks=pytest.mark.interpreted(alone={alone}))])
def test_entry(a):
    assert entry(a) == a + 1

def test_compiled():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, repository: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project under our conftest, with the compiler off."""
    pytester.makeconftest((repository / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers =\n    interpreted: without the compiler too\n")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    return pytester


@pytest.mark.slow
def test_they_are_left_out_where_they_run_elsewhere(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(alone=False))
    project.runpytest_subprocess("-m", "interpreted").assert_outcomes(passed=3, deselected=1)
    project.runpytest_subprocess("--without-interpreted").assert_outcomes(passed=3, deselected=1)


@pytest.mark.slow
def test_one_that_can_be_compiled_is_not_alone(project: pytest.Pytester) -> None:
    project.makepyfile(TESTS.format(alone=True))
    result = project.runpytest_subprocess("-m", "interpreted")
    result.assert_outcomes(passed=2, failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*it calls entry, so it cannot be interpreted(alone=True)*"])
