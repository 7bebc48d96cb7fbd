"""Molecules behind the reads of each UMI: who belongs together, and the consensus."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.formats.sorted_runs import run_starts
from plait.schedules.text_consensus import NO_LETTER, Likeness, ScoredTexts, VoteRules, Votes
from plait.targets.consensus_kernels import assign_kernel, vote_kernel
from plait.vdj.annotation.byte_columns import column_of, letters_of, owners

__all__ = ["MOLECULE_SCHEMA", "Molecules", "UmiSettings", "molecules_of"]

#: Phred score of bases that have none.
_UNKNOWN_QUALITY: Final = 30
#: Parts of a decibel in which evidence is counted: whole numbers, whose sums do not depend on the order.
_PARTS: Final = 100
_UNIT: Final = 1 << 40
_LETTERS: Final = np.frombuffer(b"ACGTN", np.uint8)
_CODES: Final = np.full(256, NO_LETTER, np.uint8)
_CODES[_LETTERS[:4]] = np.arange(4)

#: Columns of molecules; letters and qualities as bytes, as in `plait.formats.read_block.ReadBlock`.
MOLECULE_SCHEMA: Final = pa.schema(
    [
        ("repertoire", pa.string()),
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
    """How reads with one UMI become molecules.

    Attributes
    ----------
    min_reads
        Molecules with fewer reads are left out.
    max_mismatch
        Share of bases in which a read may differ from the most frequent one of its molecule.
    min_quality
        Bases with a lower Phred score are not compared; in the consensus they count as little as they are
        worth.
    max_quality
        Highest Phred score of a consensus base: errors made before sequencing are in all reads of a molecule.
    max_molecules
        Molecules that reads with one UMI can come from; reads of further ones are left out.
    memory_bytes
        Bytes of reads that wait in memory; the peak is about ten times as much.
    umi_ratio
        Take a UMI for an erroneous copy of another one of the repertoire that differs in one base and has at
        least so many times as many reads. None: take UMIs as they are.

    Raises
    ------
    InvalidInput
        If a value is out of range.
    """

    min_reads: int = 1
    max_mismatch: float = 0.05
    min_quality: int = 15
    max_quality: int = 60
    max_molecules: int = 100
    memory_bytes: int = 16 << 20
    umi_ratio: float | None = None

    def __post_init__(self) -> None:
        for name, least, most in (
            ("min_reads", 1, math.inf),
            ("max_mismatch", 0, 1),
            ("min_quality", 0, 93),
            ("max_quality", 1, 93),
            ("max_molecules", 1, 1 << 30),
            ("memory_bytes", 1, math.inf),
        ):
            value = getattr(self, name)
            if not least <= value <= most:
                wanted = f"at least {least}" if most == math.inf else f"{least} to {most}"
                raise InvalidInput(name, found=value, expected=wanted)
        if self.umi_ratio is not None and not 1 < self.umi_ratio < math.inf:
            raise InvalidInput("umi_ratio", found=self.umi_ratio, expected="a number above 1, such as 10")


@dataclass(frozen=True, slots=True)
class Molecules:
    """What became of some reads.

    Attributes
    ----------
    rows
        Molecules in columns of `MOLECULE_SCHEMA`, by repertoire, UMI and number.
    too_few_reads, too_many_molecules
        Reads that are in none of them, by reason.
    """

    rows: pa.RecordBatch
    too_few_reads: int
    too_many_molecules: int


def molecules_of(reads: pa.RecordBatch, settings: UmiSettings) -> Molecules:
    """Make one consensus of the reads of each molecule.

    Reads with one UMI are taken in the order of how frequent their sequence is (then of the alphabet). Each
    joins the first molecule whose first sequence it is like, or is the first of another molecule.

    Parameters
    ----------
    reads
        Rows with repertoire, umi, letters, mate_letters, qualities and mate_qualities, in the order of these
        columns; UMIs whole.
    settings
        What is alike.

    Returns
    -------
    Molecules
        The same for the same reads, whatever order they came in.
    """
    first = _scored(reads["letters"], reads["qualities"])
    second = _scored(reads["mate_letters"], reads["mate_qualities"])
    umi_starts = run_starts(reads, ("repertoire", "umi"))
    umi_of = owners(umi_starts, reads.num_rows)
    heads = run_starts(reads, ("repertoire", "umi", "letters", "mate_letters"))
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
    bounds = np.concatenate(([0], np.cumsum(sizes[kept])))
    some = pa.array(order[edges[kept]])
    columns = {name: reads[name].take(some) for name in ("repertoire", "umi")}
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
    assign_kernel(first, second, last[taken], bags, likeness, seeds, groups)
    found: NDArray[np.int64] = groups[last]
    return found


def _consensus(
    texts: ScoredTexts, order: NDArray[np.int64], edges: NDArray[np.int64], max_quality: int
) -> tuple[pa.Array, pa.Array]:
    """Letters and qualities of the consensus of each group of reads."""
    lengths = np.diff(texts.starts)[order]
    room = np.maximum.reduceat(lengths, edges[:-1]) if edges.size > 1 else np.zeros(0, np.int64)
    starts = np.concatenate(([0], np.cumsum(room)))
    longest = int(room.max(initial=0))
    votes = Votes(
        np.zeros((longest, 4), np.int64),
        np.zeros(longest, np.int64),
        np.zeros(starts[-1], np.uint8),
        np.zeros(starts[-1], np.uint8),
        starts,
        np.zeros(room.size, np.int64),
    )
    vote_kernel(texts, order, edges, _rules(max_quality), votes)
    within = np.arange(starts[-1]) - np.repeat(starts[:-1], room)
    used = within < np.repeat(votes.lengths, room)
    bounds = np.concatenate(([0], np.cumsum(votes.lengths)))
    letters = column_of(_LETTERS[votes.codes[used]], bounds, pa.binary())
    return letters, column_of(votes.scores[used], bounds, pa.binary())


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
