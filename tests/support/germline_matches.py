"""Matches of reads with the germline, made by hand, for tests of what follows from them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.formats.fastq import ReadBlock
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.allele_alignment import Found, GermlineMatches, Paths
from plait.vdj.reads.columns import Groups

__all__ = ["Hit", "arrays_of", "make_matches", "read_block"]

_RUN = re.compile("([0-9]+)([MDI])")


class Hit(NamedTuple):
    """One alignment of a read.

    Attributes
    ----------
    read_start, germline_start
        Where it begins, 0-based.
    cigar
        Its runs: M pairs, D bases of the germline alone, I bases of the read alone.
    alleles
        Indices of the alleles it is given for; the coordinates are those of the first.
    support
        Expected number of alignments as good.
    """

    read_start: int
    germline_start: int
    cigar: str
    alleles: tuple[int, ...] = (0,)
    support: float = 1e-20


def read_block(reads: Sequence[str], quality: int | None = 40) -> ReadBlock:
    """Reads named r0, r1, ... whose bases all have one quality.

    Parameters
    ----------
    reads
        Their letters.
    quality
        Phred score; None for reads without qualities.
    """
    letters = np.frombuffer("".join(reads).encode(), np.uint8).copy()
    starts = np.cumsum([0, *(len(read) for read in reads)], dtype=np.int64)
    qualities = None if quality is None else np.full(letters.size, quality, np.uint8)
    return ReadBlock([f"r{k}" for k in range(len(reads))], letters, starts, qualities)


def make_matches(
    reads: ReadBlock,
    germlines: Sequence[GermlineSet],
    v: Sequence[Hit | None],
    j: Sequence[Hit | None],
    *,
    sets: Sequence[int] | None = None,
    mirrored: Sequence[bool] | None = None,
) -> GermlineMatches:
    """Matches of reads.

    Parameters
    ----------
    reads
        The reads, in the orientation of the genes.
    germlines
        The germline sets.
    v, j
        One alignment of each read, or None.
    sets
        Germline set of each read; by default the first, and -1 for reads without any alignment.
    mirrored
        Whether each read as given was the other strand; by default none.
    """
    n = len(reads)
    if sets is None:
        sets = [-1 if a is None and b is None else 0 for a, b in zip(v, j, strict=True)]
    return GermlineMatches(
        reads=reads,
        reversed=np.array([False] * n if mirrored is None else mirrored, np.bool_),
        germline=np.array(sets, np.int8),
        v=_segment(reads, [germlines[max(s, 0)].v for s in sets], v),
        j=_segment(reads, [germlines[max(s, 0)].j for s in sets], j),
    )


def _segment(reads: ReadBlock, alleles: Sequence[tuple[Allele, ...]], hits: Sequence[Hit | None]) -> Found:
    n = len(hits)
    # score, read_start, read_end, germline_start, germline_end, matches, mismatches
    facts = np.zeros((7, n), np.int32)
    support = np.full(n, np.inf)
    runs: list[tuple[int, int]] = []
    chosen: list[int] = []
    run_starts, allele_starts = [0], [0]
    for k, hit in enumerate(hits):
        if hit is not None:
            support[k] = hit.support
            chosen += hit.alleles
            read, germline = reads.sequence(k), alleles[k][hit.alleles[0]].sequence
            p, q, equal, other, gaps = hit.read_start, hit.germline_start, 0, 0, 0
            for number, kind in _RUN.findall(hit.cigar):
                length = int(number)
                runs.append(("MDI".index(kind), length))
                if kind == "M":
                    pairs = zip(read[p : p + length], germline[q : q + length], strict=True)
                    same = sum(a == b for a, b in pairs)
                    equal, other = equal + same, other + length - same
                else:
                    gaps += 1
                p += 0 if kind == "D" else length
                q += 0 if kind == "I" else length
            score = equal - other - 5 * gaps
            facts[:, k] = score, hit.read_start, p, hit.germline_start, q, equal, other
        run_starts.append(len(runs))
        allele_starts.append(len(chosen))
    scores, read_start, read_end, *rest = facts.astype(np.int64)
    paths = Paths(
        read_start, read_end, *rest, Groups(np.array(runs, np.int32).reshape(-1, 2), np.array(run_starts))
    )
    alleles_of = Groups(np.array(chosen, np.int64), np.array(allele_starts))
    return Found(np.arange(n), scores, support, np.zeros(n, np.int64), paths, alleles_of)


def arrays_of(found: Found) -> list[NDArray[Any]]:
    """All that alignments tell."""
    paths = found.paths
    lists = [array for own in (found.alleles, paths.runs) for array in (own.values, own.starts)]
    places = [found.read_start, found.read_end, paths.germline_start, paths.germline_end]
    return [found.scores, found.support, *lists, *places, paths.matches, paths.mismatches]
