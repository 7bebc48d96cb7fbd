"""Small recombination models, and generation probabilities as their definition says: strings and loops.

Nothing here is fast, and nothing but the model is shared with the schedules that it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = [
    "GENETIC_CODE",
    "Way",
    "coding_texts",
    "drawn_junctions",
    "probability_of",
    "small_model",
    "stationary",
    "ways_of",
]

_LETTERS = "ACGT"
_ACIDS = "KNKNTTTTRSRSIIMIQHQHPPPPRRRRLLLLEDEDAAAAGGGGVVVV*Y*YSSSS*CWCLFLF"
#: Amino acid of every codon.
GENETIC_CODE = {"".join(codon): acid for codon, acid in zip(product(_LETTERS, repeat=3), _ACIDS, strict=True)}


class Way(NamedTuple):
    """One scenario.

    Attributes
    ----------
    probability
        Of it.
    v, d, j
        Genes; d is -1 without D.
    cuts
        Indices of the deletions: V, D at 5' and 3', J.
    lengths
        Numbers of N nucleotides.
    """

    probability: float
    v: int
    d: int
    j: int
    cuts: tuple[int, int, int, int]
    lengths: tuple[int, int]


def small_model(
    seed: int,
    *,
    d: bool = True,
    genes: int = 2,
    letters: int = 3,
    most: int = 3,
    palindrome: int = 1,
    zeros: bool = True,
) -> RecombinationModel:
    """A model with short genes and random probabilities.

    Parameters
    ----------
    seed
        Decides all of it.
    d
        Whether there are D genes.
    genes
        Genes of each kind.
    letters
        How many of the four nucleotides genes are made of: few make matches likely.
    most
        Most N nucleotides at a junction.
    palindrome
        Longest P extension.
    zeros
        Whether some probabilities are zero.
    """
    rng = np.random.default_rng(seed)
    alphabet = "".join(rng.permutation(list(_LETTERS))[:letters])

    def text(low: int, high: int) -> str:
        return "".join(rng.choice(list(alphabet), rng.integers(low, high + 1)))

    def spread(*shape: int, axes: tuple[int, ...]) -> NDArray[np.float64]:
        table = rng.gamma(1.0, size=shape)
        if zeros:
            table *= rng.random(shape) < 0.8
        table[(...,) + (0,) * len(axes)] += 0.05
        found: NDArray[np.float64] = table / table.sum(axis=axes, keepdims=True)
        return found

    v = tuple(ModelGene(f"TRXV{k + 1}*01", "AC" + text(3, 6), 2, "F") for k in range(genes))
    j = tuple(
        ModelGene(f"TRXJ{k + 1}*01", end + "GC", len(end) - 3, "F")
        for k in range(genes)
        for end in [text(3, 6)]
    )
    ds = tuple(ModelGene(f"TRXD{k + 1}*01", text(2, 4)) for k in range(genes if d else 0))
    cuts = 6 + palindrome
    width = 4 + palindrome if d else 0
    d_cuts = np.zeros((len(ds), width, width))
    for k, gene in enumerate(ds):
        whole = len(gene.sequence) + 2 * palindrome
        d_cuts[k] = spread(*d_cuts.shape[1:], axes=(0, 1))
        d_cuts[k] *= np.add.outer(np.arange(len(d_cuts[k])), np.arange(len(d_cuts[k]))) <= whole
        d_cuts[k] /= d_cuts[k].sum()
    return RecombinationModel(
        name=f"small {seed}",
        v=v,
        d=ds,
        j=j,
        p_v=spread(genes, axes=(0,)),
        p_dj=spread(1, genes, genes, axes=(1, 2)) if d else spread(genes, 1, genes, axes=(1, 2)),
        p_v_deletions=spread(genes, cuts, axes=(1,)),
        p_d_deletions=d_cuts,
        p_j_deletions=spread(genes, cuts, axes=(1,)),
        palindromes=(palindrome, palindrome if d else 0, palindrome if d else 0, palindrome),
        p_vd_length=spread(most + 1, axes=(0,)),
        vd_steps=rng.dirichlet(np.ones(4), 4),
        p_dj_length=spread(most + 1, axes=(0,)) if d else np.ones(1),
        dj_steps=rng.dirichlet(np.ones(4), 4) if d else np.full((4, 4), 0.25),
        provenance={"made_by": "support.recombination", "seed": seed},
    )


def stationary(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distribution that a chain comes to, by walking it for long."""
    row: NDArray[np.float64] = np.linalg.matrix_power(steps, 1 << 12)[0]
    return row


def _end(model: RecombinationModel, gene: ModelGene, side: str) -> str:
    """A gene's part of a junction with all its P nucleotides; of J, read from its own end."""
    pair = dict(zip(_LETTERS, reversed(_LETTERS), strict=True))
    anchor = gene.anchor or 0
    part = gene.sequence[anchor:] if side == "V" else gene.sequence[: anchor + 3][::-1]
    most = model.palindromes[0 if side == "V" else 3]
    return part + "".join(pair[letter] for letter in part[::-1][:most])


def _whole_d(model: RecombinationModel, gene: ModelGene) -> str:
    pair = dict(zip(_LETTERS, reversed(_LETTERS), strict=True))
    low, high = model.palindromes[1:3]
    before = "".join(pair[letter] for letter in reversed(gene.sequence[:low]))
    return before + gene.sequence + "".join(pair[letter] for letter in gene.sequence[::-1][:high])


