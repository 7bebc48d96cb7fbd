"""What came of every row of a run of generation probabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.vdj.blamed_calls import BlamedCalls
from plait.vdj.germline.records import locus_of
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.zero_reasons import ZERO_REASONS
from plait.vdj.zero_cause_words import cause_sentences, foreign_sentences
from plait.vdj.zero_causes import TableCauses

__all__ = ["QUANTILES", "PgenSummary"]

#: Shares of the rows with a probability above zero, of which the summary has the probability.
QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)
#: Bins of the common logarithm, which is exact to half of one of them, down to the least number there is.
_BINS_PER_DECADE: Final = 100
_DECADES: Final = 330
#: Upper end of each bin but the last, where numbers above 1 are, if rounding makes one.
_EDGES: Final = np.array(
    [10.0 ** (k / _BINS_PER_DECADE - _DECADES) for k in range(_BINS_PER_DECADE * _DECADES + 1)]
)


@dataclass(slots=True)
class PgenSummary:
    """Running totals of one column. Sums of blocks, in any order.

    Attributes
    ----------
    statuses
        Rows of each status.
    blamed
        The calls behind statuses that blame a call.
    causes
        What was found when zero rows were put to the test.
    foreign, called
        Calls that the model does not know, used or not, and rows with a V or J call.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    blamed: BlamedCalls = field(default_factory=BlamedCalls)
    causes: TableCauses = field(default_factory=TableCauses)
    foreign: BlamedCalls = field(default_factory=BlamedCalls)
    called: int = 0
    _bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_EDGES.size + 1, np.int64))

    def add(self, status: pa.Array, pgen: pa.Array, calls: Mapping[str, pa.Array]) -> None:
        """Add a block.

        Parameters
        ----------
        status, pgen
            The result columns.
        calls
            The V calls (``"v"``) and J calls (``"j"``) of the same rows, as far as they were used.
        """
        for entry in pc.value_counts(status).to_pylist():
            self.statuses[entry["values"]] += entry["counts"]
        self.blamed.add(status, calls)
        values = pgen.filter(pc.equal(status, "ok")).to_numpy(zero_copy_only=False)
        self._bins += np.bincount(np.searchsorted(_EDGES, values), minlength=self._bins.size)

    def merge(self, other: PgenSummary) -> None:
        """Add the totals of other blocks.

        Parameters
        ----------
        other
            Left unchanged.
        """
        self.statuses.update(other.statuses)
        self.blamed.merge(other.blamed)
        self.causes.merge(other.causes)
        self.foreign.merge(other.foreign)
        self.called += other.called
        self._bins += other._bins

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.statuses.values())

    @property
    def zeros(self) -> int:
        """Rows with a probability of zero."""
        return sum(self.statuses[reason] for reason in ZERO_REASONS)

    def remarks(self, model: RecombinationModel) -> list[str]:
        """What is to be said of the table as a whole: foreign genes, and causes of zeros.

        Parameters
        ----------
        model
            The model that made the numbers.
        """
        own = f"model {model.name}"
        loci = Counter(locus for gene in model.j if (locus := locus_of(gene.name)))
        locus = next(iter(loci.most_common(1)), ("", 0))[0]
        unknown = {segment: self.foreign.of(f"unknown_{segment}_call") for segment in "vj"}
        rows = self.zeros + self.statuses["ok"]
        return [
            *foreign_sentences(unknown, self.called, locus=locus, own=own),
            *cause_sentences(self.causes, self.zeros, rows, what="generation probability", own=own),
        ]

    def log10_quantiles(self, shares: Sequence[float] = QUANTILES) -> list[float] | None:
        """Common logarithms of quantiles of the probabilities above zero, to 0.01; None if there are none.

        Parameters
        ----------
        shares
            Of the rows that have such a probability, and less than the quantile.
        """
        upwards = np.cumsum(self._bins)
        if not upwards[-1]:
            return None
        places = np.searchsorted(upwards, [share * (upwards[-1] - 1) for share in shares], side="right")
        middle = (places - 0.5) / _BINS_PER_DECADE - _DECADES
        return [round(float(value), 2) for value in middle]

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        quantiles = self.log10_quantiles()
        named = [f"{share:g}" for share in QUANTILES]
        return {
            "statuses": dict(sorted(self.statuses.items(), key=lambda item: (-item[1], item[0]))),
            "zeros": self.zeros,
            "zero_causes": self.causes.as_dict(),
            "blamed_calls": self.blamed.as_dict(),
            "foreign_calls": self.foreign.as_dict(),
            "log10_quantiles": None if quantiles is None else dict(zip(named, quantiles, strict=True)),
        }
