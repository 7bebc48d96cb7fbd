"""`plait.mapping.find` against oracles that look at every place: mismatches, edits, sites with bulges."""

from __future__ import annotations

import re
import tracemalloc

import numpy as np
import pytest
from support.examples import often
from support.mapping import (
    differs,
    edit_ends,
    edit_loci,
    mismatch_hits,
    planted,
    random_text,
    reverse_complement,
    site_hits,
)

from plait.mapping import find, off_targets, search
from plait.mapping import texts as texts_module
from plait.mapping.files import find_files
from plait.mapping.patterns import read_patterns
from plait.mapping.search import Finder, FindSettings

PATTERNS = {"a": "ACGTTGCATGCA", "b": "GATTACAGATTACAGA", "c": "RGGATNCY", "d": "ACACACACACAC"}


def texts(seed: int, edits: int = 2) -> dict[str, str]:
    rng = np.random.default_rng(seed)
    made = {
        f"t{k}": planted(rng, list(PATTERNS.values()), size, edits) for k, size in enumerate((300, 40, 9))
    }
    made["lower"] = made["t0"][:70].lower()
    made["empty"] = ""
    made["repeat"] = "AC" * 60 + "N" * 20 + PATTERNS["a"]
    return made


def rows(found) -> list[tuple]:
    table = found.to_arrow().to_pydict()
    keys = ("pattern_name", "sequence_name", "start", "end", "strand", "distance")
    return sorted(zip(*(table[key] for key in keys), strict=True))


@pytest.mark.parametrize("k", [0, 1, 3])
def test_mismatches(k: int) -> None:
    own = texts(k)
    found = find(PATTERNS, own, mismatches=k)
    want = []
    for name, pattern in PATTERNS.items():
        for sequence, text in own.items():
            for strand, letters in (("+", pattern), ("-", reverse_complement(pattern))):
                for start, count in mismatch_hits(letters, text, k):
                    want.append((name, sequence, start, start + len(pattern), strand, count))
    assert rows(found) == sorted(want)
    assert found.by_distance.sum() == len(want) > 5
    check_alignments(found, own)


@pytest.mark.parametrize("k", [7, 8, 9])
def test_many_mismatches(k: int) -> None:
    pattern = "ACGTTGCATGCATTGACCATGGAC"
    text = planted(np.random.default_rng(k), [pattern], 400, k + 1)
    found = find({"p": pattern}, {"t": text}, mismatches=k, strands="+")
    want = [
        ("p", "t", start, start + len(pattern), "+", count)
        for start, count in mismatch_hits(pattern, text, k)
    ]
    assert rows(found) == want and len(want) > 2


def check_alignments(found, own: dict[str, str]) -> None:
    """Counts, CIGARs and targets say of each hit what its letters say."""
    for row in found.to_arrow().to_pylist():
        text = own[row["sequence_name"]][row["start"] : row["end"]].upper()
        target = row["target"]
        letters = target.replace("-", "").upper() + (row["pam"].upper() if row["pam"] else "")
        plain = text if row["strand"] == "+" else reverse_complement_of_text(text)
        assert letters == plain or row["pam"] + target.replace("-", "").upper() == plain
        assert sum(c.islower() for c in target) == row["mismatches"]
        assert target.count("-") == row["rna_bulges"]
        assert row["distance"] == row["mismatches"] + row["dna_bulges"] + row["rna_bulges"]


