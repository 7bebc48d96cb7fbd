from __future__ import annotations

import dataclasses
import random
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import FormatError, InvalidInput
from plait.formats.rearrangements import open_rearrangements
from plait.formats.tables import open_table
from plait.vdj.clonotypes.clonotypes import ClonotypeCollector, ClonotypeCounts, ClonotypeSettings

KINDS = {
    "productive": pa.bool_(),
    "vj_in_frame": pa.bool_(),
    "stop_codon": pa.bool_(),
    "v_identity": pa.float64(),
    "duplicate_count": pa.int64(),
    "consensus_count": pa.int64(),
    "umi_count": pa.int64(),
}
TEXTS = ("repertoire_id", "junction", "junction_aa", "v_call", "d_call", "j_call", "junction_quality")
SIZES = (700, 4000, 1 << 22)


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    kinds = dict.fromkeys(TEXTS, pa.string()) | KINDS
    return pa.record_batch({name: pa.array([row.get(name) for row in rows], k) for name, k in kinds.items()})


def collapse(
    rows: list[dict[str, Any]], *, portion: int = 10, folder: Path | None = None, **settings: Any
) -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory() as temporary,
        ClonotypeCollector((folder or Path(temporary)) / "rows", ClonotypeSettings(**settings)) as collector,
    ):
        for start in range(0, len(rows), portion):
            collector.add(batch_of(rows[start : start + portion]))
        batches = list(collector.finish())
        assert sum(batch.num_rows for batch in batches) == collector.counts.clonotypes
        return [row for batch in batches for row in batch.to_pylist()]


def row(junction: str | None = "TGTGCCTTC", **columns: Any) -> dict[str, Any]:
    return {"junction": junction, "v_call": "TRBV1*01", "j_call": "TRBJ1-1*01", **columns}


def winner(votes: Counter[Any], last: Any = "") -> Any:
    return min(votes, key=lambda value: (-votes[value], value == last, value))


