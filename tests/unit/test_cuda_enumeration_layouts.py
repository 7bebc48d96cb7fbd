"""How the exhaustive enumeration lays texts and D D genes out for a GPU; no device needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from plait.alphabets import encode
from plait.dp.chain.gpu_enumerate import ByteLetters, PackedLetters
from plait.dp.chain.gpu_enumerate_launch import arrange
from plait.dp.chain.tables import ChainTables, Junctions
from plait.errors import InvalidInput, Unsupported
from plait.vdj.chain import chain_tables
from plait.vdj.germline import load_germline
from plait.vdj.models import PathModel

CODES = {"A": 0, "T": 1, "G": 2, "C": 3}


@pytest.fixture(scope="module")
def tables() -> ChainTables:
    return chain_tables(load_germline("mouse_trb"), PathModel(name="exhaustive"), "vdj")


def texts_of(sequences: Sequence[str], v: Sequence[int], j: Sequence[int]) -> Junctions:
    lengths = np.array([len(s) for s in sequences], np.int64)
    symbols = np.concatenate([encode(s) for s in sequences])
    starts = np.cumsum(lengths) - lengths
    return Junctions(symbols, starts, lengths, np.array(v, np.int64), np.array(j, np.int64))


def bits_of(letters: PackedLetters, item: int) -> int:
    words = letters.records[item * letters.record_words : (item + 1) * letters.record_words]
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


def test_a_record_is_the_published_one(tables: ChainTables) -> None:
    sequences = ["TGTGCCAGC", "ACGT" * 14]
    (group,) = arrange(tables, texts_of(sequences, [7, 3], [13, 0]), "auto")
    assert isinstance(group.letters, PackedLetters)
    assert group.letters.record_words * 4 == 16
    # Ends are numbered among those that occur: V 3 and 7, J 0 and 13.
    for item, (sequence, v, j) in enumerate(zip(sequences, (1, 0), (1, 0), strict=True)):
        bits = bits_of(group.letters, item)
        assert (bits & 31, bits >> 5 & 31, bits >> 10 & 63) == (v, j, len(sequence))
        assert [bits >> 16 + 2 * k & 3 for k in range(len(sequence))] == [CODES[s] for s in sequence]


def test_longer_texts_have_wider_records(tables: ChainTables) -> None:
    long = "ACGTT" * 13
    short, wide = arrange(tables, texts_of([long, "ACGT"], [0, 0], [5, 5]), "auto")
    assert short.items.tolist() == [1]
    assert wide.items.tolist() == [0]
    bits = bits_of(wide.letters, 0)
    assert (bits & 4095, bits >> 12 & 4095, bits >> 24 & 65535) == (0, 0, len(long))
    assert [bits >> 40 + 2 * k & 3 for k in range(len(long))] == [CODES[s] for s in long]


def test_every_text_is_in_one_group(tables: ChainTables) -> None:
    sequences = ["ACGN", "ACGT", "A" * 60, "A" * 300, "", "ACGT", "RA"]
    texts = texts_of(sequences, [0] * 7, [0] * 7)
    groups = arrange(tables, texts, "auto")
    assert [(type(g.letters), g.items.tolist()) for g in groups] == [
        (PackedLetters, [1, 4, 5]),
        (PackedLetters, [2]),
        (ByteLetters, [0, 3, 6]),
    ]
    (whole,) = arrange(tables, texts, "8bit")
    assert isinstance(whole.letters, ByteLetters)
    assert whole.items.tolist() == list(range(7))
    with pytest.raises(Unsupported, match="3 texts in the 2-bit layout"):
        arrange(tables, texts, "2bit")
    with pytest.raises(InvalidInput, match="one of auto, 8bit, 2bit"):
        arrange(tables, texts, "16bit")  # type: ignore[arg-type]


def test_fragments_are_distinct_and_none_is_lost(tables: ChainTables) -> None:
    (group,) = arrange(tables, texts_of(["ACGT"], [0], [0]), "8bit")
    d_parts, symbols = group.d_parts, group.letters.d_bases
    for f, size in enumerate(tables.words.length):
        own = range(d_parts.first[f], d_parts.first[f + 1])
        parts = [symbols[d_parts.start[u] : d_parts.start[u] + d_parts.length[u]].tobytes() for u in own]
        assert len(set(parts)) == len(parts)
        assert [len(p) for p in parts] == sorted(len(p) for p in parts)
        ways = dict(zip(parts, d_parts.ways[own.start : own.stop].tolist(), strict=True))
        assert ways.pop(b"") == size + 1
        assert sum(ways.values()) == size * (size + 1) // 2
    assert d_parts.length[d_parts.first[-2] :].tolist() == [0]
    assert d_parts.ways[d_parts.first[-2] :].tolist() == [1]
