"""The enumeration on a GPU counts what the reference enumeration and dp1 count, in both layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.cases import make_germline

from plait.alphabets import encode
from plait.devices.target import ReferenceTarget
from plait.dp.chain.launches import ENUMERATION, EnumerationBatch
from plait.dp.chain.tables import ChainTables, Junctions
from plait.errors import InvalidInput, Unsupported
from plait.vdj.chain import ChainCounter, chain_tables
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.models import PathModel

pytestmark = [pytest.mark.gpu, pytest.mark.cuda_simulator]

#: Junction, V, J. Codes stand in the V end, around D, and in the J end.
PLAIN = (
    ("TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC", "TRBV13-1", "TRBJ2-7"),
    ("TGTGCCAGCAGTGATGCACAGGGACTCCAATTGAACAGTACTTC", "TRBV13-1", "TRBJ1-1"),
    ("TGTGCCAGCAGTTTC", "TRBV19", "TRBJ2-1"),
    ("TGTGCCAGCAGCTTAGGGACAGGGGGCTATGCTGAGCAGTTCTTC", "TRBV5", "TRBJ2-1"),
)
CODED = (
    ("TGTGCCAGCAGTTGGGACWGGTATGAACAGTACTTC", "TRBV13-1", "TRBJ2-7"),
    ("TGYGCCARCAGTTGGGNCTGNTATGAMCAGTACTTC", "TRBV13-1", "TRBJ2-7"),
)


def texts_of(germline: GermlineSet, rows: Sequence[tuple[str, str, str]]) -> Junctions:
    symbols = [encode(sequence) for sequence, _, _ in rows]
    lengths = np.array([len(s) for s in symbols], np.int64)
    v, j = ([germline.resolve(row[k], s) for row in rows] for k, s in ((1, "V"), (2, "J")))
    return Junctions(np.concatenate(symbols), np.cumsum(lengths) - lengths, lengths, np.array(v), np.array(j))


def enumerated(
    tables: ChainTables, texts: Junctions, most: int, devices: Sequence[int] = (0,), **options: Any
) -> np.ndarray:
    from plait.dp.chain.gpu_enumerate_launch import run_enumeration

    out = np.full((texts.start.size, tables.words.length.size + 1, most + 1), -1, np.int64)
    run_enumeration(devices, tables, texts, most, out, **options)
    return out


def referred(tables: ChainTables, texts: Junctions, most: int) -> np.ndarray:
    out = np.full((texts.start.size, tables.words.length.size + 1, most + 1), -1, np.int64)
    ReferenceTarget().launch(ENUMERATION, EnumerationBatch(tables, texts, most, out))
    return out


def by_dp1(germline: GermlineSet, model: PathModel, texts: Junctions) -> np.ndarray:
    chain = "vdj" if germline.d else "vj"
    raw, _ = ChainCounter(germline, replace(model, name="dp1"), chain, ReferenceTarget(), "null").run(texts)
    return np.concatenate([raw.full, raw.none[:, None]], axis=1)


@pytest.fixture(scope="module")
def mouse() -> GermlineSet:
    return load_germline("mouse_trb")


@pytest.mark.parametrize("layout", ["2bit", "8bit", "auto"])
@pytest.mark.parametrize("empty_d", ["positions", "once", "none"])
def test_plain(layout: str, empty_d: str, mouse: GermlineSet) -> None:
    model = PathModel(name="exhaustive", max_n=2, empty_d=empty_d)
    tables, texts = chain_tables(mouse, model, "vdj"), texts_of(mouse, PLAIN)
    found = enumerated(tables, texts, 2, layout=layout)
    assert np.array_equal(found, referred(tables, texts, 2))
    assert np.array_equal(found, by_dp1(mouse, model, texts))
    assert found.any()


@pytest.mark.parametrize("layout", ["8bit", "auto"])
def test_codes(layout: str, mouse: GermlineSet) -> None:
    model = PathModel(name="exhaustive", max_n=2)
    tables, texts = chain_tables(mouse, model, "vdj"), texts_of(mouse, (*CODED, *PLAIN[:2], *CODED[:1]))
    found = enumerated(tables, texts, 2, layout=layout)
    assert np.array_equal(found, referred(tables, texts, 2))
    assert np.array_equal(found, by_dp1(mouse, model, texts))


@pytest.mark.parametrize("layout", ["2bit", "8bit"])
def test_longer_strings(layout: str, mouse: GermlineSet) -> None:
    # From 5 symbols on a string has a second word of bytes.
    model = PathModel(name="exhaustive", max_n=5)
    tables, texts = chain_tables(mouse, model, "vdj"), texts_of(mouse, PLAIN[:1])
    assert np.array_equal(enumerated(tables, texts, 5, layout=layout), by_dp1(mouse, model, texts))


@pytest.mark.parametrize("layout", ["2bit", "8bit"])
def test_longest_strings(layout: str, mouse: GermlineSet) -> None:
    from plait.devices.cuda import SIMULATED

    if SIMULATED:
        pytest.skip(reason="4^10 strings are too many for the simulator")
    model = PathModel(name="exhaustive", max_n=10)
    rows = PLAIN if layout == "2bit" else (*PLAIN, *CODED)
    tables, texts = chain_tables(mouse, model, "vdj"), texts_of(mouse, rows)
    assert np.array_equal(enumerated(tables, texts, 10, layout=layout), by_dp1(mouse, model, texts))


@pytest.mark.parametrize("shares", [2, 3])
def test_shares_add_up(shares: int, mouse: GermlineSet) -> None:
    tables = chain_tables(mouse, PathModel(name="exhaustive", max_n=3), "vdj")
    texts = texts_of(mouse, (*PLAIN[:2], *CODED[:1]))
    parts = [enumerated(tables, texts, 3, share=(k, shares)) for k in range(shares)]
    assert np.array_equal(sum(parts), enumerated(tables, texts, 3))
    assert all(part.any() for part in parts)


@pytest.mark.parametrize("devices", [1, 2, 5])
@pytest.mark.parametrize("sizes", [(100_000, 70), (3,), (1, 511, 20_000)])
def test_pieces_are_all_texts_once(sizes: tuple[int, ...], devices: int) -> None:
    from plait.dp.chain.gpu_enumerate_launch import _pieces

    pieces = _pieces(sizes, devices, 9000)
    for group, size in enumerate(sizes):
        own = [(first, last) for number, first, last in pieces if number == group]
        assert [first for first, _ in own] == [0, *(last for _, last in own[:-1])]
        assert own[-1][1] == size
    assert all(0 < last - first <= 9000 for _, first, last in pieces)
    if devices > 1:
        # Nobody waits long for the last one.
        assert pieces[-1].last - pieces[-1].first <= 1024
        assert pieces[0].last - pieces[0].first <= 1024


def test_several_devices(mouse: GermlineSet, monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.devices.cuda import SIMULATED
    from plait.devices.cuda_devices import devices
    from plait.dp.chain import gpu_enumerate_launch as cuda_enumeration

    monkeypatch.setattr(cuda_enumeration, "_LEAST_TEXTS", 1)
    most = 2 if SIMULATED else 8
    tables = chain_tables(mouse, PathModel(name="exhaustive", max_n=most), "vdj")
    texts = texts_of(mouse, (*PLAIN, *CODED))
    whole = enumerated(tables, texts, most)
    # Named twice, a device takes two shares at the same time.
    for chosen in ([0, 0], [0, 0, 0], devices()):
        assert np.array_equal(enumerated(tables, texts, most, devices=chosen), whole)


def test_an_error_on_one_device_stops_all(mouse: GermlineSet) -> None:
    tables = chain_tables(mouse, PathModel(name="exhaustive", max_n=2), "vdj")

    def stop(n: int, compared: int, seconds: float) -> None:
        raise RuntimeError(f"stopped at {n}")

    with pytest.raises(RuntimeError, match="stopped at -1"):
        enumerated(tables, texts_of(mouse, PLAIN), 2, observe=stop)


def test_chunks_of_texts(mouse: GermlineSet, monkeypatch: pytest.MonkeyPatch) -> None:
    from plait.dp.chain import gpu_enumerate_launch as cuda_enumeration

    tables = chain_tables(mouse, PathModel(name="exhaustive", max_n=2), "vdj")
    texts = texts_of(mouse, (*PLAIN, *CODED))
    whole, launches = enumerated(tables, texts, 2), []
    monkeypatch.setattr(cuda_enumeration, "_PAIRS", 6)
    monkeypatch.setattr(cuda_enumeration, "_LIST_NUMBERS", 2)
    found = enumerated(tables, texts, 2, observe=lambda n, compared, seconds: launches.append(n))
    assert np.array_equal(found, whole)
    # Unpatched there are two passes for the plain texts, and two for the coded ones.
    assert launches.count(cuda_enumeration.FINDING) > 4


def test_d_j_order_and_codes_in_genes() -> None:
    germline = make_germline(
        ["TGTGCA", "TGTRCA"], ["GGAC", "GNA", "A"], ["TTTGG", "CATTT"],
        d_j_order={"TRBD1": ("TRBJ1",), "TRBD2": ("TRBJ1", "TRBJ2"), "TRBD3": ("TRBJ2",)},
    )  # fmt: skip
    rows = [
        (sequence, f"TRBV{v}", f"TRBJ{j}")
        for sequence in ("TGTGCAGGACTTTGG", "TGTACAAGCATTT", "TGTGCNTTTGG", "TGTG")
        for v in (1, 2)
        for j in (1, 2)
    ]
    model = PathModel(name="exhaustive", max_n=2, pi=2)
    tables, texts = chain_tables(germline, model, "vdj"), texts_of(germline, rows)
    found = enumerated(tables, texts, 2)
    assert np.array_equal(found, referred(tables, texts, 2))
    assert np.array_equal(found, by_dp1(germline, model, texts))


def test_without_d() -> None:
    germline = make_germline(["TGTGCA"], [], ["TTTGG"], locus="TRA")
    model = PathModel(name="exhaustive", max_n=3)
    tables = chain_tables(germline, model, "vj")
    texts = texts_of(germline, [("TGTGCAACTTTGG", "TRAV1", "TRAJ1"), ("TGTGTTTGG", "TRAV1", "TRAJ1")])
    for layout in ("2bit", "8bit"):
        assert np.array_equal(enumerated(tables, texts, 3, layout=layout), referred(tables, texts, 3))


def test_wide_records() -> None:
    # More than 32 V ends, and texts of more than 56 symbols.
    letters = "ACGT"
    ends = [f"TGT{letters[k % 4]}{letters[k // 4 % 4]}{letters[k // 16]}" for k in range(40)]
    germline = make_germline(ends, ["GGACAGGGGGC"], ["TTTGG"])
    model = PathModel(name="exhaustive", max_n=1)
    tables = chain_tables(germline, model, "vdj")
    rows = [(end + "GGACAGG" + "TTTGG", f"TRBV{k + 1}", "TRBJ1") for k, end in enumerate(ends)]
    rows.append((ends[3] + "ACGT" * 14 + "TTTGG", "TRBV4", "TRBJ1"))
    texts = texts_of(germline, rows)
    found = enumerated(tables, texts, 1, layout="2bit")
    assert np.array_equal(found, referred(tables, texts, 1))
    assert found.any()


def test_nothing_to_count(mouse: GermlineSet) -> None:
    tables = chain_tables(mouse, PathModel(name="exhaustive", max_n=1), "vdj")
    nothing = np.zeros(0, np.int64)
    none = Junctions(np.zeros(0, np.uint8), nothing, nothing, nothing, nothing)
    assert enumerated(tables, none, 1).shape == (0, 3, 2)
    # A row that cannot be counted is an empty text.
    zero = np.zeros(1, np.int64)
    empty = Junctions(np.zeros(0, np.uint8), zero, zero, zero, zero)
    assert np.array_equal(enumerated(tables, empty, 1), referred(tables, empty, 1))


def test_refusals(mouse: GermlineSet) -> None:
    tables, texts = chain_tables(mouse, PathModel(name="exhaustive", max_n=1), "vdj"), texts_of(mouse, CODED)
    with pytest.raises(Unsupported, match="2-bit layout"):
        enumerated(tables, texts, 1, layout="2bit")
    with pytest.raises(InvalidInput, match="layout"):
        enumerated(tables, texts, 1, layout="4bit")
    with pytest.raises(InvalidInput, match="share"):
        enumerated(tables, texts, 1, share=(2, 2))
    with pytest.raises(Unsupported, match="10 are the most"):
        enumerated(tables, texts, 11)
