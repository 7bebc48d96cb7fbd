"""Tables of a study: against plain counts, whatever the parts; intervals of compositions; the text."""

from __future__ import annotations

import math
import pickle
import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples, often

from plait.stats.contingency import ContingencyTable
from plait.stats.rank_correlation import kendall, spearman
from plait.vdj.convergence import figure_tables
from plait.vdj.convergence.claims import number, read_table
from plait.vdj.convergence.figure_tables import FigureTables
from plait.vdj.convergence.pgen_tables import CORRELATION_COLUMNS, PAIR_COLUMNS, SWEEP_COLUMNS, FigureSettings

SETTINGS = FigureSettings(pi=(0, 4), nu=(0, 5, 10), fewest=5, most_shared=7)
MODELS = [(0, 0), (0, 5), (0, 10), (4, 0), (4, 5), (4, 10)]
SPANS = ("n1", "n2", "ndn")
Clonotype = dict[str, Any]


def drawn(n: int, seed: int = 0, *, subjects: int = 4) -> list[Clonotype]:
    """Clonotypes with the subjects that have them, each with its rows and duplicate count."""
    rng = random.Random(seed)
    found: dict[tuple[str, str, str], Clonotype] = {}
    while len(found) < n:
        junction = "TGT" + "".join(rng.choices("ACGT", k=3 * rng.randint(1, 4))) + "TTC"
        key = (junction, rng.choice(("TRBV1", "TRBV2", "")), rng.choice(("TRBJ1-1", "TRBJ2-7")))
        counted, with_d = rng.random() < 0.9, rng.random() < 0.8
        n2 = rng.randint(0, 5)
        paths = rng.choice((0, 1, 10, 99, 100, 101, 12345, rng.randrange(1 << 40)))
        spans = {f"{span}_{base}": rng.randint(0, 3) for span in SPANS for base in "acgt"}
        d_only = {"n2_length", *(f"n2_{base}" for base in "acgt")}
        regions: dict[str, Any] = {"n2_length": n2, **spans}
        found[key] = {
            "junction": junction,
            "v_gene": key[1],
            "j_gene": key[2],
            "status": "ok" if counted else "unknown_v_call",
            "path_count": paths if counted else None,
            "junction_length": len(junction),
            **{k: v if counted and (with_d or k not in d_only) else None for k, v in regions.items()},
            "path_count_sweep": [rng.choice((0, paths, paths // 7)) for _ in MODELS]
            if counted
            else [None] * 6,
            "pairs": {
                f"s{k}": (rng.randint(1, 3), rng.choice((None, rng.randint(1, 9))))
                for k in rng.sample(range(subjects), rng.choice((1, 1, 1, 2, 3, subjects)))
            },
        }
    return list(found.values())


def tables_of(rows: list[Clonotype], *, without: tuple[str, ...] = ()) -> tuple[pa.Table, pa.Table]:
    """The tables of clonotypes and of pairs that a study hands over."""
    kinds = {"junction": pa.large_string(), "v_gene": pa.large_string(), "j_gene": pa.large_string()}
    kinds |= {
        "subjects": pa.int32(),
        "rows": pa.int64(),
        "duplicate_count": pa.int64(),
        "status": pa.string(),
    }
    kinds |= {"path_count": pa.int64(), "junction_length": pa.int32(), "n2_length": pa.int32()}
    kinds |= {f"{span}_{base}": pa.int32() for span in SPANS for base in "acgt"}
    kinds |= {"path_count_sweep": pa.list_(pa.int64(), len(MODELS))}
    wide = [
        row
        | {
            "subjects": len(row["pairs"]),
            "rows": sum(n for n, _ in row["pairs"].values()),
            "duplicate_count": total([d for _, d in row["pairs"].values()]),
        }
        for row in rows
    ]
    clonotypes = pa.table({k: pa.array([row[k] for row in wide], kind) for k, kind in kinds.items()})
    long = [
        row | {"subject": subject, "rows": n, "duplicate_count": d}
        for row in wide
        for subject, (n, d) in row["pairs"].items()
    ]
    names = {
        "subject": pa.large_string(),
        **{k: kinds[k] for k in ("rows", "duplicate_count", *PAIR_COLUMNS)},
    }
    pairs = pa.table({k: pa.array([row[k] for row in long], kind) for k, kind in names.items()})
    return tuple(t.drop_columns([c for c in without if c in t.column_names]) for t in (clonotypes, pairs))


def total(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def filled(rows: list[Clonotype], chosen: FigureSettings = SETTINGS, **options: Any) -> FigureTables:
    found = FigureTables(chosen)
    clonotypes, pairs = tables_of(rows, **options)
    found.add_clonotypes(clonotypes)
    found.add_pairs(pairs)
    return found


def written(tables: FigureTables, folder: Path, **options: Any) -> dict[str, list[dict[str, str]]]:
    return {name: read_table(path) for name, path in tables.write(folder, **options).items()}


def values(cells: list[dict[str, str]], *names: str) -> list[tuple[float | None, ...]]:
    return [tuple(number(row[name]) for name in names) for row in cells]


@pytest.fixture(scope="module")
def rows() -> list[Clonotype]:
    return drawn(400, 1)


@pytest.fixture(scope="module")
def found(rows: list[Clonotype], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    sheet = {
        "s0": {"files": 2, "rows_left_out": 5, "sex": "f"},
        "s9": {"files": 1, "rows_left_out": 3, "age": 4},
    }
    return written(filled(rows), tmp_path_factory.mktemp("tables"), subjects=sheet)


def test_every_table_is_there(found: dict[str, list[dict[str, str]]]) -> None:
    assert set(found) == {
        "subjects",
        "statuses",
        "sharing_levels",
        "path_count_by_sharing",
        "n2_length_by_sharing",
        "sweep",
        "vj_usage",
        "cdr3_lengths",
        "v_by_subject",
        "diversity",
        "rarefaction",
        "n_composition",
        "correlations",
        "top_shared",
    }


def test_subjects(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    assert [row["subject"] for row in found["subjects"]] == ["s0", "s1", "s2", "s3", "s9"]
    columns = "subject files rows rows_left_out clonotypes shared_clonotypes duplicate_count sex age"
    assert list(found["subjects"][0]) == columns.split()
    mine = [(row, row["pairs"]["s0"]) for row in rows if "s0" in row["pairs"]]
    first = found["subjects"][0]
    assert first["rows"] == str(sum(n for _, (n, _) in mine))
    assert first["clonotypes"] == str(len(mine))
    assert first["shared_clonotypes"] == str(sum(len(row["pairs"]) >= 2 for row, _ in mine))
    assert first["duplicate_count"] == str(sum(d or 0 for _, (_, d) in mine))
    assert (first["files"], first["rows_left_out"], first["sex"], first["age"]) == ("2", "5", "f", "")
    assert (found["subjects"][4]["clonotypes"], found["subjects"][4]["age"]) == ("0", "4")


def test_statuses_and_usage(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    expected: Counter[str] = Counter()
    for row in rows:
        expected[row["status"]] += sum(n for n, _ in row["pairs"].values())
    assert {row["status"]: int(row["rows"]) for row in found["statuses"]} == expected
    assert all(row["meaning"] for row in found["statuses"])
    usage = Counter((row["v_gene"], row["j_gene"]) for row in rows)
    assert {(row["v_gene"], row["j_gene"]): int(row["clonotypes"]) for row in found["vj_usage"]} == usage
    lengths = Counter((subject, row["junction_length"]) for row in rows for subject in row["pairs"])
    assert {
        (row["subject"], int(row["junction_length"])): int(row["clonotypes"]) for row in found["cdr3_lengths"]
    } == lengths


def test_sharing_levels(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    by_level: dict[int, list[Clonotype]] = defaultdict(list)
    for row in rows:
        by_level[len(row["pairs"])].append(row)
    assert [int(row["subjects"]) for row in found["sharing_levels"]] == sorted(by_level)
    for cells in found["sharing_levels"]:
        level = by_level[int(cells["subjects"])]
        counts = [row["path_count"] for row in level if row["path_count"] is not None]
        lengths = [row["n2_length"] for row in level if row["n2_length"] is not None]
        assert (int(cells["clonotypes"]), int(cells["counted"])) == (len(level), len(counts))
        assert int(cells["zero_counts"]) == counts.count(0)
        for share in (5, 25, 50, 75, 95):
            for name, of in (("path_count", counts), ("n2_length", lengths)):
                assert float(cells[f"{name}_q{share:02d}"]) == pytest.approx(
                    np.quantile(of, share / 100), rel=1e-9
                )
        logs = [math.log10(count) for count in counts if count]
        assert float(cells["path_count_mean_log10"]) == pytest.approx(np.mean(logs), rel=1e-9)
        assert float(cells["n2_length_mean"]) == pytest.approx(np.mean(lengths), rel=1e-9)
        at, whole = (
            sum(row[f"n2_{base}"] or 0 for row in level for base in bases) for bases in ("at", "acgt")
        )
        assert float(cells["n2_at_share"]) == pytest.approx(at / whole, rel=1e-9)


def test_distributions(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    bins: Counter[tuple[int, float | None, float | None]] = Counter()
    lengths: Counter[tuple[int, float | None]] = Counter()
    for row in rows:
        count, level = row["path_count"], len(row["pairs"])
        if count is None:
            continue
        low = None if count == 0 else math.floor(4 * math.log10(count) + 1e-9) / 4
        bins[level, low, None if low is None else low + 0.25] += 1
        lengths[level, row["n2_length"]] += 1
    cells = values(found["path_count_by_sharing"], "subjects", "log10_low", "log10_high", "clonotypes")
    assert {row[:3]: row[3] for row in cells} == bins
    cells = values(found["n2_length_by_sharing"], "subjects", "n2_length", "clonotypes")
    assert {row[:2]: row[2] for row in cells} == lengths


def test_sweep(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    assert [tuple(map(int, (row["pi"], row["nu"]))) for row in found["sweep"]] == [
        model for model in MODELS for _ in range(4)
    ]
    for cells in found["sweep"]:
        place = MODELS.index((int(cells["pi"]), int(cells["nu"])))
        counts = sorted(
            row["path_count_sweep"][place]
            for row in rows
            if row["path_count"] is not None and len(row["pairs"]) == int(cells["subjects"])
        )
        assert (int(cells["counted"]), int(cells["zero_counts"])) == (len(counts), counts.count(0))
        for share in (0.25, 0.5, 0.75):
            exact = counts[math.ceil(share * len(counts)) - 1]
            given_one = float(cells[f"path_count_q{round(100 * share)}"])
            assert (given_one == 0) == (exact == 0)
            if exact:
                assert abs(math.log10(given_one) - math.log10(exact)) <= 0.025 + 1e-8


def test_correlations(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    cells = {tuple(list(row.values())[:5]): row for row in found["correlations"]}
    counted = [row for row in rows if row["path_count"] is not None]
    richness = [row for row in counted if sum(row[f"n2_{base}"] or 0 for base in "acgt")]

    def at(row: Clonotype) -> float:
        return float((row["n2_a"] + row["n2_t"]) / sum(row[f"n2_{base}"] for base in "acgt"))

    sharing = [
        ("all", "", "path_count", [(row["path_count"], len(row["pairs"])) for row in counted]),
        ("all", "", "n2_at", [(at(row), len(row["pairs"])) for row in richness]),
        (
            "v_gene",
            "TRBV1",
            "n2_length",
            [(row["n2_length"], len(row["pairs"])) for row in counted if row["v_gene"] == "TRBV1"],
        ),
        (
            "vj",
            "TRBV2 TRBJ2-7",
            "path_count",
            [
                (row["path_count"], len(row["pairs"]))
                for row in counted
                if (row["v_gene"], row["j_gene"]) == ("TRBV2", "TRBJ2-7")
            ],
        ),
        (
            "subject",
            "s1",
            "n2_at",
            [(at(row), len(row["pairs"])) for row in richness if "s1" in row["pairs"]],
        ),
    ]
    pooled = [(row["path_count"], d) for row in counted for _, d in row["pairs"].values()]
    single = [(at(row), row["pairs"]["s2"][1]) for row in richness if "s2" in row["pairs"]]
    frequency = [("all", "", "path_count", pooled), ("subject", "s2", "n2_at", single)]
    for y, cases in (("subjects", sharing), ("duplicate_count", frequency)):
        for kind, stratum, x, pairs in cases:
            known = [pair for pair in pairs if None not in pair]
            table = ContingencyTable()
            table.add(*(np.array(column) for column in zip(*known, strict=True)))
            for method in (spearman, kendall):
                row, expected = cells[kind, stratum, x, y, method.__name__], method(table.pairs())
                given_ones = values([row], "estimate", "low", "high", "n")[0]
                wanted = (expected.estimate, expected.low, expected.high, expected.n)
                assert given_ones == pytest.approx(wanted, rel=1e-9)
    kinds = list(dict.fromkeys(row["stratum_kind"] for row in found["correlations"]))
    assert kinds == ["all", "subject", "v_gene", "j_gene", "vj"]
    assert "" not in {row["stratum"] for row in found["correlations"] if row["stratum_kind"] != "all"}


def test_small_strata_have_n_alone(tmp_path: Path) -> None:
    rows = written(filled(drawn(30, 3), replace(SETTINGS, fewest=20)), tmp_path)["correlations"]
    small = [row for row in rows if int(row["n"]) < 20]
    assert small
    assert {(row["estimate"], row["low"], row["high"]) for row in small} == {("", "", "")}
    assert any(row["estimate"] for row in rows if int(row["n"]) >= 20)


def test_most_shared(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    def place(row: Clonotype) -> tuple[Any, ...]:
        return (
            -len(row["pairs"]),
            -sum(n for n, _ in row["pairs"].values()),
            row["junction"],
            row["v_gene"],
            row["j_gene"],
        )

    expected = [(r["junction"], r["v_gene"], r["j_gene"]) for r in sorted(rows, key=place)[:7]]
    top = found["top_shared"]
    assert [(row["junction"], row["v_gene"], row["j_gene"]) for row in top] == expected
    assert all(row["junction_aa"].startswith("C") and row["junction_aa"].endswith("F") for row in top)


def test_composition_shares(rows: list[Clonotype], found: dict[str, list[dict[str, str]]]) -> None:
    assert len(found["n_composition"]) == 3 * 2 * 4
    for cells in found["n_composition"]:
        mine = [row for row in rows if (len(row["pairs"]) >= 2) == (cells["shared"] == "T")]
        counts = {base: sum(row[f"{cells['span']}_{base}"] or 0 for row in mine) for base in "acgt"}
        assert int(cells["nucleotides"]) == counts[cells["base"]]
        assert float(cells["share"]) == pytest.approx(counts[cells["base"]] / sum(counts.values()), rel=1e-9)
        assert float(cells["low"]) < float(cells["share"]) < float(cells["high"])


BYTES = st.integers(0, 3).flatmap(lambda k: st.lists(st.integers(0, 40), min_size=k, max_size=k))


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds", often(1, [((1 << 20, 1 << 18),), ((25, 3),), ((12, 25),)]), ids=["exact", "rounded", "mixed"]
)
@examples(8)
@given(seed=st.integers(0, 10**6), cuts=BYTES, block=st.sampled_from([7, 1 << 17]))
def test_parts_and_order_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, bounds: tuple[int, int], seed: int, cuts: list[int], block: int
) -> None:
    chosen = replace(SETTINGS, exact_pairs=bounds[0], rounded_pairs=bounds[1])
    rows = drawn(40, seed)
    whole = {
        p.name: p.read_bytes() for p in filled(rows, chosen).write(tmp_path_factory.mktemp("w")).values()
    }
    random.Random(seed).shuffle(rows)
    ends = [0, *sorted(cuts), len(rows)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure_tables, "_BLOCK", block)
        parts = [filled(rows[a:b], chosen) for a, b in pairwise(ends)]
    parts = [pickle.loads(pickle.dumps(part)) for part in parts]
    last = parts.pop()
    first = FigureTables(chosen)
    for part in parts:
        first.merge(part)
    last.merge(first)
    split = {p.name: p.read_bytes() for p in last.write(tmp_path_factory.mktemp("s")).values()}
    assert split == whole
    assert last.notes() == filled(rows, chosen).notes()
    if bounds != (12, 25):
        assert bool(last.notes()) == (bounds == (25, 3))


def test_a_chain_without_d_and_a_table_without_counts(tmp_path: Path) -> None:
    without = ("n2_length", "n2_a", "n2_c", "n2_g", "n2_t", "duplicate_count", "path_count_sweep", "status")
    found = written(filled(drawn(80, 5), without=without), tmp_path)
    assert found["sweep"] == found["statuses"] == []
    assert {row["x"] for row in found["correlations"]} == {"path_count"}
    assert {row["y"] for row in found["correlations"]} == {"subjects", "rows"}
    assert {row["duplicate_count"] for row in found["subjects"]} == {""}
    assert {row["n2_length"] for row in found["n2_length_by_sharing"]} == {""}
    assert {row["span"] for row in found["n_composition"]} == {"n1", "ndn"}
    assert {row["n2_length_q50"] for row in found["sharing_levels"]} == {""}
    assert "n2_length" in found["top_shared"][0]


def test_no_clonotypes(tmp_path: Path) -> None:
    nothing = filled([])
    paths = nothing.write(tmp_path)
    assert all(path.read_text().count("\n") == 1 for path in paths.values())
    assert paths["correlations"].read_text() == "\t".join(CORRELATION_COLUMNS) + "\n"
    assert paths["sweep"].read_text() == "\t".join(SWEEP_COLUMNS) + "\n"
    assert FigureTables(SETTINGS).write(tmp_path).keys() == paths.keys()


def test_what_does_not_belong_together() -> None:
    with pytest.raises(ValueError, match="settings"):
        FigureTables(SETTINGS).merge(FigureTables(replace(SETTINGS, shared_by=3)))
    with pytest.raises(ValueError, match="6 counts a clonotype, 2 models"):
        filled(drawn(5), replace(SETTINGS, pi=(0, 4), nu=(10,)))
