"""One read for each molecule: reads with unique molecular identifiers (UMIs) become consensus reads."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.fastq import ReadBlock
from plait.formats.parquet import reblock
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, Spilling, run_starts, whole_runs
from plait.vdj.clonotypes.error_clonotypes import Texts, find_parents
from plait.vdj.clonotypes.molecules import UmiSettings, molecules_of
from plait.vdj.reads.columns import letters_of, text_array

_KEY: Final = ("repertoire", "length", "umi")
_SEPARATOR: Final = "\x1f"


class UmiCorrector:
    """Counts UMIs, and then corrects those of reads; the right UMI has `ratio` times as many reads.

    The distinct UMIs of one repertoire are in memory when they are compared, and those that are corrected, of
    all repertoires, from then on; `memory_bytes` of counts wait in memory, others in `blocks`. `umis` and
    `reads`, those that were corrected, are known after `decide`.
    """

    def __init__(self, blocks: SpilledBlocks, ratio: float, memory_bytes: int) -> None:
        self._ratio = ratio
        self._counts = SortedRuns(
            blocks, dict.fromkeys(_KEY, "ascending"), memory_bytes=memory_bytes, combine=_added
        )
        self._wrong = pa.array([], pa.string())
        self._right = pa.array([], pa.string())
        self.umis = self.reads = 0

    def add(self, reads: pa.RecordBatch) -> None:
        """Count the UMIs of reads, in columns repertoire and umi."""
        counts = {
            "repertoire": reads["repertoire"],
            "length": pc.binary_length(reads["umi"]),
            "umi": reads["umi"],
            "reads": pa.array(np.ones(reads.num_rows, np.int64)),
        }
        self._counts.add(pa.record_batch(counts))

    def decide(self) -> None:
        """Find the wrong UMIs; to be called once, after the last `add`."""
        wrong, right = [self._wrong], [self._right]
        for known in whole_runs(self._counts.drain(), ("repertoire",)):
            letters, starts = letters_of(known["umi"])
            new = np.zeros(known.num_rows, np.int64)
            new[run_starts(known, _KEY[:2])] = 1
            counts = known["reads"].to_numpy()
            parents = find_parents(Texts(letters, starts, np.cumsum(new) - 1, counts), self._ratio)
            places = np.flatnonzero(parents != np.arange(parents.size))
            self.umis += places.size
            self.reads += int(counts[places].sum())
            wrong.append(_named(known.take(pa.array(places))))
            right.append(known["umi"].take(pa.array(parents[places])))
        self._wrong, self._right = pa.concat_arrays(wrong), pa.concat_arrays(right)

    def correct(self, reads: pa.RecordBatch) -> pa.RecordBatch:
        """Put the right UMI in the place of each wrong one; the reads have been counted, all columns stay."""
        place = pc.index_in(_named(reads), value_set=self._wrong)
        umis = pc.coalesce(self._right.take(place), reads["umi"])
        return reads.set_column(reads.schema.get_field_index("umi"), "umi", umis)


def _named(rows: pa.RecordBatch) -> pa.Array:
    """UMIs with their repertoires."""
    return pc.binary_join_element_wise(rows["umi"], rows["repertoire"], _SEPARATOR)


def _added(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each UMI of those in order."""
    starts = run_starts(rows, _KEY)
    columns = {name: rows[name].take(pa.array(starts)) for name in _KEY}
    return pa.record_batch(columns | {"reads": pa.array(np.add.reduceat(rows["reads"].to_numpy(), starts))})


_ORDER: Final[Mapping[str, Direction]] = {
    name: "ascending"
    for name in ("repertoire", "umi", "letters", "mate_letters", "qualities", "mate_qualities")
}
#: Molecules of a block.
_BLOCK: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class ConsensusReads:
    """Consensus reads of n molecules of one repertoire, and of their mates, if any.

    Names are made of the repertoire, the UMI and a number, since molecules can have the same UMI by chance.
    `counts`, int64 (n,), are the reads of each.
    """

    repertoire: str
    reads: ReadBlock
    mates: ReadBlock | None
    umis: list[str]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class UmiCounts:
    """What became of the reads, or pairs.

    `left_out` are those in no molecule, by reason: ``no_umi``; ``ambiguous_umi``, with other letters than
    ACGT; ``too_few_reads`` of the molecule; ``too_many_molecules`` with the same UMI. `molecules` counts
    consensus reads; `corrected_umis` were taken for erroneous copies of others, `corrected_reads` have them.
    """

    reads: int
    left_out: Mapping[str, int]
    molecules: int
    corrected_umis: int = 0
    corrected_reads: int = 0