def reverse_complement_of_text(text: str) -> str:
    return "".join({"A": "T", "C": "G", "G": "C", "T": "A"}.get(c, c) for c in reversed(text))


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_edits(k: int) -> None:
    own = texts(10 + k)
    ends, loci = [], []
    for name, pattern in PATTERNS.items():
        for sequence, text in own.items():
            for strand, letters in (("+", pattern), ("-", reverse_complement(pattern))):
                these = edit_ends(letters, text, k)
                ends += [(name, sequence, end, strand, distance) for end, distance in these]
                loci += [(name, sequence, end, strand, d) for end, d in edit_loci(these, k)]
    found = find(PATTERNS, own, errors=k, edits=True, report="ends")
    table = found.to_arrow().to_pydict()
    keys = ("pattern_name", "sequence_name", "end", "strand", "distance")
    assert sorted(zip(*(table[key] for key in keys), strict=True)) == sorted(ends)
    found = find(PATTERNS, own, errors=k, edits=True)
    table = found.to_arrow().to_pydict()
    assert sorted(zip(*(table[key] for key in keys), strict=True)) == sorted(loci)
    assert len(loci) > 5
    check_alignments(found, own)


@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize(
    "limits",
    often(
        2,
        [
            ((2, 2, 1, 3),),
            ((3, 1, 1, 5),),
            ((2, 0, 0, 2),),
            ((2, 1, 0, 3),),
            ((1, 0, 1, 2),),
            ((3, 1, 1, 3),),
        ],
    ),
)
def test_sites(side: int, limits: tuple[int, int, int, int]) -> None:
    rng = np.random.default_rng(sum(limits) * 7 + side)
    guides = {"g": "ACGTTGCATGCAAC", "h": "GATTACANATTACAGA", "odd": "CCATGAATCGTTA"}
    pam = "NGG" if side == 3 else "TTTV"
    joined = [g + "AGG" if side == 3 else "TTTA" + g for g in guides.values()]
    own = {"x": planted(rng, joined, 900, 3), "y": planted(rng, joined, 30, 1)}
    most, dna, rna, errors = limits
    found = off_targets(
        guides, own, pam=pam, pam_side=side, mismatches=most, dna_bulges=dna, rna_bulges=rna, errors=errors
    )
    got = []
    for row in found.to_arrow().to_pylist():
        first = row["strand"] == ("+" if side == 5 else "-")
        place = row["start"] if first else row["end"] - len(pam)
        counts = (row["mismatches"], row["dna_bulges"], row["rna_bulges"])
        got.append((row["pattern_name"], row["sequence_name"], place, row["strand"], counts))
    want = [
        (name, sequence, *hit)
        for name, guide in guides.items()
        for sequence, text in own.items()
        for hit in site_hits(guide, pam, text, limits, side=side)
    ]
    assert sorted(got) == sorted(want)
    assert len(want) > 5
    check_alignments(found, own)


def test_pam_mismatches() -> None:
    rng = np.random.default_rng(4)
    guide, own = "ACGTTGCATGCAAC", {"x": random_text(rng, 400, "ACGT") + "ACGTTGCATGCAACTGTACGTTGCATGCAACTGG"}
    found = off_targets({"g": guide}, own, mismatches=6, pam_mismatches=1)
    want = site_hits(guide, "NGG", own["x"], (6, 0, 0, 6), pam_mismatches=1)
    assert len(found) == len(want) > 5
    assert len(off_targets({"g": guide}, own, mismatches=6)) < len(want)


# What other programs are reported to get wrong, written from the descriptions.


@pytest.mark.parametrize("limits", [(4, 0, 2), (5, 1, 3)])
def test_two_bulges_in_one_alignment(limits: tuple[int, int, int]) -> None:
    """cas-offinder 43: no site with several bulges."""
    guide, site = "GTCCCTAGTGGCCCCACTGT", "GTCCTGTGCCCCCACTGTGGG"
    most, dna, rna = limits
    found = off_targets(
        {"g": guide}, {"s": "AC" + site + "TT"}, mismatches=most, dna_bulges=dna, rna_bulges=rna
    )
    assert "+" in found.strand


