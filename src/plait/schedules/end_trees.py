"""Ends of texts as trees, and what they weigh in a graph of texts.

All prefixes (suffixes) that share their first (last) symbols share a path from the root, and the weight of
keeping that much of any of them stands at its end. A text is compared with hundreds of genes in the time of
the few that begin like it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.algebras import choice

__all__ = ["EndTrees", "enter_ends", "enter_prefix", "enter_suffix"]


class EndTrees(NamedTuple):
    """Trees of prefixes, of suffixes read backwards, or of all words of a fragment.

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
        enter_prefix(alg, chain.prefix, graph, texts.prefix_root[k], scratch)
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        enter_suffix(alg, chain.suffix, graph, nodes, texts.suffix_root[k], scratch)


@shared
def enter_prefix(alg: Any, tree: Any, graph: Any, root: int, scratch: Any) -> None:
    """Add to `before` what the prefixes of a tree weigh."""
    contexts = tree.weight.shape[1]
    before = scratch.before
    stack = scratch.stack
    stack[0, 0] = root
    stack[0, 1] = 0
    top = 1
    while top > 0:
        top -= 1
        t = stack[top, 0]
        u = stack[top, 1]
        for c in range(contexts):
            before[u, c] = choice(alg, before[u, c], tree.weight[t, c])
        for e in range(graph.after_first[u], graph.after_first[u + 1]):
            y = graph.after[e]
            below = tree.child[t, graph.symbol[y]]
            if below >= 0:
                stack[top, 0] = below
                stack[top, 1] = y
                top += 1


@shared
def enter_suffix(alg: Any, tree: Any, graph: Any, nodes: int, root: int, scratch: Any) -> None:
    """Add to `after` what the suffixes of a tree weigh."""
    stack = scratch.stack
    contexts = tree.weight.shape[1]
    for end in range(nodes - 1, -1, -1):
        if graph.place[end] != graph.place[nodes - 1]:
            break
        stack[0, 0] = root
        stack[0, 1] = end
        top = 1
        while top > 0:
            top -= 1
            t = stack[top, 0]
            u = stack[top, 1]
            for c in range(contexts):
                scratch.after[u, c] = choice(alg, scratch.after[u, c], tree.weight[t, c])
            if u > 0:
                below = tree.child[t, graph.symbol[u]]
                if below >= 0:
                    for e in range(graph.before_first[u], graph.before_first[u + 1]):
                        stack[top, 0] = below
                        stack[top, 1] = graph.before[e]
                        top += 1
