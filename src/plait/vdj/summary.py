"""What came of every row: rows per status, zero counts per V and J gene, and calls that are not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from plait.vdj.blamed_calls import BlamedCalls
from plait.vdj.calls import first_gene
from plait.vdj.germline import GermlineSet
from plait.vdj.results import STATUSES
from plait.vdj.zero_cause_words import cause_sentences, explained, foreign_sentences
from plait.vdj.zero_causes import TableCauses

__all__ = ["CountSummary", "GeneZeros"]

#: A gene with this share of zero counts or more, over at least `_FEWEST` rows, is reported.
_SUSPICIOUS = 0.5
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class GeneZeros:
    """Zero counts of one gene.

    Attributes
    ----------
    rows
        Counted rows with this gene.
    zeros
        Those among them whose path count is zero.
    """

    rows: int
    zeros: int

    @property
    def share(self) -> float:
        """Share of zero counts."""
        return self.zeros / self.rows if self.rows else 0.0


@dataclass(slots=True)
class CountSummary:
    """Running totals of a counting run. Sums of blocks, in any order."""

    statuses: Counter[str] = field(default_factory=Counter)
    causes: TableCauses = field(default_factory=TableCauses)
    _rows: dict[str, Counter[str]] = field(default_factory=lambda: {"v": Counter(), "j": Counter()})
    _zeros: dict[str, Counter[str]] = field(default_factory=lambda: {"v": Counter(), "j": Counter()})
    _calls: BlamedCalls = field(default_factory=BlamedCalls)

    def add(self, result: pa.RecordBatch, calls: Mapping[str, pa.Array]) -> None:
        """Add a block.

        Parameters
        ----------
        result
            The result columns of the block.
        calls
            The V calls (``"v"``) and J calls (``"j"``) of the same rows, as they were given.
        """
        for entry in pc.value_counts(result["status"]).to_pylist():
            self.statuses[entry["values"]] += entry["counts"]
        self._calls.add(result["status"], calls)
        counted = pc.equal(result["status"], "ok")
        # Not to be exact: counts above 2^53 only have to stay different from zero.
        zero = pc.equal(result["path_count"].filter(counted).cast(pa.float64(), safe=False), 0.0)
        for segment, column in calls.items():
            genes = column.filter(counted)
            for values, totals in ((genes, self._rows), (genes.filter(zero), self._zeros)):
                for entry in pc.value_counts(values).to_pylist():
                    totals[segment][first_gene(entry["values"])] += entry["counts"]

    def merge(self, other: CountSummary) -> None:
        """Add the totals of other blocks.

        Parameters
        ----------
        other
            Left unchanged.
        """
        self.statuses.update(other.statuses)
        for mine, theirs in ((self._rows, other._rows), (self._zeros, other._zeros)):
            for segment in mine:
                mine[segment].update(theirs[segment])
        self._calls.merge(other._calls)
        self.causes.merge(other.causes)

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.statuses.values())

    @property
    def counted(self) -> int:
        """Rows with counts."""
        return self.statuses["ok"]

    @property
    def zeros(self) -> int:
        """Counted rows whose path count is zero."""
        return sum(self._zeros["v"].values())

    def genes(self, segment: str) -> dict[str, GeneZeros]:
        """Zero counts per gene, the most frequent gene first.

        Parameters
        ----------
        segment
            ``"v"`` or ``"j"``.
        """
        rows = sorted(self._rows[segment].items(), key=lambda item: (-item[1], item[0]))
        return {gene: GeneZeros(n, self._zeros[segment][gene]) for gene, n in rows}

    def blamed_calls(self, status: str) -> dict[str, int]:
        """Rows per gene of the calls behind a status, the most frequent first.

        Parameters
        ----------
        status
            ``"unknown_v_call"``, ``"no_v_anchor"`` or the same of J; others blame no call.
        """
        return self._calls.of(status)

    def suspicious(self) -> list[str]:
        """Genes that are so often zero that their anchor or allele is probably wrong.

        Where most of the table is zero, only those that are zero far more often than the other genes; none
        where something else explains the zeros.
        """
        return [] if self.whole_table_explained else self._often_zero()

    @property
    def whole_table_explained(self) -> bool:
        """Whether what concerns the whole table explains most zeros."""
        return explained(self.causes, self.zeros, self.counted, self._concentrated())

    def _concentrated(self) -> bool:
        """Whether most zeros are of few genes of V, or of J, while most of the table has none."""
        often = self._often_zero()
        most = max(sum(self._zeros[segment][gene] for gene in often) for segment in "vj")
        return 4 * self.zeros <= 3 * self.counted and 2 * most >= self.zeros > 0

    def _often_zero(self) -> list[str]:
        return [
            gene
            for segment in "vj"
            for gene, found in self.genes(segment).items()
            if found.rows >= _FEWEST and found.share >= _SUSPICIOUS and self._stands_out(found)
        ]

    def _stands_out(self, found: GeneZeros) -> bool:
        others = GeneZeros(self.counted - found.rows, self.zeros - found.zeros)
        return 2 * self.zeros < self.counted or 2 * others.share <= found.share

    def remarks(self, germline: GermlineSet) -> list[str]:
        """What is to be said of the table as a whole: foreign genes, and causes of zeros.

        Parameters
        ----------
        germline
            The germline set that rows were counted with.
        """
        own = f"germline set {germline.name}"
        unknown = {segment: self._calls.of(f"unknown_{segment}_call") for segment in "vj"}
        called = self.rows - self.statuses["missing_v_call"]
        return [
            *foreign_sentences(unknown, called, locus=germline.locus, own=own),
            *cause_sentences(
                self.causes,
                self.zeros,
                self.counted,
                what="path count",
                own=own,
                concentrated=self._concentrated(),
            ),
        ]

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> CountSummary:
        """What `as_dict` told, as far as `remarks` and totals need it."""
        found = cls(statuses=Counter({str(name): int(n) for name, n in facts["statuses"].items()}))
        found.causes = TableCauses.from_dict(facts["zero_causes"])
        for status, names in facts["blamed_calls"].items():
            found._calls.blame(status, names)
        for segment in "vj":
            for gene, zeros in facts[f"zero_counts_by_{segment}_gene"].items():
                found._rows[segment][gene] += int(zeros["rows"])
                found._zeros[segment][gene] += int(zeros["zeros"])
        return found

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON; statuses that did not occur are left out."""
        zeros = {
            f"zero_counts_by_{segment}_gene": {
                gene: {"rows": z.rows, "zeros": z.zeros, "share": z.share}
                for gene, z in self.genes(segment).items()
            }
            for segment in "vj"
        }
        return {
            "rows": self.rows,
            "statuses": {name: self.statuses[name] for name in STATUSES if self.statuses[name]},
            "blamed_calls": self._calls.as_dict(),
            "zero_counts": self.zeros,
            "zero_causes": self.causes.as_dict(),
            "suspicious_genes": self.suspicious(),
            **zeros,
        }