@pytest.mark.parametrize("strand", "+-")
@pytest.mark.parametrize(("site", "dna", "rna"), [("ACGTTGCTATGCAAC", 1, 0), ("ACGTTGATGCAAC", 0, 1)])
def test_places_of_sites_with_bulges(strand: str, site: str, dna: int, rna: int) -> None:
    """cas-offinder 46: places are off by the bulge."""
    own = "T" * 9 + site + "AGG" + "T" * 7
    text = own if strand == "+" else reverse_complement(own)
    found = off_targets({"g": "ACGTTGCATGCAAC"}, {"s": text}, mismatches=0, dna_bulges=dna, rna_bulges=rna)
    (row,) = found.to_arrow().to_pylist()
    begin = 9 if strand == "+" else 7
    assert (row["start"], row["end"], row["strand"]) == (begin, begin + len(site) + 3, strand)
    assert (row["dna_bulges"], row["rna_bulges"], row["pam"]) == (dna, rna, "AGG")


def test_mismatches_and_pams_of_sites_with_bulges() -> None:
    """cas-offinder 60: wrong numbers of mismatches, and sites without a PAM, beside bulges."""
    rng = np.random.default_rng(60)
    guide = "ACGTTGCATGCAAC"
    own = {"x": planted(rng, [guide + "AGG", guide + "TCG"], 3000, 3)}
    found = off_targets({"g": guide}, own, mismatches=2, dna_bulges=1, rna_bulges=1)
    assert len(found) > 20
    for row in found.to_arrow().to_pylist():
        assert row["pam"][1:].upper() == "GG"
        steps = "".join(step * int(n) for n, step in re.findall(r"(\d+)([=XID])", row["cigar"]))
        steps, at = steps if row["strand"] == "+" else steps[::-1], 0
        for letter, step in zip(row["target"], steps, strict=True):
            same = step != "D" and letter == guide[at]
            assert same == (step == "=")
            at += step != "D"
        assert at == len(guide) and steps.count("X") == row["mismatches"]


def test_overlapping_sites_are_all_told() -> None:
    """crisporPaper 2: sites that overlap are merged. Every PAM is a site of its own."""
    found = off_targets({"g": "G" * 20}, {"s": "G" * 40}, mismatches=0, strands="+")
    assert found.start.tolist() == list(range(18))


def test_mismatches_of_the_pam_and_both_bulges_together() -> None:
    """CRISPRitz 4: neither goes with the other."""
    text = "TT" + "ACGTTGCTATGCAC" + "AGT" + "TT"
    settings = {"mismatches": 0, "dna_bulges": 1, "rna_bulges": 1, "strands": "+"}
    (row,) = (
        off_targets({"g": "ACGTTGCATGCAAC"}, {"s": text}, pam_mismatches=1, **settings).to_arrow().to_pylist()
    )
    assert (row["dna_bulges"], row["rna_bulges"], row["mismatches"], row["pam"]) == (1, 1, 0, "AGT")
    assert not len(off_targets({"g": "ACGTTGCATGCAAC"}, {"s": text}, **settings))


def test_what_is_in_a_piece_is_in_the_whole() -> None:
    """bwa 176: three sites are found in a piece of a chromosome, and none in the chromosome."""
    rng = np.random.default_rng(176)
    piece = planted(rng, ["ACGTTGCATGCAACGTAGCTAGG"], 300, 2)
    whole = random_text(rng, 90_000, "ACGT") + piece + random_text(rng, 60_000, "ACGT")
    guide = {"g": "ACGTTGCATGCAACGTAGCT"}
    few = rows(off_targets(guide, {"s": piece}, mismatches=4))
    many = rows(off_targets(guide, {"s": whole}, mismatches=4))
    assert len(few) >= 3
    assert {(p, s, a + 90_000, b + 90_000, *rest) for p, s, a, b, *rest in few} <= set(many)


@pytest.mark.slow
def test_words_of_ten_letters_are_listed() -> None:
    """bwa 256: words of 10 to 13 letters cannot be listed."""
    rng = np.random.default_rng(256)
    text = random_text(rng, 50_000, "ACGT")
    for size in (10, 11, 12, 13):
        word = text[700 : 700 + size]
        found = find({"w": word}, {"t": text}, mismatches=1, strands="+")
        want = mismatch_hits(word, text, 1)
        assert list(zip(found.start.tolist(), found.distance.tolist(), strict=True)) == want


