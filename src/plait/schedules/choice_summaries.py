"""What one text tells about the choices that made it: the most probable ones, and means.

Expected numbers of a text (`plait.schedules.chain_expectations`, `pair_expectations`) stand at the nodes of
trees. They are taken from there, node by node, shared out among the parts that end there, and what was
taken is set to zero for the next text.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared
from plait.schedules.text_graphs import place_of, step_back, step_on

__all__ = ["ChoiceSummary", "PartOwners", "tell_pair_text", "tell_text"]


class PartOwners(NamedTuple):
    """Parts of genes in the order of the nodes of a set of trees at which they end.

    Attributes
    ----------
    first
        int64 (nodes + 1,): parts of node t are ``first[t]`` to ``first[t + 1]``.
    gene, cut, cut_right
        int64 (parts,): whose they are, and cuts.
    weight, log
        float64 (parts, contexts): weight and its logarithm, 0 where there is none.
    """

    first: Any
    gene: Any
    cut: Any
    cut_right: Any
    weight: Any
    log: Any


class ChoiceSummary(NamedTuple):
    """What is found for n texts.

    Attributes
    ----------
    prefix, words, suffix
        `PartOwners`.
    prefix_share, words_share, suffix_share
        float64 (genes,): working memory, zeros.
    best
        int32 (n, 3): the most probable prefix, fragment and suffix; -1 for none.
    share
        float64 (n, 3): how probable these are.
    cut
        float64 (n, 4): mean cuts of prefix, fragment on the left and on the right, and suffix.
    log
        float64 (n,): mean logarithm of the weights of all parts together.
    left_length, right_length, left_step, right_step
        float64 (n, ...): expected numbers of the text, flat; the same as of `ChainCounts` or `PairCounts`,
        where those on the right are missing.
    """

    prefix: Any
    words: Any
    suffix: Any
    prefix_share: Any
    words_share: Any
    suffix_share: Any
    best: Any
    share: Any
    cut: Any
    log: Any
    left_length: Any
    right_length: Any
    left_step: Any
    right_step: Any


@shared
def tell_text(chain: Any, parts: Any, texts: Any, item: int, scratch: Any, counts: Any, told: Any) -> None:
    """What a text tells into row `item` of `told`.

    Parameters
    ----------
    chain, parts, texts, item, scratch, counts
        As for `plait.schedules.chain_expectations.expect_text`, which has counted this text, and no other,
        once. All counts become zero.
    told
        `ChoiceSummary`.
    """
    graph = scratch.graph
    nodes = last_node(parts, texts, item) + 1
    take_ends(chain, graph, nodes, texts, item, scratch, counts, told)
    for start in range(nodes):
        t, u, top = 0, start, 0
        while t >= 0:
            take_parts(told.words, counts.words, chain.words.weight, t, item, 1, 2, told.words_share, told)
            t, u, top = step_on(chain.words, graph, nodes, t, u, scratch.stack, top)
    name_best(told.words_share, item, 1, told)
    take_row(counts.left_length, told.left_length, item)
    take_row(counts.right_length, told.right_length, item)
    told.left_length[item, 0] = counts.left_none[0]
    told.right_length[item, 0] = counts.right_none[0]
    counts.left_none[0] = 0.0
    counts.right_none[0] = 0.0
    take_row(counts.left_step, told.left_step, item)
    take_row(counts.right_step, told.right_step, item)


@shared
def tell_pair_text(
    chain: Any, parts: Any, texts: Any, item: int, scratch: Any, counts: Any, told: Any
) -> None:
    """As `tell_text`, after `plait.schedules.pair_expectations.expect_pair_text`."""
    nodes = last_node(parts, texts, item) + 1
    take_ends(chain, scratch.graph, nodes, texts, item, scratch, counts, told)
    for k in range(counts.length.size):
        told.left_length[item, k] = counts.length[k]
        counts.length[k] = 0.0
    take_row(counts.step, told.left_step, item)


@shared
def last_node(parts: Any, texts: Any, item: int) -> int:
    """The last node of the graph of a text."""
    last = 0
    for k in range(texts.length[item]):
        last += parts.nodes[texts.codes[texts.start[item] + k]]
    return last


@shared
def take_row(numbers: Any, rows: Any, item: int) -> None:
    """Move a table into a row, one row of the table after the other."""
    for a in range(numbers.shape[0]):
        for b in range(numbers.shape[1]):
            rows[item, a * numbers.shape[1] + b] = numbers[a, b]
            numbers[a, b] = 0.0


@shared
def take_ends(
    chain: Any, graph: Any, nodes: int, texts: Any, item: int, scratch: Any, counts: Any, told: Any
) -> None:
    """Take what stands at the trees of prefixes and suffixes."""
    for k in range(4):
        told.cut[item, k] = 0.0
    told.log[item] = 0.0
    tree = chain.prefix
    for k in range(texts.prefix_first[item], texts.prefix_first[item + 1]):
        t, u, top = texts.prefix_root[k], 0, 0
        while t >= 0:
            take_parts(told.prefix, counts.prefix, tree.weight, t, item, 0, 0, told.prefix_share, told)
            t, u, top = step_on(tree, graph, nodes, t, u, scratch.stack, top)
    name_best(told.prefix_share, item, 0, told)
    tree = chain.suffix
    for k in range(texts.suffix_first[item], texts.suffix_first[item + 1]):
        for end in range(nodes - 1, -1, -1):
            if place_of(graph, end) != place_of(graph, nodes - 1):
                break
            t, u, top = texts.suffix_root[k], end, 0
            while t >= 0:
                take_parts(told.suffix, counts.suffix, tree.weight, t, item, 3, 3, told.suffix_share, told)
                t, u, top = step_back(tree, graph, t, u, scratch.stack, top)
    name_best(told.suffix_share, item, 2, told)


@shared
def take_parts(
    owners: Any,
    numbers: Any,
    weights: Any,
    t: int,
    item: int,
    left: int,
    right: int,
    share: Any,
    told: Any,
) -> None:
    """Share the numbers of a node out among the parts that end there."""
    for c in range(numbers.shape[1]):
        if numbers[t, c] > 0.0:
            rate = numbers[t, c] / weights[t, c]
            numbers[t, c] = 0.0
            for k in range(owners.first[t], owners.first[t + 1]):
                value = rate * owners.weight[k, c]
                share[owners.gene[k]] += value
                told.log[item] += value * owners.log[k, c]
                told.cut[item, left] += value * owners.cut[k]
                if right != left:
                    told.cut[item, right] += value * owners.cut_right[k]


@shared
def name_best(share: Any, item: int, column: int, told: Any) -> None:
    """The most probable gene, the first of those that are equally probable; shares become zero."""
    best = -1
    most = 0.0
    for k in range(share.size):
        if share[k] > most:
            most = share[k]
            best = k
        share[k] = 0.0
    told.best[item, column] = best
    told.share[item, column] = most