def _inserted(text: str, lengths: NDArray[np.float64], steps: NDArray[np.float64]) -> float:
    if len(text) >= lengths.size:
        return 0.0
    found = float(lengths[len(text)])
    codes = [_LETTERS.index(letter) for letter in text]
    for k, code in enumerate(codes):
        found *= float(stationary(steps)[code] if k == 0 else steps[codes[k - 1], code])
    return found


def ways_of(
    model: RecombinationModel, junction: str, v: Sequence[int] | None = None, j: Sequence[int] | None = None
) -> Iterator[Way]:
    """All scenarios that make a junction, one by one.

    Parameters
    ----------
    model
        The model.
    junction
        Nucleotides.
    v, j
        Genes that are allowed; all by default.
    """
    n = len(junction)
    for a in range(len(model.v)) if v is None else v:
        left = _end(model, model.v[a], "V")
        for c in range(len(model.j)) if j is None else j:
            right = _end(model, model.j[c], "J")
            for x, y in product(range(1, len(left) + 1), range(1, len(right) + 1)):
                if x + y > n or junction[:x] != left[:x] or junction[n - y :] != right[:y][::-1]:
                    continue
                cuts = len(left) - x, len(right) - y
                if cuts[0] >= model.p_v_deletions.shape[1] or cuts[1] >= model.p_j_deletions.shape[1]:
                    continue
                ends = float(model.p_v[a] * model.p_v_deletions[a, cuts[0]] * model.p_j_deletions[c, cuts[1]])
                yield from _between(model, junction[x : n - y], ends, (a, c), cuts)


def _between(
    model: RecombinationModel, middle: str, ends: float, genes: tuple[int, int], cuts: tuple[int, int]
) -> Iterator[Way]:
    a, c = genes
    if not model.d:
        given = float(model.p_dj[a if len(model.p_dj) > 1 else 0, 0, c])
        found = ends * given * _inserted(middle, model.p_vd_length, model.vd_steps)
        yield Way(found, a, -1, c, (cuts[0], 0, 0, cuts[1]), (len(middle), 0))
        return
    for k, gene in enumerate(model.d):
        whole, table = _whole_d(model, gene), model.p_d_deletions[k]
        for s, t in product(range(table.shape[0]), range(table.shape[1])):
            part = whole[s : len(whole) - t]
            if s + t > len(whole):
                continue
            for at in range(len(middle) - len(part) + 1):
                if middle[at : at + len(part)] == part:
                    first, second = middle[:at], middle[at + len(part) :]
                    found = ends * float(model.p_dj[0, k, c] * table[s, t])
                    found *= _inserted(first, model.p_vd_length, model.vd_steps)
                    found *= _inserted(second[::-1], model.p_dj_length, model.dj_steps)
                    yield Way(found, a, k, c, (cuts[0], s, t, cuts[1]), (len(first), len(second)))


def probability_of(
    model: RecombinationModel,
    texts: Sequence[str],
    v: Sequence[int] | None = None,
    j: Sequence[int] | None = None,
) -> float:
    """Sum over all scenarios that make one of several junctions.

    Parameters
    ----------
    model
        The model.
    texts
        Nucleotides.
    v, j
        Genes that are allowed; all by default.
    """
    return sum(way.probability for text in texts for way in ways_of(model, text, v, j))


def coding_texts(sets: Sequence[str]) -> list[str]:
    """All nucleotide texts that code for one of the amino acids of each set, in order."""
    codons = [[codon for codon, acid in GENETIC_CODE.items() if acid in acids] for acids in sets]
    return ["".join(chosen) for chosen in product(*codons)]


def drawn_junctions(model: RecombinationModel, seed: int, count: int, *, shortest: int = 6) -> list[str]:
    """Junctions that a model makes, drawn here and not as the schedules draw.

    Parameters
    ----------
    model
        The model.
    seed
        Decides which.
    count
        How many.
    shortest
        Shorter ones are drawn anew.
    """
    rng = np.random.default_rng(seed)
    found: list[str] = []
    while len(found) < count:
        a = rng.choice(len(model.v), p=model.p_v)
        given = model.p_dj[a if len(model.p_dj) > 1 else 0]
        k, c = np.unravel_index(rng.choice(given.size, p=given.ravel()), given.shape)
        left, right = _end(model, model.v[a], "V"), _end(model, model.j[c], "J")
        x = len(left) - rng.choice(model.p_v_deletions.shape[1], p=model.p_v_deletions[a])
        y = len(right) - rng.choice(model.p_j_deletions.shape[1], p=model.p_j_deletions[c])
        if x < 1 or y < 1:
            continue
        middle = _chain(rng, model.p_vd_length, model.vd_steps)
        if model.d:
            table, whole = model.p_d_deletions[k], _whole_d(model, model.d[k])
            s, t = np.unravel_index(rng.choice(table.size, p=table.ravel()), table.shape)
            middle += whole[s : len(whole) - t] + _chain(rng, model.p_dj_length, model.dj_steps)[::-1]
        junction = left[:x] + middle + right[:y][::-1]
        if len(junction) >= shortest:
            found.append(junction)
    return found


def _chain(rng: np.random.Generator, lengths: NDArray[np.float64], steps: NDArray[np.float64]) -> str:
    codes: list[int] = []
    for _ in range(rng.choice(lengths.size, p=lengths)):
        codes.append(int(rng.choice(4, p=steps[codes[-1]] if codes else stationary(steps))))
    return "".join(_LETTERS[code] for code in codes)