@pytest.mark.parametrize("k", [1, 2, 3])
def test_tandem_repeats_of_short_periods(k: int) -> None:
    """Repeats whose period is less than 2k: loci are runs of ends, at both ends of every sequence too."""
    for period in range(1, 2 * k + 1):
        unit = "ACGTTG"[:period]
        pattern = (unit * 16)[:16]
        own = {
            "a": pattern, "b": (unit * 40)[:57], "c": pattern[:-1] + "N" + pattern, "d": "TTCC" + pattern * 3,
            "e": pattern[3:], "f": reverse_complement((unit * 20)[:33]) + "A",
        }  # fmt: skip
        found = find({"p": pattern}, own, errors=k, edits=True)
        got = sorted(
            zip(found.sequence_name, found.strand, found.end.tolist(), found.distance.tolist(), strict=True)
        )
        strands = {"+": pattern, "-": reverse_complement(pattern)}
        want = [
            (name, strand, end, distance)
            for name, text in own.items()
            for strand, letters in strands.items()
            for end, distance in edit_loci(edit_ends(letters, text, k), k)
        ]
        assert got == sorted(want)


def test_patterns_are_text_or_bytes() -> None:
    text = PATTERNS["a"]
    wanted = read_patterns([text]).patterns
    assert read_patterns(text.encode()).patterns == read_patterns([text.encode()]).patterns == wanted
    assert read_patterns({"pattern_1": text.encode()}).patterns == wanted


def found_in_blocks(settings: dict[str, object], own: dict[str, str], most: int) -> list[tuple]:
    finder = Finder(read_patterns(PATTERNS), FindSettings(**settings))
    found = []
    for blocks, own_rows in finder.sequences(own, most=most):
        for k in range(len(own_rows)):
            row = [
                getattr(own_rows, c)[k] for c in ("pattern", "start", "end", "strand", "mismatches", "extra")
            ]
            found.append((blocks.names[own_rows.sequence[k]], *map(int, row)))
    return found


