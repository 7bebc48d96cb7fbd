"""Who shares what in a study, what is expected, and what is said of it."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.examples import often

from plait.run.executor import LocalExecutor
from plait.vdj import GenerationSettings, SharingSettings, sharing
from plait.vdj.calls import ClonotypeKey
from plait.vdj.convergence.pgen_tables import ModelCalls, PgenColumns
from plait.vdj.convergence.public_clonotypes import public_answers, public_clonotypes, write_pairs
from plait.vdj.convergence.settings import StudySettings
from plait.vdj.model import JunctionSampler, load_model
from plait.vdj.repertoires.expected import KNOWN, ClonotypeGeneration

pytestmark = pytest.mark.usefixtures("few_draws")

SUBJECTS = ("a", "b", "c", "d")
DRAWN = 600


@pytest.fixture(scope="module")
def model() -> Any:
    return load_model("human_TRB")


@pytest.fixture(scope="module")
def rows(model: Any) -> pa.Table:
    """Productive clonotypes of each subject, and three rare ones that all of them have."""
    draws = JunctionSampler(model, seed=7).block(0, 1 << 15)
    good = np.flatnonzero(draws.productive)[: DRAWN * len(SUBJECTS)]
    found = pa.table(
        {
            "junction": draws.take(good).texts(),
            "v_gene": [model.v[k].gene for k in draws.fields[good, 0].tolist()],
            "j_gene": [model.j[k].gene for k in draws.fields[good, 2].tolist()],
            "subject": np.repeat(SUBJECTS, DRAWN),
        }
    )
    pgen = np.array(
        sharing(
            found.rename_columns(["junction", "v_call", "j_call", "subject_id"]),
            generation=GenerationSettings(model=model, draws=1000, device="cpu"),
        ).clonotypes["pgen"]
    )
    assert (pgen > 0).all()
    planted = [
        found.slice(k, 1).set_column(3, "subject", [[name]]) for k in range(3) for name in SUBJECTS[1:]
    ]
    return pa.concat_tables([found.cast(planted[0].schema), *planted])


class Elsewhere(LocalExecutor):
    """What is sent to other processes is pickled here, and nothing else reaches the work."""

    elsewhere = True  # type: ignore[assignment]

    def map(self, function: Any, batches: Any, **settings: Any) -> Any:
        sent = pickle.dumps(function)
        for batch in batches:
            yield pickle.loads(sent)(pickle.loads(pickle.dumps(batch)))


def told(
    rows: pa.Table,
    model: Any,
    folder: Path,
    key: str,
    parts: int = 2,
    weighed: ModelCalls | None = None,
    executor: Any = None,
    **chosen: Any,
) -> Any:
    """What comes of rows that are put aside in parts, as a study does it; and the table of clonotypes.

    With `weighed`, clonotypes have their probabilities, as a study that uses or ignores calls has them.
    """
    paths = []
    folder.mkdir(exist_ok=True)
    junctions = rows["junction"].to_pylist()
    for part in range(parts):
        mine = rows.filter(pa.array([crc32(j.encode()) % parts == part for j in junctions]))
        names = ["junction", "v_gene", "j_gene"]
        mine = mine.sort_by([(name, "ascending") for name in [*names, "subject"]])
        clonotypes = mine.group_by(names, use_threads=False).aggregate([("subject", "count")])
        clonotypes = clonotypes.rename_columns([*names, "subjects"]).sort_by(
            [(n, "ascending") for n in names]
        )
        if weighed is not None:
            texts = [(name, pa.large_string()) for name in names]
            clonotypes = clonotypes.cast(pa.schema([*texts, ("subjects", pa.int64())]))
            clonotypes = PgenColumns(model=model, calls=weighed, folder=folder).added(clonotypes)
        paths.append(folder / f"pairs-{part}.parquet")
        write_pairs(clonotypes, mine.append_column("rows", [np.full(mine.num_rows, 2)]), paths[-1])
    settings = StudySettings(germline="human_trb", chain="vdj", sharing=SharingSettings(key=key), **chosen)
    output = folder / "sharing.parquet"
    found = public_clonotypes(
        paths,
        output,
        settings,
        model,
        sources=[folder / "donors.tsv"],
        executor=executor or LocalExecutor(1),
        progress=lambda state: None,
    )
    return found, pq.read_table(output)


@pytest.mark.slow
@pytest.mark.parametrize("key", often(1, ["cdr3nt+v+j", "cdr3aa"]))
def test_tables_are_those_of_sharing(rows: pa.Table, model: Any, tmp_path: Path, key: str) -> None:
    found, clonotypes = told(rows, model, tmp_path, key)
    direct = sharing(
        rows.rename_columns(["junction", "v_call", "j_call", "subject_id"]),
        settings=SharingSettings(key=key, list_subjects=True),
        generation=GenerationSettings(model=model, draws=20_000, device="cpu"),
        overlap_depth=0,
    )
    names = [*ClonotypeKey.named(key).columns, "subjects", "subject_ids", "pgen", "p_sharing", "q_sharing"]
    assert clonotypes.select(names).equals(direct.clonotypes.select(names))
    assert clonotypes["duplicate_count"].to_pylist() == [2 * n for n in direct.clonotypes["rows"].to_pylist()]
    assert direct.expected is not None and direct.overlaps is not None
    columns, levels = found.tables["expected_sharing"]
    assert [{name: row[name] for name in columns[:4]} for row in levels] == direct.expected.table.to_pylist()
    beyond = [row for row in direct.clonotypes.to_pylist() if (row["q_sharing"] or 1.0) <= 0.05]
    assert len(beyond) >= 3 and {row["subjects"] for row in beyond} == {4}
    assert sum(row["beyond"] for row in levels) == found.facts["expected"]["beyond"] == len(beyond)
    first = found.tables["public_clonotypes"][1]
    junction = names[0]
    assert {row[junction] for row in first} == {row[junction] for row in beyond}
    assert all(json.loads(row["subject_ids"]) == list(SUBJECTS) for row in first)
    assert [row["q_sharing"] for row in first] == sorted(row["q_sharing"] for row in first)
    overlaps = {(row["subject_a"], row["subject_b"]): row["shared"] for row in found.tables["overlaps"][1]}
    assert overlaps == {
        (row["subject_a"], row["subject_b"]): row["shared"] for row in direct.overlaps.to_pylist()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "calls"), often(1, [("cdr3nt+v+j", "use"), ("cdr3nt", "ignore"), ("cdr3aa", "use")])
)
def test_probabilities_are_computed_once_and_anywhere(
    rows: pa.Table, model: Any, tmp_path: Path, key: str, calls: ModelCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    weigh = ClonotypeGeneration.pgen

    def watched(self: ClonotypeGeneration, clonotypes: pa.RecordBatch) -> Any:
        taken.append(clonotypes.num_rows if KNOWN[0] in clonotypes.schema.names else 0)
        return weigh(self, clonotypes)

    _, plain = told(rows, model, tmp_path / "plain", key, model_calls=calls)
    _, spread = told(rows, model, tmp_path / "spread", key, model_calls=calls, executor=Elsewhere(1))
    assert spread.equals(plain)
    monkeypatch.setattr(ClonotypeGeneration, "pgen", watched)
    _, known = told(rows, model, tmp_path / "known", key, weighed=calls, model_calls=calls)
    assert known.equals(plain)
    # What a study has weighed is not weighed again, unless it is something else.
    assert sum(taken) == (plain.num_rows if key.startswith("cdr3nt") else 0)


def test_tables_name_what_the_study_read(rows: pa.Table, tmp_path: Path) -> None:
    _, clonotypes = told(rows, None, tmp_path, "cdr3aa")
    facts = json.loads(clonotypes.schema.metadata[b"plait.sharing"])
    assert facts["inputs"] == [str((tmp_path / "donors.tsv").resolve())]
    overlap = json.loads(pq.read_schema(tmp_path / "overlap.parquet").metadata[b"plait.sharing"])
    assert overlap["inputs"] == [*facts["inputs"], str((tmp_path / "sharing.parquet").resolve())]


def test_sets_of_subjects(rows: pa.Table, tmp_path: Path) -> None:
    found, clonotypes = told(rows, None, tmp_path, "cdr3aa+v")
    sets: dict[int, tuple[int, list[str]]] = {}
    for row in found.tables["subject_sets"][1]:
        sets.setdefault(row["set"], (row["clonotypes"], []))[1].append(row["subject"])
    counted = Counter(tuple(names) for names in clonotypes["subject_ids"].to_pylist())
    assert {tuple(names): n for n, names in sets.values()} == dict(counted)
    assert [n for n, _ in sets.values()] == sorted((n for n, _ in sets.values()), reverse=True)
    assert set(found.tables) == {"overlaps", "subject_sets"} and "expected" not in found.facts


def test_many_subjects(tmp_path: Path) -> None:
    """Sets are told of the twelve subjects with most reads; what only others have is in none of them."""
    names = [f"s{k:02d}" for k in range(14)]
    own = [(f"TGT{'GCC' * (k + 1)}TTT", name) for k, name in enumerate(names)]
    shared = [("TGTTTTTTT", name) for name in names] + [("TGTCCCTTT", name) for name in names[2:]]
    junctions, subjects = zip(*own, *shared, strict=True)
    rows = pa.table(
        {"junction": junctions, "v_gene": ["V"] * len(own + shared), "j_gene": ["J"] * len(own + shared)}
    )
    found, _ = told(rows.append_column("subject", [subjects]), None, tmp_path, "cdr3nt", parts=1)
    sets: dict[int, list[str]] = {}
    for row in found.tables["subject_sets"][1]:
        sets.setdefault(row["set"], []).append(row["subject"])
    assert sorted(map(len, sets.values())) == [1] * 12 + [12]
    assert sets[1] == names[2:] and found.tables["subject_sets"][1][0]["clonotypes"] == 2


def test_answers(rows: pa.Table, model: Any, tmp_path: Path) -> None:
    found, _ = told(rows, model, tmp_path, "cdr3nt+j+v")
    study = {"sharing": found.facts, "subjects": 4, "shared_by": 2}
    answers = public_answers(study)
    assert [one["id"] for one in answers] == ["public_clonotypes", "expected_sharing", "beyond_expectation"]
    clonotypes, public = found.facts["clonotypes"], found.facts["public"]
    assert answers[0]["headline"].startswith(f"{public:,} of {clonotypes:,} clonotypes")
    assert "nucleotide junctions with V and J gene" in answers[0]["text"]
    assert f"there are {found.facts['expected']['observed']}" in answers[1]["headline"]
    assert answers[2]["headline"].startswith(
        f"{found.facts['expected']['beyond']} clonotypes are more public"
    )
    assert ": 4 subjects have it" in answers[2]["text"]
    for one in answers:
        assert one["text"].endswith(".") and "None" not in one["headline"]
        assert all(isinstance(value, int | float) for value in one["figures"].values())
    # Without a model, with nothing shared, and with one subject, nothing is claimed.
    bare = {key: value for key, value in found.facts.items() if key != "expected"}
    assert [one["id"] for one in public_answers(study | {"sharing": bare})] == ["public_clonotypes"]
    nothing = found.facts | {"public": 0, "expected": found.facts["expected"] | {"shared": 0}}
    assert len(public_answers(study | {"sharing": nothing})) == 1
    assert public_answers(study | {"subjects": 1}) == [] == public_answers({"subjects": 4})
    none = found.facts["expected"] | {"beyond": 0, "first": None}
    last = public_answers(study | {"sharing": found.facts | {"expected": none}})[-1]
    assert last["headline"].startswith("No clonotype is surely more public") and last["text"]
