"""One read for each molecule: reads with unique molecular identifiers (UMIs) become consensus reads.

In the kernels texts are reads, their partners mates, a bag the reads of one UMI, originals molecules.
"""

from __future__ import annotations

import functools
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput, in_range, whole_fields
from plait.formats.checkpoints import letters_of
from plait.formats.fastq import ReadBlock
from plait.formats.rearrangements import reblock
from plait.formats.sorted_runs import Direction, SortedRuns, SpilledBlocks, Spilling, run_starts, whole_runs
from plait.lang.compile import kernel, shared
from plait.vdj.clonotypes.error_clonotypes import Texts, find_parents
from plait.vdj.reads.columns import edges_of, owners, text_array

#: Code of a letter that is not known.
NO_LETTER = 4


class ScoredTexts(NamedTuple):
    """Texts over four letters, with a score for each letter: the higher, the surer.

    `codes`, uint8, are 0 to 3, or `NO_LETTER`; `starts`, int64 (n + 1,), are offsets into codes and scores.
    """

    codes: Any
    scores: Any
    starts: Any


class Likeness(NamedTuple):
    """When two texts are copies of one original.

    Letters below `least_score` are not compared; of those compared `most_different` thousandths may differ.
    One bag has `most_groups` originals; copies of further ones get none.
    """

    least_score: int
    most_different: int
    most_groups: int


class VoteRules(NamedTuple):
    """What the letters of copies weigh.

    `weights`, int64 (256,): by score. `odds`, int64, the last one 0: probability of a letter relative to the
    best one, by the difference of their weights. `thresholds`, int64, falling, in the same unit: for each
    score, the sum of such odds up to which the best letter has this score or a higher one.
    """

    weights: Any
    odds: Any
    thresholds: Any


class Votes(NamedTuple):
    """Memory for one original, from the caller, and what is found.

    `sums`, int64 (longest text, 4), and `cover`, (longest text,), are zeros, and again so afterwards. `codes`
    and `scores`, uint8, are the originals in the layout of `starts`, int64 (groups + 1,), room for the
    longest copy of each; `lengths`, int64 (groups,), are those of the originals.
    """

    sums: Any
    cover: Any
    codes: Any
    scores: Any
    starts: Any
    lengths: Any


@shared
def _compare(texts: Any, one: int, other: int, least_score: int) -> Any:
    """Letters of two texts that differ, that were compared, and that stand beside each other."""
    a = texts.starts[one]
    b = texts.starts[other]
    length = min(texts.starts[one + 1] - a, texts.starts[other + 1] - b)
    different = 0
    compared = 0
    for k in range(length):
        x = texts.codes[a + k]
        y = texts.codes[b + k]
        sure = texts.scores[a + k] >= least_score and texts.scores[b + k] >= least_score
        if sure and x != NO_LETTER and y != NO_LETTER:
            compared += 1
            different += 1 if x != y else 0
    return different, compared, length


@shared
def _alike(texts: Any, partners: Any, one: int, other: int, likeness: Any) -> Any:
    different, compared, length = _compare(texts, one, other, likeness.least_score)
    more_different, more_compared, more_length = _compare(partners, one, other, likeness.least_score)
    different += more_different
    compared += more_compared
    enough = compared > 0 and 2 * compared >= length + more_length
    return enough and 1000 * different <= likeness.most_different * compared


@kernel
def assign_texts(
    texts: Any, partners: Any, order: Any, bags: Any, likeness: Any, seeds: Any, groups: Any
) -> None:
    """Find for each text of a bag the first one before it that is no copy of another and that it is like.

    `partners` belong to `texts` and are compared, too. `order` has the texts as they are taken, bag by bag,
    with int64 (bags + 1,) offsets `bags`; `seeds`, int64 (most_groups,), is scratch. `groups`, int64 (n,), is
    filled: number of the original of each text, within its bag, -1 for none.
    """
    for bag in range(bags.size - 1):
        known = 0
        for place in range(bags[bag], bags[bag + 1]):
            text = order[place]
            group = 0
            while group < known and not _alike(texts, partners, seeds[group], text, likeness):
                group += 1
            if group == known and known < likeness.most_groups:
                seeds[known] = text
                known += 1
            groups[text] = group if group < known else -1


