"""The marker ``gpu`` skips without a device, and a skip is a failure under ``--require-gpu``.

So does ``cuda_simulator`` outside the simulator; a test with both runs on either.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = """
import pytest

@pytest.mark.gpu
def test_on_device():
    {body}

def test_on_host():
    pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, repository: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project under our conftest, on a machine whose driver is missing."""
    conftest = (repository / "tests" / "conftest.py").read_text(encoding="utf-8")
    pytester.makeconftest(conftest.replace('"libcuda.so.1"', '"libno-such-driver.so"'))
    pytester.makeini("[pytest]\nmarkers =\n    gpu: needs a device\n    cuda_simulator: small\n")
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    pytester.makepyfile(TESTS.format(body="pass"))
    return pytester


def test_without_device_it_skips_with_the_reason(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("-rs")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*no CUDA driver*"])


def test_a_skip_fails_when_a_device_is_required(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess("--require-gpu")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*skipped under --require-gpu*no CUDA driver*"])


def test_a_skip_inside_the_test_fails_too(project: pytest.Pytester, repository: Path) -> None:
    conftest = (repository / "tests" / "conftest.py").read_text(encoding="utf-8")
    # A machine with a device: the probe finds nothing missing.
    project.makeconftest(conftest + "\n\ndef missing_gpu():\n    return None\n")
    project.makepyfile(TESTS.format(body="pytest.skip('too small a device')"))
    project.runpytest_inprocess().assert_outcomes(passed=1, skipped=1)
    project.runpytest_inprocess("--require-gpu").assert_outcomes(passed=1, failed=1)


BOTH = """
import pytest

@pytest.mark.gpu
def test_on_device():
    pass

@pytest.mark.cuda_simulator
def test_in_simulator():
    pass

@pytest.mark.gpu
@pytest.mark.cuda_simulator
def test_on_either():
    pass
"""


def test_without_device_and_simulator_both_skip(project: pytest.Pytester) -> None:
    project.makepyfile(BOTH)
    result = project.runpytest_inprocess("-rs")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*make cuda*"])


@pytest.mark.slow
def test_the_simulator_serves_tests_with_both(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    project.makepyfile(BOTH)
    result = project.runpytest_subprocess("-rs")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["cuda: simulated", "*CUDA kernels are simulated in this run*"])


def test_a_device_serves_tests_with_both(project: pytest.Pytester, repository: Path) -> None:
    conftest = (repository / "tests" / "conftest.py").read_text(encoding="utf-8")
    project.makeconftest(conftest + "\n\ndef missing_gpu():\n    return None\n")
    project.makepyfile(BOTH)
    result = project.runpytest_inprocess("--require-gpu")
    result.assert_outcomes(passed=2, skipped=1)