MODES = {
    "mismatches": {"mismatches": 2},
    "edits": {"errors": 2, "edits": True},
    "ends": {"errors": 2, "edits": True, "report": "ends"},
    "sites": {"mismatches": 3, "pam": "NG", "dna_bulges": 1, "rna_bulges": 1},
    "sites before": {"mismatches": 3, "pam": "TN", "pam_side": 5, "dna_bulges": 1},
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", often(1, MODES))
def test_results_do_not_depend_on_blocks_threads_or_devices(mode: str, tmp_path) -> None:
    own = texts(21)
    one = found_in_blocks(MODES[mode], own, 1 << 20)
    assert len(one) > 5
    assert found_in_blocks(MODES[mode] | {"threads": 3}, own, 1 << 20) == one
    file = tmp_path / "t.fa"
    file.write_text("".join(f">{n}\n{t}\n" for n, t in own.items()))
    assert found_in_blocks(MODES[mode], file, 50) == one
    assert pieces_of(own, MODES[mode], 7) == one


def pieces_of(own: dict[str, str], settings: dict[str, object], size: int) -> list[tuple]:
    """The same with sequences that come in small pieces, a block each."""
    from plait.mapping import texts as module

    def pieces(given):
        for name, text in given.items():
            raw = np.frombuffer(text.encode(), np.uint8)
            for first in range(0, max(raw.size, 1), size):
                part = raw[first : first + size]
                yield module.Piece(
                    [name], part, np.array([0, part.size]), first > 0, first + size >= raw.size
                )

    before = module.text_pieces
    module.text_pieces = pieces
    try:
        return found_in_blocks(settings, own, 1)
    finally:
        module.text_pieces = before


def test_more_errors_lose_nothing() -> None:
    own = texts(33)
    for k in range(3):
        fewer = find(PATTERNS, own, errors=k, edits=True, report="ends")
        more = find(PATTERNS, own, errors=k + 1, edits=True, report="ends")
        keys = ("pattern_name", "sequence_name", "end", "strand", "distance")
        sets = [set(zip(*(f.to_arrow().to_pydict()[c] for c in keys), strict=True)) for f in (fewer, more)]
        assert sets[0] <= sets[1]


def test_reverse_complement_mirrors_hits() -> None:
    rng = np.random.default_rng(3)
    text = planted(rng, list(PATTERNS.values()), 400, 1).replace("N", "A")
    one = rows(find(PATTERNS, {"t": text}, mismatches=2))
    other = rows(find(PATTERNS, {"t": reverse_complement(text)}, mismatches=2))
    size = len(text)
    mirrored = [(p, s, size - e, size - b, "-+"[strand == "-"], d) for p, s, b, e, strand, d in other]
    assert sorted(mirrored) == one


def test_overhang() -> None:
    own = {"x": "GTTGCATGCA", "y": "TTTTTTTTACGTTGCATG", "z": "ACGT", "w": "CGTTGCATGC"}
    found = find({"a": PATTERNS["a"]}, own, mismatches=3, overhang=True, strands="+")
    want = [
        ("a", name, start, start + 12, "+", count)
        for name, text in own.items()
        for start, count in mismatch_hits(PATTERNS["a"], text, 3, overhang=True)
    ]
    assert rows(found) == sorted(want)
    assert len(want) >= 3


def test_ambiguous_text() -> None:
    text = "TTACGTTGCATGCATTACRTTGYATGCATTNNNNNNNNNNNN"
    for iupac in (False, True):
        found = find({"a": PATTERNS["a"]}, {"t": text}, mismatches=2, strands="+", text_iupac=iupac)
        want = mismatch_hits(PATTERNS["a"], text, 2, iupac=iupac)
        assert list(zip(found.start.tolist(), found.distance.tolist(), strict=True)) == want
    assert differs("A", "R") and not differs("A", "R", True)


def test_anchored_patterns_begin_where_sequences_do() -> None:
    reads = {
        "r1": "ACGTTGCATGCATTTT",
        "r2": "ACGTTGATGCATTTTT",
        "r3": "TACGTTGCATGCATTT",
        "r4": "TTTTTGCATGCAACGT",
    }
    found = find({"a": PATTERNS["a"]}, reads, errors=1, edits=True, anchored=True, strands="both")
    assert rows(found) == [
        ("a", "r1", 0, 12, "+", 0),
        ("a", "r2", 0, 11, "+", 1),
        ("a", "r3", 0, 13, "+", 1),
        ("a", "r4", 4, 16, "-", 0),
    ]


def test_best_and_counts_and_most_hits() -> None:
    own = texts(5)
    whole = find(PATTERNS, own, mismatches=3)
    best = find(PATTERNS, own, mismatches=3, report="best", strata=1)
    least = {
        name: min(d for p, *_, d in rows(whole) if p == name) for name in PATTERNS if whole.counts()[name]
    }
    assert rows(best) == [row for row in rows(whole) if row[-1] <= least[row[0]] + 1]
    counted = find(PATTERNS, own, mismatches=3, count_only=True)
    assert len(counted) == 0 and counted.counts() == whole.counts()
    # The most hits are the first of those with fewest errors, wherever in the text these are.
    first = find(PATTERNS, own, mismatches=3, report="best", strata=1, max_hits=1)
    told = best.to_arrow().to_pylist()
    assert first.to_arrow().to_pylist() == [
        next(r for r in told if r["pattern_name"] == n)
        for n in dict.fromkeys(r["pattern_name"] for r in told)
    ]
    few = find(PATTERNS, own, mismatches=3, max_hits=2)
    assert few.counts() == whole.counts()
    hits = {name: sum(counts) for name, counts in whole.counts().items()}
    assert few.statuses == tuple("too_many_hits" if hits[n] > 2 else "ok" for n in PATTERNS)
    assert len(few) == sum(min(2, n) for n in hits.values())


@pytest.mark.slow
def test_ten_thousand_contigs() -> None:
    rng = np.random.default_rng(8)
    own = [(f"c{k}", random_text(rng, 30) + ("ACGTTGCATGCA" if k % 100 == 0 else "")) for k in range(10_000)]
    found = find({"a": PATTERNS["a"]}, own, mismatches=0)
    assert {f"c{k}" for k in range(0, 10_000, 100)} <= set(found.sequence_name)


@pytest.mark.slow
def test_a_million_hits() -> None:
    found = find({"p": "AAAAAAAAAAAA"}, {"t": "A" * 1_100_000}, mismatches=1, strands="+")
    assert len(found) == 1_100_000 - 11
    assert (np.diff(found.start) == 1).all()
    loci = find({"p": "AAAAAAAAAAAA"}, {"t": "A" * 300_000}, errors=1, edits=True, strands="+")
    assert rows(loci) == [("p", "t", 0, 12, "+", 0)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_FIRST_LETTERS", 1 << 10), ("_MANY_HITS", 1 << 9), ("_FEWEST_LETTERS", 1 << 9)):
        monkeypatch.setattr(search, name, size)


@pytest.mark.parametrize("mode", often(2, MODES))
def test_hits_are_given_as_they_come(mode: str, small_blocks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a long sequence come in order and in small parts, and are those of one block."""
    rng = np.random.default_rng(12)
    parts = [planted(rng, list(PATTERNS.values()), 3000, 1), "AC" * 3000, "N" * 200, "GATTACA" * 400]
    own = {"one": "".join(parts), "two": parts[0] + parts[2]}
    finder = Finder(read_patterns(PATTERNS), FindSettings(**MODES[mode]))
    given = [len(part) for _, part in finder.sequences(own, most=1 << 10)]
    assert len(given) > 3 and max(given) < sum(given) - 10
    got = find(PATTERNS, own, **MODES[mode])
    monkeypatch.setattr(search, "_FIRST_LETTERS", 1 << 30)
    assert got.to_arrow() == find(PATTERNS, own, **MODES[mode]).to_arrow()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_hits(tmp_path, small_blocks: None) -> None:
    peaks = []
    for letters in (4_000, 4_000, 24_000):
        (tmp_path / "t.fa").write_text(">t\n" + "A" * letters + "\n")
        tracemalloc.start()
        done = find_files(
            "A" * 12, [tmp_path / "t.fa"], tmp_path / "o.sam", FindSettings(mismatches=1, threads=1)
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert done.rows == letters - 11
    # Buffers of outputs have a size of their own; hits that were kept would take six times as much.
    assert peaks[2] < 3 * peaks[1]


@pytest.mark.parametrize("threads", [1, 3])
def test_barcodes_of_reads_in_many_blocks(tmp_path, small_blocks: None, monkeypatch, threads: int) -> None:
    monkeypatch.setattr(texts_module, "_BLOCK_READS", 30)
    own = [PATTERNS["ab"[k % 2]] if k % 3 else "C" * 12 for k in range(500)]
    (tmp_path / "r.fq").write_text("".join(f"@r{k}\n{s}\n+\n{'I' * len(s)}\n" for k, s in enumerate(own)))
    settings = FindSettings(errors=1, edits=True, anchored=True, strands="+", threads=threads)
    done = find_files(
        {n: PATTERNS[n] for n in "ab"}, [tmp_path / "r.fq"], tmp_path / "o.tsv", settings, what="barcodes"
    )
    table = [line.split("\t")[:3] for line in (tmp_path / "o.tsv").read_text().splitlines()[1:]]
    want = [[f"r{k}", "assigned", "ab"[k % 2]] if k % 3 else [f"r{k}", "none", ""] for k in range(500)]
    assert table == want and done.sequences == done.rows == 500
