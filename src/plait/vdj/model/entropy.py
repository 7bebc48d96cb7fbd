"""How much chance there is in recombination: entropies of a model's choices in bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["entropies"]

_Floats = NDArray[np.float64]


def entropies(model: RecombinationModel) -> dict[str, float]:
    """Entropy of every choice of a model in bits, each given the choices that it depends on.

    Parameters
    ----------
    model
        The model; its tables are scaled to a sum of 1.

    Returns
    -------
    dict
        By name: ``"V"``; ``"J"``, given V where it depends on it; ``"D given J"``; ``"deletions V"``,
        ``"deletions D"`` (both ends together), ``"deletions J"``, each given the gene; ``"insertions VD"``
        and ``"insertions DJ"`` (``"insertions VJ"``), of the numbers of N nucleotides; ``"nucleotides VD"``
        and so on, of the N nucleotides given how many there are; and ``"total"``, the sum, which is the
        entropy of scenarios: different ones may make the same junction.
    """
    p_v = _scaled(model.p_v)
    p_dj = np.stack([_scaled(table) for table in model.p_dj])
    p_j = p_dj.sum(axis=1)
    mean_j = p_v @ p_j if len(p_j) > 1 else p_j[0]
    found = {"V": _bits(p_v), "J": float(p_v @ _rows(p_j)) if len(p_j) > 1 else _bits(p_j[0])}
    if model.d:
        # D and J do not depend on V here.
        found["D given J"] = _bits(p_dj[0]) - found["J"]
    found["deletions V"] = float(p_v @ _rows(model.p_v_deletions))
    if model.d:
        whole = model.p_d_deletions.reshape(len(model.d), -1)
        found["deletions D"] = float(p_dj[0].sum(axis=1) @ _rows(whole))
    found["deletions J"] = float(mean_j @ _rows(model.p_j_deletions))
    junctions = [("VD" if model.d else "VJ", model.p_vd_length, model.vd_steps, model.vd_first)]
    if model.d:
        junctions.append(("DJ", model.p_dj_length, model.dj_steps, model.dj_first))
    for name, lengths, steps, first in junctions:
        p = _scaled(lengths)
        found[f"insertions {name}"] = _bits(p)
        # The first nucleotide is drawn from the distribution that the steps keep, and so is each later one.
        further = float(p[1:] @ np.arange(p.size - 1))
        found[f"nucleotides {name}"] = float(p[1:].sum()) * _bits(first) + further * float(
            first @ _rows(steps)
        )
    found["total"] = sum(found.values())
    return found


def _scaled(table: _Floats) -> _Floats:
    total = table.sum()
    return table / total if total > 0 else table


def _bits(p: _Floats) -> float:
    used = p[p > 0]
    return float((used * -np.log2(used)).sum())


def _rows(tables: _Floats) -> _Floats:
    """Entropy of each row."""
    return np.array([_bits(_scaled(row)) for row in tables])
