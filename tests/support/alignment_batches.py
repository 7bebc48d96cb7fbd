"""Batches of pairs that are aligned in one way: edge cases with every structure, and drawn ones."""

from __future__ import annotations

import random
import string
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.alignment import AlignmentCase

from plait.align.batches import PairBatch, code_list
from plait.align.results import (
    DELETION,
    INSERTION,
    MATCH,
    MISMATCH,
    Alignment,
    aligned_regions,
    column_blocks,
)
from plait.align.scoring import END_NAMES, Scoring, SubstitutionMatrix, free_ends_of
from plait.dp.pairs.lists import FreeEnds
from plait.errors import InvalidInput

__all__ = ["AlignmentBatch", "alignment_batches", "batch_of", "edge_batches", "long_batches", "rescore"]

_Codes = tuple[int, ...]
_Scores = tuple[tuple[int, ...], ...]

#: Names of the codes, in matrices that need them.
_LETTERS = string.ascii_uppercase + "*!#$%"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentBatch:
    """Pairs, and how all of them are aligned.

    Attributes
    ----------
    queries, targets
        Codes, as many of each.
    scores
        ``scores[query code][target code]``.
    gap_open, gap_extend
        Costs of the first and of every further residue of a gap.
    mode, free_ends
        As for `plait.align.align`; `free_ends` only where the mode is ``"semiglobal"``.
    """

    queries: tuple[_Codes, ...]
    targets: tuple[_Codes, ...]
    scores: _Scores
    gap_open: int
    gap_extend: int
    mode: str = "global"
    free_ends: frozenset[str] = field(default_factory=frozenset)

    @property
    def cases(self) -> tuple[AlignmentCase, ...]:
        """The pairs one by one, for an oracle."""
        return tuple(
            AlignmentCase(
                query=query,
                target=target,
                scores=self.scores,
                gap_open=self.gap_open,
                gap_extend=self.gap_extend,
                mode=self.mode,
                free_ends=self.free_ends,
            )
            for query, target in zip(self.queries, self.targets, strict=True)
        )

    @property
    def free(self) -> FreeEnds:
        """What may be left out."""
        named = [name for name in END_NAMES if name in self.free_ends]
        return free_ends_of(self.mode, named if self.mode == "semiglobal" else None)  # type: ignore[arg-type]

    @property
    def scoring(self) -> Scoring:
        """Matrix and costs as users give them."""
        scores = np.array(self.scores, np.int32)
        matrix = SubstitutionMatrix("drawn", _LETTERS[: len(scores)], scores, "protein")
        return Scoring(matrix, self.gap_open, self.gap_extend)

    @property
    def pairs(self) -> PairBatch:
        """The pairs as users give them."""
        codes = ([np.array(one, np.uint8) for one in many] for many in (self.queries, self.targets))
        return PairBatch(*(code_list(one) for one in codes))

    @property
    def linear(self) -> bool:
        """Whether all residues of a gap cost the same."""
        return self.gap_open == self.gap_extend

    @property
    def wide(self) -> bool:
        """Whether a score does not fit eight bits."""
        return not all(-128 <= score <= 127 for row in self.scores for score in row)

    def only(self, *numbers: int) -> AlignmentBatch:
        """Some of the pairs."""
        queries, targets = (
            tuple(many[k % len(many)] for k in numbers) for many in (self.queries, self.targets)
        )
        return replace(self, queries=queries, targets=targets)

    def against(self, number: int) -> AlignmentBatch:
        """One of the queries with every target."""
        return replace(self, queries=(self.queries[number % len(self.queries)],) * len(self.targets))


def batch_of(case: AlignmentCase) -> AlignmentBatch:
    """A batch of one pair, without band and X-drop."""
    return AlignmentBatch(
        queries=(case.query,),
        targets=(case.target,),
        scores=case.scores,
        gap_open=case.gap_open,
        gap_extend=case.gap_extend,
        mode=case.mode,
        free_ends=case.free_ends,
    )


