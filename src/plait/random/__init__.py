"""Streams of random numbers in which any place can be reached at once: MRG32k3a, Sobol's sequence, MT19937.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

if TYPE_CHECKING:
    from plait.random.generators import Mrg32k3a, Mt19937, Sobol

__all__ = ["Mrg32k3a", "Mt19937", "Sobol"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
