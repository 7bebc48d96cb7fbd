"""Simulated reads say the truth about themselves."""

from __future__ import annotations

import gzip
import random
from collections import Counter

import pytest
from support.molecule_simulation import JoiningLengths, chimera, simulate_productive, simulate_rearrangement
from support.oracles import reverse_complement
from support.read_library import TRUTH_COLUMNS, Library, simulate_reads, write_fastq, write_truth
from support.read_simulation import Sequencing

from plait.vdj.germline import load_germline

SETS = ("mouse_trb", "mouse_tra", "human_trb", "human_tra")


@pytest.mark.parametrize("name", SETS)
def test_molecules_are_what_was_chosen(name):
    germline = load_germline(name)
    rng = random.Random(1)
    for _ in range(200):
        made = simulate_rearrangement(germline, rng, head="ACGT", tail="GGCC")
        found = made.molecule
        v = found.sequence[slice(*found.v_place)]
        j = found.sequence[slice(*found.j_place)]
        assert made.v.sequence.startswith(v)
        assert made.j.sequence.endswith(j)
        assert found.junction.startswith(made.v.sequence[made.v.anchor : made.v.anchor + 3])
        assert found.junction.endswith(made.j.sequence[made.j.anchor : made.j.anchor + 3])
        assert "".join(made.parts) == found.sequence
        if made.d is not None:
            assert made.d in germline.d
            assert germline.allowed_d(made.j)[germline.d.index(made.d)]
            assert made.d.sequence[made.d_start : made.d_end] in found.junction


def test_joining_rule_palindromes_and_every_gene():
    germline = load_germline("mouse_trb")
    rng = random.Random(2)
    made = [simulate_rearrangement(germline, rng) for _ in range(2000)]
    assert {m.v.name for m in made} == {a.name for a in germline.v}
    assert {m.j.name for m in made} == {a.name for a in germline.j}
    assert not any(m.d and m.d.gene == "TRBD2" and m.j.gene.startswith("TRBJ1") for m in made)
    assert any(m.d is None for m in made)
    for m in made:
        if m.p3v:
            end = m.v.sequence + m.p3v
            assert m.v_trim == 0
            assert end[-2 * len(m.p3v) :] == reverse_complement(end[-2 * len(m.p3v) :])
    assert any(m.p3v for m in made)
    assert any(m.p5j for m in made)
    plain = JoiningLengths(palindrome_share=0.0, longest=0)
    bare = [simulate_rearrangement(germline, rng, lengths=plain) for _ in range(50)]
    assert not any(m.n1 or m.n2 or m.p3v or m.p5j or m.p5d or m.p3d for m in bare)
    assert all(simulate_productive(germline, rng).productive for _ in range(20))


@pytest.mark.parametrize("placement", ["junction", "anywhere", "primer"])
@pytest.mark.parametrize("pairs", [False, True])
def test_reads_without_errors_are_parts_of_the_molecule(placement, pairs):
    library = Library(
        reads=300,
        clones=40,
        chimeras=0.1,
        noise=0.1,
        sequencing=Sequencing(
            length=120, placement=placement, insert_mean=180 if pairs else None, insert_sd=30, truncated=0.1
        ),
    )
    covered = 0
    for read in simulate_reads([load_germline("human_trb")], library, seed=3):
        assert (read.mate is not None) == pairs
        for part in (read.read, read.mate):
            if part is None:
                continue
            forward = reverse_complement(part.sequence) if part.rev_comp else part.sequence
            assert forward == read.molecule.sequence[part.start : part.end]
            assert part.changes == 0
            if part.junction_start >= 0:
                covered += 1
                assert part.junction == read.molecule.junction
                assert part.junction == forward[part.junction_start : part.junction_end]
    assert covered > 20


def test_errors_are_counted_and_shift_the_junction():
    sequencing = Sequencing(substitutions=0.02, unknown=0.005, insertions=0.01, deletions=0.01)
    library = Library(reads=400, clones=50, sequencing=sequencing)
    poor = Counter()
    for read in simulate_reads([load_germline("mouse_trb")], library, seed=4):
        part, molecule = read.read, read.molecule
        assert len(part.quality) == len(part.sequence)
        forward = reverse_complement(part.sequence) if part.rev_comp else part.sequence
        assert forward[part.junction_start : part.junction_end] == part.junction
        same = forward == molecule.sequence[part.start : part.end]
        assert same == (part.changes == 0)
        poor.update(part.quality)
    total = poor.total()
    assert abs(poor["-"] / total - 0.32) < 0.03
    assert abs(poor["#"] / total - 0.005) < 0.002


def test_junction_is_found_again_behind_single_insertions_and_losses():
    """With few events, the junction of the read differs from the true one only where there is one in it."""
    library = Library(reads=500, clones=50, sequencing=Sequencing(insertions=0.002, deletions=0.002))
    kept = 0
    for read in simulate_reads([load_germline("mouse_tra")], library, seed=5):
        part = read.read
        assert abs(len(part.junction) - len(read.molecule.junction)) <= part.changes
        kept += part.changes > 0 and part.junction == read.molecule.junction
    assert kept > 50


def test_chimeras_know_their_junction():
    germline = load_germline("mouse_trb")
    rng = random.Random(6)
    a, b = (simulate_rearrangement(germline, rng, tail="A" * 20).molecule for _ in range(2))
    behind_v = chimera(a, b, first_end=a.junction_place[0] + 6, second_start=b.junction_place[0] + 6)
    assert behind_v.v_call == a.v_call
    assert behind_v.j_call == b.j_call
    assert behind_v.junction == a.junction[:6] + b.junction[6:]
    assert chimera(a, b, first_end=100, second_start=100).junction == b.junction
    ligated = chimera(a, b, first_end=len(a.sequence), second_start=0)
    assert ligated.junction == a.junction
    assert chimera(a, b, first_end=50, second_start=len(b.sequence) - 10).junction == ""


def test_files_are_the_same_for_a_seed_and_labels_repeat(tmp_path):
    library = Library(
        reads=200,
        clones=30,
        common=10,
        umi_length=8,
        sequencing=Sequencing(insert_mean=200, insert_sd=10, substitutions=0.002),
    )
    germlines = [load_germline("mouse_trb"), load_germline("mouse_tra")]
    written = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        paths = [tmp_path / folder / name for name in ("r1.fastq.gz", "r2.fastq", "truth.tsv")]
        reads = write_fastq(simulate_reads(germlines, library, seed=7), *paths[:2])
        write_truth(reads, paths[2])
        written.append([path.read_bytes() for path in paths])
    assert written[0] == written[1]
    assert gzip.decompress(written[0][0]).count(b"\n") == 800
    header, *rows = written[0][2].decode().splitlines()
    assert tuple(header.split("\t")) == TRUTH_COLUMNS
    assert len(rows) == 200
    assert {row.count("\t") for row in rows} == {len(TRUTH_COLUMNS) - 1}
    labels = Counter(read.umi for read in reads)
    assert 30 < len(labels) < 120
    others = [
        {read.molecule.junction for read in simulate_reads(germlines, library, seed=seed)} for seed in (7, 8)
    ]
    assert others[0] & others[1]
    assert others[0] - others[1]
