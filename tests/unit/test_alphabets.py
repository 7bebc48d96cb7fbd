"""IUPAC codes as bit masks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import oracles
from support.strategies import CODES, sequences

from plait.alphabets import (
    COMPLEMENT_MASK,
    IUPAC_MASK,
    MASK_SIZE,
    MASK_SYMBOL,
    decode,
    encode,
    reverse_complement,
    reverse_complement_masks,
)

SYMBOLS = oracles.LETTERS + CODES


def test_the_published_numbering() -> None:
    assert encode("ATCG").tolist() == [1, 2, 4, 8]
    assert encode("Uu").tolist() == [2, 2]
    assert encode("RYSWKMBDHVN").tolist() == [9, 6, 12, 3, 10, 5, 14, 11, 7, 13, 15]


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_a_code_is_the_or_of_its_members(symbol: str) -> None:
    (mask,) = encode(symbol)
    members = [x for x in oracles.LETTERS if oracles.alike(symbol, x)]
    assert mask == np.bitwise_or.reduce(encode("".join(members)))
    assert MASK_SIZE[mask] == oracles.choices(symbol)
    assert MASK_SYMBOL[mask] == symbol
    assert MASK_SYMBOL[COMPLEMENT_MASK[mask]] == oracles.reverse_complement(symbol)


@given(st.sampled_from(SYMBOLS), st.sampled_from(SYMBOLS))
def test_two_symbols_match_when_their_masks_meet(a: str, b: str) -> None:
    assert bool(encode(a)[0] & encode(b)[0]) == oracles.alike(a, b)


def test_every_other_byte_is_zero() -> None:
    known = {ord(s) for s in SYMBOLS + "U"} | {ord(s.lower()) for s in SYMBOLS + "U"}
    assert {byte for byte in range(256) if IUPAC_MASK[byte]} == known
    assert IUPAC_MASK.shape == (256,)
    assert not IUPAC_MASK.flags.writeable


@pytest.mark.parametrize("text", ["A-C", "A.C", "A C", "AXC", "A\nC"])
def test_what_is_no_code_is_zero(text: str) -> None:
    assert encode(text).tolist() == [1, 0, 4]


def test_text_beyond_ascii_has_no_code() -> None:
    assert not encode("\u00c5\u0410").any()
    assert not encode("\ud800").any()


@given(sequences(0, 12, codes=True))
def test_round_trip(sequence: str) -> None:
    assert decode(encode(sequence)) == sequence
    assert decode(encode(sequence.lower())) == sequence
    assert encode(sequence.encode()).tolist() == encode(sequence).tolist()


@given(sequences(0, 12, codes=True))
def test_the_other_strand(sequence: str) -> None:
    assert reverse_complement(sequence) == oracles.reverse_complement(sequence)
    assert reverse_complement(reverse_complement(sequence)) == sequence
    masks = encode(sequence)
    assert decode(reverse_complement_masks(masks)) == reverse_complement(sequence)


def test_lower_case_and_unknown_symbols_decode_to_something_visible() -> None:
    assert decode(encode("acgx")) == "ACG?"
    assert reverse_complement("acx") == "?GT"
