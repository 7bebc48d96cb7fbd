"""Every locus of every read: against brute force, and what may not change it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import often
from support.mapping_truth import all_loci, edit_distances, four_phase_matches, reverse_complement

from plait import mapping
from plait.devices.target import interpreted
from plait.errors import InvalidInput
from plait.formats.fasta import Names
from plait.formats.reads import slice_reads
from plait.mapping import Index, records
from plait.mapping.alignments import exact_kernel
from plait.mapping.mapper import Mapper, MapSettings, read_units

LETTERS = np.array(list("ACGT"))


def drawn(rng, size, letters=LETTERS):
    return "".join(rng.choice(letters, size))


def changed(rng, read, errors, *, edits=True):
    """A read with so many random errors."""
    letters = list(read)
    for _ in range(errors):
        at = int(rng.integers(len(letters)))
        kind = rng.integers(3) if edits else 0
        if kind == 0:
            letters[at] = str(rng.choice(LETTERS))
        elif kind == 1:
            letters.insert(at, str(rng.choice(LETTERS)))
        elif len(letters) > 25:
            del letters[at]
    return "".join(letters)


def found_in(hits):
    table = hits.to_arrow().to_pylist()
    return {(row["read"], row["contig"], row["strand"], row["end"], row["distance"]) for row in table}


def check_alignments(hits, reads, contigs):
    """CIGAR, MD, start and distance of each locus agree with the letters."""
    for row in hits.to_arrow().to_pylist():
        read = reads[row["read"]].upper().replace("U", "T")
        read = read if row["strand"] == "+" else reverse_complement(read)
        text = contigs[row["contig"]].upper().replace("U", "T")
        text = "".join(c if c in "ACGT" else "N" for c in text)[row["start"] : row["end"]]
        i = j = errors = same = 0
        md = ""
        for count, step in re.findall(r"(\d+)([=XID])", row["cigar"]):
            for k in range(int(count)):
                if step in "=X":
                    equal = read[i] == text[j] and text[j] in "ACGT"
                    assert equal == (step == "=")
                    if equal:
                        same += 1
                    else:
                        md += f"{same}{text[j]}"
                        same = 0
                    i, j = i + 1, j + 1
                elif step == "I":
                    i += 1
                else:
                    md += text[j] if k else f"{same}^{text[j]}"
                    same = 0
                    j += 1
                errors += step != "="
        assert (i, j, errors) == (len(read), len(text), row["distance"])
        assert row["md"] == md + str(same)


def check(reads, contigs, errors, *, edits=True, index=None):
    hits = mapping.map(
        reads, index or Index.build(contigs), errors=errors, substitutions_only=not edits, threads=1
    )
    assert found_in(hits) == all_loci(reads, contigs, errors, edits=edits)
    assert len(hits) == len(found_in(hits)) == int(hits.counts.sum())
    check_alignments(hits, reads, contigs)
    return hits


@pytest.mark.parametrize("edits", often(1, [True, False]))
@pytest.mark.parametrize("errors", often(1, [3, 0, 1, 5]))
def test_all_loci_of_reads_from_everywhere(errors, edits):
    rng = np.random.default_rng(10 * errors + edits)
    contigs = {f"c{k}": drawn(rng, int(rng.integers(70, 500))) for k in range(4)}
    contigs["n"] = drawn(rng, 80) + "N" * 20 + drawn(rng, 70).lower() + "RYK" + drawn(rng, 40)
    reads = {}
    for name, text in contigs.items():
        for k, size in enumerate((56, 58, 63)):
            # At both ends of every contig, and hanging over them.
            reads[f"{name}-first{k}"] = drawn(rng, k) + text[: size - k]
            reads[f"{name}-last{k}"] = reverse_complement(text[len(text) - size + k :] + drawn(rng, k))
            at = int(rng.integers(0, len(text) - size))
            read = changed(rng, text[at : at + size].upper(), errors, edits=edits)
            reads[f"{name}-in{k}"] = read if k else reverse_complement(read)
    reads["iupac"] = contigs["c0"][:20] + "NR" + contigs["c0"][22:56]
    reads["rna"] = contigs["c1"][5:60].replace("T", "u")
    reads["nowhere"] = drawn(rng, 60)
    hits = check(reads, contigs, errors, edits=edits)
    assert len(hits) > 20
    if errors == 0 and edits:
        for name, read in reads.items():
            for contig in ("c0", "c1", "c2", "c3"):
                if set(read) <= set("ACGT"):
                    rows = hits.to_arrow().to_pylist()
                    starts = [
                        row["start"]
                        for row in rows
                        if (row["read"], row["contig"], row["strand"]) == (name, contig, "+")
                    ]
                    assert sorted(starts) == four_phase_matches(read, contigs[contig])


@settings(deadline=None, max_examples=12)
@given(st.data())
def test_all_loci_of_drawn_texts(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    letters = LETTERS[: data.draw(st.integers(2, 4))]
    contigs = {f"c{k}": drawn(rng, int(rng.integers(0, 120)), letters) for k in range(3)}
    contigs["repeats"] = drawn(rng, int(rng.integers(1, 9))) * 20
    errors = data.draw(st.integers(0, 4))
    sources = [text for text in contigs.values() if len(text) >= 60]
    reads = {"any": drawn(rng, 40, letters)}
    for k, text in enumerate(sources):
        at = int(rng.integers(0, len(text) - 45))
        reads[f"r{k}"] = changed(rng, text[at : at + 45], int(rng.integers(0, errors + 1)))
    check(reads, contigs, errors, edits=data.draw(st.booleans()))


@pytest.mark.parametrize("period", [1, 2, 3, 5, 7, 9])
def test_tandem_repeats_of_short_periods(period):
    """Loci of one repeat touch; the definition says which ends are one."""
    rng = np.random.default_rng(period)
    unit = drawn(rng, period)
    contigs = {"t": drawn(rng, 40) + (unit * 130)[:120] + drawn(rng, 40)}
    reads = {"in": (unit * 130)[:40], "edge": contigs["t"][20:65], "more": changed(rng, (unit * 130)[:46], 3)}
    for errors in (0, 2, 4):
        check(reads, contigs, errors)


def test_reads_of_any_length_together():
    """Pairs that are checked together have other lengths, and other numbers of errors by a rate."""
    rng = np.random.default_rng(3)
    contigs = {"c": drawn(rng, 900), "d": drawn(rng, 420)}
    reads = {}
    for k, size in enumerate((25, 31, 63, 64, 65, 100, 127, 128, 129, 200, 257, 400)):
        for other in range(4):
            at = int(rng.integers(0, 900 - size))
            reads[f"{k}.{other}"] = changed(rng, contigs["c"][at : at + size], size // 25 if other else 0)[
                :400
            ]
    hits = mapping.map(reads, contigs, error_rate=4, threads=1)
    truth = set()
    for name, read in reads.items():
        truth |= all_loci({name: read}, contigs, len(read) * 4 // 100)
    assert found_in(hits) == truth
    assert len(truth) >= 36
    check_alignments(hits, reads, contigs)


def test_many_short_contigs():
    rng = np.random.default_rng(4)
    contigs = {f"c{k}": drawn(rng, int(rng.integers(20, 60))) for k in range(10_000)}
    names = list(contigs)[::997]
    reads = {name: contigs[name][:32] for name in names if len(contigs[name]) >= 32}
    reads |= {
        f"{name}-": reverse_complement(contigs[name][-30:]) for name in names if len(contigs[name]) >= 30
    }
    hits = mapping.map(reads, contigs, errors=2)
    found = found_in(hits)
    for name in reads:
        contig = name.rstrip("-")
        text, strand = contigs[contig], "-" if name.endswith("-") else "+"
        assert (name, contig, strand, len(text) if strand == "-" else 32, 0) in found


@pytest.mark.slow
def test_a_million_hits():
    """No limit but one that is asked for, and then the number is told."""
    contigs = {"a": "A" * 1_000_500, "b": "ACGTTGCATG" * 30}
    hits = mapping.map({"poly": "A" * 100}, contigs, errors=2, substitutions_only=True)
    assert hits.counts.tolist() == [1_000_401] and len(hits) == 1_000_401
    hits = mapping.map({"poly": "A" * 100, "b": contigs["b"][:100]}, contigs, errors=0, max_hits=1000)
    assert hits.statuses == ("too_many_hits", "mapped")
    assert hits.counts.tolist() == [1_000_401, 21] and len(hits) == 21
    one = mapping.map({"poly": "A" * 100}, contigs, errors=2)
    assert one.counts.tolist() == [1] and one.rows.distance.tolist() == [0] and one.rows.start.tolist() == [0]


def test_results_do_not_depend_on_index_threads_or_split(tmp_path):
    rng = np.random.default_rng(6)
    repeat = drawn(rng, 150)
    contigs = {f"c{k}": drawn(rng, 3000) + changed(rng, repeat, 4) for k in range(12)}
    reads = {}
    for k in range(300):
        text = contigs[f"c{k % 12}"]
        at = int(rng.integers(0, len(text) - 90))
        reads[f"r{k}"] = changed(rng, text[at : at + 80], int(rng.integers(0, 5)))
    first = mapping.map(reads, contigs, errors=4, threads=1)
    for u in (4, 9, 12):
        other = mapping.map(reads, Index.build(contigs, seed_length=u, threads=3), errors=4, threads=2)
        assert other.to_arrow().equals(first.to_arrow())
    halves = [dict(list(reads.items())[:111]), dict(list(reads.items())[111:])]
    parts = [mapping.map(half, contigs, errors=4).to_arrow().to_pylist() for half in halves]
    assert parts[0] + parts[1] == first.to_arrow().to_pylist()
    mirrored = {name: reverse_complement(text) for name, text in contigs.items()}
    back = mapping.map(reads, mirrored, errors=4, substitutions_only=True)
    ahead = mapping.map(reads, contigs, errors=4, substitutions_only=True)
    size = {name: len(text) for name, text in contigs.items()}
    flip = {"+": "-", "-": "+"}
    turned = {
        (row["read"], row["contig"], flip[row["strand"]], size[row["contig"]] - row["start"], row["distance"])
        for row in back.to_arrow().to_pylist()
    }
    assert turned == found_in(ahead)
    more = mapping.map(reads, contigs, errors=5)
    loci = {
        (row["read"], row["contig"], row["strand"], row["end"] // 30) for row in more.to_arrow().to_pylist()
    }
    for row in first.to_arrow().to_pylist():
        near = {(row["read"], row["contig"], row["strand"], row["end"] // 30 + k) for k in (-1, 0, 1)}
        assert near & loci


def test_better_borders_change_nothing(monkeypatch):
    rng = np.random.default_rng(7)
    unit = drawn(rng, 30)
    contigs = {"c": "".join(unit + drawn(rng, 25) for _ in range(30)), "d": drawn(rng, 500)}
    reads = {f"r{k}": changed(rng, contigs["c"][k * 37 : k * 37 + 70], k % 5) for k in range(30)}
    usual = found_in(mapping.map(reads, contigs, errors=4))
    monkeypatch.setattr("plait.mapping.mapper.MANY_PLACES", 0)
    assert found_in(mapping.map(reads, contigs, errors=4)) == usual
    assert usual == all_loci(reads, contigs, 4)


def test_memory_of_places_is_bounded(monkeypatch):
    """Blocks that have too many places are mapped in parts."""
    rng = np.random.default_rng(8)
    contigs = {"c": drawn(rng, 50) * 30}
    reads = {f"r{k}": contigs["c"][k : k + 40] for k in range(40)}
    usual = mapping.map(reads, contigs, errors=1)
    monkeypatch.setattr("plait.mapping.mapper._MOST_PLACES", 100)
    assert mapping.map(reads, contigs, errors=1).to_arrow().equals(usual.to_arrow())


@pytest.fixture
def many_exact():
    """Reads of all lengths, with letters that are none, within and over ends of contigs, some repeated."""
    rng = np.random.default_rng(12)
    unit = drawn(rng, 410)
    contigs = {
        "a": drawn(rng, 300) + unit,
        "empty": "",
        "b": unit[:120] + "NNR" + unit[123:] + drawn(rng, 31),
    }
    contigs |= {f"c{k}": drawn(rng, int(rng.integers(10, 90))) for k in range(20)}
    contigs["poly"] = "A" * 90
    text = "".join(contigs.values())
    reads = {}
    for k, size in enumerate(
        [24, 25, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 400, 401] * 4
    ):
        at = int(rng.integers(0, len(text) - size))
        reads[f"r{k}"] = text[at : at + size] if k % 3 else reverse_complement(text[at : at + size])
    reads |= {"t": "T" * 40, "u": unit[5:60].replace("T", "u"), "n": unit[:30] + "N" + unit[31:70]}
    return reads, contigs


@pytest.mark.slow
@pytest.mark.parametrize("u", often(1, [4, 9, 13]))
def test_reads_without_errors_take_a_shorter_way(many_exact, u, monkeypatch):
    """It gives what the way of all reads gives, in the same order, and brute force."""
    reads, contigs = many_exact
    index = Index.build(contigs, seed_length=u)
    found = mapping.map(reads, index, errors=0, threads=1)
    known = {name: read for name, read in reads.items() if 25 <= len(read) <= 400}
    assert found_in(found) == all_loci(known, contigs, 0)
    assert found.counts.max() > 50 and (found.counts == 0).sum() > 5 and (found.counts == 1).sum() > 5
    monkeypatch.setattr(
        Mapper, "_exact", lambda self, own, lengths: self._with_errors(own, lengths, np.zeros_like(lengths))
    )
    usual = mapping.map(reads, index, errors=0, threads=1)
    assert found.to_arrow().equals(usual.to_arrow())
    assert found.statuses == usual.statuses and np.array_equal(found.counts, usual.counts)


def test_reads_without_errors_leave_no_array(many_exact, monkeypatch):
    """Interpreted, where every index is looked at; and as far as there is room."""
    reads, contigs = many_exact
    index = Index.build(contigs, seed_length=5)
    reads = dict(list(reads.items())[:30])
    usual = mapping.map(reads, index, errors=0, threads=1)
    monkeypatch.setattr("plait.mapping.mapper.exact_kernel", interpreted(exact_kernel))
    assert mapping.map(reads, index, errors=0, threads=1).to_arrow().equals(usual.to_arrow())


def test_loci_without_errors_beyond_what_there_is_room_for():
    """What comes before them is a part of its own, and they have as much room as they need."""
    contigs = {"a": "A" * 9000, "b": drawn(np.random.default_rng(13), 400)}
    reads = {"b": contigs["b"][9:90], "poly": "A" * 30, "c": contigs["b"][200:300], "other": "T" * 50}
    assert mapping.map(reads, contigs, errors=0).counts.tolist() == [1, 8971, 1, 8951]


@pytest.mark.parametrize("errors", [0, 2])
def test_a_block_of_no_reads_has_no_loci(errors):
    unit = next(read_units({"r": "A" * 30}))
    mapper = Mapper(Index.build({"a": "A" * 90}), MapSettings(errors=errors))
    (found,) = mapper.map_block(slice_reads(unit.reads, 0, 0), unit.mates[:0])
    assert found.counts.size == found.statuses.size == 0


def test_reports():
    rng = np.random.default_rng(9)
    read = drawn(rng, 60)
    one, two = changed(rng, read, 1, edits=False), read[:20] + "AC" + read[20:]
    contigs = {
        "a": drawn(rng, 50) + read + drawn(rng, 50),
        "b": drawn(rng, 30) + one,
        "c": two + drawn(rng, 20),
    }
    counts = {
        report: mapping.map({"r": read}, contigs, errors=3, report=report).rows.distance.tolist()
        for report in ("all", "best", "best+1", "best+2")
    }
    low = int(edit_distances(read, contigs["b"]).min())
    assert counts["all"] == [0, low, 2] and counts["best"] == [0]
    assert counts["best+1"] == [0, 1][: 1 + low] and counts["best+2"] == counts["all"]


def test_statuses_and_empty_inputs():
    reads = {
        "short": "ACGT",
        "long": "A" * 401,
        "wild": "ACGTACGTACGTACGTACGTACGTACG",
        "n": "N" * 40,
        "none": "",
    }
    hits = mapping.map(reads, {"c": "", "d": "ACG"}, errors=3)
    assert hits.statuses == ("too_short", "too_long", "errors_too_many", "unmapped", "too_short")
    assert not len(hits) and hits.to_arrow().num_rows == 0
    assert mapping.map({}, {"c": "ACGT"}).statuses == ()
    assert mapping.map({"r": "ACGT" * 10}, {}).statuses == ("unmapped",)


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"errors": 32}, "errors"),
        ({"errors": -1}, "errors"),
        ({"errors": 1, "error_rate": 5.0}, "error_rate"),
        ({"error_rate": 50.0}, "error_rate"),
        ({"report": "better"}, "report"),
        ({"max_hits": 0}, "max_hits"),
        ({"threads": 0}, "threads"),
    ],
)
def test_wrong_settings(wrong, what):
    with pytest.raises(InvalidInput) as error:
        mapping.map({"r": "ACGT" * 10}, {"c": "ACGT"}, **wrong)
    assert error.value.what == what


def test_letters_that_are_none():
    with pytest.raises(InvalidInput, match="sequence 'c'"):
        Index.build({"b": "ACGT", "c": "AC-T"})


@given(
    st.lists(st.text(st.sampled_from("!aZ~?A@ \té"), max_size=3) | st.just("x" * 254) | st.just("x" * 255))
)
def test_names_that_sam_allows(names):
    wrong = [name for name in names if not re.fullmatch(r"[!-?A-~]{1,254}", name)]
    if not wrong:
        records._check_names(Names.of(names))
        return
    with pytest.raises(InvalidInput, match=re.escape(f"found {wrong[0]!r}")):
        records._check_names(Names.of(names))


@given(st.integers(-1, (1 << 29) - 1), st.integers(0, 400))
def test_bins_are_those_of_the_specification(start, size):
    end = min(start + size, 1 << 29)
    last = max(end, start + 1) - 1
    steps = ((14, 4681), (17, 585), (20, 73), (23, 9), (26, 1))
    wanted = next((first + (start >> shift) for shift, first in steps if start >> shift == last >> shift), 0)
    assert records._bin(start, end) == (4680 if start < 0 else wanted)
