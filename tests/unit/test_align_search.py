"""Searches: all scores against pairs one by one, and the same hits from every form of a database."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.alignment_batches import rescore
from support.examples import often

from plait.align import batches, sweeps
from plait.align import hits as search_runs
from plait.align.batches import CellProgress, PairBatch, PairSweep, code_list
from plait.align.database import SequenceDatabase, build_database, open_database, pack_sequences
from plait.align.hits import SearchResult, search, search_files
from plait.align.scoring import Scoring, make_scoring, match_mismatch
from plait.align.settings import SearchSettings
from plait.align.sweeps import LOCAL
from plait.align.writers import AlignedPair
from plait.devices.target import CpuTarget
from plait.dp.pairs import blocks as pair_blocks
from plait.dp.pairs.blocks import CPU_SHAPE
from plait.errors import FormatError, InvalidInput
from plait.formats.fasta import read_fasta

PROTEIN = "ARNDCQEGHILKMFPSTWYV"
Named = list[tuple[str, str]]


def random_sequences(count: int, seed: int, letters: str = PROTEIN, longest: int = 90) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), size)) for size in rng.integers(0, longest, count)]


def changed(sequence: str, rng: np.random.Generator) -> str:
    """A relative: some residues replaced, a stretch lost, another one gained."""
    letters = np.array(list(sequence))
    letters[rng.integers(0, letters.size, letters.size // 4)] = rng.choice(list(PROTEIN))
    a, b = sorted(rng.integers(0, letters.size, 2).tolist())
    return "".join([*letters[:a], "GSGW", *letters[a + 3 : b], *letters[b:]])


def family() -> tuple[Named, Named]:
    """Queries, and a database with relatives of them, copies, empty sequences and letters that are rare."""
    rng = np.random.default_rng(8)
    queries = [s for s in random_sequences(40, 1, longest=120) if len(s) > 40][:5]
    targets = random_sequences(150, 2)
    for query in queries:
        targets += [changed(query, rng) for _ in range(6)] + [query[5:45], query.lower()]
    targets += ["", "XUOJBZ*", "W", queries[0], queries[0]]
    rng.shuffle(targets)
    named = [(f"q{k}", s) for k, s in enumerate([*queries, "", "WW"])]
    return named, [(f"t{k}", s) for k, s in enumerate(targets)]


QUERIES, TARGETS = family()


def write_fasta(path: Path, sequences: Named) -> Path:
    text = "".join(f">{name} about {name}\n{s[:50]}\n{s[50:]}\n" for name, s in sequences)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def packed(path: Path, kind: Any = "protein") -> SequenceDatabase:
    (block,) = read_fasta(path)
    return pack_sequences(block, path, kind=kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Queries and targets in files of every form."""
    folder = tmp_path_factory.mktemp("search")
    write_fasta(folder / "q.fa", QUERIES)
    write_fasta(folder / "t.fa", TARGETS)
    write_fasta(folder / "t.fa.gz", TARGETS)
    write_fasta(folder / "first.fa", TARGETS[:70])
    write_fasta(folder / "rest.fa", TARGETS[70:])
    build_database([folder / "t.fa"], folder / "t.plaitdb")
    return folder


def facts(result: SearchResult) -> list[Any]:
    return [[hit._replace(query=hit.query.upper()) for hit in hits] for hits in result.hits]


def pair_scores(queries: Named, targets: Named, scoring: Scoring) -> np.ndarray[Any, Any]:
    codes = [[scoring.encode(s) for _, s in some] for some in (queries, targets)]
    own = code_list([query for query in codes[0] for _ in codes[1]])
    batch = PairBatch(own, code_list(codes[1] * len(codes[0])))
    sweep = PairSweep(scoring=scoring, free=LOCAL, target=CpuTarget(1))
    return sweep.results(batch, keep=False).scores.reshape(len(queries), len(targets))


@pytest.fixture(scope="module")
def expected(folder: Path) -> SearchResult:
    return search(
        folder / "q.fa", folder / "t.fa", SearchSettings(threads=1, evalue=None, top=1000), scores=True
    )


def test_scores_are_those_of_pairs(expected: SearchResult) -> None:
    assert expected.scores is not None
    assert np.array_equal(expected.scores, pair_scores(QUERIES, TARGETS, make_scoring()))
    assert expected.cells == sum(len(s) for _, s in QUERIES) * sum(len(s) for _, s in TARGETS)


