"""From expected numbers of choices to the model that makes them most probable."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.model.recombination_model import RecombinationModel, stationary_distribution

__all__ = ["Evidence", "most_probable_model", "most_probable_steps"]

_Floats = NDArray[np.float64]
#: Steps of the search for a Markov chain, and the gain per symbol below which it ends.
_MOST_ROUNDS: Final = 100
_SMALLEST_GAIN: Final = 1e-13


class Evidence(NamedTuple):
    """Expected numbers of choices, in the shapes of the tables of the model.

    Attributes
    ----------
    p_v, p_dj, p_v_deletions, p_d_deletions, p_j_deletions, p_vd_length, p_dj_length, vd_steps, dj_steps
        As in `plait.vdj.model.RecombinationModel`; steps count all N nucleotides but the first ones.
    vd_first, dj_first
        float64 (4,): first N nucleotides, those from which insertions are built.
    """

    p_v: _Floats
    p_dj: _Floats
    p_v_deletions: _Floats
    p_d_deletions: _Floats
    p_j_deletions: _Floats
    p_vd_length: _Floats
    p_dj_length: _Floats
    vd_steps: _Floats
    dj_steps: _Floats
    vd_first: _Floats
    dj_first: _Floats


def most_probable_model(
    old: RecombinationModel, seen: Evidence, *, pseudocount: float = 0.0
) -> RecombinationModel:
    """The model under which choices are most probable.

    What was impossible stays so. A distribution of which nothing was seen, as the deletions of a gene that
    never occurs, stays as it was.

    Parameters
    ----------
    old
        The model under which the numbers were expected.
    seen
        The numbers.
    pseudocount
        Added to the number of every choice that is possible under `old`, once for each of the four N
        nucleotides after each.
    """

    def share(name: str, *axes: int) -> _Floats:
        table: _Floats = getattr(old, name)
        counts = getattr(seen, name) + pseudocount * (table > 0)
        total = counts.sum(axis=axes, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(total > 0, counts / total, table)

    found = replace(
        old,
        # Junctions are taken as they are; whatever the errors of another model's reads were, these have none.
        error_rate=0.0,
        p_v=share("p_v", 0),
        p_dj=share("p_dj", 1, 2),
        p_v_deletions=share("p_v_deletions", 1),
        p_j_deletions=share("p_j_deletions", 1),
        p_vd_length=share("p_vd_length", 0),
        vd_steps=most_probable_steps(
            share("vd_steps", 1), old.vd_steps, seen.vd_steps, seen.vd_first, pseudocount
        ),
    )
    if not old.d:
        return found
    return replace(
        found,
        p_d_deletions=share("p_d_deletions", 1, 2),
        p_dj_length=share("p_dj_length", 0),
        dj_steps=most_probable_steps(
            share("dj_steps", 1), old.dj_steps, seen.dj_steps, seen.dj_first, pseudocount
        ),
    )


def most_probable_steps(
    start: _Floats, old: _Floats, steps: _Floats, first: _Floats, pseudocount: float = 0.0
) -> _Floats:
    """The Markov chain under which steps, and first symbols drawn from what it keeps, are most probable.

    Shares of steps alone are not: the distribution of first symbols follows from them. Beginning with the
    better of two chains, steps get a part of the first symbols as if they had led there, until the derivative
    vanishes. That leads upwards, but may lead too far: then half of the way is tried, and so on.

    Parameters
    ----------
    start, old
        float64 (4, 4): chains to begin with.
    steps
        float64 (4, 4): numbers of steps.
    first
        float64 (4,): numbers of first symbols.
    pseudocount
        Added to the number of every step that is possible.
    """
    counts = steps + pseudocount * (old > 0)
    total = counts.sum() + first.sum()
    if total == 0:
        return old
    best, value = max(
        ((chain, _log_likelihood(chain, counts, first)) for chain in (start, old)), key=lambda pair: pair[1]
    )
    for _ in range(_MOST_ROUNDS):
        towards = _stepped(best, counts, first)
        part, chain = 1.0, towards
        while (other := _log_likelihood(chain, counts, first)) < value - _SMALLEST_GAIN * total:
            part /= 2
            chain = best + part * (towards - best)
        if not other > value:
            break
        best, gain, value = chain, other - value, other
        if gain < _SMALLEST_GAIN * total:
            break
    return best


def _log_likelihood(chain: _Floats, steps: _Floats, first: _Floats) -> float:
    kept = stationary_distribution(chain)
    with np.errstate(divide="ignore"):
        logs, of_first = np.log(chain), np.log(kept)
    return float((steps[steps > 0] * logs[steps > 0]).sum() + (first[first > 0] * of_first[first > 0]).sum())


def _stepped(chain: _Floats, steps: _Floats, first: _Floats) -> _Floats:
    """Steps as numbers, with those that the first symbols stand for, as shares."""
    kept = stationary_distribution(chain)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = np.where(kept > 0, first / kept, 0.0)
    # The derivative of what is kept by a step: Schweitzer's, with the fundamental matrix of the chain.
    fundamental = np.linalg.pinv(np.eye(4) - chain + kept)
    gain = fundamental @ rate
    # Rows add up to 1, so only differences matter.
    counts = steps + chain * kept[:, None] * (gain - gain.min())
    total = counts.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: _Floats = np.where(total > 0, counts / total, chain)
    return found
