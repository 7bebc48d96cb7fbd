"""Ends shorter than the longest palindrome: an extension by e has e nucleotides all the same."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest
from support.cases import make_germline
from support.examples import often
from support.oracles import fragment_ways, palindrome_after, palindrome_before, reverse_complement
from support.simulation import simulate_dp2

from plait.vdj.counting import PathCounter
from plait.vdj.models import PathModel


def ways_to_vanish(d: str, pi: int, strands: int, *, cut_off: bool) -> int:
    """Every extension and erosion of the J end of D, and then of its V end, that leaves nothing of it.

    With `cut_off`, a palindrome is no longer than the gene, as a slice of a text is.
    """
    ways = 0
    extensions = [e for e in range(pi + 1) for _ in range(strands if e else 1)]
    for right in extensions:
        mirrored = reverse_complement(d[max(len(d) - right, 0) :])
        piece = d + (mirrored if cut_off else palindrome_after(d, right))
        for kept in range(len(piece) + 1):
            for left in extensions:
                # All of the palindrome and all of the piece are eroded: one way.
                assert len(palindrome_before(piece[:kept], left)) == left
                ways += 1
    return ways


@pytest.mark.parametrize(("strands", "all_ways", "cut_off"), [(1, 125, 110), (2, 423, 369)])
def test_ways_in_which_a_d_of_two_bases_vanishes(strands: int, all_ways: int, cut_off: int) -> None:
    """A palindrome that is cut off at the length of D loses 3 of 25 ways at the J end, or 6 of 47."""
    assert ways_to_vanish("AC", 4, strands, cut_off=False) == all_ways
    assert ways_to_vanish("AC", 4, strands, cut_off=True) == cut_off
    # The whole D between two N regions of no length, V and J that cannot be made from it.
    assert simulate_dp2("", "", ["AC"], "", pi=4, limits=(0, 0), strands=strands).zero_d >= all_ways


def test_a_longer_d_has_no_such_difference() -> None:
    for strands, pi in itertools.product((1, 2), range(5)):
        both = [ways_to_vanish("ACGT", pi, strands, cut_off=cut_off) for cut_off in (False, True)]
        assert both[0] == both[1]


@pytest.mark.parametrize("strands", [1, 2])
@pytest.mark.parametrize(
    ("sizes", "pi"), often(1, [((6, 2, 6), 4), ((2, 1, 3), 4), ((3, 5, 1), 4), ((1, 2, 1), 3)])
)
def test_counts_are_those_of_the_simulation(strands: int, sizes: tuple[int, int, int], pi: int) -> None:
    rng = random.Random(f"{strands} {sizes} {pi}")
    model = PathModel(strands=strands, pi=pi, nu=2)
    different = set()
    for _ in range(12):
        v, d, j = ("".join(rng.choices("ACGT", k=size)) for size in sizes)
        # Of pieces and a few others, so that most have many paths; 6 are the fewest that are counted.
        made = v + palindrome_after(v, 1) + d + "".join(rng.choices("ACGT", k=rng.randint(0, 3))) + j
        read = (made + "ACGTAC")[: max(len(made), 6)].replace("?", "A")
        counter = PathCounter(make_germline([v], [d], [j]), model, threads=1)
        counts = counter.count(*(pa.array([text]) for text in (read, "TRBV1", "TRBJ1")))
        expected = simulate_dp2(read, v, [d], j, pi=pi, limits=(2, 2), strands=strands)
        assert (int(counts.path_count[0]), int(counts.zero_d_by_d[0, 0])) == expected
        different.add(expected)
    assert len(different) > 3


def test_nothing_is_known_behind_a_short_end() -> None:
    assert palindrome_after("AC", 4) == "GT??"
    assert [fragment_ways("ACGT" + "A" * k, "AC", pi=4, strands=1) for k in range(2)] == [15, 0]
