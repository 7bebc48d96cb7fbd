"""No kernel is made of a file that its digest leaves out: what Numba really compiles is recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Tests that compile kernels of every kind, with the kernels that they are known to compile.
TESTS = {
    "tests/unit/test_align_sums.py::test_compiled_counts": {"sweep_states"},
    "tests/unit/test_model_sampling.py::test_frequencies": {
        "draw_kernel",
        "weigh_kernel",
    },
    "tests/unit/test_model_scenarios.py::test_the_best_of_all": {"scenario_kernel"},
    "tests/unit/test_row_sweep.py::test_read_only_codes": {"sweep_rows"},
}


@pytest.mark.slow
@pytest.mark.parametrize("test", TESTS)
def test_the_digest_covers_all_that_is_compiled(test: str, tmp_path: Path, repository: Path) -> None:
    answers = tmp_path / "answers.json"
    environment = os.environ | {
        "COMPILED_SOURCES": str(answers),
        "PLAIT_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(repository / "tests"),
        # The sources are the same, and compiled sooner.
        "NUMBA_OPT": "0",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "compiled_sources", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", test]
    done = subprocess.run(
        command, cwd=repository, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(answers.read_text())
    assert {one["kernel"].rpartition(".")[2] for one in found} >= TESTS[test]
    assert {one["kernel"]: one["missing"] for one in found if one["missing"]} == {}
    # It does see files beside that of the kernel itself.
    assert all(len(one["used"]) >= 2 for one in found)
