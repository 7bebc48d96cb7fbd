"""The cause of zeros that concern a whole table is named with its numbers, and only where they support it."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.repertoires import simulated_repertoire

from plait.alphabets import reverse_complement
from plait.dp.chain.sample import FIELDS
from plait.reports.count_text import count_text
from plait.reports.model_text import pgen_text
from plait.run.rows import FinishedRun
from plait.vdj.calls import _furthest, ends_of
from plait.vdj.count_files import CountSummary, count_files
from plait.vdj.counting import PathCounter
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.model import bundled_model
from plait.vdj.model.pgen import PgenTotals, pgen_files
from plait.vdj.model.sampling import JunctionSampler
from plait.vdj.models import PathModel

Rows = list[tuple[str, str, str]]
MOUSE = load_germline("mouse_trb")
HUMAN = bundled_model("human_TRB")
MODEL = PathModel(pi=4, nu=10)


@cache
def mouse() -> tuple[tuple[str, str, str], ...]:
    table = simulated_repertoire(400, subjects=["a"], seed=3)
    columns = [table[name].to_pylist() for name in ("junction", "v_call", "j_call")]
    return tuple(zip(*columns, strict=True))


@cache
def human() -> tuple[tuple[str, str, str], ...]:
    draws = JunctionSampler(HUMAN, seed=3).block(0, 4000)
    v, j = (draws.fields[:, FIELDS.index(name)] for name in ("v", "j"))
    called = zip(draws.texts(), v.tolist(), j.tolist(), strict=True)
    return tuple((text, HUMAN.v[a].name, HUMAN.j[b].name) for text, a, b in called)[:400]


def mutated(rows: Rows, share: float) -> Rows:
    rng = random.Random(5)
    return [
        ("".join(rng.choice("ACGT".replace(b, "")) if rng.random() < share else b for b in text), v, j)
        for text, v, j in rows
    ]


def windows(rows: Rows, germline: GermlineSet = MOUSE) -> Rows:
    """The last 87 nucleotides up to six behind the junction, as kits that read a window have them."""
    alleles = {a.name: a for a in germline.alleles()} | {a.gene: a for a in reversed(germline.alleles())}
    found = []
    for text, v, j in rows:
        left, right = alleles[v].sequence[: alleles[v].anchor], alleles[j].sequence
        end = right[(alleles[j].anchor or 0) + 3 :][:6]
        found.append(((left + text + end)[-87:], v, j))
    return found


def written(rows: Rows, path: Path) -> Path:
    columns = dict(zip(("junction", "v_call", "j_call"), map(list, zip(*rows, strict=True)), strict=True))
    pq.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), path)
    return path


def counted(rows: Rows, tmp_path: Path, germline: GermlineSet = MOUSE) -> FinishedRun[CountSummary]:
    counter = PathCounter(germline, MODEL, threads=1)
    return count_files([written(rows, tmp_path / "in.parquet")], tmp_path / "out.parquet", counter, threads=1)


def weighed(rows: Rows, tmp_path: Path, **options: Any) -> FinishedRun[PgenTotals]:
    source = written(rows, tmp_path / "in.parquet")
    return pgen_files([source], tmp_path / "out.parquet", HUMAN, of="nt", threads=1, **options)


def turned(rows: Rows) -> Rows:
    return [(reverse_complement(text), v, j) for text, v, j in rows]


def inner(rows: Rows) -> Rows:
    return [(text[3:-3], v, j) for text, v, j in rows]


STRAND, CDR3, LONGER = (
    "read from the other strand",
    "CDR3s without the conserved codons",
    "beyond the junction",
)
INSERTIONS, MUTATED, WINDOW = "longer insertions?", "mutated receptors", "window of fixed length"
SPECIES, OTHERS = "another species?", "clearly more like genes of"
NOTHING, TIGHT = "nothing that was looked for", "beyond the limits of this run"
ALL = (TIGHT, STRAND, CDR3, LONGER, INSERTIONS, MUTATED, WINDOW, SPECIES, OTHERS, NOTHING)


def said(remarks: Any) -> set[str]:
    return {words for words in ALL if words in " ".join(remarks)}


@pytest.mark.parametrize(
    "model",
    [
        PathModel(pi=1, nu=2),
        PathModel(nu_vd=0, nu_dj=1),
        pytest.param(PathModel(name="dp1", max_n=2), marks=pytest.mark.slow),
    ],
)
def test_tight_limits_are_a_cause(tmp_path: Path, model: PathModel) -> None:
    rows = written(mouse(), tmp_path / "in.parquet")
    found = count_files([rows], tmp_path / "out.parquet", PathCounter(MOUSE, model, threads=1), threads=1)
    assert said(found.remarks) == {TIGHT}


def test_a_healthy_table_blames_nothing(tmp_path: Path) -> None:
    found = counted(list(mouse()), tmp_path)
    assert found.remarks == []
    text = count_text(found, seconds=1)
    assert "No gene" not in text and "wrong anchor" not in text
    for calls in ("use", "ignore"):
        assert weighed(list(human()), tmp_path, calls=calls).remarks == {"nt": []}


def test_an_error_in_the_first_codon_makes_no_cdr3(tmp_path: Path) -> None:
    damaged = [("CCC" + text[3:], v, j) for text, v, j in human()[:3]]
    assert said(weighed([*human()[3:200], *damaged], tmp_path, calls="ignore").remarks["nt"]) == set()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (turned, {STRAND}),
        (inner, {CDR3}),
        (windows, {LONGER, WINDOW}),
        (lambda rows: mutated(rows, 0.12), {MUTATED}),
        (
            lambda rows: [(t[:18] + "ACGGTTCAAGTCCGATTGCA" * 2 + t[-18:], v, j) for t, v, j in rows],
            {INSERTIONS},
        ),
    ],
)
def test_each_cause_of_zero_counts(tmp_path: Path, change: Any, expected: set[str]) -> None:
    found = counted(change(list(mouse())), tmp_path)
    assert said(found.remarks) == expected
    # No gene is to blame for what concerns the whole table.
    text = count_text(found, seconds=1)
    assert "wrong anchor" not in text and "No gene has a notable share" not in text
    assert found.summary.suspicious() == []


@pytest.mark.parametrize("calls", ["use", "ignore"])
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (turned, {STRAND}),
        (inner, {CDR3}),
        (lambda rows: windows(rows, load_germline("human_trb")), {LONGER, WINDOW}),
        (
            lambda rows: [(t[:18] + "ACGGTTCAAGTCCGATTGCA" * 5 + t[-18:], v, j) for t, v, j in rows],
            {INSERTIONS},
        ),
    ],
)
def test_each_cause_of_zero_probabilities(
    tmp_path: Path, change: Any, calls: Any, expected: set[str]
) -> None:
    known = {a.name for a in load_germline("human_trb").alleles()}
    rows = [row for row in human() if row[1] in known and row[2] in known]
    assert len(rows) > 100
    found = weighed(change(rows), tmp_path, calls=calls)
    assert said(found.remarks["nt"]) - {WINDOW} == expected - {WINDOW}
    if change is turned:
        assert STRAND in " ".join(pgen_text(found, calls=calls, seconds=1).split())


def test_amino_acids_without_conserved_ones(tmp_path: Path) -> None:
    source = tmp_path / "acids.tsv"
    source.write_text("junction_aa\n" + "ASSLGQGAYEQY\n" * 30 + "ASSPGTEAF\n" * 10)
    found = pgen_files([source], tmp_path / "out.tsv", HUMAN, threads=1)
    assert said(found.remarks["aa"]) <= {CDR3}
    assert (found.summary["aa"].zeros > 0) == (said(found.remarks["aa"]) == {CDR3})


def test_another_species(tmp_path: Path) -> None:
    # Also where probabilities are above zero: nearly every junction can be made with long trimming.
    for calls in ("ignore", "use"):
        remarks = weighed(list(mouse()), tmp_path, calls=calls).remarks["nt"]
        told = " ".join(remarks)
        assert "mouse_trb has: rows of another species?" in told
        assert "genes of mouse_trb than like those of the model human_TRB" in told or calls == "use"
    told = " ".join(counted(list(human()), tmp_path).remarks)
    assert "human_trb has: rows of another species?" in told


def test_alleles_that_a_set_lacks(tmp_path: Path) -> None:
    rows = [(junction, v.partition("*")[0] + "*77", j) for junction, v, j in list(mouse())[:30]] + list(
        mouse()
    )[30:90]
    told = " ".join(counted(rows, tmp_path).remarks)
    assert (
        "30 of 90 rows name V alleles that the germline set mouse_trb does not have, of genes that it has"
        in told
    )
    assert "another species" not in told
    rows = [(junction, v.partition("*")[0] + "*77", j) for junction, v, j in list(human())[:90]]
    told = " ".join(weighed(rows, tmp_path, calls="use").remarks["nt"])
    assert "90 of 90 rows name V alleles that the model human_TRB does not have, of genes that it has" in told


def test_another_locus(tmp_path: Path) -> None:
    rows = [("TGTGCGAGAGATTACTACGGTATGGACGTCTGG", "IGHV3-23*01", "IGHJ6*02")] * 30 + list(mouse())[:70]
    told = " ".join(counted(rows, tmp_path).remarks)
    assert "30 of 100 rows name V genes that the germline set mouse_trb does not have (IGHV3-23" in told
    assert "genes of IGH, and not of TRB" in told
    for calls in ("use", "ignore"):
        remarks = weighed(rows[:30] + list(human())[:70], tmp_path, calls=calls).remarks["nt"]
        assert any(
            "30 of 100 rows name V genes" in one and "genes of IGH, and not of TRB" in one for one in remarks
        )


def test_several_causes_at_once(tmp_path: Path) -> None:
    rows = list(mouse())
    mixed = turned(rows[:130]) + inner(rows[130:260]) + rows[260:]
    found = counted(mixed, tmp_path)
    assert said(found.remarks) == {STRAND, CDR3}
    assert weighed(turned(list(human())[:50]) + list(human())[50:], tmp_path).remarks["nt"]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_small_tables(tmp_path: Path, n: int) -> None:
    assert said(counted(turned(list(mouse())[:n]), tmp_path).remarks) == {STRAND}
    assert counted(list(mouse())[:n], tmp_path).remarks == []


def test_what_nothing_explains_is_said(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = [("TGT" + "".join(rng.choices("ACGT", k=80)) + "TTC", v, j) for _, v, j in list(mouse())[:60]]
    found = counted([(t[: 70 + 2 * (k % 8)], v, j) for k, (t, v, j) in enumerate(rows)], tmp_path)
    text = " ".join(count_text(found, seconds=1).split())
    assert found.summary.zeros == 60
    assert NOTHING in text and "No gene has a notable share" not in text and "wrong anchor" not in text


def test_a_gene_with_a_wrong_anchor_is_still_blamed(tmp_path: Path) -> None:
    wrong = next(a for a in MOUSE.v if a.gene == "TRBV19")
    assert wrong.anchor is not None
    shifted = replace(wrong, anchor=wrong.anchor - 9)
    germline = replace(MOUSE, v=tuple(shifted if a is wrong else a for a in MOUSE.v))
    found = counted(list(mouse()) * 3, tmp_path, germline)
    assert wrong.gene in found.summary.suspicious()
    assert f"Check {wrong.gene}" in count_text(found, seconds=1)


def test_blocks_and_resumed_runs_tell_the_same(tmp_path: Path) -> None:
    found = counted(turned(list(mouse())), tmp_path)
    parts = [counted(turned(list(mouse())[a : a + 200]), tmp_path).summary for a in (0, 200)]
    parts[0].merge(parts[1])
    assert parts[0].causes.causes["reverse_complement"] == 128
    assert said(parts[0].remarks(MOUSE)) == said(found.remarks)


@given(st.lists(st.text("ACGT", min_size=1, max_size=6), max_size=8), st.text("ACGT", max_size=6))
def test_the_furthest_match_stands_beside_the_text(ends: list[str], text: str) -> None:
    begun = {end[:n] for end in ends for n in range(len(end) + 1)}
    matched = [n for n in range(1, len(text) + 1) if text[:n] in begun]
    assert _furthest(text, ends_of(ends, ())[0]) == max(matched, default=0)