def _simple(letters: int, match: int, mismatch: int) -> _Scores:
    """One score for equal letters and one for others; the last letter stands for any and is worth little."""
    rows = [[match if a == b else mismatch for b in range(letters)] for a in range(letters)]
    for k in range(letters):
        rows[k][-1] = rows[-1][k] = (match + 3 * mismatch) // 4
    return tuple(map(tuple, rows))


def _random(letters: int, least: int, most: int) -> _Scores:
    """Scores that need not be the same either way round."""
    rng = random.Random(f"{letters} {least} {most}")
    return tuple(tuple(rng.randint(least, most) for _ in range(letters)) for _ in range(letters))


#: Scores and gap costs: few letters and many, scores of eight bits and of more, and costs that make ties.
_SCORINGS: tuple[tuple[_Scores, int, int], ...] = (
    (_simple(5, 2, -3), 7, 2),
    (_simple(5, 1, -1), 1, 1),
    (_simple(4, 2, -3), 5, 0),
    (_simple(5, 5, -4), 0, 0),
    (_random(3, -4, -1), 3, 1),
    (_random(3, 1, 5), 4, 4),
    (_random(5, -4, 5), 6, 1),
    (_simple(4, 2, -3), 1000, 100),
    (_simple(5, 200, -300), 500, 20),
    (_simple(3, 3, -1000), 9, 2),
    (_simple(4, 32767, -32767), 32767, 32767),
    (_random(20, -6, 9), 11, 1),
    (_random(8, -4, 11), 3, 3),
    (_random(24, -5, 4), 2, 0),
    (_random(20, -400, 300), 700, 30),
    (_random(8, -9, 150), 90, 90),
)


def _structured_pairs(letters: int) -> tuple[tuple[_Codes, _Codes], ...]:
    """Pairs of every structure, of sequences up to 33 residues."""
    rng = random.Random(letters)
    base = tuple(rng.randrange(letters) for _ in range(17))
    other = tuple(rng.randrange(letters) for _ in range(14))
    a, b, last = (0,), (1,), (letters - 1,)
    return (
        (a, a),
        (a, b),
        (a, base),
        (other, b),
        (base, base),
        ((a + b) * 9, (b + a) * 8),
        (a * 16, a * 7),
        (a * 5, a * 18),
        (a * 9, b * 12),
        (base, base[:4] + base[12:]),
        (base[:5] + base[13:], base),
        (base[9:] + base[:9], base),
        (last * 3 + base[3:9] + last * 2, base[:11]),
        (base, other),
        ((base * 2)[:33], base[::-1]),
    )


def _free_ends(mode: str, number: int) -> frozenset[str]:
    """In turn every set of free ends."""
    chosen = frozenset(name for bit, name in enumerate(END_NAMES) if number >> bit & 1)
    return chosen if mode == "semiglobal" else frozenset()


def edge_batches(mode: str) -> tuple[AlignmentBatch, ...]:
    """Every structure with every kind of scores; none is empty.

    With semiglobal alignment each of the 16 sets of free ends occurs.
    """
    return tuple(
        AlignmentBatch(
            queries=tuple(query for query, _ in pairs),
            targets=tuple(target for _, target in pairs),
            scores=scores,
            gap_open=gap_open,
            gap_extend=gap_extend,
            mode=mode,
            free_ends=_free_ends(mode, 7 * number),
        )
        for number, (scores, gap_open, gap_extend) in enumerate(_SCORINGS)
        for pairs in [_structured_pairs(len(scores))]
    )


