"""A literal simulation of DP-2: every choice is made, every sequence is built, and those like the read count.

The receptor is made from J to V, as the cell does it: J is extended, cut on one strand or the other, and
eroded; N nucleotides are joined letter by letter; each D is extended and eroded at its J end, joined, and
only then extended at its V end (where the palindrome mirrors whatever stands there by now) and eroded (D
nucleotides and that palindrome only); V comes last. No weight or matrix is used.

Equal sequences at the same stage go on together, as one with a number of ways. What can no longer become
the read is left out once nothing that may still be eroded is in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from support.oracles import LETTERS, Dp2Counts, alike, palindrome_after, palindrome_before

__all__ = ["simulate_dp2"]

#: Ways to make a sequence, by the sequence and whether a D nucleotide is in it.
_Ways = Counter[tuple[str, bool]]


def simulate_dp2(
    read: str, v: str, ds: Sequence[str], j: str, *, pi: int, limits: Sequence[int], strands: int
) -> Dp2Counts:
    """Count the paths to a read of A, C, G and T.

    Parameters
    ----------
    read
        The sequence to be made.
    v, ds, j
        Gene ends, and D genes from V to J: none, one or two.
    pi
        Longest extension.
    limits
        Most N nucleotides of each junction, from V to J; one more than there are D genes.
    strands
        1, or 2 if a cut on either strand is another path.
    """
    made: _Ways = Counter((end, False) for end in _cut_5(j, pi, strands))
    made = _add_letters(read, _possible(read, made), limits[-1])
    for d, limit in zip(reversed(ds), reversed(limits[:-1]), strict=True):
        made = _possible(read, _join_d(made, d, pi, strands))
        made = _add_letters(read, made, limit)
    full = zero = 0
    for end in _cut_3(v, pi, strands):
        for (sequence, with_d), ways in made.items():
            if alike(read, end + sequence):
                full += ways
                zero += 0 if with_d else ways
    return Dp2Counts(full, zero)


def _extensions(pi: int, strands: int) -> Iterator[int]:
    """Every length of an extension, once per strand that may be cut; no extension is one choice."""
    for extension in range(pi + 1):
        for _ in range(strands if extension > 0 else 1):
            yield extension


def _cut_3(end: str, pi: int, strands: int) -> Iterator[str]:
    """Every extension and then every erosion of a 3' end."""
    for extension in _extensions(pi, strands):
        extended = end + palindrome_after(end, extension)
        for eroded in range(len(extended) + 1):
            yield extended[: len(extended) - eroded]


def _cut_5(end: str, pi: int, strands: int) -> Iterator[str]:
    """Every extension and then every erosion of a 5' end."""
    for extension in _extensions(pi, strands):
        extended = palindrome_before(end, extension) + end
        for eroded in range(len(extended) + 1):
            yield extended[eroded:]


def _join_d(made: _Ways, d: str, pi: int, strands: int) -> _Ways:
    """Join a D, cut at its J end, and then cut the V end of the whole."""
    joined: _Ways = Counter()
    for (sequence, with_d), ways in made.items():
        for piece, cuts in Counter(_cut_3(d, pi, strands)).items():
            for extension in _extensions(pi, strands):
                # The palindrome mirrors what stands there: the piece, and beyond it N or J nucleotides.
                own = palindrome_before(piece + sequence, extension) + piece
                for eroded in range(len(own) + 1):
                    left = own[eroded:]
                    joined[left + sequence, with_d or left != ""] += ways * cuts
    return joined


def _add_letters(read: str, made: _Ways, limit: int) -> _Ways:
    """Join 0, 1, .. `limit` N nucleotides."""
    total = Counter(made)
    longer = made
    for _ in range(limit):
        step: _Ways = Counter()
        for (sequence, with_d), ways in longer.items():
            for letter in LETTERS:
                step[letter + sequence, with_d] += ways
        longer = _possible(read, step)
        total.update(longer)
    return total


def _possible(read: str, made: _Ways) -> _Ways:
    """What the read may still end with: nothing of it will be removed any more."""
    kept: _Ways = Counter()
    for (sequence, with_d), ways in made.items():
        if len(sequence) <= len(read) and alike(read[len(read) - len(sequence) :], sequence):
            kept[sequence, with_d] += ways
    return kept
