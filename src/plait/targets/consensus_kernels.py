"""Compiled entry points for texts that are copies of few originals."""

from __future__ import annotations

from typing import Any

from plait._jit import kernel
from plait.schedules.text_consensus import assign_texts, vote_groups

__all__ = ["assign_kernel", "vote_kernel"]


@kernel
def assign_kernel(
    texts: Any, partners: Any, order: Any, bags: Any, likeness: Any, seeds: Any, groups: Any
) -> None:
    """See `plait.schedules.text_consensus.assign_texts`."""
    assign_texts(texts, partners, order, bags, likeness, seeds, groups)


@kernel
def vote_kernel(texts: Any, order: Any, edges: Any, rules: Any, votes: Any) -> None:
    """See `plait.schedules.text_consensus.vote_groups`."""
    vote_groups(texts, order, edges, rules, votes)