def long_batches(mode: str, longest: int) -> tuple[AlignmentBatch, ...]:
    """Pairs that need several stripes of any width, for each kind of scores.

    Parameters
    ----------
    mode
        Mode.
    longest
        Residues of the longest sequence.
    """
    found = []
    for number, (scores, gap_open, gap_extend) in enumerate(_SCORINGS):
        rng = random.Random(f"{mode} {number}")
        size = rng.randint(3 * longest // 4, longest)
        query = tuple(rng.randrange(len(scores)) for _ in range(size))
        a, b = sorted((rng.randrange(size), rng.randrange(size)))
        near = tuple(rng.randrange(len(scores)) if rng.random() < 0.1 else code for code in query)
        target = near[:a] + near[b:] + near[a:b]
        cut = max(1, size - longest // 3)
        found.append(
            AlignmentBatch(
                queries=(query, query[:cut]),
                targets=(target, near),
                scores=scores,
                gap_open=gap_open,
                gap_extend=gap_extend,
                mode=mode,
                free_ends=_free_ends(mode, 5 * number),
            )
        )
    return tuple(found)


@st.composite
def alignment_batches(draw: st.DrawFn, mode: str, *, longest: int = 14, most: int = 3) -> AlignmentBatch:
    """Pairs of up to `longest` residues, and scores of every size.

    Parameters
    ----------
    draw
        Given by hypothesis.
    mode
        Mode.
    longest
        Residues of the longest sequence; none is empty.
    most
        Pairs of the largest batch.
    """
    letters = draw(st.sampled_from((1, 2, 4, 5, 8, 20)))
    sequences = st.lists(st.integers(0, letters - 1), min_size=1, max_size=longest).map(tuple)
    queries = draw(st.lists(sequences, min_size=1, max_size=most))
    targets = []
    for query in queries:
        a, b = sorted((draw(st.integers(0, len(query))), draw(st.integers(0, len(query)))))
        moved = query[b:] + query[:a] + query[a:b]
        without = query[:a] + query[b:]
        targets.append(draw(sequences | st.sampled_from((query, moved, without or query))))
    least, most_score = draw(
        st.sampled_from(((-4, 5), (-1, 1), (-9, -1), (1, 9), (0, 0), (-300, 200), (-9999, 30), (-128, 127)))
    )
    rng = random.Random(draw(st.integers(0, 1 << 16)))
    extend = draw(st.sampled_from((0, 0, 1, 2, 3, 40)))
    return AlignmentBatch(
        queries=tuple(queries),
        targets=tuple(targets),
        scores=tuple(tuple(rng.randint(least, most_score) for _ in range(letters)) for _ in range(letters)),
        gap_open=extend + draw(st.sampled_from((0, 0, 1, 4, 11, 900))),
        gap_extend=extend,
        mode=mode,
        free_ends=_free_ends(mode, draw(st.integers(0, 15))),
    )


def rescore(
    alignment: Alignment,
    query_codes: NDArray[np.uint8],
    target_codes: NDArray[np.uint8],
    scoring: Scoring,
) -> int:
    """Score of an alignment, worked out from its coordinates and CIGAR alone.

    A gap of g residues costs ``gap_open + (g - 1) * gap_extend``. Codes are the whole sequences as indices
    into the matrix. `InvalidInput` if CIGAR and coordinates contradict each other or the sequences, or a run
    of ``=`` or ``X`` covers a column that is not one.
    """
    runs, query, target = aligned_regions(alignment, query_codes, target_codes)
    operations, lengths = runs
    gaps = lengths[(operations == DELETION) | (operations == INSERTION)]
    score = -int(len(gaps) * scoring.gap_open + int((gaps - 1).sum()) * scoring.gap_extend)
    table = scoring.matrix.scores
    for block in column_blocks(runs, query, target, gap=0):
        same = block.query == block.target
        wrong = np.where(same, block.operations == MISMATCH, block.operations == MATCH)
        if wrong.any():
            raise InvalidInput(
                "cigar", found="= or X in a wrong column", expected="= for equal letters, X for others"
            )
        paired = (block.operations == MATCH) | (block.operations == MISMATCH)
        score += int(table[block.query[paired], block.target[paired]].sum(dtype=np.int64))
    return score
