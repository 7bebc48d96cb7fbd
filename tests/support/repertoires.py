"""Simulated repertoires, as tables of rearrangements, a million rows in a few seconds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.vdj.germline import GermlineSet, load_germline

__all__ = ["simulated_repertoire"]

_TEXT = pa.large_string()
#: Most N nucleotides at a junction; many have none, so that some clonotypes are made again and again.
_MOST_N = 6
_MOST_TRIMMED = 5
_SHORTEST_D = 3


def simulated_repertoire(
    rows: int,
    *,
    subjects: Sequence[str] = ("a", "b", "c", "d"),
    germline: GermlineSet | str = "mouse_trb",
    genes: int | None = None,
    seed: int = 0,
) -> pa.Table:
    """Rearrangements of several subjects.

    Genes are drawn with unequal shares, always the same ones, their ends are trimmed, and N nucleotides,
    rather G and C, are put between. Rows are independent of each other and of the subject: what is shared was
    made again.

    Parameters
    ----------
    rows
        Number of rows.
    subjects
        Names of the subjects, of equal shares.
    germline
        The germline set.
    genes
        Most V and most J alleles that take part; fewer make more clonotypes shared.
    seed
        Of the draw.

    Returns
    -------
    pyarrow.Table
        subject_id, junction, v_call, j_call and duplicate_count.
    """
    alleles = load_germline(germline) if isinstance(germline, str) else germline
    rng = np.random.default_rng(seed)
    v, j = (
        [(a.name, a.cdr3_end) for a in part if a.cdr3_end and a.functionality in (None, "F")][:genes]
        for part in (alleles.v, alleles.j)
    )
    v_ends, v_place = _trimmed(rng, [text for _, text in v], rows, from_start=False)
    j_ends, j_place = _trimmed(rng, [text for _, text in j], rows, from_start=True)
    middles = [
        allele.sequence[start:end]
        for allele in alleles.d
        for start in range(len(allele.sequence))
        for end in range(start + _SHORTEST_D, len(allele.sequence) + 1)
    ] or [""]
    junction = pc.binary_join_element_wise(
        v_ends,
        _inserted(rng, rows),
        pa.array(middles, _TEXT).take(pa.array(rng.integers(0, len(middles), rows))),
        _inserted(rng, rows),
        j_ends,
        pa.scalar("", _TEXT),
    )
    return pa.table(
        {
            "subject_id": pa.array(subjects, pa.string()).take(
                pa.array(rng.integers(0, len(subjects), rows))
            ),
            "junction": junction.cast(pa.string()),
            "v_call": pa.array([name for name, _ in v], pa.string()).take(v_place),
            "j_call": pa.array([name for name, _ in j], pa.string()).take(j_place),
            "duplicate_count": pa.array(rng.geometric(0.3, rows)),
        }
    )


def _trimmed(
    rng: np.random.Generator, ends: Sequence[str], rows: int, *, from_start: bool
) -> tuple[pa.Array, pa.Array]:
    """Gene ends without some of their letters, and which gene each is of."""
    shares = np.random.default_rng(len(ends)).dirichlet(np.ones(len(ends)))
    place = rng.choice(len(ends), rows, p=shares)
    trimmed = rng.binomial(_MOST_TRIMMED, 0.4, rows)
    texts = [
        text[min(k, len(text) - 3) :] if from_start else text[: max(len(text) - k, 3)]
        for text in ends
        for k in range(_MOST_TRIMMED + 1)
    ]
    return pa.array(texts, _TEXT).take(pa.array(place * (_MOST_TRIMMED + 1) + trimmed)), pa.array(place)


def _inserted(rng: np.random.Generator, rows: int) -> pa.Array:
    """N nucleotides."""
    texts = ["".join(text) for n in range(_MOST_N + 1) for text in itertools.product("ACGT", repeat=n)]
    starts = np.concatenate([[0], np.cumsum(4 ** np.arange(_MOST_N + 1))])
    length = np.minimum(rng.geometric(0.4, rows) - 1, _MOST_N)
    letters: NDArray[np.int64] = rng.choice(4, (rows, _MOST_N), p=(0.2, 0.3, 0.3, 0.2))
    number = np.zeros(rows, np.int64)
    for k in range(_MOST_N):
        number = np.where(k < length, 4 * number + letters[:, k], number)
    return pa.array(texts, _TEXT).take(pa.array(starts[length] + number))
