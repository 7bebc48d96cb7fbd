"""What clonotypes are measured by, path count and N2 length, in bins by number of subjects."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, Final, NamedTuple

from plait.reports.study_inputs import Study, StudyTable

__all__ = ["COUNT", "N2", "PGEN", "Bin", "Measure", "bin_middle", "drawn_measures", "measure_bins"]

_NO_COUNTS = "The study has no path counts: its inputs were taken without them."
_NO_N2 = "The study has no N2 lengths: no clonotype has a D gene call."
_NO_PGEN = "No clonotype has a Pgen."
#: Labels such as 10k and 1M, or 1e-12, at powers of ten.
_POWERS: Final[dict[str, Any]] = {"labelExpr": "format(pow(10, datum.value), '~s')", "tickMinStep": 1}
_SMALL_POWERS: Final[dict[str, Any]] = {
    "labelExpr": "format(pow(10, datum.value), '.0e')",
    "tickMinStep": 1,
    "labelFlush": 12,
}


class Measure(NamedTuple):
    """Something that clonotypes have, with the table that tells its distribution."""

    table: str
    low: str
    high: str
    colour: str
    name: str
    title: str
    why_not: str
    powers: dict[str, Any]
    aside: str


COUNT = Measure(
    "path_count_by_sharing",
    "log10_low",
    "log10_high",
    "$count",
    "path count",
    "path count (recombination paths)",
    _NO_COUNTS,
    _POWERS,
    "a count of 0",
)
PGEN = Measure(
    "pgen_by_sharing",
    "log10_low",
    "log10_high",
    "$pgen",
    "Pgen",
    "generation probability (Pgen)",
    _NO_PGEN,
    _SMALL_POWERS,
    "a Pgen of 0",
)
N2 = Measure(
    "n2_length_by_sharing",
    "n2_length",
    "",
    "$n2",
    "N2 length",
    "N2 length (nt)",
    _NO_N2,
    {},
    "no D gene call",
)


class Bin(NamedTuple):
    """Clonotypes by number of subjects, of one bin of a measure; None where the measure has no place."""

    low: float | None
    high: float | None
    levels: dict[int, int]


def drawn_measures(study: Study) -> tuple[Measure, ...]:
    """What clonotypes of a study are measured by: Pgen only where it was computed.

    Parameters
    ----------
    study
        The study.
    """
    return (COUNT, PGEN, N2) if study.table(PGEN.table) is not None else (COUNT, N2)


def measure_bins(table: StudyTable | None, measure: Measure) -> list[Bin]:
    """Clonotypes in bins of a measure, those without a place first.

    Parameters
    ----------
    table
        What tells the distribution, or None.
    measure
        Which one.
    """
    if table is None:
        return []
    lows = table.numbers(measure.low)
    highs = table.numbers(measure.high) if measure.high else [None if x is None else x + 1 for x in lows]
    found: dict[tuple[float | None, float | None], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for low, high, level, n in zip(
        lows, highs, table.integers("subjects"), table.integers("clonotypes"), strict=True
    ):
        found[low, high][level] += n
    bins = [Bin(low, high, dict(levels)) for (low, high), levels in found.items()]
    return sorted(bins, key=lambda bin_: -math.inf if bin_.low is None else bin_.low)


def bin_middle(measure: Measure, bin_: Bin) -> float:
    """Where a bin is on the axis of its measure.

    Parameters
    ----------
    measure
        Which one.
    bin_
        The bin; it has a place.
    """
    # An N2 length is a number of its own, a bin of path counts has a width.
    low, high = bin_.low or 0.0, bin_.high or 0.0
    return (low + high) / 2 if measure.high else low
