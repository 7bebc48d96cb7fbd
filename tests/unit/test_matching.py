"""Matches of a text with V ends, J ends, D genes and itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases import Batch, Junction, make_germline, run_chain
from support.oracles import alike, palindrome_after, palindrome_before, reverse_complement
from support.strategies import lane_widths, sequences

from plait.alphabets import COMPLEMENT_MASK, encode
from plait.devices.target import ReferenceTarget
from plait.dp.chain.count import matched, mirror_arms
from plait.dp.chain.tables import REGION_FIELDS
from plait.lang.algebras import COUNT
from plait.lang.lanes import LANES
from plait.vdj.chain import chain_tables
from plait.vdj.models import PathModel

pytestmark = pytest.mark.interpreted(alone=True)


@given(
    sequences(0, 9, codes=True), sequences(1, 6, codes=True), sequences(3, 6, codes=True), st.integers(0, 4)
)
def test_matched_ends(read: str, v: str, j: str, pi: int) -> None:
    tables = chain_tables(make_germline(["GATTACA", v], [], [j]), PathModel(pi=pi), "vj")
    masks = encode(read).astype(np.int64)
    v_ext, j_ext = v + palindrome_after(v, pi), palindrome_before(j, pi) + j
    n = len(read)
    m_v = max(k for k in range(min(n, len(v_ext)) + 1) if alike(read[:k], v_ext[:k]))
    m_j = max(k for k in range(min(n, len(j_ext)) + 1) if alike(read[n - k :], j_ext[len(j_ext) - k :]))
    assert matched(tables.v_bases, 1, min(n, len(v_ext)), masks, 0, 1) == m_v
    assert matched(tables.j_bases, 0, min(n, len(j_ext)), masks, n - 1, -1) == m_j


@given(sequences(0, 12, codes=True), st.integers(1, 4))
def test_mirrors(read: str, most: int) -> None:
    n = len(read)
    arms = np.full(n + 1, -1)
    mirror_arms(COMPLEMENT_MASK, encode(read).astype(np.int64), n, most, arms)
    for c in range(n + 1):
        longest = 0
        while longest < min(most, c, n - c) and alike(
            read[c - longest - 1 : c], reverse_complement(read[c : c + longest + 1])
        ):
            longest += 1
        assert arms[c] == longest


def call(
    read: str, d: list[str], *, pi: int = 0, v: str = "C", j: str = "CCC", width: int = 8, **rules: Any
) -> dict[str, int]:
    germline = make_germline([v], d, [j], **rules)
    batch = Batch(germline, PathModel(pi=pi, nu=1), (Junction(read),))
    (row,) = run_chain(batch, ReferenceTarget(), COUNT, LANES[width])["regions"]
    return dict(zip(REGION_FIELDS, row, strict=True))


def d_call(read: str, d: list[str], **how: Any) -> tuple[int, ...]:
    found = call(read, d, **how)
    return tuple(found[f"d_{part}"] for part in ("match", "start", "end", "alleles"))


@pytest.mark.parametrize("width", LANES)
def test_the_longest_match_wins(width: int) -> None:
    assert d_call("TTGGATTGGACTT", ["GGAC"], width=width) == (4, 7, 11, 1)
    assert d_call("TTGGATTGGACTT", ["GGA"], width=width) == (3, 2, 10, 1)


def test_nothing_matches() -> None:
    assert d_call("TTTTT", ["GGA"]) == (0, -1, -1, 0)
    assert d_call("TTTTT", []) == (0, -1, -1, 0)
    assert d_call("", ["GGA"]) == (0, -1, -1, 0)


def test_ties_are_joined() -> None:
    # Places of one gene, genes of one length, and both: leftmost start, rightmost end.
    assert d_call("GATGATGA", ["GA"]) == (2, 0, 8, 1)
    assert d_call("TTGATTCATT", ["GA", "CA", "TTTT"]) == (2, 0, 10, 0b111)
    assert d_call("AGGTTTTCA", ["CA", "GG", "A"]) == (2, 1, 9, 0b011)


def test_a_later_and_longer_gene_replaces_the_earlier_ones() -> None:
    assert d_call("GGATTCAT", ["GGA", "TTCA", "GGAT"]) == (4, 0, 7, 0b110)


def test_a_forbidden_gene_is_not_called() -> None:
    rules = {"d_j_order": {"TRBD2": ("TRBJ9",)}}
    assert d_call("TGGACGT", ["GG", "GGACG"], **rules) == (2, 1, 3, 0b01)


def test_codes_match_what_they_may_stand_for() -> None:
    assert d_call("TTNNATT", ["GGA"]) == (3, 2, 5, 1)
    assert d_call("TTGGATT", ["GRM"]) == (3, 2, 5, 1)
    assert d_call("TTGGATT", ["GCM"]) == (1, 2, 5, 1)


@pytest.mark.parametrize("width", LANES)
def test_genes_share_words_and_do_not_run_into_each_other(width: int) -> None:
    # More symbols than a word has; a match across the border of two genes is none.
    many = [
        "ACACACACACACACAC",
        "GTGTGTGTGTGTGTGT",
        "ACACACACACACACAC",
        "GTGTGTGTGTGTGTGT",
        "TTTTTTTTTTTTTTTT",
    ]
    assert d_call("ACACGTGT", many, width=width) == (4, 0, 8, 0b01111)
    assert d_call("GTTTTTTG", many, width=width) == (6, 1, 7, 0b10000)


def test_palindromes_of_a_gene_are_part_of_the_match() -> None:
    # GGAC with both palindromes of two nucleotides is CC GGAC GT.
    found = call("ATCCGGACGTA", ["GGAC"], pi=2, v="A", j="TTT")
    assert [found[f"d_{x}"] for x in ("match", "start", "end", "extended_left", "extended_right")] == [
        8, 2, 10, 2, 2,
    ]  # fmt: skip
    found = call("ATCGGACATA", ["GGAC"], pi=2, v="A", j="TTT")
    assert [found[f"d_{x}"] for x in ("match", "start", "end", "extended_left", "extended_right")] == [
        5, 2, 7, 1, 0,
    ]  # fmt: skip


def test_the_fewest_palindromic_nucleotides_are_called() -> None:
    # GT is in the gene and in its palindrome: it is called as the gene's own.
    found = call("AAGTAA", ["GTAC"], pi=2, v="C", j="CCC")
    assert found["d_match"] == 3
    assert (found["d_extended_left"], found["d_extended_right"]) == (0, 0)


@given(
    sequences(0, 14, codes=True),
    st.lists(sequences(1, 9, codes=True), max_size=6),
    st.integers(0, 3),
    lane_widths(),
)
def test_every_width_calls_the_same(read: str, d: list[str], pi: int, width: int) -> None:
    assert call(read, d, pi=pi, width=width) == call(read, d, pi=pi, width=1)
