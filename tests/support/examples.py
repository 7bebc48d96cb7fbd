"""Numbers of random cases: few in every run, many in ``make test-all``."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

#: Whether this is a run of all tests, with as many random cases as are worth their time.
FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"


def examples(most: int, **more: Any) -> settings:
    """So many random cases in a full run, and a third of them otherwise."""
    return settings(max_examples=most if FULL else max(3, most // 3), **more)
