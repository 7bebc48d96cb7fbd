"""Intervals that take subjects as the units: every subject left out once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from plait.statistics.quantiles import student_quantile

__all__ = ["FEWEST_SUBJECTS", "JACKKNIFE_MEASURES", "SubjectCells", "subject_intervals"]

_Floats: TypeAlias = NDArray[np.float64]
_Ints: TypeAlias = NDArray[np.int64]

#: Measures that have such an interval.
JACKKNIFE_MEASURES: Final = ("spearman", "auc")
#: Subjects below which the spread between them is hardly known.
FEWEST_SUBJECTS: Final = 4


class SubjectCells(NamedTuple):
    """Clonotypes of one subject, counted by two variables and the number of subjects that have them.

    Attributes
    ----------
    x, z
        (m,): values of the two variables.
    y
        int64 (m,): numbers of subjects, this one included.
    counts
        int64 (m,).
    """

    x: NDArray[Any]
    z: NDArray[Any]
    y: _Ints
    counts: _Ints


def subject_intervals(
    subjects: Sequence[SubjectCells], *, shared_by: int, confidence: float = 0.95
) -> dict[str, tuple[float, float]]:
    r"""Intervals for a measure of z less that of x with sharing, over subjects like these.

    Parameters
    ----------
    subjects
        What each subject has.
    shared_by
        Number of subjects that makes a clonotype shared.
    confidence
        Of the intervals.

    Returns
    -------
    dict
        By `JACKKNIFE_MEASURES`, those that there is an interval of.

    Notes
    -----
    Without a subject its clonotypes have one subject less, and those that were in it alone are gone. With S
    subjects and the difference :math:`\theta_s` without subject s, the variance is :math:`(S - 1)/S \sum
    (\theta_s - \bar\theta)^2` (the jackknife; Efron and Stein 1981, *Annals of Statistics* 9: 586-596), and
    the interval is that of Student's t with S - 1 degrees of freedom.
    """
    if len(subjects) < FEWEST_SUBJECTS:
        return {}
    x, z, y, counts = (np.concatenate(columns) for columns in zip(*subjects, strict=True))
    sizes = [len(one.counts) for one in subjects]
    x_place, z_place = (np.unique(values, return_inverse=True)[1].astype(np.int64) for values in (x, z))
    most = int(y.max(initial=0)) + 1
    pair = (x_place * (int(z_place.max(initial=0)) + 1) + z_place) * most
    # Every clonotype with the sharing that it has, and with one subject less.
    keys, cell = np.unique(np.concatenate([pair + y, pair + y - 1]), return_inverse=True)
    now, before = cell[: len(y)], cell[len(y) :]
    place = np.zeros((3, keys.size), np.int64)
    for row, values in zip(place, (x_place, z_place), strict=False):
        row[now], row[before] = values, values
    place[2] = keys % most
    # A clonotype is counted by every subject that has it.
    total = np.bincount(now, counts, keys.size) / np.maximum(place[2], 1)
    whole = _differences(place, total, shared_by)
    ends = np.cumsum(sizes)
    left_out = []
    for start, end in zip(ends - sizes, ends, strict=True):
        rows = total - np.bincount(now[start:end], counts[start:end], keys.size)
        rows += np.bincount(before[start:end], counts[start:end], keys.size)
        left_out.append(_differences(place, np.where(place[2] > 0, np.rint(rows), 0.0), shared_by))
    reach = student_quantile((1 + confidence) / 2, len(subjects) - 1)
    found = {}
    for k, measure in enumerate(JACKKNIFE_MEASURES):
        values = np.array([one[k] for one in left_out])
        if math.isnan(whole[k]) or np.isnan(values).any():
            continue
        spread = float(np.sum((values - values.mean()) ** 2)) * (len(values) - 1) / len(values)
        if spread > 0:
            half = reach * math.sqrt(spread)
            found[measure] = (whole[k] - half, whole[k] + half)
    return found


def _differences(place: _Ints, rows: _Floats, shared_by: int) -> tuple[float, float]:
    """Both measures of z less those of x."""
    x, z, y = place
    shared = y >= shared_by
    return (
        _spearman(z, y, rows) - _spearman(x, y, rows),
        _area(z, shared, rows) - _area(x, shared, rows),
    )


def _middles(values: _Ints, rows: _Floats) -> tuple[_Floats, float]:
    """Centred mid-distribution value of each cell, and their variance."""
    n = float(rows.sum())
    sums = np.bincount(values, rows)
    middle = (np.cumsum(sums) - sums / 2) / n - 0.5
    return middle[values], (1 - float(np.sum((sums / n) ** 3))) / 12


def _spearman(x: _Ints, y: _Ints, rows: _Floats) -> float:
    n = float(rows.sum())
    if not n:
        return math.nan
    (u, a), (v, b) = _middles(x, rows), _middles(y, rows)
    if min(a, b) < 1e-15:
        return math.nan
    return float(np.sum(rows * u * v)) / n / math.sqrt(a * b)


def _area(x: _Ints, event: NDArray[np.bool_], rows: _Floats) -> float:
    having, without = (np.bincount(x, np.where(kind, rows, 0.0)) for kind in (event, ~event))
    positives, negatives = float(having.sum()), float(without.sum())
    if not (positives and negatives):
        return math.nan
    return float(np.sum(having * (np.cumsum(without) - without / 2))) / positives / negatives