def test_hits_are_in_order_and_aligned(expected: SearchResult) -> None:
    scores, scoring = expected.scores, make_scoring()
    assert scores is not None
    assert expected.queries == tuple(name for name, _ in QUERIES)
    for number, hits in enumerate(expected.hits):
        found = [hit.target_record for hit in hits]
        assert sorted(found) == np.flatnonzero(scores[number] > 0).tolist()
        keys = [(-hit.score, hit.evalue, hit.target_record) for hit in hits]
        assert keys == sorted(keys)
        for hit in hits:
            name, letters = TARGETS[hit.target_record or 0]
            assert (hit.target_name, hit.target_description) == (name, f"about {name}")
            assert hit.target.decode() == letters.upper() and hit.query.decode() == QUERIES[number][1]
            assert hit.alignment is not None
            codes = scoring.encode(hit.query), scoring.encode(hit.target)
            assert rescore(hit.alignment, *codes, scoring) == hit.score == scores[number, hit.target_record]
    assert expected.hits[5] == ()


@pytest.mark.parametrize(
    "form", often(2, ["t.fa.gz", "t.plaitdb", (("first.fa", "rest.fa"),), "memory", "pairs"])
)
def test_every_form_gives_the_same(folder: Path, expected: SearchResult, form: Any) -> None:
    queries: Any = folder / "q.fa"
    if form in ("memory", "pairs"):
        database: Any = packed(folder / "t.fa")
        queries = QUERIES if form == "pairs" else queries
    else:
        database = [folder / name for name in form] if isinstance(form, tuple) else folder / form
    result = search(queries, database, SearchSettings(evalue=None, top=1000, threads=2), scores=True)
    assert facts(result) == facts(expected)
    assert np.array_equal(result.scores, expected.scores)  # type: ignore[arg-type]
    assert (result.sequences, result.residues, result.cells) == (
        len(TARGETS),
        expected.residues,
        expected.cells,
    )


def shape(**changes: int) -> dict[Any, Any]:
    return {(pair_blocks, "CPU_SHAPE"): CPU_SHAPE._replace(**changes)}


SMALL_LIMITS = {
    "small-pieces": shape(database_bytes=1500, most_cells=5000),
    "few-tasks-wait": shape(most_cells=3000, waiting=0),
    "many-queries": shape(queries=3, tasks=2),
    "few-alone": shape(alone=100),
    "read-again": {(sweeps, "_KEPT_RESIDUES"): 0, **shape(database_bytes=2000)},
    "few-kept": {(sweeps, "_KEPT_RESIDUES"): 1000, **shape(database_bytes=2000)},
    "small-groups": {(search_runs, "_GROUP_RESIDUES"): 500, (search_runs, "_GROUP_HITS"): 7},
    "few-queries": {(search_runs, "_RANKED"): 2000, **shape(database_bytes=3000)},
    "long-targets": {(sweeps, "_LONGEST_PACKED"): 60, (batches, "_LEAST_IN_LANES"): 100},
    "long-queries": {(sweeps, "_LONGEST_IN_LANES"): 50},
}


@pytest.mark.parametrize("form", often(1, ["t.fa", "t.plaitdb"]))
@pytest.mark.parametrize("limits", often(4, SMALL_LIMITS.values()), ids=SMALL_LIMITS)
def test_no_limit_changes_the_result(
    folder: Path, expected: SearchResult, monkeypatch: pytest.MonkeyPatch, form: str, limits: Any
) -> None:
    for (module, name), value in limits.items():
        monkeypatch.setattr(module, name, value)
    result = search(
        folder / "q.fa", folder / form, SearchSettings(evalue=None, top=1000, threads=3), scores=True
    )
    assert facts(result) == facts(expected)
    assert np.array_equal(result.scores, expected.scores)  # type: ignore[arg-type]


@pytest.mark.parametrize("top", often(3, [1, 3, 60, 2, 10]))
@pytest.mark.parametrize("form", ["t.fa", "t.plaitdb"])
def test_the_best_are_kept(folder: Path, expected: SearchResult, top: int, form: str) -> None:
    result = search(folder / "q.fa", folder / form, SearchSettings(evalue=None, top=top, threads=2))
    assert facts(result) == [hits[:top] for hits in facts(expected)]


