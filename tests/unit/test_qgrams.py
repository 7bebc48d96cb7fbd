"""Similarities of q-grams: against counters in Python; pruning, widths of counts, splits."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.cli import main
from plait.errors import InvalidInput
from plait.lang.algebras import choice, extend
from plait.lang.lanes import lanes_of, load
from plait.qgrams import similar, similarities, similarity, smiles_letters
from plait.qgrams.files import read_texts
from plait.qgrams.similarity import SimilarBatch, SumOfLeast, _prepared, ranges_of

Matrix = list[list[tuple[int, Fraction]]]


def counted(texts: list[bytes], others: list[bytes], q: int) -> Matrix:
    """What each two share, and their similarity, by counters."""
    left, right = (
        [Counter(text[k : k + q] for k in range(len(text) - q + 1)) for text in some]
        for some in (texts, others)
    )
    found = []
    for a in left:
        found.append([])
        for b in right:
            shared = sum((a & b).values())
            either = sum(a.values()) + sum(b.values()) - shared
            found[-1].append((shared, Fraction(shared, either) if either else Fraction(0)))
    return found


def check(texts: list[bytes], others: list[bytes] | None, q: int, **asked: Any) -> None:
    own = others is None
    expected = counted(texts, texts if others is None else others, q)
    rows = [[np.float32(float(ratio)) for _, ratio in row] for row in expected]
    assert similarities(texts, others, q=q, **asked).tolist() == rows
    for least in ("0.1", "0.5", "1"):
        found = similar(texts, others, q=q, at_least=float(least), **asked)
        wanted = [
            (i, j, shared)
            for i, row in enumerate(expected)
            for j, (shared, ratio) in enumerate(row)
            if ratio >= Fraction(least) and (not own or i < j)
        ]
        assert [*zip(*map(np.ndarray.tolist, found[:3]), strict=True)] == wanted, least
        assert found.similarity.tolist() == [rows[i][j] for i, j, _ in wanted]
    for k in (1, 3):
        found = similar(texts, others, q=q, nearest=k, **asked)
        wanted = []
        for i, row in enumerate(expected):
            best = sorted((-ratio, j, shared) for j, (shared, ratio) in enumerate(row) if not own or i != j)
            wanted += [(i, j, shared) for ratio, j, shared in best[:k] if shared]
        assert [*zip(*map(np.ndarray.tolist, found[:3]), strict=True)] == wanted, k


def drawn(seed: int, count: int, longest: int, letters: list[int]) -> list[bytes]:
    rng = random.Random(seed)
    return [bytes(rng.choices(letters, k=rng.randint(0, longest))) for _ in range(count)]


@pytest.mark.parametrize("q", often(1, [3, 8, 1, 4, 9]))
def test_all_answers_are_those_of_counters(q: int) -> None:
    # 255 and beyond: bytes of no text; counts and sizes above 255, and above 65,535.
    texts, others = drawn(q, 70, 30, [65, 66, 200]), drawn(q + 1, 300, 400, [65, 66, 255])
    check(texts, others, q, device="cpu", threads=2)
    check([*others[:80], b"", b"A" * 300, b"A" * 600], None, q, device="cpu")


@pytest.mark.slow
def test_counts_beyond_16_bits() -> None:
    texts, others = (
        [b"A" * 70_000, b"AB" * 40_000, b"A" * 300, b"AAA", b""],
        [b"A" * 65_000, b"AB" * 200, b"B"],
    )
    check(texts, others, 1, device="cpu")
    check(others, texts, 2, device="cpu")
    with pytest.raises(
        InvalidInput, match="texts: found 80,000 q-grams on both sides, expected at most 65,535"
    ):
        similar(texts, q=1)


@pytest.mark.slow
def test_100_000_pairs() -> None:
    check(drawn(1, 250, 40, [*b"ACDEFG"]), drawn(2, 400, 40, [*b"ACDEFG"]), 3, device="cpu")


@pytest.mark.interpreted
@given(
    st.lists(st.binary(max_size=9), max_size=5),
    st.lists(st.text("AB", max_size=12).map(str.encode), max_size=5),
    st.integers(1, 4),
)
def test_interpreted(texts: list[bytes], others: list[bytes], q: int) -> None:
    check(texts, others, q, device="reference")
    check(others, None, q, device="reference")


def test_splits_and_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "_FIRST_ROOM", 3)
    texts = drawn(5, 400, 25, [*b"ACGT"])
    once = similar(texts, q=2, at_least=0.3, device="cpu", threads=1)
    for threads in (2, 5):
        again = similar(texts, q=2, at_least=0.3, device="cpu", threads=threads)
        assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))


def test_thresholds_leave_out_what_sizes_rule_out() -> None:
    texts = [b"A" * k for k in range(1, 1001)]
    (left, right), vocabulary = _prepared(texts, None, 1, (True, True))
    batch = SimilarBatch(left, right, vocabulary, None, Fraction(4, 5))
    ranges = sum(ranges_of(batch, below, limit) for below, limit in ((0, 255),))
    for (first, last), block in zip(ranges.tolist(), range(0, 1000, similarity.COLUMNS), strict=True):
        least, most = block + 1, min(block + similarity.COLUMNS, 1000)
        kept = [size for size in range(1, 1001) if size >= least * 0.8 and size <= most / 0.8]
        inside = [size for size in range(1, 1001) if most <= 255 or size <= 255]
        assert (first, last) in {(kept[0] - 1, min(kept[-1], inside[-1])), (kept[0] - 1, kept[0] - 1)}


def test_algebra_in_lanes() -> None:
    rows = np.arange(64, dtype=np.uint8)[None]
    alg, values = SumOfLeast(np.zeros(64, np.uint8)), load(lanes_of(64), rows, 0, 0)
    assert choice(alg, alg.zero, values).tolist() == values.tolist()
    assert extend(alg, values, values[::-1]).tolist() == np.minimum(values, values[::-1]).tolist()


def test_decimal_thresholds() -> None:
    # One of ten q-grams: the float 0.1 is a little more than a tenth.
    texts = ["ABCDEFGHIJ", "A"]
    assert similar(texts, q=1, at_least=0.1).shared.tolist() == [1]
    assert similar(texts, q=1, at_least=0.1000001).shared.tolist() == []


def test_smiles() -> None:
    assert smiles_letters("[13CH4]Clc1cc(Br)c%12C%12") == b"[13CH4]Lc0cc(R)c0C0"
    assert similar([smiles_letters("c1ccccc1"), smiles_letters("c2ccccc2")], at_least=1).shared.tolist() == [
        5
    ]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"q": 0}, "q: found 0, expected a whole number from 1 to 255"),
        ({"at_least": 0}, "at_least: found 0, expected a similarity above 0, at most 1"),
        ({"at_least": 1.5}, "at_least: found 1.5"),
        ({"at_least": float("nan")}, "at_least: found nan"),
        ({"nearest": 0}, "nearest: found 0, expected a whole number from 1 to 1048576"),
        ({"nearest": 1, "at_least": 0.5}, "at_least: found nearest besides, expected either"),
    ],
)
def test_bad_requests(asked: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        similar(["A"], **asked)


@pytest.mark.parametrize("texts", ["ABCD", b"ABC", ["ABCD", 3], [None], 5])
def test_texts_are_several(texts: Any) -> None:
    for sets in ((texts,), (["ABCD"], texts)):
        with pytest.raises(InvalidInput, match=r"texts: found .*, expected several texts, each str or bytes"):
            similar(*sets)


def test_signatures_show_where_work_is_done() -> None:
    for function in (similar, similarities):
        shown = signature(function).parameters
        assert (shown["device"].default, shown["threads"].default) == ("auto", None) and "on" not in shown


# --- files and the command ------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.tsv"
    path.write_text("id\tjunction_aa\n1\tCASSLGF\n2\t\n3\tCASSLGQF\n4\tCASTLGF\n")
    return path


def test_kinds_of_files(tmp_path: Path, table: Path) -> None:
    assert read_texts(table, column="junction_aa")[1] == [b"CASSLGF", b"", b"CASSLGQF", b"CASTLGF"]
    parquet = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": ["AB", None]}), parquet)
    assert read_texts(parquet, column="x")[1] == [b"AB", b""]
    lines = tmp_path / "t.smi"
    lines.write_bytes(b"\xef\xbb\xbfc1ccccc1\tbenzene\r\n\nCCl  methyl chloride\nC\n")
    assert read_texts(lines) == (["benzene", "methyl chloride", "3"], [b"c1ccccc1", b"CCl", b"C"])
    assert read_texts(lines, smiles=True)[1] == [b"c0ccccc0", b"CL", b"C"]
    fasta = tmp_path / "t.fa"
    fasta.write_text(">a one\nAC\nGT\n>b\n\n")
    assert read_texts(fasta) == (["a", "b"], [b"ACGT", b""])


def test_command(tmp_path: Path, table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["similar", str(table), "--column", "junction_aa", "-q", "3", "--device", "cpu"]
    assert main(words) == 0
    out = capsys.readouterr()
    assert out.out == "query\ttarget\tshared\tsimilarity\n1\t3\t4\t0.5714286\n"
    assert "4 texts by 4: 1 pair in" in out.err
    assert main([*words, "--nearest", "1", "-o", str(tmp_path / "n.parquet")]) == 0
    assert pq.read_table(tmp_path / "n.parquet")["target"].to_pylist() == ["3", "1", "1"]
    assert main([*words, "-o", str(tmp_path / "m.npy")]) == 0
    assert np.load(tmp_path / "m.npy").shape == (4, 4)
    assert main(["similar", str(table), str(table), "--column", "junction_aa", "--at-least", "1"]) == 0
    assert capsys.readouterr().out.count("\n") == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["t.tsv", "--column", "cdr3"], "t.tsv: found the columns id, junction_aa, expected a column 'cdr3'"),
        (["t.tsv", "-q", "0"], "q: found 0, expected a whole number from 1 to 255"),
        (["t.tsv", "--nearest", "1", "-o", "x.npy"], "'x.npy' for pairs"),
        (["t.tsv", "-o", "t.tsv"], "which is also an input"),
        (["none.fa"], "none.fa"),
        (["zeros"], "zeros, line 1: found binary data, expected FASTA"),
        (["blank"], "blank"),
        (
            ["numbers.parquet", "--column", "x"],
            "numbers.parquet, column 'x': found a column of int64, expected text",
        ),
    ],
)
def test_bad_files(
    words: list[str],
    said: str,
    table: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(table.parent)
    Path("zeros").write_bytes(b"A\0B\n")
    Path("blank").write_bytes(b"\n\n")
    pq.write_table(pa.table({"x": [1]}), "numbers.parquet")
    before = {path.name for path in Path().iterdir()}
    assert main(["similar", *words]) == 2
    assert said in capsys.readouterr().err
    assert {path.name for path in Path().iterdir()} == before