@shared
def _score(odds: int, rules: Any) -> int:
    """The highest score whose threshold is not below the odds."""
    low = 0
    high = rules.thresholds.size - 1
    while low < high:
        middle = (low + high + 1) // 2
        if odds <= rules.thresholds[middle]:
            low = middle
        else:
            high = middle - 1
    return low


@shared
def _decide(rules: Any, votes: Any, k: int, at: int) -> None:
    """Write a letter of the original, and clear its votes; equal votes decide nothing."""
    best = 0
    for c in range(1, 4):
        if votes.sums[k, c] > votes.sums[k, best]:
            best = c
    most = votes.sums[k, best]
    odds = 0
    equals = 0
    for c in range(4):
        if c != best:
            less = most - votes.sums[k, c]
            equals += 1 if less == 0 else 0
            odds += rules.odds[min(less, rules.odds.size - 1)]
    votes.codes[at] = best if equals == 0 else NO_LETTER
    votes.scores[at] = _score(odds, rules) if equals == 0 else 0
    for c in range(4):
        votes.sums[k, c] = 0


@kernel
def vote_groups(texts: Any, order: Any, edges: Any, rules: Any, votes: Any) -> None:
    """Find the original of each group of copies, which begin at the same place.

    The original is as long as at least half of its copies. `order` has the texts group by group, with
    int64 (groups + 1,) offsets `edges`.
    """
    for group in range(edges.size - 1):
        copies = edges[group + 1] - edges[group]
        for place in range(edges[group], edges[group + 1]):
            first = texts.starts[order[place]]
            for k in range(texts.starts[order[place] + 1] - first):
                votes.cover[k] += 1
                code = texts.codes[first + k]
                if code != NO_LETTER:
                    votes.sums[k, code] += rules.weights[texts.scores[first + k]]
        length = 0
        at = votes.starts[group]
        for k in range(votes.starts[group + 1] - at):
            if 2 * votes.cover[k] >= copies:
                length += 1
            votes.cover[k] = 0
            _decide(rules, votes, k, at + k)
        votes.lengths[group] = length


#: Phred score of bases that have none.
_UNKNOWN_QUALITY: Final = 30
#: Parts of a decibel in which evidence is counted: whole numbers, whose sums do not depend on the order.
_PARTS: Final = 100
_UNIT: Final = 1 << 40
_LETTERS: Final = np.frombuffer(b"ACGTN", np.uint8)
_CODES: Final = np.full(256, NO_LETTER, np.uint8)
_CODES[_LETTERS[:4]] = np.arange(4)

