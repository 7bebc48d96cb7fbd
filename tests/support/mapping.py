"""Oracles for finding patterns in texts: every place looked at on its own, with sets of letters as text."""

from __future__ import annotations

import functools

import numpy as np

MEMBERS = {
    "A": "A", "C": "C", "G": "G", "T": "T", "U": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT",
    "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
CODES = {frozenset(members): code for code, members in MEMBERS.items() if code != "U"}


def reverse_complement(pattern: str) -> str:
    return "".join(CODES[frozenset(COMPLEMENT[m] for m in MEMBERS[c.upper()])] for c in reversed(pattern))


def differs(pattern: str, text: str, iupac: bool = False) -> bool:
    """Whether a letter of a pattern does not match one of a text."""
    text = text.upper()
    if text not in ("ACGTU" if not iupac else MEMBERS):
        return True
    return not set(MEMBERS[pattern.upper()]) & set(MEMBERS[text])


def mismatch_hits(pattern: str, text: str, k: int, *, overhang: bool = False, iupac: bool = False):
    """(start, mismatches) of every place, on one strand."""
    m, n = len(pattern), len(text)
    found = []
    for start in range(-m + 1 if overhang else 0, n if overhang else n - m + 1):
        own = [text[start + i] if 0 <= start + i < n else "" for i in range(m)]
        count = sum(letter == "" or differs(p, letter, iupac) for p, letter in zip(pattern, own, strict=True))
        if count <= k:
            found.append((start, count))
    return found


def edit_ends(pattern: str, text: str, k: int):
    """(end, distance) of every end, on one strand; the end is behind the last letter."""
    column = list(range(len(pattern) + 1))
    found = []
    for j, letter in enumerate(text):
        before, column = column, [0]
        for i, own in enumerate(pattern):
            step = before[i] + differs(own, letter)
            column.append(min(step, before[i + 1] + 1, column[i] + 1))
        if column[-1] <= k:
            found.append((j + 1, column[-1]))
    return found


def edit_loci(ends, k: int):
    """(end, distance) of the best end of each run of ends; of equal ones the first."""
    loci = []
    for end, distance in ends:
        if loci and end - loci[-1][-1][0] <= k + 1:
            loci[-1].append((end, distance))
        else:
            loci.append([(end, distance)])
    return [min(locus, key=lambda one: (one[1], one[0])) for locus in loci]


def bulge_limits(guide: str, letters: str, limits):
    """Best (mismatches, extra, missing) of a guide with the letters from its site on, or None.

    Every alignment is looked at; `limits` are mismatches, extra and missing letters, and all errors.
    """

    @functools.cache
    def ways(i: int, j: int, extra: int, missing: int) -> int:
        """Fewest mismatches of what is left."""
        if i == len(guide):
            return 0 if extra == missing == 0 else 10**6
        best = 10**6
        if j < len(letters):
            best = ways(i + 1, j + 1, extra, missing) + differs(guide[i], letters[j])
            if extra:
                best = min(best, ways(i, j + 1, extra - 1, missing))
        if missing:
            best = min(best, ways(i + 1, j, extra, missing - 1))
        return best

    most, dna, rna, errors = limits
    choices = [
        (extra + missing, ways(0, 0, extra, missing), extra, missing)
        for extra in range(dna + 1)
        for missing in range(rna + 1)
    ]
    fit = [c for c in choices if c[1] <= most and c[0] + c[1] <= errors]
    if not fit:
        return None
    _, mismatches, extra, missing = min(fit)
    return mismatches, extra, missing


def site_hits(guide: str, pam: str, text: str, limits, *, side: int = 3, pam_mismatches: int = 0):
    """(place of the PAM, strand, errors) of every site with a hit; errors as of `bulge_limits`."""
    found = []
    flipped = "".join(COMPLEMENT.get(c, c) for c in reversed(text.upper()))
    for strand, own in (("+", text.upper()), ("-", flipped)):
        for p in range(len(own) - len(pam) + 1):
            if sum(differs(a, b) for a, b in zip(pam, own[p : p + len(pam)], strict=True)) > pam_mismatches:
                continue
            letters = own[:p][::-1] if side == 3 else own[p + len(pam) :]
            errors = bulge_limits(guide[::-1] if side == 3 else guide, letters, limits)
            if errors is not None:
                place = p if strand == "+" else len(text) - p - len(pam)
                found.append((place, strand, errors))
    return sorted(found)


def random_text(rng: np.random.Generator, size: int, letters: str = "ACGT") -> str:
    return "".join(rng.choice(list(letters), size).tolist())


def mutated(rng: np.random.Generator, pattern: str, edits: int) -> str:
    """A pattern (its ambiguous letters settled) with some random edits."""
    made = [str(rng.choice(list(MEMBERS[c.upper()]))) for c in pattern]
    for _ in range(edits):
        kind, place = int(rng.integers(3)), int(rng.integers(len(made)))
        if kind == 0:
            made[place] = str(rng.choice(list("ACGT")))
        elif kind == 1:
            made.insert(place, str(rng.choice(list("ACGT"))))
        else:
            del made[place]
    return "".join(made)


def planted(rng: np.random.Generator, patterns, size: int, edits: int, letters: str = "ACGT") -> str:
    """A text with mutated patterns of both strands in it, at its ends too, and a run of N."""
    parts = []
    while sum(map(len, parts)) < size:
        pattern = patterns[int(rng.integers(len(patterns)))]
        if rng.random() < 0.5:
            pattern = reverse_complement(pattern)
        parts.append(mutated(rng, pattern, int(rng.integers(edits + 1))))
        parts.append(random_text(rng, int(rng.integers(12)), letters))
        if rng.random() < 0.1:
            parts.append("N" * int(rng.integers(1, 5)))
    return "".join(parts)
