"""Recombination scenarios with probabilities, one by one.

A scenario says what is kept of V and J, how many N nucleotides there are at each junction, and what the D
process makes. `scenario_weights` lists the probability of every scenario that gives a read: their sum is
the probability of the read, their maximum that of its best explanation. `weighted_tables` puts the same
distributions into the tables of the chain, which is then to find both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from support.oracles import alike, end_ways, palindrome_after, palindrome_before, reverse_complement

from plait.alphabets import MASK_SYMBOL
from plait.dp.chain.tables import ChainTables
from plait.lang.lanes import PADDING, padded
from plait.vdj.chain import chain_tables
from plait.vdj.germline import GermlineSet
from plait.vdj.models import PathModel

__all__ = ["ScenarioModel", "natural_model", "scenario_weights", "weighted_tables"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioModel:
    """Distributions over the choices that make a receptor of one V, one D and one J gene.

    Attributes
    ----------
    pi
        Longest extension.
    v, j
        Probability of every kept length, 0 to germline + `pi`.
    n1, n2
        Probability of every number of N nucleotides between V and D, and between D and J; equally long.
        Without a D, `n1` holds.
    d
        Probability of D extended[s:t), s < t.
    hidden
        Probability of p nucleotides that mirror what follows them, then D extended[0:t).
    no_d_left
        Probability that nothing is left of D.
    letter
        Probability of an N nucleotide to be what a symbol of the read stands for, by symbol.
    """

    pi: int
    v: Sequence[float]
    j: Sequence[float]
    n1: Sequence[float]
    n2: Sequence[float]
    d: Mapping[tuple[int, int], float]
    hidden: Mapping[tuple[int, int], float]
    no_d_left: float
    letter: Mapping[str, float]


def natural_model(
    v: str, d: str, j: str, *, pi: int, n1: Sequence[float], n2: Sequence[float], letter: Mapping[str, float]
) -> ScenarioModel:
    """Every cut and erosion as likely as any other; the ways of the one-strand model, normalised.

    Parameters
    ----------
    v, d, j
        Gene ends.
    pi
        Longest extension.
    n1, n2, letter
        See `ScenarioModel`.
    """
    v_ways = [end_ways(k - len(v), pi, 1) for k in range(len(v) + pi + 1)]
    j_ways = [end_ways(k - len(j), pi, 1) for k in range(len(j) + pi + 1)]
    size = len(d) + pi
    right = [end_ways(t - len(d), pi, 1) for t in range(size + 1)]
    left = {delta: end_ways(delta, pi, 1) for delta in range(-size, pi + 1)}
    plain = {(s, t): left[-s] * right[t] for s in range(size) for t in range(s + 1, size + 1)}
    hidden = {(p, t): left[p] * right[t] for p in range(1, pi + 1) for t in range(size + 1)}
    gone = sum(left[-t] * right[t] for t in range(size + 1))
    total = sum(plain.values()) + sum(hidden.values()) + gone
    return ScenarioModel(
        pi=pi,
        v=[ways / sum(v_ways) for ways in v_ways],
        j=[ways / sum(j_ways) for ways in j_ways],
        n1=n1,
        n2=n2,
        d={piece: ways / total for piece, ways in plain.items()},
        hidden={piece: ways / total for piece, ways in hidden.items()},
        no_d_left=gone / total,
        letter=letter,
    )


def scenario_weights(read: str, v: str, d: str | None, j: str, model: ScenarioModel) -> Iterator[float]:
    """Probability of every possible scenario that makes a read; without a D gene if `d` is None.

    Parameters
    ----------
    read
        The read.
    v, d, j
        Gene ends.
    model
        The distributions.
    """
    v_ext, j_ext = v + palindrome_after(v, model.pi), palindrome_before(j, model.pi) + j
    ends = range(len(read) + 1)
    for kept_v in range(min(len(v_ext), len(read)) + 1):
        if not alike(read[:kept_v], v_ext[:kept_v]):
            continue
        for kept_j in range(min(len(j_ext), len(read) - kept_v) + 1):
            last = len(read) - kept_j
            if not alike(read[last:], j_ext[len(j_ext) - kept_j :]):
                continue
            around = model.v[kept_v] * model.j[kept_j]
            if d is None:
                yield around * _inserted(read[kept_v:last], model.n1, model)
                continue
            for a in ends[kept_v : last + 1]:
                for b in ends[a : last + 1]:
                    n1 = _inserted(read[kept_v:a], model.n1, model)
                    n2 = _inserted(read[b:last], model.n2, model)
                    if n1 > 0 and n2 > 0:
                        yield from (around * n1 * weight * n2 for weight in _d_weights(read, a, b, d, model))


def _inserted(stretch: str, lengths: Sequence[float], model: ScenarioModel) -> float:
    weight = lengths[len(stretch)] if len(stretch) < len(lengths) else 0.0
    for symbol in stretch:
        weight *= model.letter[symbol]
    return weight


def _d_weights(read: str, a: int, b: int, d: str, model: ScenarioModel) -> Iterator[float]:
    d_ext = d + palindrome_after(d, model.pi)
    if a == b:
        yield model.no_d_left
    for (s, t), weight in model.d.items():
        if alike(read[a:b], d_ext[s:t]):
            yield weight
    for (p, t), weight in model.hidden.items():
        mirrored = alike(read[a : a + p], reverse_complement(read[a + p : a + 2 * p]))
        if p + t == b - a and mirrored and alike(read[a + p : b], d_ext[:t]):
            yield weight


def weighted_tables(germline: GermlineSet, model: PathModel, scenarios: ScenarioModel) -> ChainTables:
    """Tables of a chain in which every scenario has its own weight.

    Parameters
    ----------
    germline
        One V, one D and one J allele.
    model
        DP-2 with the extension of `scenarios`, and with `nu` one less than there are lengths of N.
    scenarios
        The distributions.
    """
    tables = chain_tables(germline, model, germline.chain, np.float64)
    ends = [0.0, *scenarios.v, *scenarios.j]
    end_weights = np.zeros((len(ends), PADDING))
    end_weights[:, 0] = ends
    # A level has the numbers of N nucleotides up to its own to choose from, so that the last has them all.
    level_weights = np.zeros((len(ends), padded(len(scenarios.n1))))
    for row, weight in enumerate(ends):
        lengths = scenarios.n1 if row <= len(scenarios.v) else scenarios.n2
        level_weights[row, : len(lengths)] = [weight * share for share in reversed(lengths)]
    v_row = np.arange(1, 1 + len(scenarios.v), dtype=np.int32)[None]
    j_row = np.arange(1 + len(scenarios.v), len(ends), dtype=np.int32)[None]
    d_row, palindrome_row = np.zeros_like(tables.d_row), np.zeros_like(tables.palindrome_row)
    weights = [0.0, scenarios.no_d_left]
    for piece, weight in scenarios.d.items():
        d_row[(0, *piece)] = len(weights)
        weights.append(weight)
    for piece, weight in scenarios.hidden.items():
        palindrome_row[(0, *piece)] = len(weights)
        weights.append(weight)
    d_weights = np.zeros((len(weights), PADDING))
    d_weights[:, 0] = weights
    return tables._replace(
        v_row=v_row,
        j_row=j_row,
        end_weights=end_weights,
        level_weights=level_weights,
        d_row=d_row,
        palindrome_row=palindrome_row,
        empty_row=np.ones(1, np.int32),
        d_weights=d_weights,
        plain_starts=np.zeros_like(tables.plain_starts),
        symbol_weight=np.array([scenarios.letter.get(symbol, 0.0) for symbol in MASK_SYMBOL]),
    )
