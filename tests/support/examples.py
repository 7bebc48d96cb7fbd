"""Numbers of random cases: few in every run, many in ``make test-all``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

#: Whether this is a run of all tests, with as many random cases as are worth their time.
FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"


def examples(most: int, **more: Any) -> settings:
    """So many random cases in a full run, and a fifth of them otherwise."""
    return settings(max_examples=most if FULL else max(3, most // 5), **more)


def seldom_compiled(test: Any) -> Any:
    """Mark a test that runs interpreted in every run, and compiled in ``make test-all``."""
    compiled = os.environ.get("NUMBA_DISABLE_JIT", "").strip() in ("", "0")
    return pytest.mark.interpreted(pytest.mark.slow(test) if compiled else test)


def often(first: int, cases: Iterable[Any]) -> list[Any]:
    """Cases of a parametrised test of which so many are in every run, the others in ``make test-all``."""
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*case, marks=[pytest.mark.slow] * (k >= first)) for k, case in enumerate(every)]
