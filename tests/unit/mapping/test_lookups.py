"""Automata, binary search and perfect hashing: the vectors of their source, and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from support.lookups import (
    PerfectHash,
    automaton_errors,
    automaton_step,
    ball,
    binary_search_kernel,
    edge_of,
    jenkins,
    probe_kernel,
    scan_kernel,
    words_of_texts,
)
from support.mapping_truth import edit_distances

from plait.errors import InvalidInput


def masks_of(pattern, count, letters):
    """Mask of the j-th letters of some words."""
    found = 0
    for letter in letters:
        own = sum(1 << k for k, c in enumerate(pattern) if c == letter)
        found = found << len(pattern) | own
    return found


@pytest.mark.interpreted
def test_rows_of_one_text():
    """GATGC in GTGCATGC with one error: rows, and matches behind letters 4 and 8."""
    rows = np.array([0, 1], np.int64)
    seen = []
    for j, letter in enumerate("GTGCATGC", 1):
        automaton_step(0, rows, masks_of("GATGC", 1, letter), j, 5, 1, 1)
        seen.append(tuple(f"{row:05b}" for row in rows.tolist()))
    assert seen == [
        ("00001", "00011"),
        ("00000", "00111"),
        ("00001", "01011"),
        ("00000", "10011"),
        ("00000", "00011"),
        ("00000", "00101"),
        ("00001", "01011"),
        ("00000", "10011"),
    ]


@pytest.mark.interpreted
def test_rows_of_four_words():
    words = ("ATCG", "GGAC", "AGCG", "AGTC")
    repeated = 0b001001001001
    rows = np.array([0, repeated], np.int64)
    seen = []
    for j in range(1, 5):
        automaton_step(0, rows, masks_of("ATC", 4, [word[j - 1] for word in words]), j, 3, 4, repeated)
        seen.append(tuple(f"{row:012b}" for row in rows.tolist()))
    assert seen == [
        ("001000001001", "011001011011"),
        ("010000000000", "111001011011"),
        ("100001000000", "111011101011"),
        ("000000000000", "101111001101"),
    ]


def texts_of(words, length):
    return ["".join("ACGT"[word >> 2 * k & 3] for k in range(length - 1, -1, -1)) for word in words.tolist()]


@pytest.mark.parametrize(("length", "errors"), [(4, 0), (4, 1), (8, 0), (8, 1), (8, 3), (16, 2), (16, 3)])
def test_automata_are_their_definitions(length, errors):
    rng = np.random.default_rng(length + errors)
    words = rng.integers(0, 4**length, 90)
    texts = texts_of(words, length)
    for size in {length - errors, length}:
        pattern = texts[3][length - size :]
        query = np.array(list(pattern))
        free = automaton_errors(pattern, words, length, errors)
        gapless = automaton_errors(pattern, words, length, errors, "substitutions")
        anchored = automaton_errors(pattern, words, length, errors, "anchored")
        for k, text in enumerate(texts):
            assert free[k] == min(errors + 1, int(edit_distances(pattern, text).min()))
            windows = [np.array(list(text[at : at + size])) for at in range(length - size + 1)]
            assert gapless[k] == min(errors + 1, *(int((query != window).sum()) for window in windows))
            begun = min(_distance(pattern, text[:end]) for end in range(length + 1))
            assert anchored[k] == min(errors + 1, begun)
        for together in (1, 2):
            assert np.array_equal(free, automaton_errors(pattern, words, length, errors, together=together))


def _distance(one, other):
    column = list(range(len(one) + 1))
    for letter in other:
        new = [column[0] + 1]
        for i, own in enumerate(one):
            new.append(min(column[i] + (own != letter), column[i + 1] + 1, new[i] + 1))
        column = new
    return column[-1]


def test_a_pattern_that_is_too_short_or_long():
    for pattern, errors in (("AC", 2), ("ACGTA", 0)):
        with pytest.raises(InvalidInput):
            automaton_errors(pattern, np.zeros(1, np.int64), 4, errors)


@pytest.mark.parametrize(
    ("length", "errors", "size"), [(4, 1, 13), (4, 2, 67), (7, 1, 22), (8, 2, 277), (16, 2, 1129)]
)
def test_words_around_a_word(length, errors, size):
    found = ball(length, errors)
    assert found.size == size == np.unique(found).size


@pytest.mark.interpreted
def test_jenkins_hash_of_the_source():
    vectors = {
        "AATCGCTG": ("135dfbb0", "c1d797a2", "c13d855b", (2, 4, 7)),
        "AATGGGAA": ("fd897242", "9d8e5f95", "1a75e812", (0, 3, 6)),
        "ATCGGATG": ("0ef9ff6a", "c86619ca", "869a9452", (0, 4, 8)),
        "ATTCGGCC": ("e5874732", "0ee17803", "94970a9d", (2, 5, 7)),
        "ATTTTTTT": ("1fee6d5e", "2eebe04f", "4f72ac11", (1, 5, 7)),
        "TTAAGGCC": ("0f869b93", "11448f22", "c6291a11", (1, 4, 6)),
        "AATCGCTC": ("1332adf8", "287c275e", "3a5f3208", (1, 3, 7)),
    }
    values = (2, 0, 0, 1, 1, 3, 1, 3, 3)
    slots = []
    for key, (*expected, edge) in vectors.items():
        text = key.encode()
        found = jenkins(int.from_bytes(text[:4], "little"), int.from_bytes(text[4:], "little"), 0, 8, 13)
        assert [f"{value:08x}" for value in found] == expected
        assert tuple(3 * part + value % 3 for part, value in enumerate(found)) == edge
        slots.append(edge[sum(values[vertex] for vertex in edge) % 3])
    assert slots == [4, 3, 0, 2, 1, 6, 3]
    assert [f"{value:08x}" for value in jenkins(0, 0, 0, 4, 13)] == ["6d812df8", "3e67fa75", "ce8ba1ac"]
    assert edge_of(0, 3, 13)[0] == 0x6D812DF8 % 3


@pytest.mark.parametrize("size", [0, 1, 2, 3, 16, 256, 5000])
def test_perfect_hashes(size):
    keys = np.sort(np.random.default_rng(size).choice(4**8, size, replace=False)).astype(np.int64)
    made = PerfectHash.build(keys)
    assert made.part % 2 == 1 and 3 * made.part >= 1.23 * size
    words = np.arange(4**8)
    out, counts = np.empty((words.size, 1), np.int64), np.empty(words.size, np.int64)
    probe_kernel(made, words, np.zeros(1, np.int64), out, counts)
    assert np.array_equal(counts == 1, np.isin(words, keys))
    assert np.unique(out[counts == 1]).size == size


@pytest.mark.parametrize("length", [4, 7, 8, 16])
def test_all_lookups_find_the_same(length):
    """Scan, binary search, perfect hash and automaton, of blocks that are nearly empty and saturated."""
    rng = np.random.default_rng(length)
    for size in (1, 2, 1000):
        words = rng.integers(0, 4**length, size)
        keys = np.unique(words)
        made = PerfectHash.build(keys)
        for query in (*words[:3].tolist(), int(rng.integers(0, 4**length))):
            for errors in (0, 1, 2):
                changes = ball(length, errors)
                out, counts = np.empty((1, changes.size), np.int64), np.empty(1, np.int64)
                one = np.array([query])
                near = np.empty(keys.size, np.bool_)
                scan_kernel(keys, query, errors, near)
                truth = set(keys[near].tolist())
                binary_search_kernel(keys, one, changes, out, counts)
                assert sorted(keys[out[0, : counts[0]]].tolist()) == sorted(truth)
                probe_kernel(made, one, changes, out, counts)
                assert sorted(made.table[out[0, : counts[0]]].tolist()) == sorted(truth)
                pattern = texts_of(np.array([query]), length)[0]
                own = automaton_errors(pattern, keys, length, errors, "substitutions")
                assert set(keys[own <= errors].tolist()) == truth


def test_words_of_texts():
    assert words_of_texts(["GACA", "GCAT", "TTCC"]).tolist() == [0b10000100, 0b10010011, 0b11110101]
    # The filter of the source: of three neighbourhoods, two have at most two mismatches with GAAA.
    near = np.empty(3, np.bool_)
    scan_kernel(words_of_texts(["TTCC", "GACA", "GCAT"]), int(words_of_texts(["GAAA"])[0]), 2, near)
    assert near.tolist() == [False, True, True]
