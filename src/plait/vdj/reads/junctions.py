"""Where V, D, J and the junction lie in reads: V and J cut where they overlap, and what is between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.alphabets import COMPLEMENT_MASK
from plait.errors import Unsupported
from plait.lang.compile import kernel, shared
from plait.vdj.germline import Allele, GermlineSet
from plait.vdj.reads.allele_alignment import Found, GermlineMatches
from plait.vdj.reads.columns import (
    ALONE,
    CROSSED,
    NO_QUALITY,
    ORDERED,
    Alleles,
    MatchedReads,
    Matches,
    amino_acid_at,
    codons,
    edges_of,
)
from plait.vdj.reads.gene_calls import DCalls, call_d, d_places, d_words

#: A codon that reads as this ends everything.
_STOP = ord("*")


class LayoutTables(NamedTuple):
    """What decides how reads are laid out.

    `codons` are `plait.vdj.reads.columns.Codons`, `mirror` (uint8 (16,)) the mask of the complement, `d`
    `plait.vdj.reads.gene_calls.DWords`; `d_alleles` are all D alleles, with those of each set from `d_first`,
    int64 (sets + 1,), on. `furthest`: how far from its match an anchor may lie. `least_d`: bases that a D
    needs to be called. `most_p`: longest palindromic extension of an end.
    """

    codons: Any
    mirror: Any
    d: Any
    d_alleles: Any
    d_first: Any
    furthest: Any
    least_d: Any
    most_p: Any


class SegmentLayout(NamedTuple):
    """Of the alignment of each read with V, or J, int32 (n,): `columns` and `equal` pairs.

    `shifted`: whether the gaps before the junction (V), or behind it (J), shift its codons.
    """

    columns: Any
    equal: Any
    shifted: Any


class Layout(NamedTuple):
    """What is found of each read; int32 (n,) each, changed in place; zeros at first, junctions and D -1.

    `v` and `j` are `SegmentLayout`, `d` are `DCalls`. `compared` and `errors`: pairs outside the junction
    that tell, and those that differ, with the gaps there. The junction lies from the anchor of V to the end
    of the codon at that of J; -1 where unknown. `stops`: stop codons in the frame of the junction, from the
    start of V (of the junction if V is shifted) to the end of J. `worst`: least quality in the junction.
    `v_p`, `d_p_left`, `d_p_right`, `j_p` count palindromic bases next to an untrimmed end.
    """

    v: Any
    j: Any
    d: Any
    compared: Any
    errors: Any
    junction_start: Any
    junction_end: Any
    stops: Any
    worst: Any
    v_p: Any
    d_p_left: Any
    d_p_right: Any
    j_p: Any


@shared
def best_cut(reads: Any, i: int, first: int, last: int, marks: Any) -> int:
    """Place in [first, last] with most equal pairs of V before it and of J from it on; the last one."""
    mark_equal(reads, reads.v, i, first, last, marks[0])
    mark_equal(reads, reads.j, i, first, last, marks[1])
    gained = 0
    most = 0
    cut = first
    for k in range(last - first):
        gained += int(marks[0, k]) - int(marks[1, k])
        if gained >= most:
            most = gained
            cut = first + k + 1
    return cut


@shared
def mark_equal(reads: Any, match: Any, i: int, first: int, last: int, marks: Any) -> None:
    """Mark the bases of [first, last) that are paired with an equal one."""
    for k in range(last - first):
        marks[k] = 0
    base = reads.starts[i]
    p = match.read_start[i]
    q = match.alleles.starts[match.allele[i]] + match.germline_start[i]
    for r in range(match.run_starts[i], match.run_starts[i + 1]):
        kind = match.runs[r, 0]
        length = match.runs[r, 1]
        if kind == 0:
            for k in range(max(0, first - p), min(length, last - p)):
                if reads.letters[base + p + k] == match.alleles.letters[q + k]:
                    marks[p + k - first] = 1
        p += 0 if kind == 1 else length
        q += 0 if kind == 2 else length


@shared
def copy_match(source: Any, i: int, out: Any, used: int) -> int:
    """Copy the match of a read; returns how many runs are used then."""
    out.allele[i] = source.allele[i]
    out.read_start[i] = source.read_start[i]
    out.read_end[i] = source.read_end[i]
    out.germline_start[i] = source.germline_start[i]
    out.germline_end[i] = source.germline_end[i]
    for r in range(source.run_starts[i], source.run_starts[i + 1]):
        out.runs[used, 0] = source.runs[r, 0]
        out.runs[used, 1] = source.runs[r, 1]
        used += 1
    return used


@shared
def copy_v(reads: Any, i: int, cut: int, out: Any, used: int) -> int:
    """Copy what of V lies before a place and ends with an equal pair; returns how many runs are used."""
    v = reads.v
    copy_match(v, i, out, used)
    base = reads.starts[i]
    allele = v.alleles.starts[v.allele[i]]
    p = v.read_start[i]
    q = v.germline_start[i]
    kept = 0
    last = 0
    for r in range(v.run_starts[i], v.run_starts[i + 1]):
        length = v.runs[r, 1]
        if v.runs[r, 0] == 0:
            k = min(length, cut - p)
            while k > 0 and reads.letters[base + p + k - 1] != v.alleles.letters[allele + q + k - 1]:
                k -= 1
            if k > 0:
                kept = r + 1 - v.run_starts[i]
                last = k
                out.read_end[i] = p + k
                out.germline_end[i] = q + k
        p += 0 if v.runs[r, 0] == 1 else length
        q += 0 if v.runs[r, 0] == 2 else length
    if kept > 0:
        out.runs[used + kept - 1, 1] = last
    return used + kept


@shared
def copy_j(reads: Any, i: int, cut: int, out: Any, used: int) -> int:
    """Copy what of J lies behind a place and begins with an equal pair; returns how many runs are used."""
    j = reads.j
    base = reads.starts[i]
    p = j.read_start[i]
    q = j.germline_start[i]
    allele = j.alleles.starts[j.allele[i]]
    out.allele[i] = j.allele[i]
    out.read_end[i] = j.read_end[i]
    out.germline_end[i] = j.germline_end[i]
    found = False
    for r in range(j.run_starts[i], j.run_starts[i + 1]):
        kind = j.runs[r, 0]
        length = j.runs[r, 1]
        k = 0
        if kind == 0 and not found:
            k = max(0, cut - p)
            while k < length and reads.letters[base + p + k] != j.alleles.letters[allele + q + k]:
                k += 1
            if k < length:
                found = True
                out.read_start[i] = p + k
                out.germline_start[i] = q + k
        if found:
            out.runs[used, 0] = kind
            out.runs[used, 1] = length - k
            used += 1
        p += 0 if kind == 1 else length
        q += 0 if kind == 2 else length
    return used


@shared
def cut_overlap(reads: Any, i: int, marks: Any, out: Any) -> int:
    """Copy the matches of a read to `out`, cut where they overlap; returns how they lie, `ORDERED` or so."""
    v = reads.v
    j = reads.j
    v_used = out.v.run_starts[i]
    j_used = out.j.run_starts[i]
    order = ALONE
    if v.allele[i] >= 0 and j.allele[i] >= 0:
        order = CROSSED
        first = j.read_start[i]
        last = v.read_end[i]
        if v.read_start[i] <= first and last <= j.read_end[i]:
            order = ORDERED
            if first < last:
                cut = best_cut(reads, i, first, last, marks)
                v_end = copy_v(reads, i, cut, out.v, v_used)
                j_end = copy_j(reads, i, cut, out.j, j_used)
                if v_end > v_used and j_end > j_used:
                    out.v.run_starts[i + 1] = v_end
                    out.j.run_starts[i + 1] = j_end
                    return ORDERED
                order = CROSSED
    out.v.run_starts[i + 1] = copy_match(v, i, out.v, v_used)
    out.j.run_starts[i + 1] = copy_match(j, i, out.j, j_used)
    return order


@kernel
def find_parts(
    given: Any, qualities: Any, groups: Any, tables: Any, marks: Any, reads: Any, order: Any, out: Any
) -> None:
    """Find the parts of all reads.

    `given` and `reads` are `MatchedReads`, the matches of `reads` to be filled with those of `given`, cut
    where they overlap. `qualities`: uint8, a number for each letter, or none at all; `groups`, int64 (n,):
    germline sets; `marks`, uint8 (2, longest read), is scratch. To be filled: `order`, uint8 (n,), with
    `ALONE`, `ORDERED` or `CROSSED`, and `out`, the `Layout`.
    """
    for i in range(order.size):
        order[i] = cut_overlap(given, i, marks, reads)
        if order[i] == ORDERED:
            find_junction(reads, i, tables.furthest, out)
        lay_out(reads, qualities, tables, i, out)
        if order[i] == ORDERED:
            begin, end = reads.v.read_end[i], reads.j.read_start[i]
            call_d(reads, tables.d, tables.codons.masks, tables.least_d, groups[i], i, begin, end, out.d)
            count_palindromes(reads, tables, groups[i], i, out)


@shared
def lay_out(reads: Any, qualities: Any, tables: Any, i: int, out: Any) -> None:
    """Compare a read with its V and J, and look at its junction, if that is known."""
    known = out.junction_start[i] >= 0
    size = reads.starts[i + 1] - reads.starts[i]
    low = int(out.junction_start[i] if known else size)
    high = int(out.junction_end[i] if known else size)
    find_shifts(reads, i, known, out)
    tally(reads, reads.v, tables.codons.masks, i, low, high, out.v, out)
    tally(reads, reads.j, tables.codons.masks, i, low, high, out.j, out)
    out.worst[i] = NO_QUALITY
    if known:
        first = low if out.v.shifted[i] else reads.v.read_start[i]
        out.stops[i] = count_stops(reads, tables.codons, i, low, first, reads.j.read_end[i])
        if qualities.size > 0:
            for k in range(reads.starts[i] + low, reads.starts[i] + high):
                out.worst[i] = min(out.worst[i], qualities[k])


@shared
def place_of(match: Any, i: int, q: int, after: int) -> int:
    """Place in the read of base q of the allele, plus `after` where the read has that base."""
    if q < match.germline_start[i]:
        return int(match.read_start[i] - (match.germline_start[i] - q) + after)
    if q >= match.germline_end[i]:
        return int(match.read_end[i] + (q - match.germline_end[i]) + after)
    p: int = match.read_start[i]
    left: int = q - match.germline_start[i]
    for r in range(match.run_starts[i], match.run_starts[i + 1]):
        kind = match.runs[r, 0]
        length = match.runs[r, 1]
        if kind == 2:
            p += length
        elif left < length:
            return p + left + after if kind == 0 else p
        else:
            p += length if kind == 0 else 0
            left -= length
    return p


@shared
def find_junction(reads: Any, i: int, furthest: int, out: Any) -> None:
    """Map the two anchors to the read, if they are no more than `furthest` outside of the matches."""
    v = reads.v
    j = reads.j
    left = v.alleles.anchors[v.allele[i]]
    right = j.alleles.anchors[j.allele[i]]
    if left < 0 or right < 0:
        return
    missed_left = max(v.germline_start[i] - left, left + 3 - v.germline_end[i])
    missed_right = max(j.germline_start[i] - right, right + 3 - j.germline_end[i])
    if max(missed_left, missed_right) > furthest:
        return
    begin = place_of(v, i, left, 0)
    end = place_of(j, i, right + 2, 1)
    if begin >= 0 and end <= reads.starts[i + 1] - reads.starts[i] and end - begin >= 6:
        out.junction_start[i] = begin
        out.junction_end[i] = end


@shared
def find_shifts(reads: Any, i: int, known: bool, out: Any) -> None:
    """Whether start and junction, and junction and end, have different frames in read and allele."""
    v = reads.v
    j = reads.j
    if v.allele[i] >= 0:
        p = int(out.junction_start[i] if known else v.read_end[i])
        q = int(v.alleles.anchors[v.allele[i]] if known else v.germline_end[i])
        shift = (p - v.read_start[i]) - (q - v.germline_start[i])
        out.v.shifted[i] = 1 if shift % 3 != 0 else 0
    if j.allele[i] >= 0:
        p = int(out.junction_end[i] if known else j.read_start[i])
        q = int(j.alleles.anchors[j.allele[i]] + 3 if known else j.germline_start[i])
        shift = (j.read_end[i] - p) - (j.germline_end[i] - q)
        out.j.shifted[i] = 1 if shift % 3 != 0 else 0


@shared
def tally(reads: Any, match: Any, masks: Any, i: int, low: int, high: int, own: Any, out: Any) -> None:
    """Count columns and equal pairs, and outside of [low, high) the pairs that tell, differences and gaps."""
    if match.allele[i] < 0:
        return
    base = reads.starts[i]
    p = match.read_start[i]
    q = match.alleles.starts[match.allele[i]] + match.germline_start[i]
    columns = 0
    same = 0
    compared = 0
    errors = 0
    for r in range(match.run_starts[i], match.run_starts[i + 1]):
        kind = match.runs[r, 0]
        length = match.runs[r, 1]
        columns += length
        if kind != 0:
            errors += 1 if p < low or p >= high else 0
        else:
            text = reads.letters[base + p : base + p + length]
            allele = match.alleles.letters[q : q + length]
            for k in range(text.size):
                a = text[k]
                b = allele[k]
                outside = p + k < low or p + k >= high
                if a == b:
                    same += 1
                    compared += 1 if outside else 0
                elif (masks[a] & masks[b]) == 0 and outside:
                    compared += 1
                    errors += 1
        p += 0 if kind == 1 else length
        q += 0 if kind == 2 else length
    own.columns[i] = columns
    own.equal[i] = same
    out.compared[i] += compared
    out.errors[i] += errors


@shared
def count_stops(reads: Any, codons: Any, i: int, anchor: int, first: int, last: int) -> int:
    """Stops among the whole codons of [first, last) in the frame of the anchor."""
    stops = 0
    for p in range(first + (anchor - first) % 3, last - 2, 3):
        stops += 1 if amino_acid_at(reads.letters, reads.starts[i] + p, codons) == _STOP else 0
    return stops


@shared
def count_palindromes(reads: Any, tables: Any, group: int, i: int, out: Any) -> None:
    """Count the P nucleotides next to ends that are not trimmed: those of V and J before those of D."""
    v = reads.v
    j = reads.j
    base = reads.starts[i]
    begin = base + v.read_end[i]
    end = base + j.read_start[i]
    called = out.d.allele[i] >= 0
    left = base + out.d.read_start[i] if called else end
    v_end = v.alleles.starts[v.allele[i] + 1]
    if v.alleles.starts[v.allele[i]] + v.germline_end[i] == v_end:
        out.v_p[i] = palindrome(reads, begin, 1, left - begin, v.alleles, v_end - 1, tables)
        begin += out.v_p[i]
    right = base + out.d.read_end[i] if called else begin
    if j.germline_start[i] == 0:
        j_start = j.alleles.starts[j.allele[i]]
        out.j_p[i] = palindrome(reads, end - 1, -1, end - right, j.alleles, j_start, tables)
        end -= out.j_p[i]
    if called:
        number = tables.d_first[group] + out.d.allele[i]
        d_start = tables.d_alleles.starts[number]
        d_end = tables.d_alleles.starts[number + 1]
        if out.d.germline_start[i] == 0:
            out.d_p_left[i] = palindrome(reads, left - 1, -1, left - begin, tables.d_alleles, d_start, tables)
        if d_start + out.d.germline_start[i] + right - left == d_end:
            out.d_p_right[i] = palindrome(reads, right, 1, end - right, tables.d_alleles, d_end - 1, tables)


@shared
def palindrome(reads: Any, p: int, step: int, room: int, alleles: Any, q: int, tables: Any) -> int:
    """Bases of a read from p on, in a direction, that mirror those of an allele from q on, in the other."""
    masks = tables.codons.masks
    n = 0
    most = min(room, tables.most_p)
    while n < most:
        mask = masks[reads.letters[p + step * n]]
        if (mask & (mask - 1)) != 0 or (mask & tables.mirror[masks[alleles.letters[q - step * n]]]) == 0:
            break
        n += 1
    return n


#: Regions of a V: FWR1, CDR1, FWR2, CDR2, FWR3.
REGIONS = ("fwr1", "cdr1", "fwr2", "cdr2", "fwr3")
#: Bases of a C gene that are compared, and the least score of one, a mismatch being -1.
_MOST_C, _LEAST_C = 120, 8
#: Expected number of chance matches as long as a second D, at most.
_MOST_D2 = 0.01


class RegionTables(NamedTuple):
    """What decides regions, mutations, C genes and second D.

    `starts`, int64 (V alleles, 6): where each of `REGIONS` begins, and the end of the last; -1 if not known.
    `c` are all C alleles, those of a germline set from `c_first`, int64 (sets + 1,), on; `c_gene`, int64, is
    the number of the gene of each in its set. `least_d2`, int64 (J alleles, longest room + 1): bases that a
    second D needs, by the room for it.
    """

    starts: Any
    c: Any
    c_first: Any
    c_gene: Any
    least_d2: Any


class Regions(NamedTuple):
    """What is found, changed in place; int32 but for `c_ties`, zeros at first but for `c` and D, -1.

    `begin`, `end`, `skip` (n, 5): the aligned part of each of `REGIONS` in the read, empty if there is none,
    and bases before its first whole codon. `replaced`, `silent` (n, 5): differences that change the amino
    acid of the germline's codon, each by itself, and that do not. `d` are second D, `DCalls`; `c` is the
    first of the C genes that fit best, `c_ties` (int64) has the bits of all.
    """

    begin: Any
    end: Any
    skip: Any
    replaced: Any
    silent: Any
    d: Any
    c: Any
    c_ties: Any


@kernel
def find_regions(reads: Any, groups: Any, tables: Any, regions: Any, layout: Any, out: Any) -> None:
    """Find the regions of all reads, see `Regions`; `layout` is what `find_parts` has found."""
    for i in range(groups.size):
        if reads.v.allele[i] >= 0 and regions.starts[reads.v.allele[i], 1] >= 0:
            delineate(reads, regions.starts, layout, i, out)
            count_mutations(reads, tables.codons, regions.starts, i, out)
        if reads.j.allele[i] >= 0:
            call_c(reads, regions, groups[i], i, out)
        if layout.d.allele[i] >= 0:
            begin, end = reads.v.read_end[i], reads.j.read_start[i]
            for side in range(2):
                first = layout.d.read_end[i] if side == 1 else begin
                last = end if side == 1 else layout.d.read_start[i]
                room = min(last - first, regions.least_d2.shape[1] - 1)
                least = max(
                    regions.least_d2[reads.j.allele[i], room], out.d.read_end[i] - out.d.read_start[i] + 1
                )
                call_d(reads, tables.d, tables.codons.masks, least, groups[i], i, first, last, out.d)


@shared
def delineate(reads: Any, starts: Any, layout: Any, i: int, out: Any) -> None:
    """Map the regions of the V allele to the read, as far as they are aligned."""
    v = reads.v
    number = v.allele[i]
    for k in range(5):
        begin = max(starts[number, k], v.germline_start[i])
        end = min(starts[number, k + 1], v.germline_end[i])
        if begin < end:
            out.begin[i, k] = place_of(v, i, begin, 0)
            out.end[i, k] = place_of(v, i, end - 1, 1)
            if k == 4 and layout.junction_start[i] >= 0:
                # The codon of the anchor may lie outside of the alignment.
                out.end[i, k] = layout.junction_start[i] + 3
            out.skip[i, k] = (starts[number, 5] - begin) % 3


@shared
def count_mutations(reads: Any, codons: Any, starts: Any, i: int, out: Any) -> None:
    """Count differences in whole germline codons without gaps, up to the anchor."""
    v = reads.v
    number = v.allele[i]
    allele = v.alleles.starts[number]
    p = reads.starts[i] + v.read_start[i]
    q = v.germline_start[i]
    for r in range(v.run_starts[i], v.run_starts[i + 1]):
        length = v.runs[r, 1]
        if v.runs[r, 0] == 0:
            first = (starts[number, 5] - q) % 3
            last = min(length, starts[number, 5] - q)
            for k in range(first, last - 2, 3):
                count_codon(reads, codons, starts, number, i, p + k, allele, q + k, out)
        p += 0 if v.runs[r, 0] == 1 else length
        q += 0 if v.runs[r, 0] == 2 else length


@shared
def count_codon(
    reads: Any, codons: Any, starts: Any, number: int, i: int, p: int, allele: int, q: int, out: Any
) -> None:
    """Count the differences of a codon of the read, at p, from that of the allele, at q."""
    letters = reads.v.alleles.letters
    region = 0
    while region < 4 and q >= starts[number, region + 1]:
        region += 1
    for k in range(3):
        mask = codons.masks[reads.letters[p + k]]
        own = codons.masks[letters[allele + q + k]]
        if mask & own != 0 or mask & (mask - 1) != 0 or own & (own - 1) != 0:
            continue
        code = 0
        changed = 0
        for place in range(3):
            base = int(codons.masks[letters[allele + q + place]])
            code = (code << 4) | base
            changed = (changed << 4) | (int(mask) if place == k else base)
        if codons.amino_acids[code] == codons.amino_acids[changed]:
            out.silent[i, region] += 1
        else:
            out.replaced[i, region] += 1


@shared
def call_c(reads: Any, regions: Any, group: int, i: int, out: Any) -> None:
    """Find the C genes whose first bases fit best behind the J; the J ends where its allele does."""
    j = reads.j
    size = j.alleles.starts[j.allele[i] + 1] - j.alleles.starts[j.allele[i]]
    first = reads.starts[i] + j.read_end[i] + size - j.germline_end[i]
    room = min(reads.starts[i + 1] - first, _MOST_C)
    most = _LEAST_C
    for allele in range(regions.c_first[group], regions.c_first[group + 1]):
        start = regions.c.starts[allele]
        score = 0
        best = 0
        for k in range(min(room, regions.c.starts[allele + 1] - start)):
            score += 1 if reads.letters[first + k] == regions.c.letters[start + k] else -1
            best = max(best, score)
        if best > most or (best == most and out.c[i] < 0):
            most = best
            out.c[i] = regions.c_gene[allele]
            out.c_ties[i] = 0
        if best == most:
            out.c_ties[i] = out.c_ties[i] | (1 << regions.c_gene[allele])


def region_tables(
    germlines: Sequence[GermlineSet], places: NDArray[np.int64], delineated: bool
) -> RegionTables:
    """Tables of several germline sets; Unsupported if one has more than 62 C genes.

    `places` as of `plait.vdj.reads.gene_calls.d_places`. Unless `delineated`, V alleles have no regions.
    """
    starts = []
    for allele in (allele for germline in germlines for allele in germline.v):
        known = delineated and allele.regions is not None and allele.anchor is not None
        starts.append((0, *(allele.regions or ()), (allele.anchor or 0) + 3) if known else (-1,) * 6)
    genes = [c_genes(germline) for germline in germlines]
    if (most := max(map(len, genes), default=0)) > _MOST_GENES:
        raise Unsupported(f"{most} C genes", why=f"a germline set has {_MOST_GENES} at most")
    c = _segment([germline.c for germline in germlines])
    numbers = [
        own.index(allele.gene)
        for own, germline in zip(genes, germlines, strict=True)
        for allele in germline.c
    ]
    # By the room for a match: of each length so many places, in the read and in the alleles.
    room, length = np.arange(_MOST_ROOM + 1)[:, None], np.arange(places.shape[1])
    chances = np.maximum(room - length + 1, 0) * places[:, None, :] * 0.25**length
    least = np.where(chances > _MOST_D2, length + 1, 1).max(axis=2, initial=1)
    return RegionTables(
        np.array(starts, np.int64).reshape(-1, 6), c.bases, c.first, np.array(numbers, np.int64), least
    )


#: Bits of a number, and the longest part beside a D that is told from longer ones.
_MOST_GENES, _MOST_ROOM = 62, 100


def c_genes(germline: GermlineSet) -> list[str]:
    """C genes of a germline set, each once, in order."""
    return list(dict.fromkeys(allele.gene for allele in germline.c))


def regions_of(parts: JoinedReads, tables: GermlineTables, regions: RegionTables) -> Regions:
    """Regions, mutations, second D and C genes of reads."""
    n = parts.groups.size
    begin, end, skip, replaced, silent = np.zeros((5, n, 5), np.int32)
    c, ties = np.full(n, -1, np.int32), np.zeros(n, np.int64)
    out = Regions(begin, end, skip, replaced, silent, _empty_layout(n).d, c, ties)
    find_regions(parts.reads, parts.groups, tables.layout, regions, parts.layout, out)
    return out


class SegmentTable(NamedTuple):
    """The `alleles` of one segment, of each germline set.

    `bases` are those of all sets, those of a set from `first`, int64 (sets + 1,), on. `names` (uint8) of all
    have offsets `name_starts`, int64 (alleles + 1,).
    """

    alleles: tuple[tuple[Allele, ...], ...]
    bases: Alleles
    first: NDArray[np.int64]
    names: NDArray[np.uint8]
    name_starts: NDArray[np.int64]


class GermlineTables(NamedTuple):
    """What annotation needs to know of its germline sets; no D alleles of sets whose chain has none.

    `d_places` as of `plait.vdj.reads.gene_calls.d_places`.
    """

    v: SegmentTable
    d: SegmentTable
    j: SegmentTable
    layout: LayoutTables
    loci: tuple[str, ...]
    d_places: NDArray[np.int64]


def germline_tables(
    germlines: Sequence[GermlineSet], *, furthest: int, least_d: int, most_p: int
) -> GermlineTables:
    """Tables of several germline sets, with the limits of `LayoutTables`.

    Unsupported if a D allele is longer than 62 bases, or a set has more than 62 of them.
    """
    d = _segment([() if g.chain == "vj" else g.d for g in germlines])
    layout = LayoutTables(
        codons=codons(),
        mirror=COMPLEMENT_MASK.copy(),
        d=d_words(germlines),
        d_alleles=d.bases,
        d_first=d.first,
        furthest=furthest,
        least_d=least_d,
        most_p=most_p,
    )
    v, j = _segment([g.v for g in germlines]), _segment([g.j for g in germlines])
    return GermlineTables(v, d, j, layout, tuple(g.locus for g in germlines), d_places(germlines, d.alleles))


def _segment(sets: Sequence[tuple[Allele, ...]]) -> SegmentTable:
    alleles = [allele for group in sets for allele in group]
    letters, starts = _joined([allele.sequence for allele in alleles])
    anchors = np.array([-1 if a.anchor is None else a.anchor for a in alleles], np.int64)
    first = edges_of(np.array([len(group) for group in sets]))
    return SegmentTable(
        tuple(sets), Alleles(letters, starts, anchors), first, *_joined([allele.name for allele in alleles])
    )


def _joined(texts: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [text.encode() for text in texts]
    # A copy, because the kernels are compiled for arrays that can be written.
    letters = np.frombuffer(b"".join(encoded), np.uint8).copy()
    return letters, edges_of(np.array([len(text) for text in encoded], np.int64))


class JoinedReads(NamedTuple):
    """Reads, with V and J matches that do not overlap any more, and where their parts lie.

    `order`, uint8 (n,), as of `find_parts`. `d` are the matches with the called D alleles. `groups`,
    int64 (n,): germline set, 0 where there is none.
    """

    reads: MatchedReads
    order: NDArray[np.uint8]
    layout: Layout
    d: Matches
    groups: NDArray[np.int64]


def join_reads(matches: GermlineMatches, tables: GermlineTables) -> JoinedReads:
    """Find the parts of reads."""
    n = len(matches.reads)
    letters = _plain(matches.reads.letters, np.uint8)
    starts = _plain(matches.reads.starts, np.int64)
    quality = matches.reads.qualities
    qualities = np.zeros(0, np.uint8) if quality is None else _plain(quality, np.uint8)
    groups = np.maximum(matches.germline.astype(np.int64), 0)
    known = matches.germline >= 0
    v = _matches(matches.v, tables.v, groups, known)
    j = _matches(matches.j, tables.j, groups, known)
    given = MatchedReads(letters, starts, v, j)
    reads = given._replace(v=_room(v), j=_room(j))
    marks = np.zeros((2, int(np.diff(starts).max(initial=0)) + 1), np.uint8)
    order = np.zeros(n, np.uint8)
    layout = _empty_layout(n)
    find_parts(given, qualities, groups, tables.layout, marks, reads, order, layout)
    return JoinedReads(reads, order, layout, d_matches(layout.d, groups, tables.d), groups)


def _plain(values: NDArray[Any], kind: Any) -> NDArray[Any]:
    """The values as the kernels are compiled for: contiguous, writable."""
    return np.require(values, kind, ("C", "A", "W"))


def _matches(
    found: Found, table: SegmentTable, groups: NDArray[np.int64], known: NDArray[np.bool_]
) -> Matches:
    allele = np.full(groups.size, -1, np.int64)
    some = (found.alleles.sizes > 0) & known
    allele[some] = found.alleles.values[found.alleles.starts[:-1][some]] + table.first[groups[some]]
    return Matches(
        table.bases,
        allele,
        _plain(found.read_start, np.int32),
        _plain(found.read_end, np.int32),
        _plain(found.paths.germline_start, np.int32),
        _plain(found.paths.germline_end, np.int32),
        _plain(found.paths.runs.values, np.int32),
        _plain(found.paths.runs.starts, np.int64),
    )


def _room(matches: Matches) -> Matches:
    """Matches to be filled, with as many runs."""
    return Matches(matches.alleles, *(np.zeros_like(own) for own in matches[1:]))


def _empty_layout(n: int) -> Layout:
    def zeros() -> NDArray[np.int32]:
        return np.zeros(n, np.int32)

    v, j = (SegmentLayout(zeros(), zeros(), zeros()) for _ in range(2))
    d = DCalls(np.full(n, -1, np.int32), zeros(), zeros(), zeros(), np.zeros(n, np.int64))
    layout = Layout(v, j, d, *(zeros() for _ in Layout._fields[3:]))
    return layout._replace(junction_start=np.full(n, -1, np.int32), junction_end=np.full(n, -1, np.int32))


def d_matches(calls: DCalls, groups: NDArray[np.int64], d: SegmentTable) -> Matches:
    """Called D alleles as matches of reads of these germline sets."""
    called = calls.allele >= 0
    length = calls.read_end - calls.read_start
    runs = np.zeros((int(called.sum()), 2), np.int32)
    runs[:, 1] = length[called]
    allele = np.where(called, d.first[groups] + calls.allele, -1)
    germline_end = (calls.germline_start + length).astype(np.int32)
    return Matches(
        d.bases,
        allele,
        calls.read_start,
        calls.read_end,
        calls.germline_start,
        germline_end,
        runs,
        edges_of(called),
    )