def oracle(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same in plain Python."""
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for r in rows:
        v, j = ((r[name] or "").split(",")[0].split("*")[0] for name in ("v_call", "j_call"))
        if r["junction"] and v and j:
            groups[r["junction"].upper(), v, j, r.get("repertoire_id") or ""].append(r)
    found = []
    for key, members in groups.items():
        counts = [r.get("duplicate_count") or 1 for r in members]
        clonotype: dict[str, Any] = {"junction": key[0], "repertoire_id": key[3] or None, "key": key}
        for name in ("v_call", "d_call", "j_call", "junction_aa"):
            votes: Counter[str] = Counter()
            for r, n in zip(members, counts, strict=True):
                votes[r.get(name) or ""] += n
            clonotype[name] = winner(votes) or None
        flags: Counter[tuple[int, ...]] = Counter()
        names = ("productive", "vj_in_frame", "stop_codon")
        for r, n in zip(members, counts, strict=True):
            flags[tuple(-1 - r[x] if r.get(x) is not None else 0 for x in names)] += n
        best = winner(flags, last=None)
        clonotype |= {x: None if value == 0 else value == -2 for x, value in zip(names, best, strict=True)}
        clonotype["duplicate_count"] = sum(counts)
        reads = [r.get("consensus_count") or n for r, n in zip(members, counts, strict=True)]
        clonotype["consensus_count"] = sum(reads)
        clonotype["umi_count"] = sum(r.get("umi_count") or 0 for r in members) or None
        known = [(r["v_identity"], n) for r, n in zip(members, counts, strict=True) if r.get("v_identity")]
        total = sum(n for _, n in known)
        clonotype["v_identity"] = sum(x * n for x, n in known) / total if total else None
        scores = [r["junction_quality"] for r in members if r.get("junction_quality")]
        clonotype["junction_quality"] = "".join(map(max, zip(*scores, strict=True))) or None
        found.append(clonotype)
    return sorted(found, key=lambda c: (-c["duplicate_count"], c.pop("key")))


def assert_equal(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert [r["sequence_id"] for r in found] == [f"clonotype-{i + 1}" for i in range(len(found))]
    for name in ("v_identity",):
        assert [r[name] for r in found] == pytest.approx([r.pop(name) for r in expected], abs=1e-6)
    assert [{name: r[name] for name in e} for r, e in zip(found, expected, strict=True)] == expected


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    junctions = ["".join(rng.choices("ACGT", k=rng.choice([3, 9, 9, 12]))) for _ in range(4)]
    junctions += [junctions[0].lower(), "", None]  # type: ignore[list-item]
    found = []
    for _ in range(draw(st.integers(0, 60))):
        junction = rng.choice(junctions)
        entry = row(
            junction,
            v_call=rng.choice(["TRBV1*01", "TRBV1*02,TRBV2*01", "TRBV1*01,TRBV1*02", "TRBV2*01", "", None]),
            j_call=rng.choice(["TRBJ1-1*01", "TRBJ1-1*02", "TRBJ2-1*01"]),
            d_call=rng.choice([None, "", "TRBD1*01", "TRBD2*01"]),
            junction_aa=rng.choice(["CAF", "CAF", None]),
            repertoire_id=rng.choice(["a", "b", None]),
            duplicate_count=rng.choice([None, 1, 1, 7]),
            consensus_count=rng.choice([None, 20]),
            umi_count=rng.choice([None, 1]),
            v_identity=rng.choice([None, 0.5, 0.987654]),
        )
        entry |= {name: rng.choice([None, True, False]) for name in ("productive", "stop_codon")}
        if junction and rng.random() < 0.7:
            entry["junction_quality"] = "".join(rng.choices("#5I", k=len(junction)))
        found.append(entry)
    return found


@given(tables(), st.sampled_from(SIZES), st.integers(1, 20), st.randoms())
def test_equal_to_a_dictionary(
    rows: list[dict[str, Any]], memory_bytes: int, portion: int, rng: random.Random
) -> None:
    expected = oracle(rows)
    rng.shuffle(rows)
    assert_equal(collapse(rows, portion=portion, memory_bytes=memory_bytes), expected)


@pytest.mark.slow
@given(tables(), st.sampled_from(SIZES), st.randoms())
def test_counts_are_kept_when_satellites_are_merged(
    rows: list[dict[str, Any]], memory_bytes: int, rng: random.Random
) -> None:
    first = collapse(rows, satellite_ratio=2)
    rng.shuffle(rows)
    again = collapse(rows, satellite_ratio=2, memory_bytes=memory_bytes, portion=3)
    assert first == again
    for name in ("duplicate_count", "consensus_count"):
        assert sum(r[name] for r in first) == sum(r[name] for r in oracle(rows))


@pytest.mark.slow
def test_many_runs_are_merged(tmp_path: Path) -> None:
    rng = random.Random(4)
    rows = [row("".join(rng.choices("AC", k=9)), d_call=rng.choice("xyz")) for _ in range(600)]
    assert_equal(collapse(rows, portion=40, memory_bytes=3000), oracle(rows))


def test_rows_without_a_key_are_counted(tmp_path: Path) -> None:
    rows = [row(), row(""), row(None), row(v_call=None), row(j_call=" "), row(None, v_call="")]
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(batch_of(rows))
        assert [batch.num_rows for batch in collector.finish()] == [1]
        counts = collector.counts
    assert counts.rows == 6
    assert counts.left_out == {"no_j_gene": 1, "no_junction": 3, "no_v_gene": 1}
    assert counts.clonotypes == 1


def test_the_first_gene_of_a_call_counts() -> None:
    rows = [row(v_call="TRBV1*01,TRBV2*01"), row(v_call="TRBV1*02"), row(v_call="TRBV2*01,TRBV1*01")]
    assert [r["duplicate_count"] for r in collapse(rows)] == [2, 1]


def low(junction: str, *bad: int, **columns: Any) -> dict[str, Any]:
    scores = "".join("#" if at in bad else "I" for at in range(len(junction)))
    return row(junction, junction_quality=scores, **columns)


def told(rows: list[dict[str, Any]], folder: Path, **settings: Any) -> tuple[dict[str, int], ClonotypeCounts]:
    """Count of each junction, and what became of the rows."""
    with ClonotypeCollector(folder / "rows", ClonotypeSettings(min_quality=15, **settings)) as collector:
        collector.add(batch_of(rows))
        found = [r for batch in collector.finish() for r in batch.to_pylist()]
        return {r["junction"]: r["duplicate_count"] for r in found}, collector.counts


def test_a_row_of_low_quality_joins_the_only_clonotype_that_agrees(tmp_path: Path) -> None:
    rows = [low("TGTGCCTTC", umi_count=1), low("TGTGCATTC", 5, umi_count=1, duplicate_count=3)]
    found, counts = told(rows, tmp_path)
    assert found == {"TGTGCCTTC": 4}
    assert (counts.rows, counts.low_quality, counts.joined, counts.left_out) == (2, 1, 1, {})


def test_a_row_of_low_quality_that_two_clonotypes_agree_with_joins_none(tmp_path: Path) -> None:
    rows = [*[low("TGTGCCTTC")] * 40, low("TGTGCGTTC"), low("TGTGCATTC", 5)]
    found, counts = told(rows, tmp_path)
    assert found == {"TGTGCCTTC": 40, "TGTGCGTTC": 1}
    assert (counts.low_quality, counts.joined, counts.left_out) == (1, 0, {"several_clonotypes_agree": 1})
    # One of the two is merged with the other, if its base was poor enough for that and good enough for this.
    rows[40] = row("TGTGCGTTC", junction_quality="IIIII5III")
    found, counts = told(rows, tmp_path, satellite_ratio=20)
    assert (found, counts.joined, counts.left_out) == ({"TGTGCCTTC": 42}, 1, {})


def test_a_row_of_low_quality_makes_no_clonotype(tmp_path: Path) -> None:
    rows = [
        low("TGTGCCTTC"),
        low("TGTGCATTG", 5),  # another good base
        low("TGTGCATTC", 5, v_call="TRBV2*01"),
        low("TGTGCATTC", 5, j_call="TRBJ2-1*01"),
        low("TGTGCATTC", 5, repertoire_id="b"),
        low("TGTGCATTCTTC", 5),
        low("TGTGCCTTC", 0, 1, 2, 3, 4),
        row("TGTGCCTTC"),  # without scores
    ]
    found, counts = told(rows, tmp_path)
    assert found == {"TGTGCCTTC": 2}
    assert (counts.low_quality, counts.joined) == (6, 0)
    assert counts.left_out == {"no_clonotype_agrees": 5, "too_few_good_bases": 1}
    assert told(rows[1:3], tmp_path)[0] == {}


@pytest.mark.slow
@given(st.integers(0, 1 << 30), st.sampled_from(SIZES), st.integers(1, 40))
def test_rows_of_low_quality_join_as_in_plain_python(seed: int, memory_bytes: int, portion: int) -> None:
    rng = random.Random(seed)
    rows = []
    for _ in range(rng.randint(0, 80)):
        junction = "TGT" + "".join(rng.choices("AC", k=rng.choice([3, 9]))) + "TTC"
        bad = rng.sample(range(len(junction)), rng.choice([0, 0, 1, 2, 9]))
        v = rng.choice(["TRBV1*01", "TRBV2*01"])
        rows.append(low(junction, *bad, v_call=v, repertoire_id=rng.choice("ab"), umi_count=1))
    good = Counter(
        (r["junction"], r["v_call"], r["repertoire_id"]) for r in rows if "#" not in r["junction_quality"]
    )
    expected = Counter(good)
    for r in rows:
        bases = [(at, base) for at, base in enumerate(r["junction"]) if r["junction_quality"][at] == "I"]
        agree = [
            key
            for key in good
            if key[1:] == (r["v_call"], r["repertoire_id"])
            and len(key[0]) == len(r["junction"])
            and all(key[0][at] == base for at, base in bases)
        ]
        if "#" in r["junction_quality"] and len(agree) == 1 and 2 * len(bases) >= len(r["junction"]):
            expected[agree[0]] += 1
    for order in (rows, rows[::-1]):
        found = collapse(order, min_quality=15, memory_bytes=memory_bytes, portion=portion)
        assert {
            (r["junction"], r["v_call"], r["repertoire_id"]): r["duplicate_count"] for r in found
        } == expected
        assert all(r["duplicate_count"] == r["umi_count"] for r in found)


def test_columns_of_airr(tmp_path: Path) -> None:
    """Every column that an AIRR table must have is there."""
    (found,) = collapse([row(j_call="trdj1*01", d_call="TRDD1*01")])
    required = (
        "sequence_id sequence rev_comp productive v_call d_call j_call sequence_alignment "
        "germline_alignment junction junction_aa v_cigar d_cigar j_cigar"
    )
    assert set(required.split()) <= found.keys()
    assert found["locus"] == "TRD"
    assert found["productive"] is None
    assert found["rev_comp"] is False


def test_few_columns_are_enough(tmp_path: Path) -> None:
    batch = pa.record_batch({name: [value] for name, value in row().items()})
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(batch)
        (found,) = [r for b in collector.finish() for r in b.to_pylist()]
    assert found["duplicate_count"] == found["consensus_count"] == 1
    assert not {"umi_count", "v_identity", "junction_quality"} & found.keys()


def test_the_columns_are_known_before_the_first_row(tmp_path: Path) -> None:
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(batch_of([]))
        schema = collector.schema
        assert {"umi_count", "v_identity", "junction_quality"} <= set(schema.names)
        assert list(collector.finish()) == []
    assert collector.counts.clonotypes == 0
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(batch_of([]))
        collector.add(batch_of([row(v_identity=1.0)]))
        assert [batch.schema for batch in collector.finish()] == [schema]


def test_the_quality_of_the_junction_follows_from_that_of_the_read(tmp_path: Path) -> None:
    columns = {
        "junction": ["TGTGCC", "TGTGCC", "TGTGCC", "TGTTTT"],
        "v_call": ["TRBV1*01"] * 4,
        "j_call": ["TRBJ1-1*01"] * 4,
        "quality": ["##ABCDEF##", "GFEDCB", None, "ABCDEFG"],
        "cdr3_start": [6, 4, 4, 6],
    }
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(pa.record_batch(columns).slice(0, 2))
        collector.add(pa.record_batch(columns).slice(2))
        found = [r for b in collector.finish() for r in b.to_pylist()]
    # That of the last read would go beyond its end.
    assert [r["junction_quality"] for r in found] == ["GFEDEF", None]


def test_text_columns_of_tables_are_understood(tmp_path: Path) -> None:
    columns = {name: [value, value] for name, value in row().items()}
    columns |= {"productive": ["T", ""], "stop_codon": ["F", "F"], "duplicate_count": ["3", ""]}
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(pa.record_batch(columns))
        (found,) = [r for b in collector.finish() for r in b.to_pylist()]
    assert (found["duplicate_count"], found["productive"], found["stop_codon"]) == (4, True, False)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"junction": ["A"], "v_call": ["V"]}, "no column 'j_call'"),
        ({**row("A"), "duplicate_count": [0]}, "duplicate_count: found 0"),
        ({**row("A"), "duplicate_count": ["x"]}, "duplicate_count: found"),
        ({**row("A"), "productive": [3]}, "productive: found values of type int64"),
        ({**row("A"), "junction_quality": ["II"]}, "2 scores for 1 bases"),
    ],
    ids=["column", "zero", "text", "flag", "quality"],
)
def test_wrong_columns_are_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    batch = pa.record_batch({name: v if isinstance(v, list) else [v] for name, v in columns.items()})
    with ClonotypeCollector(tmp_path / "rows") as collector, pytest.raises(InvalidInput, match=message):
        collector.add(batch)
    assert not (tmp_path / "rows").exists()


def test_other_columns_in_a_later_batch_are_refused(tmp_path: Path) -> None:
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(batch_of([row()]))
        with pytest.raises(InvalidInput, match="the same columns"):
            collector.add(batch_of([row()]).drop_columns(["umi_count"]))


@pytest.mark.parametrize(
    "settings",
    [
        {"satellite_ratio": 1.0},
        {"satellite_ratio": float("nan")},
        {"satellite_quality": 95},
        {"min_quality": -1},
        {"memory_bytes": 0},
    ],
    ids=["ratio", "no_number", "quality", "min_quality", "memory"],
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(settings))):
        ClonotypeSettings(**settings)
    assert dataclasses.asdict(ClonotypeSettings())["satellite_ratio"] is None


def test_what_a_killed_run_left_is_replaced_and_damage_found(tmp_path: Path) -> None:
    settings = ClonotypeSettings(memory_bytes=1)
    killed = ClonotypeCollector(tmp_path / "rows", settings)
    killed.add(batch_of([row("ACG"), row("ACT")]))
    with ClonotypeCollector(tmp_path / "rows", settings) as collector:
        collector.add(batch_of([row()]))
        assert [r["junction"] for b in collector.finish() for r in b.to_pylist()] == ["TGTGCCTTC"]
    with ClonotypeCollector(tmp_path / "rows", settings) as collector:
        collector.add(batch_of([row()]))
        (path,) = (tmp_path / "rows").glob("*.arrows")
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(FormatError, match="damaged"):
            list(collector.finish())
    assert list(tmp_path.iterdir()) == []


def test_the_table_is_one_of_rearrangements(tmp_path: Path) -> None:
    path = tmp_path / "out.tsv"
    with ClonotypeCollector(tmp_path / "rows") as collector:
        collector.add(batch_of([row(repertoire_id="a")] * 3))
        with open_table(path, collector.schema, metadata={}) as table:
            for batch in collector.finish():
                table.write(batch)
    with open_rearrangements(path, layout="airr", block_rows=10) as reader:
        assert {"junction", "v_call", "j_call", "count", "sequence_id"} <= reader.roles.keys()
        (block,) = list(reader)
    assert block[reader.roles["count"]].to_pylist() == ["3"]
