"""Some of the faults that ``make faults`` strikes commands with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.examples import often

_REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "faults"),
    often(
        1,
        [
            ("count-parts", ("kill", "full-disk", "two-runs")),
            ("compress", ("kill", "interrupt", "two-runs")),
            ("align", ("kill", "full-disk", "interrupt")),
            ("index", ("kill", "full-disk", "two-runs")),
            ("count", ("kill", "full-disk")),
            ("fold", ("kill", "full-disk")),
        ],
    ),
)
def test_faults(command: str, faults: tuple[str, ...]) -> None:
    # In a process of its own, which has no threads when it is copied.
    words = [sys.executable, "-m", "tests.faults", "--command", command, "--most", "3"]
    words += [word for fault in faults for word in ("--fault", fault)]
    done = subprocess.run(words, cwd=_REPOSITORY, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
