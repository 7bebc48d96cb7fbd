"""Compiled entry points of draws from the chain of weighted choices."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.scenario_sampling import draw_text

__all__ = ["draw_kernel"]


@kernel
def draw_kernel(draws: Any, seed: Any, first: int, count: int, out: Any) -> None:
    """Draws `first` and on, see `plait.schedules.scenario_sampling.draw_text`."""
    for row in range(count):
        draw_text(draws, seed, first + row, row, out)
