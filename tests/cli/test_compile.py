"""``plait compile``."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


def compiled() -> int:
    """Kernels that the command says it has compiled."""
    command = [sys.executable, "-m", "plait", "compile", "--processes", "2"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    first, last = run.stderr.splitlines()
    assert first == "plait: compiling with 2 processes what commands need"
    found = re.fullmatch(r"plait: compiled (\d+) kernels? in [\d.]+ s, kept in /.+", last)
    assert found, last
    return int(found[1])


@pytest.mark.slow
def test_what_is_compiled_is_not_compiled_again() -> None:
    compiled()
    assert compiled() == 0
