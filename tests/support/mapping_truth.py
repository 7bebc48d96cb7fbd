"""Every locus of reads by plain dynamic programming, and exact matches in four phases."""

from __future__ import annotations

import itertools

import numpy as np

_COMPLEMENT = str.maketrans("ACGT", "TGCA")


def reverse_complement(read: str) -> str:
    """The other strand; letters other than A, C, G, T stay."""
    return read.upper().replace("U", "T").translate(_COMPLEMENT)[::-1]


def edit_distances(read: str, text: str) -> np.ndarray:
    """Smallest edit distance of a read to a stretch of text that ends at each letter."""
    query, target = (np.frombuffer(s.upper().replace("U", "T").encode(), np.uint8) for s in (read, text))
    known, places = np.isin(target, np.frombuffer(b"ACGT", np.uint8)), np.arange(len(target) + 1)
    row = np.zeros(len(target) + 1, int)
    for i, own in enumerate(query.tolist(), 1):
        above = np.minimum(row[:-1] + ((target != own) | ~known), row[1:] + 1)
        # Letters of the text that are left out cost 1 each, from wherever it is best to begin.
        row = np.minimum.accumulate(np.concatenate([[i], above]) - places) + places
    return row[1:]


def edit_loci(read: str, text: str, errors: int) -> list[tuple[int, int]]:
    """(end, distance) of each locus: ends at most errors + 1 apart are one; of the best ones the leftmost."""
    distances = edit_distances(read, text)
    loci: list[tuple[int, int]] = []
    last = None
    for end in np.flatnonzero(distances <= errors).tolist():
        value = int(distances[end])
        if last is None or end - last > errors + 1:
            loci.append((end + 1, value))
        elif value < loci[-1][1]:
            loci[-1] = end + 1, value
        last = end
    return loci


def substitution_loci(read: str, text: str, errors: int) -> list[tuple[int, int]]:
    """(end, mismatches) of each place with few enough of them."""
    query, target = (np.frombuffer(s.upper().replace("U", "T").encode(), np.uint8) for s in (read, text))
    known = np.isin(target, np.frombuffer(b"ACGT", np.uint8))
    found = []
    for start in range(len(target) - len(query) + 1):
        window = slice(start, start + len(query))
        other = int(((query != target[window]) | ~known[window]).sum())
        if other <= errors:
            found.append((start + len(query), other))
    return found


def all_loci(
    reads: dict[str, str], contigs: dict[str, str], errors: int, *, edits: bool = True
) -> set[tuple[str, str, str, int, int]]:
    """(read, contig, strand, end, distance) of all loci of all reads."""
    # Without errors, every place is a locus.
    loci = edit_loci if edits and errors else substitution_loci
    return {
        (name, contig, strand, end, distance)
        for (name, read), (contig, text) in itertools.product(reads.items(), contigs.items())
        for strand, query in (("+", read), ("-", reverse_complement(read)))
        for end, distance in loci(query, text, errors)
    }


def four_phase_matches(read: str, text: str) -> list[int]:
    """Starts of exact matches by packed bytes: the read shifted by 0 to 3 letters, against every byte.

    Both are A, C, G and T alone. A shifted read matches only at places of its phase (GPU Computing Gems, 12).
    """
    packed = _packed(text)
    found = []
    for phase in range(4):
        shifted = _packed("A" * phase + read)
        mask = _packed("T" * (phase + len(read)))
        mask[0] &= 0xFF << (2 * phase) & 0xFF
        for byte in range(len(packed) - len(shifted) + 1):
            start = 4 * byte + phase
            if start + len(read) <= len(text) and not np.any(
                (packed[byte : byte + len(shifted)] ^ shifted) & mask
            ):
                found.append(start)
    return sorted(found)


def _packed(text: str) -> np.ndarray:
    codes = ["ACGT".index(letter) for letter in text]
    codes += [0] * (-len(codes) % 4)
    quads = np.array(codes, np.uint8).reshape(-1, 4)
    return quads[:, 0] | quads[:, 1] << 2 | quads[:, 2] << 4 | quads[:, 3] << 6


def changed(rng: np.random.Generator, letters: list[str], changes: int, kind: int) -> str:
    """Letters with so many changes: one that is A instead, an extra C, or one that is left out."""
    read = list(letters)
    for _ in range(changes):
        place = int(rng.integers(len(read)))
        if kind == 0:
            read[place] = "A"
        elif kind == 1:
            read.insert(place, "C")
        else:
            del read[place]
    return "".join(read)
