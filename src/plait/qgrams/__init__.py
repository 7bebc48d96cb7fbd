"""Similarity of texts by the q-grams that they share: all against all, above a threshold, or the nearest.

What is named here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait._exports import on_first_use

if TYPE_CHECKING:
    from plait.qgrams.similarity import Similar, similar, similarities, smiles_letters

__all__ = ["Similar", "similar", "similarities", "smiles_letters"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
