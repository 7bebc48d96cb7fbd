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
    begun = r"(?:plait: compiling (\d+) kernels? in 2 processes\n)?"
    ended = r"plait: compiled (\d+) kernels? in [\d.]+ s, kept in /.+\n"
    found = re.fullmatch(begun + ended, run.stderr)
    assert found, run.stderr
    assert (found[1] or "0") == found[2]
    return int(found[2])


@pytest.mark.slow
def test_what_is_compiled_is_not_compiled_again() -> None:
    compiled()
    assert compiled() == 0
