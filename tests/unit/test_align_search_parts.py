"""What searches are made of: rankings, long targets in pieces, sources of sequences, checks of queries."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import often

from plait.align import batches, hits, sweeps
from plait.align.batches import PairBatch, PairSweep, block_query, code_list, reach_of
from plait.align.database import SequenceDatabase, build_database, pack_sequences
from plait.align.hits import search
from plait.align.letters import PAD_CODE
from plait.align.scoring import Scoring, SubstitutionMatrix, load_matrix, make_scoring, match_mismatch
from plait.align.settings import SearchSettings
from plait.align.sweeps import (
    LOCAL,
    FastaSource,
    Found,
    PackedSource,
    Rankings,
    distinct,
    lone_lanes,
    matrix_columns,
    open_source,
)
from plait.devices.target import CpuTarget, resolve
from plait.dp.pairs import blocks as pair_blocks
from plait.dp.pairs.blocks import BLOCK_LANES, CPU_SHAPE, BlockBatch, TargetBlocks
from plait.dp.pairs.launches import BLOCK_SCORES
from plait.dp.pairs.lists import FreeEnds
from plait.errors import FormatError, InvalidInput, PlaitError
from plait.formats.fasta import read_fasta

CPU = CpuTarget(1)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def database(path: Path, kind: Any = "protein") -> SequenceDatabase:
    (block,) = read_fasta(path)
    return pack_sequences(block, path, kind=kind)


def found(rows: list[tuple[int, int, int]]) -> Found:
    return Found(np.zeros(len(rows), np.int64), *np.array(rows, np.int64).reshape(-1, 3).T)


@pytest.mark.parametrize(("columns", "devices"), [(8, 1), (8, 3), (160, 4), (1 << 20, 2)])
def test_packed_pieces_are_as_many_for_each_device(tmp_path: Path, columns: int, devices: int) -> None:
    lines = "".join(f">s{k}\n{'ACDEFGHIKL' * (1 + k % 3)}\n" for k in range(48 * BLOCK_LANES))
    packed = database(write(tmp_path / "d.fa", lines))
    shape = CPU_SHAPE._replace(database_bytes=columns * BLOCK_LANES, tasks=devices)
    chunks = list(PackedSource(packed, shape).chunks(make_scoring(None, 11, 1)))
    records = np.concatenate([part.records.ravel() for chunk in chunks for part in chunk.parts])
    assert np.sort(records).tolist() == list(range(48 * BLOCK_LANES))
    assert sum(chunk.residues for chunk in chunks) == packed.residues and chunks[-1].share == 1
    # Blocks are not cut.
    assert len(chunks) % devices == 0 or len(chunks) == packed.blocks


def test_packed_pieces_take_the_same_time(tmp_path: Path) -> None:
    """Targets count as well as their residues: the pieces of short ones have fewer of these."""
    random = np.random.default_rng(5)
    sizes = np.sort(random.integers(1, 60, 40 * BLOCK_LANES))
    lines = "".join(f">s{k}\n{'A' * size}\n" for k, size in enumerate(sizes.tolist()))
    packed = database(write(tmp_path / "d.fa", lines), "protein")
    shape = CPU_SHAPE._replace(database_bytes=1 << 20, tasks=4)
    pieces = list(PackedSource(packed, shape).chunks(make_scoring(None, 11, 1)))
    works = [piece.residues + 12 * sum(part.records.size for part in piece.parts) for piece in pieces]
    assert len(pieces) == 4 and max(works) - min(works) < 2 * BLOCK_LANES * (60 + 12)
    assert pieces[0].residues > pieces[3].residues * 1.2


@pytest.mark.parametrize(("share", "rounds"), [(3.0, 1), (0.8, 1), (0.7, 1), (0.6, 2), (0.5, 2), (0.4, 2)])
def test_a_database_is_not_cut_for_a_little(tmp_path: Path, share: float, rounds: int) -> None:
    """`share` of it is what all devices take at a time."""
    packed = database(write(tmp_path / "d.fa", f">s\n{'ACDEFGHIKL' * 4}\n" * 12 * BLOCK_LANES))
    columns = int(packed.first_columns[-1])
    shape = CPU_SHAPE._replace(database_bytes=int(columns * BLOCK_LANES * share) // 2, tasks=2)
    assert len(list(PackedSource(packed, shape).chunks(make_scoring(None, 11, 1)))) == 2 * rounds


@pytest.mark.parametrize("evalue", [10.0, 1e-2, 1e-6, 0.0])
@pytest.mark.parametrize(("kind", "strand"), [("protein", "given"), ("dna", "both")])
def test_what_cannot_be_a_hit_is_not_ranked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, strand: Any, evalue: float
) -> None:
    """Where the size of all that is searched is known before, or E-values grow with it."""
    random = np.random.default_rng(2)
    letters = np.array(list("ACGT" if kind == "dna" else "ARNDCQEGHILKMFPSTWYV"))
    texts = ["".join(random.choice(letters, size)) for size in random.integers(1, 90, 150)]
    query = texts[7] + texts[11][:20]
    path = write(tmp_path / "d.fa", "".join(f">s{k}\n{text}\n" for k, text in enumerate(texts)))
    floors: list[int] = []
    raised: list[int] = []

    class Noted(Rankings):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            floors.extend(self.floors.tolist())

        def raise_floors(self) -> None:
            super().raise_floors()
            raised.append(self.floors.min())

    monkeypatch.setattr(hits, "sweep_shape", lambda target: CPU_SHAPE._replace(database_bytes=1 << 9))
    how: dict[str, Any] = {"kind": kind, "strand": strand, "evalue": evalue, "device": "cpu"}
    everything = search({"q": query}, path, **(how | {"evalue": None}))
    monkeypatch.setattr(hits, "Rankings", Noted)
    wanted = search({"q": query}, path, **how)
    assert wanted.hits[0] == tuple(hit for hit in everything.hits[0] if (hit.evalue or 0) <= evalue)
    assert len(raised) > 5 and raised == sorted(raised)
    assert (raised[0] > 1) == (raised[-1] > 1) == (kind == "protein")
    assert (raised[-1] > raised[0]) == (kind == "protein" and evalue > 0)
    assert search({"q": query}, database(path, kind), **how).hits == wanted.hits
    strands = 2 if strand == "both" else 1
    assert floors[:strands] == [1] * strands and min(floors[strands:]) > 4
    assert len(wanted.hits[0]) >= (evalue > 0)


class TestRankings:
    @given(
        st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6), st.integers(0, 3)), max_size=90),
        st.integers(1, 12),
        st.lists(st.integers(1, 4), min_size=3, max_size=3),
        st.sampled_from([1, 2]),
        st.none() | st.integers(-3, 6),
        st.randoms(use_true_random=False),
    )
    def test_definition(
        self,
        rows: list[tuple[int, int, int]],
        most: int,
        least: list[int],
        forms: int,
        limit: int | None,
        random: Any,
    ) -> None:
        """The best of all, whatever the order and the pieces in which they come.

        With a limit those within it are the same as if all had been ranked.
        """
        targets = [
            (form % (3 * forms), k // 2, score, rows[k // 2 * 2][2])
            for k, (form, score, _) in enumerate(rows)
        ]
        # A target in pieces is offered with lower scores, too, and in another form.
        offered = targets + [(form, k, score - 1, length) for form, k, score, length in targets if score > 1]
        random.shuffle(offered)
        mark = None if limit is None else lambda queries, scores, lengths: scores - lengths >= limit
        ties = lambda queries, scores, lengths: lengths.astype(float)  # noqa: E731
        best = Rankings(most, lambda: least, ties, mark, forms)
        pending, sweeps._PENDING = sweeps._PENDING, random.randrange(9)
        try:
            while offered:
                size = random.randrange(1, 9)
                once = {own[:2]: own for own in offered[:size]}
                left = [own for own in offered[:size] if once[own[:2]] != own]
                best.add(best.worth_adding(Found(*np.array([*once.values()], np.int64).T)))
                offered = left + offered[size:]
                if random.random() < 0.3:
                    best.best()
        finally:
            sweeps._PENDING = pending
        expected = []
        for query, floor in enumerate(least):
            own: dict[int, tuple[int, int, int, int]] = {}
            for target in sorted(t for t in targets if t[0] // forms == query and t[2] >= floor):
                if target[1] not in own or own[target[1]][2] < target[2]:
                    own[target[1]] = target
            expected += sorted(own.values(), key=lambda t: (-t[2], t[3], t[1]))[:most]
        ranked = list(zip(*map(np.ndarray.tolist, best.best()), strict=True))
        if limit is None:
            assert ranked == expected
        within = [[own for own in some if own[2] - own[3] >= (limit or 0)] for some in (ranked, expected)]
        assert within[0] == within[1]

    def test_equal_targets_get_equal_keys(self) -> None:
        """Even from a rule that gives another number each time it is asked."""
        ties = lambda queries, scores, lengths: np.random.default_rng().random(len(scores))  # noqa: E731
        best = Rankings(5, lambda: [1], ties)
        best.add(found([(record, 7, 30) for record in range(20)]))
        assert best.best().records.tolist() == [0, 1, 2, 3, 4]

    @given(st.lists(st.integers(-4, 4), max_size=20))
    def test_distinct(self, values: list[int]) -> None:
        assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))


@given(st.lists(st.integers(0, 10**6), max_size=BLOCK_LANES))
def test_lone_lanes_take_the_least_time(sizes: list[int]) -> None:
    lengths = np.zeros((2, BLOCK_LANES), np.int32)
    lengths[0, : len(sizes)] = sorted(sizes, reverse=True)
    times = [
        sum(16 * int(n) + 65536 for n in lengths[0, :k]) + 64 * int(lengths[0, k] if k < 64 else 0)
        for k in range(BLOCK_LANES + 1)
    ]
    counts = lone_lanes(lengths)
    assert times[counts[0]] == min(times) and counts[1] == 0


WORDS = st.lists(st.sampled_from(["A", "C", "AC", "ACG", "GGT", "TTTT"]), min_size=1, max_size=12).map(
    "".join
)


#: Modes in which texts are cut into pieces: local, and those in which both ends of the text are free.
INSIDE, *OVER = (FreeEnds(*own, True, True, False, False) for own in product([False, True], repeat=2))


class TestPieces:
    @given(
        WORDS,
        st.lists(WORDS, min_size=4, max_size=30).map("".join),
        st.sampled_from([(3, 1), (2, 2)]),
        st.sampled_from([LOCAL, INSIDE, *OVER]),
    )
    def test_the_alignment_is_that_of_the_pair(
        self, query: str, target: str, gaps: tuple[int, int], free: FreeEnds
    ) -> None:
        """Repeats have many best alignments; the same one is chosen."""
        scoring = Scoring(match_mismatch(2, -3), *gaps)
        codes = scoring.encode(query), scoring.encode(target)
        pairs = PairSweep(scoring=scoring, free=free, target=CPU)
        (whole,) = pairs.align_each(PairBatch(code_list([codes[0]]), code_list([codes[1]])))
        batch = PairBatch(code_list([codes[0]]), code_list([codes[1]]))
        cut = Mock(wraps=batches.score_pieces)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batches, "score_pieces", cut)
            patch.setattr(batches, "_STRETCH", 50)
            patch.setattr(batches, "_LEAST_RATIO", 0)
            patch.setattr(batches, "_LEAST_IN_LANES", 1)
            patch.setattr(batches, "_FEWEST_PIECES", 0)
            assert pairs.align_each(batch) == [whole]
            found = pairs.results(batch, keep=False)
        assert (found.scores[0], *found.ends[0, 1::2]) == (whole.score, whole.query_end, whole.target_end)
        assert cut.called

    def test_reach(self) -> None:
        """As long as an alignment can get: a query of 5 and gaps of 1 that 10 less 1 can pay for."""
        scoring = Scoring(match_mismatch(2, -3), 1, 1)
        own = block_query(scoring.encode("ACGTA"), scoring, LOCAL)
        assert reach_of(own, 1000) == 5 + 9
        assert reach_of(own, 5 * 14) == 14 and reach_of(own, 5 * 14 - 1) is None
        # What is no worse than a gap of 5 may have a gap of 15.
        assert reach_of(own._replace(free=INSIDE), 1000) == 5 + 15
        assert all(reach_of(own._replace(free=free), 1000) is None for free in OVER)
        free = block_query(scoring.encode("ACGTA"), Scoring(match_mismatch(2, -3), 1, 0), LOCAL)
        assert reach_of(free, 1000) is None

    @pytest.mark.parametrize(("mode", "short"), [("local", 300), ("semiglobal", 300 - 7 - 149 * 2)])
    @pytest.mark.parametrize(("stretches", "piece_blocks"), often(1, [(1, 1), (2, 1), (3, 9)]))
    def test_an_alignment_across_pieces(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        stretches: int,
        piece_blocks: int,
        mode: Any,
        short: int,
    ) -> None:
        """Halves of the query lie as far apart as gaps can be; the sequences are long enough to be cut."""
        shape = CPU_SHAPE._replace(stretches=stretches, piece_blocks=piece_blocks)
        monkeypatch.setattr(pair_blocks, "CPU_SHAPE", shape)
        rng = np.random.default_rng(0)
        half = ["".join(rng.choice(list("ACGT"), 150)) for _ in range(2)]
        fill = "".join(rng.choice(list("ACGT"), 200_000))
        target = fill[:99_990] + half[0] + "A" * 120 + half[1] + fill[99_990:]
        path = write(tmp_path / "t.fa", f">long\n{target}\n>short\n{half[0]}\n")
        monkeypatch.setattr(batches, "_STRETCH", 100_000)
        monkeypatch.setattr(batches, "_LEAST_RATIO", 1)
        monkeypatch.setattr(batches, "_FEWEST_PIECES", 1)
        query = [("q", "".join(half))]
        for form in (path, database(path, "dna")):
            (hits,) = search(query, form, SearchSettings(mode=mode)).hits
            assert [(hit.target_name, hit.score) for hit in hits] == [
                ("long", 600 - 7 - 119 * 2),
                ("short", short),
            ]
            assert hits[0].alignment is not None and hits[0].alignment.cigar == "150=120D150="
            assert hits[0].alignment.target_start == 99_990


def test_a_block_may_be_wider_than_its_targets() -> None:
    scoring = make_scoring()
    codes = scoring.encode("MKVLAWRND")
    wide = np.full((40, BLOCK_LANES), PAD_CODE, np.uint8)
    wide[:9, 3] = codes
    lengths = np.zeros((1, BLOCK_LANES), np.int32)
    lengths[0, 3] = 9
    own = block_query(codes, scoring, LOCAL)
    blocks = TargetBlocks(wide, np.array([0, 40]), lengths)
    for device in ("cpu", "reference"):
        (found,) = resolve(device, 1).launch(BLOCK_SCORES, BlockBatch([own], blocks))
        scores = found[0]
        assert scores[3] == scoring.matrix.scores[codes, codes].sum() and scores[4] == 0


class TestSources:
    def test_letters_that_no_matrix_has(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.fa", ">a\nMKV\n>b x\nMK\nA?V\n")
        with pytest.raises(FormatError, match=r"t\.fa, line 3: found '\?' at position 4 of the sequence 'b'"):
            search([("q", "MKV")], path, SearchSettings(kind="protein"))
        write(path, ">a\nMKV\n>b x\nMK-V\n")
        with pytest.raises(FormatError, match="take the gaps of the alignment out first"):
            search([("q", "MKV")], path, SearchSettings(kind="protein"))

    @pytest.mark.parametrize("form", ["fasta", "memory", "packed"])
    def test_letters_that_this_matrix_lacks(self, tmp_path: Path, form: str) -> None:
        path = write(tmp_path / "t.fa", ">a\nMKV\n>b x\nMKAWV\n")
        source: Any = path
        if form == "memory":
            source = database(path)
        elif form == "packed":
            build_database([path], tmp_path / "t.plaitdb", kind="protein")
            source = tmp_path / "t.plaitdb"
        matrix = without(load_matrix("BLOSUM62"), "W")
        with pytest.raises(PlaitError) as caught:
            search([("q", "MKV")], source, SearchSettings(matrix=matrix, gap_open=12, gap_extend=1))
        told = {
            "fasta": "t.fa, line 3: found 'W' at position 4 of sequence 'b', expected one of ARND",
            "memory": "sequence 'b': found 'W' at position 4, expected one of ARND",
            "packed": "t.plaitdb: found 'W' at position 4 of sequence 'b', expected one of ARND",
        }
        assert told[form] in str(caught.value).replace(", record 0", "")
        write(path, ">a\nMKV\n")
        assert search([("q", "MKV")], path, SearchSettings(matrix=matrix, gap_open=12, gap_extend=1)).hits[0]

    def test_duplicate_names(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.fa", ">a\nMKV\n>b\nMKL\n>a\nMKI\n")
        with pytest.raises(
            FormatError, match=r"line 5: found a second sequence named 'a', after that of line 1"
        ):
            search([("q", "MKV")], path, SearchSettings(kind="protein"))
        with pytest.raises(FormatError, match="allow duplicate names"):
            search(path, write(tmp_path / "u.fa", ">x\nMKV\n"), SearchSettings(kind="protein"))
        with pytest.raises(InvalidInput, match="a second query named 'q', number 2"):
            search([("q", "MKV"), ("q", "MKL")], tmp_path / "u.fa", SearchSettings(kind="protein"))
        for queries in (path, [("q", "MKV"), ("q", "MKL")]):
            result = search(
                queries, path, SearchSettings(kind="protein", evalue=None, allow_duplicate_names=True)
            )
            assert [hit.target_record for hit in result.hits[0]] == [0, 2, 1]

    def test_the_other_kind(self, tmp_path: Path) -> None:
        proteins = write(tmp_path / "p.fa", ">p\nMKVLAWRNDEQ\n")
        bases = write(tmp_path / "d.fa", ">d\nACGTTGCAACGU\n")
        for queries, searched in ((bases, proteins), (proteins, bases), ([("q", "MKVLW")], bases)):
            for form in (searched, database(searched, "dna" if searched == bases else "protein")):
                with pytest.raises(
                    PlaitError, match=r"queries that look like .*, as in the database; if they"
                ):
                    search(queries, form)
        # Many ambiguous letters are no protein; and who says what it is, is believed.
        assert search([("q", "RYRYSWKM")], bases).hits == ((),)
        assert search([("q", "GATTACA")], proteins, SearchSettings(kind="protein")).queries == ("q",)
        with pytest.raises(InvalidInput, match="a database of kind 'protein', expected one of kind 'dna'"):
            search([("q", "ACGT")], database(proteins), SearchSettings(kind="dna"))
        build_database([proteins], tmp_path / "p.plaitdb")
        with pytest.raises(FormatError, match="a database of kind 'protein', expected one of kind 'dna'"):
            search([("q", "ACGT")], tmp_path / "p.plaitdb", SearchSettings(kind="dna"))

    def test_files(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.fa", ">p\nMKVLAWRNDEQ\n")
        build_database([path], tmp_path / "p.plaitdb")
        with pytest.raises(InvalidInput, match="one packed database, or any number of FASTA files"):
            search([("q", "MKV")], [path, tmp_path / "p.plaitdb"])
        with pytest.raises(InvalidInput, match="found no file"):
            search([("q", "MKV")], [])
        with pytest.raises(FormatError, match="no such file"):
            search([("q", "MKV")], tmp_path / "x.fa")
        with pytest.raises(FormatError, match=r"found 'MKV', expected a header line"):
            search(write(tmp_path / "q.fa", "MKV\n"), path)
        data = bytearray((tmp_path / "p.plaitdb").read_bytes())
        (tmp_path / "cut.plaitdb").write_bytes(data[:-3])
        with pytest.raises(FormatError, match="the file is truncated"):
            search([("q", "MKV")], tmp_path / "cut.plaitdb")
        data[8] = 77
        (tmp_path / "new.plaitdb").write_bytes(data)
        with pytest.raises(FormatError, match="a database of format version 77, expected version 2"):
            search([("q", "MKV")], tmp_path / "new.plaitdb")

    @pytest.mark.parametrize("code", [200, 29, 0])
    def test_damaged_residues_are_noticed(self, tmp_path: Path, code: int) -> None:
        path = write(tmp_path / "p.fa", ">p\nMKVLAWRNDEQ\n")
        packed = build_database([path], tmp_path / "p.plaitdb")
        data = bytearray((tmp_path / "p.plaitdb").read_bytes())
        data[packed.metadata["sections"]["packed"]["offset"] + 10 * BLOCK_LANES] = code
        (tmp_path / "p.plaitdb").write_bytes(data)
        with pytest.raises(FormatError, match=r"of the section 'packed', expected .*the file is damaged"):
            search([("q", "MKVLAW")], tmp_path / "p.plaitdb", SearchSettings(kind="protein"))

    @pytest.mark.parametrize(
        ("code", "message"), [(200, "a residue in blocks 0 to 0"), (29, "a residue of 'p'")]
    )
    def test_residues_that_are_none(self, tmp_path: Path, code: int, message: str) -> None:
        made = database(write(tmp_path / "p.fa", ">p\nMKVLAWRNDEQ\n"))
        codes = made.packed.copy()
        codes[10, 0] = code
        with pytest.raises(FormatError, match=f"found {message} that is none"):
            search([("q", "MKVLAW")], replace(made, packed=codes), SearchSettings(kind="protein"))

    def test_a_file_may_come_twice(self, tmp_path: Path) -> None:
        path = write(tmp_path / "p.fa", ">p\nMKVLAWRNDEQ\n")
        source = open_source([path, path], allow_duplicate_names=True)
        shares = [chunk.share for chunk in source.chunks(make_scoring())]
        assert shares == [0.5, 1.0] and (source.sequences, source.residues) == (2, 22)

    def test_what_is_kept_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sweeps, "_KEPT_RESIDUES", 25)
        path = write(tmp_path / "p.fa", "".join(f">p{k}\nMKVLAWRNDEQ\n" for k in range(9)))
        source = FastaSource([path], None, shape=CPU_SHAPE._replace(database_bytes=1))
        for _ in source.chunks(make_scoring()):
            source.keep(np.array([1, 3, 6]))
        assert sorted(source._kept) == [1, 3]
        entries = list(source.entries(np.array([1, 3, 6])))
        assert [(entry.record, entry.name) for entry in entries] == [(1, "p1"), (3, "p3"), (6, "p6")]
        assert all(entry.codes.size == 11 for entry in entries)

    def test_columns_of_the_matrix(self) -> None:
        scoring = make_scoring()
        letters = scoring.matrix.letters
        columns = matrix_columns(scoring, "protein")
        assert "".join(letters[k] for k in columns[:4]) == "ABCD" and letters[columns[20]] == "X"


def without(matrix: SubstitutionMatrix, letter: str) -> SubstitutionMatrix:
    keep = [k for k, own in enumerate(matrix.letters) if own != letter]
    letters = "".join(matrix.letters[k] for k in keep)
    return SubstitutionMatrix("own", letters, matrix.scores[np.ix_(keep, keep)], "protein")
