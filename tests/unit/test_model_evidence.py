"""Evidence for a model: which rows, how often, and the file that they go to; models of germline sets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.recombination import small_model

from plait.errors import FormatError, InvalidInput, Unsupported
from plait.run.executor import LocalExecutor
from plait.vdj.germline import load_germline
from plait.vdj.model import EvidenceChoice, RecombinationModel, model_from_germline
from plait.vdj.model import evidence as files
from plait.vdj.model.evidence import row_kinds
from plait.vdj.model.junctions import encode_texts


@given(st.lists(st.tuples(st.text("ACGTN", min_size=6, max_size=24), st.booleans()), max_size=20))
def test_kinds_of_rows(rows: list[tuple[str, bool]]) -> None:
    texts = encode_texts(pa.array([text for text, _ in rows], pa.large_string()), "nt")
    said = np.array([flag for _, flag in rows], bool)
    found = row_kinds(texts.codes, texts.start, texts.length, said).tolist()
    for (text, flag), kind in zip(rows, found, strict=True):
        codons = {text[k : k + 3] for k in range(0, len(text), 3)}
        if len(text) % 3:
            assert kind == "out_of_frame"
        elif codons & {"TAA", "TAG", "TGA"}:
            assert kind == "stop_codon"
        else:
            assert kind == ("nonproductive_otherwise" if flag else "productive")


ROWS = [
    # junction, v_call, j_call, productive, vj_in_frame, repertoire_id, duplicate_count
    ("TGTGCATT", "TRXV1", "TRXJ1*01", "", "", "a", "2"),
    ("tgtgcatt", "TRXV1*01", "TRXJ1", "F", "", "a", "5"),
    ("TGTGCATT", "TRXV1", "TRXJ1", "F", "", "b", ""),
    ("TGTGCATT", "TRXV2", "TRXJ1", "F", "", "a", "1"),
    ("TGTGCATTC", "TRXV1", "TRXJ1", "T", "T", "a", "1"),
    ("TGTGCATTC", "TRXV1", "TRXJ1", "T", "F", "a", "1"),
    ("TGTTAATTC", "TRXV1", "TRXJ1", "", "", "a", "1"),
    ("TGTGCANT", "TRXV1", "TRXJ1", "F", "", "a", "1"),
    ("TGTGC", "TRXV1", "TRXJ1", "F", "", "a", "1"),
    ("", "TRXV1", "TRXJ1", "F", "", "a", "1"),
    ("TGT?CATT", "TRXV1", "TRXJ1", "F", "", "a", "1"),
    ("TGTGCATT", "", "TRXJ1", "F", "", "a", "1"),
    ("TGTGCATT", "TRXV1", "TRXJ7", "F", "", "a", "1"),
    ("TGTGCATT", "TRXV1, TRXV2", "TRXJ1", "F", "", "", "1"),
]
NAMES = ["junction", "v_call", "j_call", "productive", "vj_in_frame", "repertoire_id", "duplicate_count"]


def written(path: Path, rows: list[tuple[str, ...]], names: list[str] = NAMES) -> Path:
    path.write_text("\n".join("\t".join(row) for row in [tuple(names), *rows]) + "\n")
    return path


def collected(
    inputs: list[Path], out: Path, choice: EvidenceChoice, model: RecombinationModel | None = None
) -> tuple[files.CollectedEvidence, list[dict[str, object]]]:
    tables = files.open_evidence(inputs, choice)
    start = model or small_model(5, zeros=False)
    found = files.collect_evidence(tables, out, start, choice, executor=LocalExecutor(2))
    with files.EvidenceFile(out) as file:
        rows = [row for k in range(file.batches) for row in file.batch(k).to_pylist()]
    return found, rows


def test_rows_and_reasons(tmp_path: Path) -> None:
    path = written(tmp_path / "rows.tsv", ROWS)
    found, rows = collected([path], tmp_path / "e.arrow", EvidenceChoice())
    tally = found.tally
    assert tally.kinds == {"out_of_frame": 7, "productive": 1, "nonproductive_otherwise": 1, "stop_codon": 1}
    assert tally.left_out == {
        "productive": 1, "ambiguous_symbol": 1, "too_short": 1, "missing_junction": 1, "invalid_symbol": 1,
        "missing_v_call": 1, "unknown_j_call": 1,
    }  # fmt: skip
    assert tally.unknown == {"TRXJ7": 1}
    assert tally.examples["unknown_j_call"] == ["rows.tsv, record 12: 'TRXJ7'"]
    assert tally.examples["too_short"] == ["rows.tsv, record 8: 'TGTGC'"]
    assert tally.rows == len(ROWS) == sum(tally.left_out.values()) + 7
    weights = {(row["junction"], row["v_call"]): row["weight"] for row in rows}
    # Once in each of two repertoires, however written; the row without a repertoire is the file's.
    assert weights == {
        ("TGTGCATT", "TRXV1*01"): 2,
        ("TGTGCATT", "TRXV2*01"): 1,
        ("TGTGCATTC", "TRXV1*01"): 1,
        ("TGTTAATTC", "TRXV1*01"): 1,
        ("TGTGCATT", "TRXV1*01,TRXV2*01"): 1,
    }
    assert (found.repertoires, found.junctions, found.kept, found.weight) == (3, 5, 5, 6)
    assert found.inputs[0]["evidence_rows"] == 7


@pytest.mark.parametrize(
    ("choice", "weight"),
    [
        (EvidenceChoice(rows="all"), 6),
        (EvidenceChoice(rows="productive"), 1),
        (EvidenceChoice(rows="out-of-frame"), 4),
        (EvidenceChoice(weights="count"), 2 + 5 + 1 + 1 + 1 + 1 + 1),
        (EvidenceChoice(calls="ignore", rows="out-of-frame"), 3),
        (EvidenceChoice(max_rows=2, weights="count", rows="productive"), 1),
    ],
    ids=["all", "productive", "out of frame", "count", "ignore", "few"],
)
def test_choices(tmp_path: Path, choice: EvidenceChoice, weight: int) -> None:
    path = written(tmp_path / "rows.tsv", ROWS)
    assert collected([path], tmp_path / "e.arrow", choice)[0].weight == weight


@pytest.mark.slow
def test_what_does_not_fit_memory_is_sorted_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    rows = [
        ("TGT" + "".join(rng.choice(list("ACGT"), rng.integers(3, 6))), f"TRXV{rng.integers(1, 3)}", "TRXJ1")
        for _ in range(1000)
    ]
    rows += rows[:200]
    names = NAMES[:3]
    path = written(tmp_path / "rows.tsv", rows, names)
    choice = EvidenceChoice(rows="all")
    _, expected = collected([path], tmp_path / "whole.arrow", choice)
    for name, value in (("_WAITING_BYTES", 20_000), ("_BLOCK_ROWS", 100), ("BATCH_ROWS", 64)):
        monkeypatch.setattr(files, name, value)
    parts = rows[700:], rows[:700]
    halves = [written(tmp_path / f"{k}.tsv", part, names) for k, part in enumerate(parts)]
    _, found = collected(halves, tmp_path / "parts.arrow", choice)
    assert [row["junction"] for row in found] == [row["junction"] for row in expected]
    counts = Counter((junction, f"{v}*01") for junction, v, _ in set(rows))
    assert {(row["junction"], row["v_call"]) for row in found} == set(counts)
    assert not (tmp_path / "parts.sorting").exists()
    few = replace(choice, max_rows=100)
    _, some = collected(halves, tmp_path / "few.arrow", few)
    assert some == found[:100]
    _, others = collected(halves, tmp_path / "others.arrow", replace(few, seed=1))
    assert len(others) == 100 and others != some


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "e.arrow").write_bytes(b"ARROW1")
    with pytest.raises(FormatError, match="the evidence that this run has collected"):
        files.EvidenceFile(tmp_path / "e.arrow")


@pytest.mark.parametrize(
    "options", [{"rows": "some"}, {"calls": "both"}, {"weights": "2"}, {"max_rows": 0}, {"seed": -1}], ids=str
)
def test_choices_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        EvidenceChoice(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["mouse_trb", "human_trb", "human_tra", "mouse_tra"])
def test_models_of_germline_sets(name: str) -> None:
    germline = load_germline(name)
    model = model_from_germline(germline)
    assert model.chain == germline.chain
    assert all("not functional" in note for note in model.notes())
    assert [gene.name for gene in model.v] == [allele.name for allele in germline.v]
    assert model.p_vd_length.size == (31 if model.d else 41)
    for k in range(len(model.v)):
        # A nucleotide of V is left at least.
        assert np.count_nonzero(model.p_v_deletions[k]) <= len(model.extended("V", k))
    for k, j in enumerate(germline.j):
        if model.d:
            assert (model.p_dj[0, :, k] > 0).tolist() == list(germline.allowed_d(j))
    if model.d:
        vj = model_from_germline(germline, "vj", most_insertions=3)
        assert vj.chain == "vj" and vj.p_vd_length.size == 4 and not vj.d


def test_germline_sets_that_make_no_model() -> None:
    germline = load_germline("human_trb")
    nameless = tuple(replace(allele, anchor=None) for allele in germline.v)
    with pytest.raises(InvalidInput, match="no V gene whose anchor is known"):
        model_from_germline(replace(germline, v=nameless))
    with pytest.raises(InvalidInput, match="no D gene"):
        model_from_germline(load_germline("human_tra"), "vdj")
    with pytest.raises(InvalidInput, match="most_insertions"):
        model_from_germline(germline, most_insertions=-1)
    with pytest.raises(Unsupported, match="two D genes"):
        model_from_germline(replace(germline, locus="TRD"))
    odd = replace(germline.v[0], sequence=germline.v[0].sequence[:-1] + "N")
    model = model_from_germline(replace(germline, v=(odd, *germline.v[1:])))
    assert len(model.v) == len(germline.v) - 1
