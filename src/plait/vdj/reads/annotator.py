"""Annotate reads in memory, and count what became of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait._version import __version__
from plait.devices.target import resolve, spelled
from plait.errors import FormatError, InvalidInput
from plait.formats.fastq import RawReads, ReadBlock, checked_reads
from plait.formats.reads import open_reads, slice_reads
from plait.run.executor import LocalExecutor
from plait.run.rows import RunningSums
from plait.settings import thread_count
from plait.types import Provenance, Tabular
from plait.vdj.calls import first_gene
from plait.vdj.germline import GermlineSet, load_germline, load_germlines
from plait.vdj.reads.allele_alignment import (
    Answers,
    GermlineMatches,
    found_in_all,
    germline_index,
    join_answers,
)
from plait.vdj.reads.candidates import LEAST_J, Texts, join_texts, merged_reads, shares_words, texts_of
from plait.vdj.reads.gene_calls import Limits, answers_by_j, answers_by_v
from plait.vdj.reads.mates import merge_mates
from plait.vdj.reads.rearrangements import AnnotationSettings, RearrangementBuilder

#: Statuses of sequences whose junction is known; the last two where only productive ones are asked for.
_WITH_JUNCTION: Final = ["ok", "out_of_frame", "stop_codon"]
#: What is counted of them.
_COUNTED: Final = ["productive", "vj_in_frame", "stop_codon", "v_call", "j_call", "junction"]


@dataclass(kw_only=True)
class ReadSummary(RunningSums):
    """Counts over reads, or pairs of them. Sums of blocks, in any order.

    `sequences` is what was aligned: the reads, or with UMIs one consensus of each. `scored_bases` are those
    that have a quality. `forward` and `reverse` are aligned as they are, and as their reverse complement; the
    others match no V and no J. `productive`, `out_of_frame` and `stop_codon`, `v_genes` and `j_genes`
    (by the first call) and `junction_lengths` (in nucleotides) count sequences with a junction. `rows` are
    those written. `without_cell` are sequences whose cell was to be told and is not known.
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
    without_cell: int = 0
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
        known = pc.is_in(rows["annotation_status"], pa.array(_WITH_JUNCTION, pa.string()))
        found = rows.select(_COUNTED).filter(known)
        self.productive += _count(found["productive"])
        self.out_of_frame += _count(pc.invert(found["vj_in_frame"]))
        self.stop_codon += _count(found["stop_codon"])
        for totals, column in ((self.v_genes, "v_call"), (self.j_genes, "j_call")):
            for call, n in _counts(found[column]).items():
                totals[first_gene(call)] += n
        self.junction_lengths.update(_counts(pc.binary_length(found["junction"])))

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

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The counts that `state` gave."""
        lengths = {int(length): n for length, n in state["junction_lengths"].items()}
        return super().from_state({**state, "junction_lengths": lengths})

    def as_dict(self, statuses: Iterable[str]) -> dict[str, Any]:
        """Everything, ready for JSON; of the statuses, in this order, those that occurred."""
        found = self.state()
        for name in ("quality_sum", "scored_bases", *(() if self.without_cell else ("without_cell",))):
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


#: Their numbers are 8-bit.
_MOST_SETS: Final = 127
#: Reads and bases of a block of what is in memory.
_BLOCK_READS, _BLOCK_BASES = 4096, 1 << 22


#: A germline set, the name or path of one, or several of them.
Germlines = GermlineSet | str | os.PathLike[str] | Sequence[GermlineSet | str | os.PathLike[str]]


def germlines_of(
    given: Germlines, *, anchors: str | os.PathLike[str] | None = None
) -> tuple[GermlineSet, ...]:
    """Load germline sets: a set, the name or path of one, or a sequence of these.

    Text may hold several names with commas between, unless a file has that name; ``human``, ``mouse_ig`` and
    so on stand for several sets, see `plait.vdj.germline.load_germlines`. `anchors` is a CSV table of
    anchors that replace those of the set; InvalidInput if there are several sets. Further errors as
    `plait.vdj.germline.load_germline`.

    >>> [one.locus for one in germlines_of("mouse_trb,mouse_tra")]
    ['TRB', 'TRA']
    """
    items: Sequence[GermlineSet | str | os.PathLike[str]]
    if isinstance(given, str):
        items = [given] if os.path.exists(given) else [name.strip() for name in given.split(",")]
    else:
        items = [given] if isinstance(given, GermlineSet | os.PathLike) else given
    if anchors is None:
        loaded = ((item,) if isinstance(item, GermlineSet) else load_germlines(item) for item in items)
        return tuple(chain.from_iterable(loaded))
    if len(items) != 1 or isinstance(items[0], GermlineSet):
        raise InvalidInput(
            "anchors",
            found=f"{len(items)} germline sets",
            expected="the name or path of one set",
        )
    return (load_germline(items[0], anchors=anchors),)


class GermlineAligner:
    """Aligns reads with the V and J alleles of germline sets; of equally good sets the first is called.

    `max_evalue` and `max_j_evalue` bound the expected number of chance alignments as good as that of a V, and
    of a J in the part of the read right of the V. Beside a J, a V with a larger one is called if the product
    of both is no larger; if it holds the conserved Cys, only alignments that hold one are counted. Blocks may
    be aligned side by side in threads of the caller. InvalidInput for no germline set, too many, one without
    V or J alleles, or a number that is not positive; TargetUnavailable if the device cannot be used.
    """

    def __init__(
        self,
        germlines: Sequence[GermlineSet],
        *,
        device: str = "auto",
        threads: int = 1,
        max_evalue: float = 1e-6,
        max_j_evalue: float = 1e-2,
    ) -> None:
        if not 0 < len(germlines) <= _MOST_SETS:
            found = str(len(germlines)) if germlines else "no germline set"
            raise InvalidInput("germlines", found=found, expected=f"1 to {_MOST_SETS} germline sets")
        for own in germlines:
            if not (own.v and own.j):
                found = f"no {'V' if own.j else 'J'} allele"
                raise InvalidInput(f"germline set {own.name!r}", found=found, expected="V and J alleles")
        for what, value in (("max_evalue", max_evalue), ("max_j_evalue", max_j_evalue)):
            if not value > 0:
                raise InvalidInput(what, found=repr(value), expected="a positive number")
        self.germlines = tuple(germlines)
        self.max_evalue = max_evalue
        self.max_j_evalue = max_j_evalue
        self._target = resolve(device, threads)
        self._index = germline_index(self.germlines)

    def align(self, reads: ReadBlock, others: ReadBlock | None = None) -> GermlineMatches:
        """Find the best V and J of each read.

        `others` are mates that were not merged, on the strand of `reads`, one for each (else InvalidInput),
        empty where there is none. Their scores count when alleles are chosen. Where the mate has a J with its
        V, and the read has none or shares few words with one, the two change places.
        """
        if others is not None and len(others) != len(reads):
            expected = f"{len(reads)} mates, one for each read"
            raise InvalidInput("others", found=str(len(others)), expected=expected)
        count = len(reads)
        texts = texts_of(reads)
        swapped = np.zeros(count, np.bool_)
        if others is None:
            answers = self._answers(texts, None)
        else:
            answers, swapped = self._answers_of_mates(texts, texts_of(others))
        backwards, germline = np.zeros(count, np.bool_), np.full(count, -1, np.int8)
        backwards[answers.reads] = answers.mirrored != 0
        germline[answers.reads] = answers.sets
        return GermlineMatches(
            merged_reads(reads, backwards, others, swapped),
            backwards,
            germline,
            found_in_all(count, answers.v),
            found_in_all(count, answers.j),
            None if others is None else swapped,
        )

    def _answers_of_mates(self, texts: Texts, mates: Texts) -> tuple[Answers, NDArray[np.bool_]]:
        """Answers for the reads that have one, and whether each read changed places with its mate."""
        count = texts.sizes.size
        single, paired = (np.flatnonzero(own) for own in (mates.sizes == 0, mates.sizes > 0))
        pool = join_texts(texts, mates)

        def turn(which: NDArray[np.int64], swap: NDArray[np.bool_]) -> Answers:
            first, second = (pool.take(which + count * own[which]) for own in (swap, ~swap))
            return self._answers(first, second).renumbered(which)

        # What words tell of a J saves most of the second look.
        swap = shares_words(self._index.j, mates, LEAST_J) & ~shares_words(self._index.j, texts, LEAST_J)
        found = turn(paired, swap)
        own = np.zeros(count, np.int64)
        own[found.reads] = found.completeness
        other = turn(paired[own[paired] < 3], ~swap)
        # Of equal answers that of the reads as they are given.
        other = other.take(2 * other.completeness + swap[other.reads] > 2 * own[other.reads])
        found = found.take(~np.isin(found.reads, other.reads))
        swapped = np.zeros(count, np.bool_)
        swapped[found.reads], swapped[other.reads] = swap[found.reads], ~swap[other.reads]
        alone = self._answers(texts.take(single), None).renumbered(single)
        return join_answers([alone, found, other]), swapped

    def _answers(self, texts: Texts, mates: Texts | None) -> Answers:
        """Answers for the reads that have one."""
        limits = Limits(self.max_evalue, self.max_j_evalue)
        found = answers_by_v(self._target, self._index, texts, mates, limits)
        rest: NDArray[np.int64] = np.setdiff1d(np.arange(texts.sizes.size), found.reads, True)
        if not rest.size:
            return found
        more = answers_by_j(self._target, self._index, texts.take(rest), self.max_evalue)
        return join_answers([found, more.renumbered(rest)])


class ReadAnnotator:
    """Annotates blocks of reads; the tables of the germline are made once. Blocks may run side by side.

    A read below a limit of the settings gets a reason in the place of a junction. `schema` has the columns of
    the rows, `provenance` what they depend on.
    """

    def __init__(
        self,
        germlines: Sequence[GermlineSet],
        *,
        settings: AnnotationSettings | None = None,
        device: str = "auto",
    ) -> None:
        for number, one in enumerate(germlines):
            if one in germlines[:number]:
                raise InvalidInput("germline", found=f"{one.name} twice", expected="different germline sets")
        self.germlines = tuple(germlines)
        limits = AnnotationSettings() if settings is None else settings
        self._aligner = GermlineAligner(self.germlines, device=device, threads=1)
        self._builder = RearrangementBuilder(self.germlines, limits)
        self.schema = self._builder.schema
        facts = asdict(limits)
        if not limits.regions:
            # Tables without these columns tell what they told before there were any.
            del facts["regions"]
        self.provenance = Provenance(
            version=__version__,
            device=resolve(device, 1).description,
            schedule="word_votes, inter_sequence, row_sweep",
            algebra="MaxPlus",
            parameters={
                "germlines": [{"name": one.name, "digest": one.digest} for one in self.germlines],
                "max_evalue": self._aligner.max_evalue,
                "max_j_evalue": self._aligner.max_j_evalue,
                **facts,
            },
        )

    def annotate(
        self,
        reads: ReadBlock,
        mates: ReadBlock | None = None,
        *,
        counts: NDArray[np.int64] | None = None,
        repertoire_id: str | None = None,
        cells: Sequence[str] | None = None,
    ) -> tuple[pa.RecordBatch, ReadSummary]:
        """Annotate a block: one row for each read, in order, and counts of what became of them.

        `mates` are the second mates, as sequenced; `counts` say of how many reads with one UMI each is the
        consensus, `cells` which cell each comes from, empty where that is not known. The summary does not
        count the reads as they were sequenced.
        """
        summary = ReadSummary()
        others, merged = None, None
        if mates is not None:
            pairs = merge_mates(reads, mates)
            reads, others, merged = pairs.reads, pairs.others, pairs.merged
            summary.merged_pairs = int(merged.sum())
        rows = self._builder.build(
            self._aligner.align(reads, others),
            consensus_count=counts,
            duplicate_count=None if counts is None else np.ones(len(reads), np.int64),
            umi_count=None if counts is None else np.ones(len(reads), np.int64),
            merged=merged,
            repertoire_id=repertoire_id,
            cell_id=None if cells is None else [cell or None for cell in cells],
        )
        summary.add_rows(rows)
        summary.without_cell = 0 if cells is None else rows["cell_id"].null_count
        return rows, summary


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Annotations(Tabular):
    """Annotated reads.

    Attributes
    ----------
    table
        One row for each read, in order, with AIRR columns, and `annotation_status`: ``ok`` where the junction
        is known, otherwise the reason why it is not.
    summary
        What became of the reads, counted.
    provenance
        How the rows were made.
    """

    table: pa.Table
    summary: ReadSummary
    provenance: Provenance

    def _table(self, rows: int | None) -> pa.Table:
        return self.table.slice(0, rows)


def annotate(
    reads: Any,
    *,
    germline: Germlines,
    mates: Any = None,
    settings: AnnotationSettings | None = None,
    device: str = "auto",
    threads: int | None = None,
    **limits: Any,
) -> Annotations:
    """Find V, D, J and the junction of every read.

    Parameters
    ----------
    reads
        Sequences (n,): str in a sequence, a NumPy array or an Arrow array, IUPAC letters of either case; or a
        `plait.formats.fastq.ReadBlock`, which has names and qualities too; or the path of a FASTQ or
        FASTA file as `pathlib.Path`. For what does not fit memory there is
        `plait.vdj.reads.annotate_files`.
    germline
        A germline set, the name or path of one, or several of them; each read is called in the set that it
        matches best.
    mates
        The second mate of each read, in the form of `reads`, as sequenced. Mates that overlap are merged; of
        others both count when alleles are chosen.
    settings
        Limits beyond which a read has a reason in the place of ``ok``.
    device
        ``"auto"`` (the first GPU that can be used, else the CPU), ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or
        ``"reference"`` (plain Python).
    threads
        CPU threads; all processors this process may use by default.
    **limits
        Fields of `AnnotationSettings` in the place of `settings`: ``max_error_rate=0.1`` and so on.

    Returns
    -------
    Annotations
        Rows in the order of the reads.

    Raises
    ------
    InvalidInput
        If an argument is wrong, a sequence holds what is no nucleotide code, or `mates` are not as many.
    FormatError
        If a file is not what it should be.
    TargetUnavailable
        If a GPU is asked for and cannot be used.

    Examples
    --------
    >>> from plait.vdj import annotate
    >>> v = "TCAGACATCTGTGTACTTCTGTGCCAGCAG"
    >>> j = "GAACAGTACTTCGGTCCCGGCACCAGGCTCACGGTTTTAG"
    >>> found = annotate([v + "TTGGGACTGGTAT" + j, "ACGTTGCAAG" * 5], germline="mouse_trb")
    >>> found.table["annotation_status"].to_pylist(), found.table["junction_aa"].to_pylist()
    (['ok', 'no_v'], ['CASSWDWYEQYF', None])
    """
    if settings is None:
        settings = AnnotationSettings(**limits)
    elif limits:
        raise InvalidInput("settings", found=f"also {', '.join(limits)}", expected="one or the other")
    annotator = ReadAnnotator(germlines_of(germline), settings=settings, device=device)
    executor = LocalExecutor(thread_count() if threads is None else threads)
    batches, summary = [], ReadSummary()
    with closing(
        executor.map(lambda pair: annotator.annotate(*pair), _counted(reads, mates, summary))
    ) as found:
        for rows, part in found:
            batches.append(rows)
            summary.merge(part)
    summary.rows = summary.sequences
    table = pa.Table.from_batches(batches, schema=annotator.schema)
    return Annotations(table=table, summary=summary, provenance=annotator.provenance)


spelled(annotate, AnnotationSettings)


def _counted(reads: Any, mates: Any, summary: ReadSummary) -> Iterator[tuple[ReadBlock, ReadBlock | None]]:
    for first, second in _blocks(reads, mates):
        summary.add_reads([first] if second is None else [first, second], reads=len(first))
        yield first, second


def _blocks(reads: Any, mates: Any) -> Iterator[tuple[ReadBlock, ReadBlock | None]]:
    """Reads and mates in blocks that do not depend on threads."""
    if _is_path(reads) or _is_path(mates):
        if not (_is_path(reads) and (mates is None or _is_path(mates))):
            raise InvalidInput("mates", found="a path beside sequences", expected="both of one form")
        with open_reads(reads, mates, block_reads=_BLOCK_READS) as files:
            for item in files:
                yield item.reads, item.mates
        return
    first = _block_of(reads, "reads")
    second = None if mates is None else _block_of(mates, "mates")
    if second is not None and len(second) != len(first):
        raise InvalidInput(
            "mates", found=f"{len(second)} for {len(first)} reads", expected="one for each read"
        )
    for start, end in _pieces(first.starts):
        part = slice_reads(first, start, end)
        yield part, None if second is None else slice_reads(second, start, end)


def _is_path(given: Any) -> bool:
    return isinstance(given, os.PathLike)


def _block_of(given: Any, what: str) -> ReadBlock:
    """Reads of any form but a path as a block."""
    if isinstance(given, ReadBlock):
        return given
    texts = _texts(given, what)
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=starts[1:])
    try:
        # A letter beyond ASCII becomes a question mark, which is refused as what it stands for would be.
        letters = np.frombuffer("".join(texts).encode("ascii", "replace"), np.uint8)
        names = [str(number) for number in range(len(texts))]
        raw = RawReads(what, 0, names, letters, starts, None, np.arange(1, len(texts) + 1))
        return checked_reads(raw)[0]
    except FormatError as error:
        raise InvalidInput(what, found=error.found, expected=error.expected, hint=error.hint) from None


def _texts(given: Any, what: str) -> list[str]:
    if isinstance(given, pa.Array | pa.ChunkedArray):
        given = given.to_pylist()
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise InvalidInput(
            what,
            found=repr(given)[:60],
            expected="sequences in a list or array, a ReadBlock, or a file as pathlib.Path",
        )
    found: list[Any] = list(given)
    for number, text in enumerate(found):
        if not isinstance(text, str):
            raise InvalidInput(what, found=f"{text!r:.60} at {number}", expected="sequences as text")
    return found


def _pieces(starts: np.ndarray[Any, np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    """First read and end of each block."""
    first, n = 0, starts.size - 1
    while first < n:
        last = int(np.searchsorted(starts, starts[first] + _BLOCK_BASES, "right")) - 1
        end = min(max(last, first + 1), first + _BLOCK_READS, n)
        yield first, end
        first = end