def test_thresholds(folder: Path, expected: SearchResult) -> None:
    def told(hits: tuple[AlignedPair, ...]) -> list[tuple[Any, ...]]:
        return [(hit.target_record, hit.score, hit.evalue, hit.bit_score) for hit in hits]

    result = search(folder / "q.fa", folder / "t.fa", SearchSettings(evalue=1e-3, score_only=True))
    for hits, every in zip(result.hits, expected.hits, strict=True):
        assert told(hits) == [fact for fact in told(every) if fact[2] <= 1e-3]
        assert all(hit.alignment is None for hit in hits)
    assert 0 < sum(map(len, result.hits)) < sum(map(len, expected.hits))
    result = search(folder / "q.fa", folder / "t.fa", SearchSettings(evalue=None, min_score=60))
    assert facts(result) == [[hit for hit in hits if hit.score >= 60] for hits in facts(expected)]


@pytest.mark.slow
def test_the_reference_gives_the_same(tmp_path: Path) -> None:
    write_fasta(tmp_path / "t.fa", [(f"s{k}", s[:12]) for k, (_, s) in enumerate(TARGETS[:20])])
    queries = [("a", QUERIES[0][1][:9]), ("b", "")]
    results = [
        search(queries, tmp_path / "t.fa", SearchSettings(evalue=None, device=device))
        for device in ("reference", "cpu")
    ]
    assert facts(results[0]) == facts(results[1])
    assert [result.provenance.device for result in results] == ["reference", "cpu"]


@pytest.mark.parametrize(
    ("size", "match", "score"),
    [
        *((60, 5, 300), (127, 2, 254), (128, 2, 256)),
        pytest.param(600, 127, 76200, marks=pytest.mark.slow),
        pytest.param(300, 1000, 300000, marks=pytest.mark.slow),
    ],
)
def test_lanes_that_overflow_are_done_again(size: int, match: int, score: int) -> None:
    rng = np.random.default_rng(size)
    target = "".join(rng.choice(list("ACGT"), size))
    others = [(f"o{k}", s) for k, s in enumerate(random_sequences(70, 3, "ACGT", 80))]
    scoring = {"matrix": match_mismatch(match, -match), "gap_open": 2 * match, "gap_extend": match}
    database = [("same", target), *others]
    result = search(
        [("q", target), ("short", target[:20])],
        in_memory(database),
        SearchSettings(evalue=None, **scoring),
        scores=True,
    )
    assert result.hits[0][0].score == score
    expected = pair_scores([("q", target), ("short", target[:20])], database, make_scoring(**scoring))  # type: ignore[arg-type]
    assert np.array_equal(result.scores, expected)  # type: ignore[arg-type]
    assert "no E-values" in result.notes[0] and result.hits[0][0].evalue is None


def in_memory(sequences: Named) -> SequenceDatabase:
    from plait.formats.fasta import Sequences

    letters = np.frombuffer("".join(s for _, s in sequences).encode(), np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(s) for _, s in sequences])]).astype(np.int64)
    names = [name for name, _ in sequences]
    lines = np.arange(1, len(names) + 1)
    block = Sequences(names, [""] * len(names), letters, offsets, lines)
    return pack_sequences(block, "memory", kind="dna")


def test_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_blocks, "CPU_SHAPE", CPU_SHAPE._replace(database_bytes=2000))
    for form in ("t.fa", "t.plaitdb"):
        states: list[CellProgress] = []
        result = search(folder / "q.fa", folder / form, progress=states.append)
        cells = [state.cells for state in states]
        assert len(cells) > 2 and cells == sorted(cells)
        assert states[-1] == (result.cells, result.cells)
        assert all(0.7 * result.cells < state.total_cells < 1.4 * result.cells for state in states[1:])


