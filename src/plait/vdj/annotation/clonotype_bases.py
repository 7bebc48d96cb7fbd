"""Consensus bases of the independent clonotypes of a gene, outside the CDR3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.vdj.annotation.allele_groups import NO_BASE, AlleleGroup
from plait.vdj.annotation.clonotype_sample import GroupSample, unpack
from plait.vdj.annotation.row_values import text_bytes
from plait.vdj.annotation.text_hashes import masked_hashes

__all__ = ["ClonotypeBases", "clonotype_bases", "satellites"]


@dataclass(frozen=True, slots=True, eq=False)
class ClonotypeBases:
    """Independent clonotypes of a group of alleles.

    Attributes
    ----------
    group
        The alleles.
    bases
        Base that most reads of the clonotype show in each column of the group's axis, `NO_BASE` where there
        is none; int8, shape (n, width).
    parent
        Row of the nearest allele of the group, the first of several; int64, shape (n,).
    partner
        Gene of the other segment; int64, shape (n,).
    family
        Clonotypes of one family have the same partner and junctions of one length; int64, shape (n,).
    forward, reverse
        Reads of each strand; int64, shape (n,).
    satellites
        Clonotypes left out, since another one with more reads has nearly the same junction.
    whole
        Whether these are all clonotypes of the gene, and not a sample of them.
    """

    group: AlleleGroup
    bases: NDArray[np.int8]
    parent: NDArray[np.int64]
    partner: NDArray[np.int64]
    family: NDArray[np.int64]
    forward: NDArray[np.int64]
    reverse: NDArray[np.int64]
    satellites: int
    whole: bool

    @property
    def known(self) -> NDArray[np.bool_]:
        """Where bases are known; bool, shape (n, width)."""
        return np.asarray(self.bases != NO_BASE)

    def differing(self, codes: NDArray[np.int8]) -> NDArray[np.bool_]:
        """Where known bases differ from those of a sequence per clonotype, or of one for all."""
        return np.asarray((self.bases != codes) & (self.bases != NO_BASE) & (codes != NO_BASE))


def satellites(
    junction: pa.Array, partner: NDArray[np.int64], reads: NDArray[np.int64], hashes: NDArray[np.uint64]
) -> NDArray[np.bool_]:
    """Which clonotypes differ in one base of the junction from one with more reads.

    Sequencing errors in a junction make such clonotypes; they are no independent evidence. Of two with as
    many reads, the one with the larger hash is the satellite.

    Parameters
    ----------
    junction, partner, reads, hashes
        Junctions, genes of the other segment, reads and hashes of the clonotypes.
    """
    order = np.lexsort((hashes, -reads))
    row, masked = masked_hashes(text_bytes(junction.take(pa.array(order))), partner[order])
    # Stable: within equal hashes, the rows stay in the order of their reads.
    by_hash = np.argsort(masked, kind="stable")
    again = np.flatnonzero(masked[by_hash][1:] == masked[by_hash][:-1]) + 1
    found = np.zeros(order.size, np.bool_)
    found[order[row[by_hash[again]]]] = True
    return found


def clonotype_bases(group: AlleleGroup, sample: GroupSample) -> ClonotypeBases:
    """The independent clonotypes of a sample.

    Parameters
    ----------
    group
        The alleles.
    sample
        Its clonotypes.
    """
    reads = sample.forward + sample.reverse
    left_out = satellites(sample.junction, sample.partner, reads, sample.hash)
    kept = np.flatnonzero(~left_out)
    place = np.full(reads.size, -1, np.int64)
    place[kept] = np.arange(kept.size)
    bases = _consensus(group, sample, place, kept.size)
    lengths = np.diff(text_bytes(sample.junction).starts)[kept]
    partner = sample.partner[kept]
    return ClonotypeBases(
        group,
        bases,
        _nearest(bases, group.codes),
        partner,
        partner << 16 | lengths,
        sample.forward[kept],
        sample.reverse[kept],
        int(left_out.sum()),
        sample.whole,
    )


def _consensus(group: AlleleGroup, sample: GroupSample, place: NDArray[np.int64], n: int) -> NDArray[np.int8]:
    """Bases of most reads; `place` is the row of each clonotype of the sample, or -1."""
    consensus = np.full((n, group.width), NO_BASE, np.int8)
    spans = [place[sample.spans[0]], *unpack(sample.spans[1]), sample.spans[2]]
    found = [place[sample.differences[0]], *unpack(sample.differences[1]), sample.differences[2]]
    spans = [column[spans[0] >= 0] for column in spans]
    found = [column[found[0] >= 0] for column in found]
    if not spans[0].size:
        return consensus
    shift = np.zeros(int(group.alleles.max()) + 1, np.int64)
    shift[group.alleles] = group.offset
    low = int((spans[2] + shift[spans[1]]).min())
    high = max(int((spans[3] + shift[spans[1]]).max()), low)
    counts = np.zeros((n, high - low, NO_BASE), np.int64)
    for k, allele in enumerate(group.alleles):
        own = spans[1] == allele
        ends = np.zeros((n, high - low + 1), np.int64)
        offset = int(group.offset[k]) - low
        np.add.at(ends, (spans[0][own], spans[2][own] + offset), spans[4][own])
        np.add.at(ends, (spans[0][own], spans[3][own] + offset), -spans[4][own])
        codes = group.codes[k, low:high]
        columns = np.flatnonzero(codes != NO_BASE)
        counts[:, columns, codes[columns]] += np.cumsum(ends, axis=1)[:, columns]
        own = found[1] == allele
        row, column, base, reads = found[0][own], found[2][own] + offset, found[3][own], found[4][own]
        np.add.at(counts, (row, column, codes[column]), -reads)
        sure = base != NO_BASE
        np.add.at(counts, (row[sure], column[sure], base[sure]), reads[sure])
    most = 2 * counts.max(axis=2) > counts.sum(axis=2)
    consensus[:, low:high] = np.where(most, counts.argmax(axis=2), NO_BASE)
    return consensus


def _nearest(bases: NDArray[np.int8], codes: NDArray[np.int8]) -> NDArray[np.int64]:
    known = bases != NO_BASE
    far = [((bases != own) & known & (own != NO_BASE)).sum(axis=1) for own in codes]
    return np.asarray(np.argmin(np.array(far).reshape(len(codes), -1), axis=0), np.int64)