#: Reads that agree in these are copies of one molecule, or of a few by chance.
_MOLECULE: Final = ("repertoire", "cell", "umi")
#: Columns of molecules; letters and qualities as bytes, as in `plait.formats.fastq.ReadBlock`.
MOLECULE_SCHEMA: Final = pa.schema(
    [
        ("repertoire", pa.string()),
        ("cell", pa.string()),
        ("umi", pa.string()),
        ("number", pa.int64()),
        ("reads", pa.int64()),
        ("letters", pa.binary()),
        ("qualities", pa.binary()),
        ("mate_letters", pa.binary()),
        ("mate_qualities", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UmiSettings:
    """How reads with one UMI become molecules; InvalidInput if a value is out of range.

    Molecules with fewer than `min_reads` reads are left out. `max_mismatch`: share of bases in which a read
    may differ from the most frequent one of its molecule. Bases with a Phred score below `min_quality` are
    not compared; in the consensus they count as little as they are worth. `max_quality`: highest score of a
    consensus base, as errors made before sequencing are in all reads of a molecule. Reads with one UMI make
    `max_molecules`; further ones are left out.

    `memory_bytes` are those of reads that wait in memory; the peak is about ten times as much. `umi_ratio`:
    take a UMI for an erroneous copy of another one of the repertoire and cell that differs in one base and
    has at least so many times as many reads; None: take UMIs as they are.
    """

    min_reads: int = 1
    max_mismatch: float = 0.05
    min_quality: int = 15
    max_quality: int = 60
    max_molecules: int = 100
    memory_bytes: int = 16 << 20
    umi_ratio: float | None = None

    def __post_init__(self) -> None:
        whole_fields(self, "min_reads", "memory_bytes", least=1)
        in_range("max_mismatch", self.max_mismatch, 0, 1)
        whole_fields(self, "min_quality", most=93)
        whole_fields(self, "max_quality", least=1, most=93)
        whole_fields(self, "max_molecules", least=1, most=1 << 30)
        if self.umi_ratio is not None and not 1 < self.umi_ratio < math.inf:
            raise InvalidInput("umi_ratio", found=self.umi_ratio, expected="a number above 1, such as 10")


@dataclass(frozen=True, slots=True)
class Molecules:
    """Molecules in columns of `MOLECULE_SCHEMA`, by repertoire, cell, UMI and number.

    Reads in none of them are counted by reason.
    """

    rows: pa.RecordBatch
    too_few_reads: int
    too_many_molecules: int


def molecules_of(reads: pa.RecordBatch, settings: UmiSettings) -> Molecules:
    """Make one consensus of the reads of each molecule; the same whatever order the reads came in.

    Reads with one UMI are taken in the order of how frequent their sequence is (then of the alphabet). Each
    joins the first molecule whose first sequence it is like, or is the first of another molecule. `reads`
    have repertoire, cell, umi, letters, mate_letters, qualities and mate_qualities, in the order of these
    columns; UMIs whole.
    """
    first = _scored(reads["letters"], reads["qualities"])
    second = _scored(reads["mate_letters"], reads["mate_qualities"])
    umi_starts = run_starts(reads, _MOLECULE)
    umi_of = owners(umi_starts, reads.num_rows)
    heads = run_starts(reads, (*_MOLECULE, "letters", "mate_letters"))
    sequence_of = owners(heads, reads.num_rows)
    groups = _assigned(first, second, heads, umi_of, sequence_of, settings)[sequence_of]
    order = np.lexsort((groups, umi_of))
    left_out = int(np.count_nonzero(groups < 0))
    order = order[groups[order] >= 0]
    edges = np.flatnonzero(
        (np.diff(umi_of[order], prepend=-1) != 0) | (np.diff(groups[order], prepend=-1) != 0)
    )
    sizes = np.diff(np.append(edges, order.size))
    kept = sizes >= settings.min_reads
    chosen = order[np.repeat(kept, sizes)]
    bounds = edges_of(sizes[kept])
    some = pa.array(order[edges[kept]])
    columns = {name: reads[name].take(some) for name in _MOLECULE}
    columns["number"] = pa.array(groups[order[edges[kept]]] + 1)
    columns["reads"] = pa.array(sizes[kept])
    for prefix, texts in (("", first), ("mate_", second)):
        found = _consensus(texts, chosen, bounds, settings.max_quality)
        columns[f"{prefix}letters"], columns[f"{prefix}qualities"] = found
    rows = pa.record_batch([columns[name] for name in MOLECULE_SCHEMA.names], schema=MOLECULE_SCHEMA)
    return Molecules(rows, int(sizes[~kept].sum()), left_out)


def _scored(letters: pa.Array, qualities: pa.Array) -> ScoredTexts:
    flat, starts = letters_of(letters)
    scores = np.full(flat.size, _UNKNOWN_QUALITY, np.uint8)
    known = np.asarray(pc.not_equal(pc.binary_length(qualities), 0))
    scores[np.repeat(known, np.diff(starts))] = letters_of(qualities)[0]
    return ScoredTexts(_CODES[flat], scores, starts)


def _assigned(
    first: ScoredTexts,
    second: ScoredTexts,
    heads: NDArray[np.int64],
    umi_of: NDArray[np.int64],
    sequence_of: NDArray[np.int64],
    settings: UmiSettings,
) -> NDArray[np.int64]:
    """Molecule of each distinct sequence, counted within its UMI; -1 for one too many."""
    # Of equal sequences the one with the highest qualities stands for all: the last one in order.
    last = np.append(heads[1:], umi_of.size) - 1
    copies = np.bincount(sequence_of, minlength=heads.size)
    taken = np.lexsort((np.arange(heads.size), -copies, umi_of[heads]))
    bags = np.append(np.flatnonzero(np.diff(umi_of[heads][taken], prepend=-1)), heads.size)
    likeness = Likeness(
        settings.min_quality, round(1000 * settings.max_mismatch), min(settings.max_molecules, umi_of.size)
    )
    groups = np.full(umi_of.size, -1, np.int64)
    seeds = np.zeros(likeness.most_groups, np.int64)
    assign_texts(first, second, last[taken], bags, likeness, seeds, groups)
    found: NDArray[np.int64] = groups[last]
    return found


def _consensus(
    texts: ScoredTexts, order: NDArray[np.int64], edges: NDArray[np.int64], max_quality: int
) -> tuple[pa.Array, pa.Array]:
    """Letters and qualities of the consensus of each group of reads."""
    lengths = np.diff(texts.starts)[order]
    room = np.maximum.reduceat(lengths, edges[:-1]) if edges.size > 1 else np.zeros(0, np.int64)
    starts = edges_of(room)
    longest = int(room.max(initial=0))
    votes = Votes(
        np.zeros((longest, 4), np.int64),
        np.zeros(longest, np.int64),
        np.zeros(starts[-1], np.uint8),
        np.zeros(starts[-1], np.uint8),
        starts,
        np.zeros(room.size, np.int64),
    )
    vote_groups(texts, order, edges, _rules(max_quality), votes)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], room)
    used = within < np.repeat(votes.lengths, room)
    bounds = edges_of(votes.lengths)
    letters = text_array(_LETTERS[votes.codes[used]], bounds, kind=pa.binary())
    return letters, text_array(votes.scores[used], bounds, kind=pa.binary())


@functools.cache
def _rules(max_quality: int) -> VoteRules:
    """Votes by the logarithm of the likelihood ratio of the called base and another one.

    A base of Phred score q is right with probability 1 - e and each other one with e / 3, e = 10^(-q/10). The
    logarithms add up over reads; the posterior probability of the best base, all bases being equally likely
    before, is 1 / (1 + sum of 10^(-difference)). It is rounded to the nearest score.
    """
    weights = np.zeros(256, np.int64)
    for score in range(1, 94):
        error = 10 ** (-score / 10)
        weights[score] = max(0, round(_PARTS * 10 * math.log10(3 * (1 - error) / error)))
    odds = [round(_UNIT * 10 ** (-k / (10 * _PARTS))) for k in range(13 * 10 * _PARTS)]
    thresholds = [4 * _UNIT]
    for score in range(1, max_quality + 1):
        error = 10 ** (-(score - 0.5) / 10)
        thresholds.append(int(_UNIT * error / (1 - error)))
    return VoteRules(weights, np.array([*odds, 0], np.int64), np.array(thresholds, np.int64))


_KEY: Final = ("repertoire", "cell", "length", "umi")
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
        """Count the UMIs of reads, in columns repertoire, cell and umi."""
        counts = {
            "repertoire": reads["repertoire"],
            "cell": reads["cell"],
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
            groups = owners(run_starts(known, _KEY[:3]), known.num_rows)
            counts = known["reads"].to_numpy()
            parents = find_parents(Texts(letters, starts, groups, counts), self._ratio)
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
    """UMIs with their cells and repertoires."""
    return pc.binary_join_element_wise(rows["umi"], rows["cell"], rows["repertoire"], _SEPARATOR)


def _added(rows: pa.RecordBatch) -> pa.RecordBatch:
    """One row for each UMI of those in order."""
    starts = run_starts(rows, _KEY)
    columns = {name: rows[name].take(pa.array(starts)) for name in _KEY}
    return pa.record_batch(columns | {"reads": pa.array(np.add.reduceat(rows["reads"].to_numpy(), starts))})


_ORDER: Final[Mapping[str, Direction]] = {
    name: "ascending" for name in (*_MOLECULE, "letters", "mate_letters", "qualities", "mate_qualities")
}
#: Molecules of a block.
_BLOCK: Final = 8192


@dataclass(frozen=True, slots=True, eq=False)
class ConsensusReads:
    """Consensus reads of n molecules of one repertoire, and of their mates, if any.

    Names are made of the repertoire, the cell if known, the UMI and a number, since molecules can have the
    same UMI by chance. `cells` are empty where unknown; `counts`, int64 (n,), are the reads of each.
    """

    repertoire: str
    reads: ReadBlock
    mates: ReadBlock | None
    umis: list[str]
    cells: list[str]
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
        self,
        reads: ReadBlock,
        mates: ReadBlock | None,
        umis: Sequence[str],
        repertoire: str = "",
        cells: Sequence[str] | None = None,
    ) -> None:
        """Take reads without their UMIs, all beginning at the same place of their molecule.

        `mates` are as sequenced; `umis` in upper case, `cells` as they are called, both empty where there is
        none. Reads of different repertoires or cells are of different molecules. InvalidInput if there are
        not as many mates and UMIs as reads, or a repertoire has mates for some reads only; FormatError if
        reads cannot be put aside, for example on a full disk.
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
            "repertoire": pa.repeat(repertoire, n),
            "cell": pa.repeat("", n) if cells is None else pa.array(cells, pa.string()),
            "umi": names,
            **_columns(reads, ""),
            **_columns(mates or _nothing(n), "mate_"),
        }
        rows = pa.record_batch(columns).filter(pa.array(~absent & ~wrong))
        self._runs.add(rows)
        if self._corrector is not None:
            self._corrector.add(rows)

    def finish(self) -> Iterator[ConsensusReads]:
        """The molecules, by repertoire, cell and UMI, at most 8192 at a time; once, after the last `add`.

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
        for reads in whole_runs(self._runs.drain(), _MOLECULE):
            found = molecules_of(reads, self._settings)
            self._left_out["too_few_reads"] += found.too_few_reads
            self._left_out["too_many_molecules"] += found.too_many_molecules
            self._molecules += found.rows.num_rows
            yield found.rows

    def _block(self, rows: pa.RecordBatch) -> ConsensusReads:
        repertoire = rows["repertoire"][0].as_py()
        numbers = rows["number"].cast(pa.string())
        names = pc.binary_join_element_wise(rows["umi"], numbers, "-")
        known = pc.not_equal(rows["cell"], "")
        names = pc.if_else(known, pc.binary_join_element_wise(rows["cell"], names, ":"), names)
        if repertoire:
            names = pc.binary_join_element_wise(repertoire, names, ":")
        told = names.to_pylist()
        scored = repertoire in self._scored
        return ConsensusReads(
            repertoire=repertoire,
            reads=_read_block(told, rows, "", scored),
            mates=_read_block(told, rows, "mate_", scored) if self._paired[repertoire] else None,
            umis=rows["umi"].to_pylist(),
            cells=rows["cell"].to_pylist(),
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
