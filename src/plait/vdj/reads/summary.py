"""What became of every read: counts of each file, which are sums of blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from plait.formats.fastq import ReadBlock
from plait.vdj.calls import first_gene

#: Statuses of sequences whose junction is known; the last two where only productive ones are asked for.
_WITH_JUNCTION = pa.array(["ok", "out_of_frame", "stop_codon"])


@dataclass(slots=True, kw_only=True)
class ReadSummary:
    """Counts over reads, or pairs of them. Sums of blocks, in any order.

    `sequences` is what was aligned: the reads, or with UMIs one consensus of each. `scored_bases` are those
    that have a quality. `forward` and `reverse` are aligned as they are, and as their reverse complement; the
    others match no V and no J. `productive`, `out_of_frame` and `stop_codon`, `v_genes` and `j_genes`
    (by the first call) and `junction_lengths` (in nucleotides) count sequences with a junction. `rows` are
    those written.
    """

    reads: int = 0
    merged_pairs: int = 0
    sequences: int = 0
    bases: int = 0
    quality_sum: int = 0
    scored_bases: int = 0
    forward: int = 0
    reverse: int = 0
    productive: int = 0
    out_of_frame: int = 0
    stop_codon: int = 0
    rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    v_genes: Counter[str] = field(default_factory=Counter)
    j_genes: Counter[str] = field(default_factory=Counter)
    junction_lengths: Counter[int] = field(default_factory=Counter)

    def add_reads(self, blocks: Iterable[ReadBlock], *, reads: int) -> None:
        """Add reads, or pairs of them, as they come from the sequencer; `blocks` have the mates, too."""
        self.reads += reads
        for block in blocks:
            self.bases += int(block.starts[-1] - block.starts[0])
            if block.qualities is not None:
                self.scored_bases += block.qualities.size
                self.quality_sum += int(block.qualities.sum(dtype=np.int64))

    def add_rows(self, rows: pa.RecordBatch) -> None:
        """Add all annotated sequences of a block, before any is left out."""
        self.sequences += rows.num_rows
        placed = pc.or_(pc.is_valid(rows["v_call"]), pc.is_valid(rows["j_call"]))
        self.reverse += _count(pc.and_(placed, rows["rev_comp"]))
        self.forward += _count(pc.and_(placed, pc.invert(rows["rev_comp"])))
        self.statuses.update(_counts(rows["annotation_status"]))
        found = rows.filter(pc.is_in(rows["annotation_status"], _WITH_JUNCTION))
        self.productive += _count(found["productive"])
        self.out_of_frame += _count(pc.invert(found["vj_in_frame"]))
        self.stop_codon += _count(found["stop_codon"])
        for totals, column in ((self.v_genes, "v_call"), (self.j_genes, "j_call")):
            for call, n in _counts(found[column]).items():
                totals[first_gene(call)] += n
        self.junction_lengths.update(_counts(pc.binary_length(found["junction"])))

    def merge(self, other: Self) -> None:
        """Add the counts of other blocks; `other` is left unchanged."""
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, item.name, mine + theirs)

    @property
    def mean_quality(self) -> float | None:
        """Mean Phred score of the bases; None if the input has none."""
        return self.quality_sum / self.scored_bases if self.scored_bases else None

    @property
    def mean_length(self) -> float | None:
        """Mean length of a read, both mates of a pair together; None without reads."""
        return self.bases / self.reads if self.reads else None

    def junction_length(self, share: float) -> int | None:
        """Length that this share of the junctions (0.5: median) do not surpass; None without junctions."""
        wanted = share * self.junction_lengths.total()
        seen = 0
        for length in sorted(self.junction_lengths):
            seen += self.junction_lengths[length]
            if seen >= wanted:
                return length
        return None

    def state(self) -> dict[str, Any]:
        """The counts alone, ready for JSON; `from_state` makes them anew."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in found.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The counts that `state` gave, also after a way through JSON, which makes keys text."""
        found: dict[str, Any] = {k: Counter(v) if isinstance(v, Mapping) else v for k, v in state.items()}
        made = cls(**found)
        made.junction_lengths = Counter({int(k): n for k, n in made.junction_lengths.items()})
        return made

    def as_dict(self, statuses: Iterable[str]) -> dict[str, Any]:
        """Everything, ready for JSON; of the statuses, in this order, those that occurred."""
        found = self.state()
        for name in ("quality_sum", "scored_bases"):
            del found[name]
        found["mean_quality"] = None if self.mean_quality is None else round(self.mean_quality, 3)
        found["mean_length"] = None if self.mean_length is None else round(self.mean_length, 3)
        found["statuses"] = {name: self.statuses[name] for name in statuses if self.statuses[name]}
        found["junction_lengths"] = {str(length): n for length, n in self.junction_lengths.items()}
        return found


def _counts(column: pa.Array) -> dict[Any, int]:
    found = pc.value_counts(column.drop_null()).to_pylist()
    return {entry["values"]: entry["counts"] for entry in found}


def _count(flags: pa.Array) -> int:
    return pc.sum(flags).as_py() or 0
