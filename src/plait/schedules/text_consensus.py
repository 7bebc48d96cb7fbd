"""Texts that are copies of few originals, with errors: which are of one original, and what it was."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait._jit import shared

__all__ = ["NO_LETTER", "Likeness", "ScoredTexts", "VoteRules", "Votes", "assign_texts", "vote_groups"]

#: Code of a letter that is not known.
NO_LETTER = 4


class ScoredTexts(NamedTuple):
    """Texts over four letters, with a score for each letter: the higher, the surer.

    Attributes
    ----------
    codes
        0 to 3, or `NO_LETTER`; uint8, shape (letters,).
    scores
        uint8, shape (letters,).
    starts
        Where each text begins, and the end of the last; int64, shape (n + 1,).
    """

    codes: Any
    scores: Any
    starts: Any


class Likeness(NamedTuple):
    """When two texts are copies of one original.

    Attributes
    ----------
    least_score
        Letters with lower scores are not compared.
    most_different
        Share of the compared letters that may differ, in thousandths.
    most_groups
        Originals of one bag; copies of further ones get none.
    """

    least_score: int
    most_different: int
    most_groups: int


class VoteRules(NamedTuple):
    """What the letters of copies weigh.

    Attributes
    ----------
    weights
        Weight of a letter by its score; int64, shape (256,).
    odds
        Probability of a letter relative to the best one, by the difference of their weights, in a unit that
        the thresholds have, too; int64, the last one 0.
    thresholds
        For each score, the sum of such odds up to which the best letter has this score or a higher one;
        falling; int64.
    """

    weights: Any
    odds: Any
    thresholds: Any


class Votes(NamedTuple):
    """Memory for one original, and what is found.

    Attributes
    ----------
    sums
        Zeros, and again so afterwards; int64, shape (longest text, 4).
    cover
        The same, shape (longest text,).
    codes, scores
        The originals, in the layout of `starts`; uint8.
    starts
        Room for each original: as much as for its longest copy; int64, shape (groups + 1,).
    lengths
        Letters of each original; int64, shape (groups,).
    """

    sums: Any
    cover: Any
    codes: Any
    scores: Any
    starts: Any
    lengths: Any


@shared
def _compare(texts: Any, one: int, other: int, least_score: int) -> Any:
    """Letters of two texts that differ, that were compared, and that stand beside each other."""
    a = texts.starts[one]
    b = texts.starts[other]
    length = min(texts.starts[one + 1] - a, texts.starts[other + 1] - b)
    different = 0
    compared = 0
    for k in range(length):
        x = texts.codes[a + k]
        y = texts.codes[b + k]
        sure = texts.scores[a + k] >= least_score and texts.scores[b + k] >= least_score
        if sure and x != NO_LETTER and y != NO_LETTER:
            compared += 1
            different += 1 if x != y else 0
    return different, compared, length


@shared
def _alike(texts: Any, partners: Any, one: int, other: int, likeness: Any) -> Any:
    different, compared, length = _compare(texts, one, other, likeness.least_score)
    more_different, more_compared, more_length = _compare(partners, one, other, likeness.least_score)
    different += more_different
    compared += more_compared
    enough = compared > 0 and 2 * compared >= length + more_length
    return enough and 1000 * different <= likeness.most_different * compared


@shared
def assign_texts(
    texts: Any, partners: Any, order: Any, bags: Any, likeness: Any, seeds: Any, groups: Any
) -> None:
    """Find for each text of a bag the first one before it that is no copy of another and that it is like.

    Parameters
    ----------
    texts, partners
        `ScoredTexts`; the second one belongs to the first and is compared, too.
    order
        Texts in the order in which they are taken, bag by bag.
    bags
        Where each bag begins in `order`, and the end of the last; int64, shape (bags + 1,).
    likeness
        `Likeness`.
    seeds
        Scratch; int64, shape (most_groups,).
    groups
        Out: number of the original of each text, within its bag, -1 for none; int64, shape (n,).
    """
    for bag in range(bags.size - 1):
        known = 0
        for place in range(bags[bag], bags[bag + 1]):
            text = order[place]
            group = 0
            while group < known and not _alike(texts, partners, seeds[group], text, likeness):
                group += 1
            if group == known and known < likeness.most_groups:
                seeds[known] = text
                known += 1
            groups[text] = group if group < known else -1


@shared
def _score(odds: int, rules: Any) -> int:
    """The highest score whose threshold is not below the odds."""
    low = 0
    high = rules.thresholds.size - 1
    while low < high:
        middle = (low + high + 1) // 2
        if odds <= rules.thresholds[middle]:
            low = middle
        else:
            high = middle - 1
    return low


@shared
def _decide(rules: Any, votes: Any, k: int, at: int) -> None:
    """Write a letter of the original, and clear its votes; equal votes decide nothing."""
    best = 0
    for c in range(1, 4):
        if votes.sums[k, c] > votes.sums[k, best]:
            best = c
    most = votes.sums[k, best]
    odds = 0
    equals = 0
    for c in range(4):
        if c != best:
            less = most - votes.sums[k, c]
            equals += 1 if less == 0 else 0
            odds += rules.odds[min(less, rules.odds.size - 1)]
    votes.codes[at] = best if equals == 0 else NO_LETTER
    votes.scores[at] = _score(odds, rules) if equals == 0 else 0
    for c in range(4):
        votes.sums[k, c] = 0


@shared
def vote_groups(texts: Any, order: Any, edges: Any, rules: Any, votes: Any) -> None:
    """Find the original of each group of copies.

    Copies begin at the same place. The original is as long as at least half of its copies.

    Parameters
    ----------
    texts
        `ScoredTexts`.
    order
        Texts, group by group.
    edges
        Where each group begins in `order`, and the end of the last; int64, shape (groups + 1,).
    rules
        `VoteRules`.
    votes
        `Votes`.
    """
    for group in range(edges.size - 1):
        copies = edges[group + 1] - edges[group]
        for place in range(edges[group], edges[group + 1]):
            first = texts.starts[order[place]]
            for k in range(texts.starts[order[place] + 1] - first):
                votes.cover[k] += 1
                code = texts.codes[first + k]
                if code != NO_LETTER:
                    votes.sums[k, code] += rules.weights[texts.scores[first + k]]
        length = 0
        at = votes.starts[group]
        for k in range(votes.starts[group + 1] - at):
            if 2 * votes.cover[k] >= copies:
                length += 1
            votes.cover[k] = 0
            _decide(rules, votes, k, at + k)
        votes.lengths[group] = length