def test_a_stopped_search_leaves_nothing(tmp_path: Path, folder: Path) -> None:
    def stop(state: CellProgress) -> None:
        raise KeyboardInterrupt

    (tmp_path / "hits.tsv").write_text("old")
    for name in ("hits.tsv", "hits.parquet", "hits.m8"):
        with pytest.raises(KeyboardInterrupt):
            search_files(folder / "q.fa", folder / "t.fa", tmp_path / name, progress=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["hits.tsv"]
    assert (tmp_path / "hits.tsv").read_text() == "old"


def test_a_database_that_changes_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_KEPT_RESIDUES", 0)
    path = write_fasta(tmp_path / "t.fa", TARGETS)

    def change(to: Named) -> Any:
        return lambda state: write_fasta(path, to)

    with pytest.raises(FormatError, match="must not change"):
        search([QUERIES[0]], path, progress=change(TARGETS[:3]))
    write_fasta(path, TARGETS)
    with pytest.raises(FormatError, match="must not change"):
        search([QUERIES[0]], path, progress=change([(name, s[::-1]) for name, s in TARGETS]))


def test_no_sequence_at_all(tmp_path: Path) -> None:
    write_fasta(tmp_path / "empty.fa", [("a", ""), ("b", "")])
    for database in (tmp_path / "empty.fa", packed(tmp_path / "empty.fa")):
        result = search(QUERIES, database, SearchSettings(kind="protein"), scores=True)
        assert result.hits == ((),) * len(QUERIES) and not result.scores.any()  # type: ignore[union-attr]
    assert search([], tmp_path / "empty.fa").queries == ()


def test_all_scores_are_refused_where_they_are_too_many(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr("plait.align.hits._MOST_SCORES", 100)
    with pytest.raises(InvalidInput, match="at most so many, 800 bytes"):
        search(folder / "q.fa", folder / "t.fa", scores=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top": 0}, "top: found 0"),
        ({"top": 1.5}, "top: found 1.5, expected a whole number"),
        ({"min_score": 0}, "min_score: found 0"),
        ({"evalue": float("nan")}, "evalue: found nan"),
        ({"evalue": -1.0}, "evalue: found -1.0"),
        ({"kind": "rna"}, "kind: found 'rna'"),
        ({"threads": 0}, "threads: found 0"),
        ({"device": "cuda9"}, "device: found 'cuda9'"),
        ({"gap_open": -11}, "costs are positive: give 11"),
        ({"matrix": "NUC.4.4"}, "for nucleotides, expected a matrix for proteins"),
    ],
)
def test_wrong_settings(folder: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        search(folder / "q.fa", folder / "t.fa", SearchSettings(**settings))
    assert message in str(caught.value)


def test_scores_are_parasails(expected: SearchResult) -> None:
    parasail = pytest.importorskip("parasail", reason="parasail is compared with where it is installed")
    assert expected.scores is not None
    for number in (0, 1, 6):
        profile = parasail.profile_create_sat(QUERIES[number][1], parasail.blosum62)
        for k, (_, target) in enumerate(TARGETS):
            if target and not set(target) & set("UOJ"):
                found = parasail.sw_striped_profile_sat(profile, target, 12, 1)
                assert found.score == expected.scores[number, k]


def test_scores_are_ssearchs(folder: Path, tmp_path: Path, expected: SearchResult) -> None:
    program = shutil.which("ssearch36")
    if program is None:
        pytest.skip(reason="ssearch36 is compared with where it is installed")
    wanted = {s for s in TARGETS if len(s[1]) > 9 and not set(s[1]) & set("UOJ*")}
    write_fasta(tmp_path / "q.fa", QUERIES[:1])
    path = write_fasta(tmp_path / "t.fa", [target for target in TARGETS if target in wanted])
    # BLAST's costs there, too: the first residue of a gap costs 12.
    command = [
        program,
        *("-q", "-s", "BL62", "-f", "-11", "-g", "-1", "-T", "1", "-z", "-1", "-m", "9", "-d", "0"),
        *("-b", "500"),
        tmp_path / "q.fa",
        path,
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = text.partition("The best scores are")[2].partition(">>>")[0].splitlines()[1:]
    found = {line.split()[0]: int(line.partition(")")[2].split()[0]) for line in lines}
    numbers = {name: k for k, (name, _) in enumerate(TARGETS)}
    assert len(found) > 100 and expected.scores is not None
    assert all(score == expected.scores[0, numbers[name]] for name, score in found.items())


def test_settings_are_those_of_the_result(folder: Path) -> None:
    summary = search_files(folder / "q.fa", folder / "t.plaitdb", "-", SearchSettings(top=3, evalue=1e-9))
    used = summary.provenance.parameters
    assert (used["top"], used["evalue"], used["database"]) == (3, 1e-9, ["t.plaitdb"])
    database = open_database(folder / "t.plaitdb")
    assert (summary.sequences, summary.residues) == (len(TARGETS), database.residues)
    assert (used["database_sequences"], used["database_residues"]) == (len(TARGETS), database.residues)
    assert summary.queries == len(QUERIES)
    found = search(folder / "q.fa", database)
    assert repr(found).startswith(f"SearchResult: {len(found)} rows")
    table = found.to_arrow()
    assert table["score"].to_pylist() == [hit.score for hits in found.hits for hit in hits]
    assert table["query"].to_pylist() == [hit.query_name for hits in found.hits for hit in hits]
