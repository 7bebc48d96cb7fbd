"""``plait doctor``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def test_it_tells_what_can_be_used(plait: Any) -> None:
    found = plait("doctor", "--quick")
    assert (found.status, found.err) == (0, "")
    assert found.out.startswith("plait ")
    assert "--device cpu" in found.out and "--device cuda" in found.out


def test_as_json(plait: Any) -> None:
    found = plait("doctor", "--json", "--quick")
    assert found.status == 0
    assert {"plait", "python", "cache", "cuda", "extras"} <= set(json.loads(found.out))


@pytest.mark.slow
def test_nothing_beyond_the_core_is_loaded() -> None:
    program = (
        "import sys, plait.cli; plait.cli.main(['doctor', '--quick']); print(*sys.modules, file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"numba", "numba_cuda", "pyarrow", "matplotlib", "mpi4py"}.isdisjoint(found.stderr.split())
