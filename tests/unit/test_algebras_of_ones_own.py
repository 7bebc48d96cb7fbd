"""Algebras that somebody adds: what the chain of counts refuses, and what is compiled for them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cases import run_chain
from support.problems import PROBLEMS

from plait.devices.target import CpuTarget, ReferenceTarget
from plait.errors import Unsupported
from plait.lang.algebras import BIG_COUNT, LOG_SUM, WEIGHTED_SUM, MaxPlus, Optimal, SaturatingMaxPlus
from plait.lang.lanes import LANES

MAX_PLUS = MaxPlus(-math.inf, 0.0)
NO_COUNTS = [
    MAX_PLUS,
    SaturatingMaxPlus(-math.inf, 0.0),
    LOG_SUM,
    WEIGHTED_SUM,
    Optimal((-math.inf, 0), (0.0, 1), MAX_PLUS, BIG_COUNT),
]


@pytest.mark.parametrize("target", [ReferenceTarget(), CpuTarget(1)], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("algebra", NO_COUNTS, ids=lambda algebra: type(algebra).__name__)
def test_a_chain_of_counts_refuses_what_is_no_count(algebra: Any, target: Any) -> None:
    problem = next(iter(PROBLEMS.values()))
    with pytest.raises(Unsupported, match="for a chain"):
        run_chain(problem.edge_cases[0], target, algebra, LANES[1], dtype=np.float64)


# --- what is compiled -----------------------------------------------------------------------------------

PROGRAM = """
import sys
from typing import NamedTuple
import numpy as np
from plait.dp.pairs.rows import row_sweep

HIGH = sys.argv[1] == "high"

class Mine(NamedTuple):
    zero: float
    one: float

    @staticmethod
    def is_better(alg, a, b):
        return a > b if HIGH else a < b

    @staticmethod
    def choice(alg, a, b):
        return max(a, b) if HIGH else min(a, b)

    @staticmethod
    def extend(alg, a, b):
        return a + b

codes = np.array([0, 1, 2], np.uint8)
sweep = row_sweep(codes, codes, np.eye(3, dtype=int), gap_open=2, gap_extend=1)
print(sweep._replace(algebra=Mine(float("-inf" if HIGH else "inf"), 0.0)).score().score)
"""


@pytest.mark.slow
def test_a_changed_algebra_of_ones_own_is_compiled_anew(tmp_path: Path) -> None:
    environment = os.environ | {"PLAIT_CACHE_DIR": str(tmp_path)}
    environment.pop("NUMBA_DISABLE_JIT", None)

    def run(word: str) -> str:
        command = [sys.executable, "-c", PROGRAM, word]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    # The cheapest of all costs: six gaps of one residue.
    assert [run("high"), run("low")] == ["3", "-12"]
