"""Ends of texts as trees, and what they weigh in a graph of texts.

All prefixes (suffixes) that share their first (last) symbols share a path from the root, and the weight of
keeping that much of any of them stands at its end. A text is compared with hundreds of genes in the time of
the few that begin like it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.algebras import choice
from plait.schedules.text_graphs import place_of, step_back, step_on

__all__ = ["EndTrees", "enter_ends", "enter_prefix", "enter_suffix"]


class EndTrees(NamedTuple):
    """Trees of prefixes, of suffixes read backwards, or of all words of fragments.

    Attributes
    ----------
    child
        int32 (nodes, 4): the node that a symbol leads to, or -1.
    weight
        (nodes, contexts): of all ends that are cut here.
    """

    child: Any
    weight: Any


@shared
def enter_ends(alg: Any, chain: Any, texts: Any, item: int, graph: Any, nodes: int, scratch: Any) -> None:
    """What the prefix before each node weighs, and the suffix behind it: `before` and `after`."""
    for u in range(nodes):
        for c in range(scratch.before.shape[1]):
            scratch.before[u, c] = alg.zero
        for c in range(scratch.after.shape[1]):
            scratch.after[u, c] = alg.zero
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        enter_prefix(alg, chain.prefix, graph, nodes, texts.prefix_root[k], scratch)
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        enter_suffix(alg, chain.suffix, graph, nodes, texts.suffix_root[k], scratch)


@shared
def enter_prefix(alg: Any, tree: Any, graph: Any, nodes: int, root: int, scratch: Any) -> None:
    """Add to `before` what the prefixes of a tree weigh."""
    before = scratch.before
    t, u, top = root, 0, 0
    while t >= 0:
        for c in range(tree.weight.shape[1]):
            before[u, c] = choice(alg, before[u, c], tree.weight[t, c])
        t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)


@shared
def enter_suffix(alg: Any, tree: Any, graph: Any, nodes: int, root: int, scratch: Any) -> None:
    """Add to `after` what the suffixes of a tree weigh."""
    after = scratch.after
    for end in range(nodes - 1, -1, -1):
        if place_of(graph, end) != place_of(graph, nodes - 1):
            break
        t, u, top = root, end, 0
        while t >= 0:
            for c in range(tree.weight.shape[1]):
                after[u, c] = choice(alg, after[u, c], tree.weight[t, c])
            t, u, top = step_back(tree, graph, t, u, scratch.stack, top)
