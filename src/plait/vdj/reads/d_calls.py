"""The D of reads: its longest match between V and J, exact, and what is known of it.

All D alleles of a germline set are looked for at once: they are packed into words, a bit for each base.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.alphabets import MASK_SIZE
from plait.dp.chain.insertions import Occurrences, keep, start
from plait.dp.chain.tables import D_BITS
from plait.lang.compile import shared
from plait.lang.lanes import lowest_bit
from plait.vdj.chain import chain_tables
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.models import PathModel


class DWords(NamedTuple):
    """The D alleles of all germline sets, packed; int64.

    `places` (words, 16): bits of the bases that each mask matches; `word_starts` (sets + 1,): first word of
    each set; `allele_of`, `first_bit` (words, bits): D of its set that a bit belongs to, and the first bit of
    that D; `allowed_starts` (J alleles, words): bits from which the match of a D before a J may begin.
    """

    places: Any
    word_starts: Any
    allele_of: Any
    first_bit: Any
    allowed_starts: Any


class DCalls(NamedTuple):
    """The called D of each read, (n,): `allele`, its number in the germline set, -1 for none.

    `read_start`, `read_end` and `germline_start`: where the match lies, 0 without one; int32. `ties`, int64:
    bits of all D of the set that match as long.
    """

    allele: Any
    read_start: Any
    read_end: Any
    germline_start: Any
    ties: Any


@shared
def call_d(reads: Any, words: Any, masks: Any, least: int, group: int, i: int, out: Any) -> None:
    """Find the longest match with a D between V and J, the leftmost one of them, of `least` bases or more.

    `group` is the germline set; `out`, `DCalls` without a D so far, is changed in place.
    """
    base = reads.starts[i]
    end = reads.j.read_start[i]
    best = least
    for a in range(reads.v.read_end[i], end):
        if end - a < best:
            break
        for w in range(words.word_starts[group], words.word_starts[group + 1]):
            automaton = Occurrences(words.allowed_starts[reads.j.allele[i], w])
            alive = start(automaton)
            size = 0
            while a + size < end:
                after = keep(automaton, alive, words.places[w, masks[reads.letters[base + a + size]]], size)
                if after == 0:
                    break
                alive = after
                size += 1
            if size < best or size == 0:
                continue
            if size > best or out.allele[i] < 0:
                best = size
                out.ties[i] = 0
                bit = lowest_bit(alive)
                out.allele[i] = words.allele_of[w, bit]
                out.germline_start[i] = bit - words.first_bit[w, bit]
                out.read_start[i] = a
                out.read_end[i] = a + size
            while alive != 0:
                out.ties[i] = out.ties[i] | (1 << words.allele_of[w, lowest_bit(alive)])
                alive = alive & (alive - 1)


def d_words(germlines: Sequence[GermlineSet]) -> DWords:
    """The D alleles of germline sets; Unsupported for one of more than 62 bases, or more than 62 in a set."""
    words = [chain_tables(g, PathModel(pi=0, nu=0), g.chain).words for g in germlines]
    starts = np.cumsum([0, *(w.places.shape[0] for w in words)], dtype=np.int64)
    j = np.cumsum([0, *(len(g.j) for g in germlines)])
    allowed = np.zeros((int(j[-1]), int(starts[-1])), np.int64)
    first_bits = [np.zeros((0, D_BITS), np.int64)]
    for k, own in enumerate(words):
        allowed[j[k] : j[k + 1], starts[k] : starts[k + 1]] = own.allowed_starts
        if own.first.size:
            first_bits.append(own.first[own.d_of])
    places = np.concatenate([own.places for own in words]).reshape(-1, 16)
    # A base that is not known says nothing for a D allele.
    places[:, MASK_SIZE != 1] = 0
    allele_of = np.concatenate([own.d_of for own in words]).reshape(-1, D_BITS)
    return DWords(places, starts, allele_of, np.concatenate(first_bits), allowed)


def d_places(germlines: Sequence[GermlineSet], d: Sequence[Sequence[Allele]]) -> NDArray[np.int64]:
    """Places at which a match can begin in the D alleles that may join each J; (J alleles, longest D + 1).

    The column is the length of the match.
    """
    longest = max((len(allele.sequence) for own in d for allele in own), default=0)
    rows = []
    for germline, own in zip(germlines, d, strict=True):
        sizes = np.array([len(allele.sequence) for allele in own], np.int64)
        places = np.maximum(sizes[:, None] - np.arange(longest + 1) + 1, 0)
        rows += [np.array(germline.allowed_d(j)[: len(own)], np.int64) @ places for j in germline.j]
    return np.array(rows, np.int64).reshape(len(rows), longest + 1)


def d_names(calls: DCalls, groups: NDArray[np.int64], d: Sequence[Sequence[Allele]]) -> pa.Array:
    """Names of the D alleles with the longest match, that of the coordinates first.

    `groups` are the germline sets of the reads, `d` the alleles of each.
    """
    keys = np.stack([groups, calls.allele.astype(np.int64), calls.ties], axis=1)
    kinds, place = np.unique(keys, axis=0, return_inverse=True)
    names: list[str | None] = []
    for group, first, ties in kinds.tolist():
        others = [k for k in range(len(d[group])) if ties >> k & 1 and k != first]
        names.append(",".join(d[group][k].name for k in (first, *others)) if first >= 0 else None)
    return pa.array(names, pa.string()).take(pa.array(place.ravel()))
