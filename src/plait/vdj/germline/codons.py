"""The standard genetic code over IUPAC codes."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from plait.alphabets import encode

_ORDER = "TCAG"
_AMINO_ACIDS = "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG"
_MASK = dict(zip(_ORDER, encode(_ORDER).tolist(), strict=True))
_CODE = {
    (_MASK[a], _MASK[b], _MASK[c]): amino_acid
    for (a, b, c), amino_acid in zip(product(_ORDER, repeat=3), _AMINO_ACIDS, strict=True)
}


@lru_cache(maxsize=4096)
def _amino_acid(first: int, second: int, third: int) -> str:
    members = [[bit for bit in (1, 2, 4, 8) if mask & bit] for mask in (first, second, third)]
    possible = {_CODE[a, b, c] for a, b, c in product(*members)}
    return possible.pop() if len(possible) == 1 else "X"


def translate(sequence: str, start: int = 0) -> str:
    """Amino acids of the complete codons of ``sequence[start:]``.

    A codon with ambiguity codes is translated if all its readings agree; any other, and one with a
    symbol outside the IUPAC alphabet, gives ``X``. Stop codons give ``*``.

    >>> translate("TGYGCCAGCN")
    'CAS'
    """
    masks = encode(sequence[max(start, 0) :]).tolist()
    return "".join(_amino_acid(*masks[i : i + 3]) for i in range(0, len(masks) - 2, 3))