class UmiCollector(Spilling):
    """Takes reads with UMIs, and gives a consensus read for each molecule.

    What is given depends neither on the order of the reads nor on the blocks they come in. `folder` is its
    own, for reads that do not fit memory: made here, what a killed run left there is replaced, and as a
    context manager it removes it in the end. InvalidInput if the folder holds something else, FormatError if
    it cannot be written.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: UmiSettings | None = None) -> None:
        self._settings = settings or UmiSettings()
        super().__init__(folder)
        self._runs = self._sorted()
        ratio = self._settings.umi_ratio
        self._corrector: UmiCorrector | None = None
        if ratio is not None:
            self._corrector = UmiCorrector(self._blocks, ratio, self._settings.memory_bytes)
        self._left_out: Counter[str] = Counter()
        self._reads = self._molecules = 0
        # Whether the reads of a repertoire have mates, and whether they have qualities.
        self._paired: dict[str, bool] = {}
        self._scored: set[str] = set()

    @property
    def counts(self) -> UmiCounts:
        """What became of the reads; complete after `finish` has been exhausted."""
        left_out = {reason: n for reason, n in sorted(self._left_out.items()) if n}
        corrector = self._corrector
        return UmiCounts(
            reads=self._reads,
            left_out=left_out,
            molecules=self._molecules,
            corrected_umis=corrector.umis if corrector else 0,
            corrected_reads=corrector.reads if corrector else 0,
        )

    def add(
        self, reads: ReadBlock, mates: ReadBlock | None, umis: Sequence[str], repertoire: str = ""
    ) -> None:
        """Take reads without their UMIs, all beginning at the same place of their molecule.

        `mates` are as sequenced; `umis` in upper case, empty where there is none. Reads of different
        repertoires are of different molecules. InvalidInput if there are not as many mates and UMIs as reads,
        or a repertoire has mates for some reads only; FormatError if reads cannot be put aside, for example
        on a full disk.
        """
        n = len(reads)
        if len(umis) != n or (mates is not None and len(mates) != n):
            raise InvalidInput("umis", found=f"{len(umis)} for {n} reads", expected="one for each read")
        if self._paired.setdefault(repertoire, mates is not None) != (mates is not None):
            raise InvalidInput("mates", found="mates of some reads", expected="mates of all or of none")
        self._reads += n
        if reads.qualities is not None:
            self._scored.add(repertoire)
        names = pa.array(umis, pa.string())
        absent = np.asarray(pc.equal(names, ""))
        wrong = np.asarray(pc.match_substring_regex(names, "[^ACGT]"))
        self._left_out["no_umi"] += int(absent.sum())
        self._left_out["ambiguous_umi"] += int(wrong.sum())
        columns = {
            "repertoire": pa.array([repertoire]).take(pa.array(np.zeros(n, np.int8))),
            "umi": names,
            **_columns(reads, ""),
            **_columns(mates or _nothing(n), "mate_"),
        }
        rows = pa.record_batch(columns).filter(pa.array(~absent & ~wrong))
        self._runs.add(rows)
        if self._corrector is not None:
            self._corrector.add(rows)

    def finish(self) -> Iterator[ConsensusReads]:
        """The molecules, by repertoire and UMI, at most 8192 at a time; once, after the last `add`.

        FormatError if reads that were put aside have been damaged.
        """
        for rows in reblock(self._consensus(), _BLOCK):
            edges = [*run_starts(rows, ("repertoire",)).tolist(), rows.num_rows]
            for first, last in pairwise(edges):
                yield self._block(rows.slice(first, last - first))

    def _sorted(self) -> SortedRuns:
        return SortedRuns(self._blocks, _ORDER, memory_bytes=self._settings.memory_bytes)

    def _consensus(self) -> Iterator[pa.RecordBatch]:
        if self._corrector is not None:
            self._corrector.decide()
            corrected = self._sorted()
            for reads in self._runs.drain():
                corrected.add(self._corrector.correct(reads))
            self._runs = corrected
        for reads in whole_runs(self._runs.drain(), ("repertoire", "umi")):
            found = molecules_of(reads, self._settings)
            self._left_out["too_few_reads"] += found.too_few_reads
            self._left_out["too_many_molecules"] += found.too_many_molecules
            self._molecules += found.rows.num_rows
            yield found.rows

    def _block(self, rows: pa.RecordBatch) -> ConsensusReads:
        repertoire = rows["repertoire"][0].as_py()
        numbers = rows["number"].cast(pa.string())
        names = pc.binary_join_element_wise(rows["umi"], numbers, "-")
        if repertoire:
            names = pc.binary_join_element_wise(repertoire, names, ":")
        told = names.to_pylist()
        scored = repertoire in self._scored
        return ConsensusReads(
            repertoire=repertoire,
            reads=_read_block(told, rows, "", scored),
            mates=_read_block(told, rows, "mate_", scored) if self._paired[repertoire] else None,
            umis=rows["umi"].to_pylist(),
            counts=rows["reads"].to_numpy(),
        )


def _nothing(n: int) -> ReadBlock:
    """Reads without bases."""
    return ReadBlock([""] * n, np.zeros(0, np.uint8), np.zeros(n + 1, np.int64))


def _columns(reads: ReadBlock, prefix: str) -> dict[str, pa.Array]:
    columns = {f"{prefix}letters": text_array(reads.letters, reads.starts, kind=pa.binary())}
    if reads.qualities is None:
        columns[f"{prefix}qualities"] = pa.nulls(len(reads), pa.binary()).fill_null(b"")
    else:
        columns[f"{prefix}qualities"] = text_array(reads.qualities, reads.starts, kind=pa.binary())
    return columns


def _read_block(names: list[str], rows: pa.RecordBatch, prefix: str, scored: bool) -> ReadBlock:
    letters, starts = letters_of(rows[f"{prefix}letters"])
    qualities = letters_of(rows[f"{prefix}qualities"])[0].copy() if scored else None
    return ReadBlock(names, letters.copy(), starts, qualities)
