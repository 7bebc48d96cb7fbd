"""Searches in every mode, of translations, profiles and masked letters, against single pairs and BLAST."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import often

from plait.align import align, load_matrix, make_scoring, score, search
from plait.align.database import build_database
from plait.align.hits import SearchResult
from plait.align.profiles import Profile, read_profile
from plait.align.scoring import SubstitutionMatrix
from plait.align.settings import SearchSettings
from plait.align.statistics import _pair_ratios, composition_scores, karlin_altschul
from plait.align.writers import BLAST_COLUMNS, hit_columns
from plait.errors import FormatError, InvalidInput, Unsupported

PROTEIN = "ARNDCQEGHILKMFPSTWYV"
ONE: Any = {"kind": "protein", "threads": 1, "device": "cpu"}


def drawn(count: int, seed: int, letters: str = PROTEIN, longest: int = 60) -> list[str]:
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), size)) for size in rng.integers(1, longest, count)]


QUERIES = {f"q{k}": own for k, own in enumerate(drawn(4, 1))}
TARGETS = {f"t{k}": own for k, own in enumerate([*drawn(90, 2), *QUERIES.values()])}


def write(path: Path, sequences: dict[str, str]) -> Path:
    path.write_text("".join(f">{name}\n{own}\n" for name, own in sequences.items()))
    return path


def told(result: SearchResult) -> list[list[tuple[str, int, Any]]]:
    """Names, scores and alignments of all hits."""
    return [[(hit.target_name, hit.score, hit.alignment) for hit in hits] for hits in result.hits]


# --- modes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "free_ends"),
    often(
        2,
        [
            ("local", None),
            ("global", None),
            ("overlap", None),
            ("semiglobal", None),
            ("semiglobal", "query_start, target_end"),
            ("semiglobal", ("query_end",)),
        ],
    ),
    ids=str,
)
def test_every_mode_is_that_of_pairs(mode: Any, free_ends: Any, tmp_path: Path) -> None:
    settings = SearchSettings(mode=mode, free_ends=free_ends, top=7, evalue=None, **ONE)
    ends = free_ends.split(", ") if isinstance(free_ends, str) else free_ends
    result = search(QUERIES, TARGETS, settings, scores=True)
    for own, (query, hits) in enumerate(zip(QUERIES.values(), result.hits, strict=True)):
        found = {
            name: align(query, target, mode=mode, free_ends=ends, kind="protein")
            for name, target in TARGETS.items()
        }
        assert result.scores is not None
        assert result.scores[own].tolist() == [one.score for one in found.values()]
        ranked = sorted((one.score for one in found.values()), reverse=True)[:7]
        assert [hit.score for hit in hits] == [score for score in ranked if mode != "local" or score > 0]
        assert all(hit.alignment == found[hit.target_name] and hit.mode == mode for hit in hits)
        assert all((hit.evalue is None) == (mode != "local") for hit in hits)
    fasta = write(tmp_path / "t.fa", TARGETS)
    for database in (fasta, build_database([fasta], tmp_path / "t.plaitdb", kind="protein")):
        assert told(search(write(tmp_path / "q.fa", QUERIES), database, settings)) == told(result)
    if mode != "local":
        assert result.notes == (f"no E-values: scores of mode {mode!r} have none",)
    assert result.provenance.parameters["mode"] == mode


def test_scores_below_zero_are_kept_and_bounded() -> None:
    every = search({"q": "WWWWWWWWWW"}, TARGETS, mode="global", top=1000, **ONE)
    assert len(every) == len(TARGETS)
    assert min(hit.score for hit in every.hits[0]) < -50
    least = every.hits[0][10].score
    some = search({"q": "WWWWWWWWWW"}, TARGETS, mode="global", min_score=least, top=1000, **ONE)
    assert [hit.score for hit in some.hits[0]] == [hit.score for hit in every.hits[0] if hit.score >= least]


def test_long_targets_of_other_modes_are_not_cut(tmp_path: Path) -> None:
    """A target longer than what is packed is swept on its own, and in one piece."""
    rng = np.random.default_rng(4)
    text = "".join(rng.choice(list("ACGT"), 140_000))
    query = text[70_000:70_030]
    fasta = write(tmp_path / "t.fa", {"long": text, "short": text[:50]})
    for mode in ("semiglobal", "overlap"):
        (hits,) = search({"q": query}, fasta, kind="dna", mode=mode, threads=1).hits  # type: ignore[arg-type]
        assert (hits[0].target_name, hits[0].score) == ("long", 60)
        assert hits[0].alignment is not None and hits[0].alignment.target_start == 70_000


def test_empty_sequences_are_no_hits_of_other_modes() -> None:
    targets = {"a": "", "b": "MKV"}
    result = search({"q": "MKV", "none": ""}, targets, mode="global", **ONE)
    assert [[hit.target_name for hit in hits] for hits in result.hits] == [["b"], []]
    with pytest.raises(
        InvalidInput, match="scores: found an empty sequence, expected sequences with residues"
    ):
        search({"q": "MKV"}, targets, mode="global", scores=True, **ONE)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"mode": "extension"}, "mode: found 'extension', expected local, global, semiglobal or overlap"),
        ({"mode": "global", "hits_per_target": 2}, "hits_per_target: found 2 in mode 'global', expected 1"),
        ({"mode": "global", "free_ends": "query_end"}, "free_ends: found mode 'global'"),
        ({"mode": "semiglobal", "free_ends": "start"}, "free_ends: found 'start', expected any of"),
        ({"translate": True, "strand": "both"}, "strand: found 'both' of translations"),
        ({"translate": True, "kind": "dna"}, "kind: found 'dna' for translations"),
        ({"composition": True, "kind": "dna"}, "composition: found nucleotides"),
        ({"composition": True, "mode": "overlap"}, "composition: found mode 'overlap'"),
    ],
    ids=str,
)
def test_settings_that_do_not_go_together(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        search(QUERIES, TARGETS, **{"kind": "protein", **settings})


def test_letters_in_the_place_of_files_are_told() -> None:
    with pytest.raises(
        InvalidInput, match="database: found 'MKVLAW', which is no file, expected paths of fi"
    ):
        search({"q": "MKV"}, ["MKVLAW"])


def test_nucleotides_are_not_what_is_asked_for() -> None:
    for setting in ("translate", "composition"):
        with pytest.raises(InvalidInput, match=f"{setting}: found a database of nucleotides"):
            search({"q": "ACGT" * 20}, {"t": "ACGT" * 20}, **{setting: True})


# --- sequences in memory ----------------------------------------------------------------------------------


class Record:
    """As Biopython's."""

    def __init__(self, name: str, letters: str) -> None:
        self.id, self.seq = name, letters.encode()


def test_forms_of_sequences_in_memory(tmp_path: Path) -> None:
    expected = told(search(write(tmp_path / "q.fa", QUERIES), write(tmp_path / "t.fa", TARGETS), **ONE))
    forms: list[Any] = [dict, lambda own: list(own.items()), lambda own: iter(own.items()),
                        lambda own: [Record(*item) for item in own.items()]]  # fmt: skip
    for queries, targets in product(forms, forms):
        assert told(search(queries(QUERIES), targets(TARGETS), **ONE)) == expected
    name, letters = next(iter(QUERIES.items()))
    assert told(search(Record(name, letters), TARGETS, **ONE)) == told(
        search({name: letters}, TARGETS, **ONE)
    )


@pytest.mark.parametrize(
    ("targets", "what"),
    [
        ([("a", "MK"), ("a", "KM")], "targets: found a second one named 'a', number 2"),
        ([("a", "MK"), "b"], "targets: found a str as number 2, expected pairs of name and sequence"),
        ([("a", 7)], "targets, number 1: found a int, expected a sequence as str or bytes"),
        ({"a": "MK-V"}, "target 'a': found '-' at position 3, expected letters of proteins"),
        ({"a": "MKé"}, r"target 'a': found '\?' at position 3"),
        ({"a": "MK\x1f-"}, r"target 'a': found '\\x1f' at position 3, expected letters of proteins"),
        ([], "database: found no file"),
    ],
    ids=str,
)
def test_targets_that_are_wrong(targets: Any, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        search(QUERIES, targets, **ONE)


def test_names_that_may_come_twice() -> None:
    result = search({"q": "MKVLAW"}, [("a", "MKVLAW"), ("a", "MKVL")], allow_duplicate_names=True, **ONE)
    assert [hit.target_name for hit in result.hits[0]] == ["a", "a"]


def test_the_kind_of_what_is_in_memory() -> None:
    assert search({"q": "ACGT" * 20}, {"t": "ACGT" * 20}).provenance.parameters["kind"] == "dna"
    with pytest.raises(InvalidInput, match="queries that look like proteins"):
        search({"q": "MKVLAWEFIL"}, {"t": "ACGT" * 20})


# --- lower case -------------------------------------------------------------------------------------------


def test_lower_case_is_masked_in_queries_and_databases(tmp_path: Path) -> None:
    queries = {"q": "MKVLAWyyyyyyHHHHH"}
    targets = {"a": "MKVLAWYYYYYY", "b": "mkvlawYYYYYYHHHHH", "c": "HHHHHyyyyyy"}
    hidden = [{name: "".join("X" if c.islower() else c for c in own) for name, own in some.items()}
              for some in (queries, targets)]  # fmt: skip
    expected = told(search(*hidden, **ONE))
    assert expected != told(search(queries, targets, **ONE))
    fasta = write(tmp_path / "t.fa", targets)
    packed = build_database([fasta], tmp_path / "t.plaitdb", kind="protein", mask_lower_case=True)
    for database in (targets, fasta, packed):
        result = search(queries, database, mask_lower_case=True, **ONE)
        assert told(result) == expected
        assert result.hits[0][0].query == b"MKVLAWyyyyyyHHHHH"
    bases = search({"q": "ACGTTTTTTgggggg"}, {"t": "ACGTTTTTTGGGGGG"}, kind="dna", mask_lower_case=True)
    assert bases.hits[0][0].score == 18
    with pytest.raises(FormatError, match="found '!'"):
        write(fasta, {"a": "MK!v"})
        build_database([fasta], tmp_path / "u.plaitdb", kind="protein", mask_lower_case=True)


# --- translations -----------------------------------------------------------------------------------------

CODONS = {"".join(codon): amino_acid for codon, amino_acid in zip(
    product("TCAG", repeat=3), "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG", strict=True
)}  # fmt: skip
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def translated(bases: str, frame: int) -> str:
    strand = bases if frame > 0 else bases[::-1].translate(COMPLEMENT)
    first = abs(frame) - 1
    return "".join(CODONS[strand[k : k + 3]] for k in range(first, len(strand) - 2, 3))


def coding(protein: str, rng: np.random.Generator) -> str:
    """Nucleotides of a protein, with others before and behind, on either strand."""
    by_letter: dict[str, list[str]] = {}
    for codon, letter in CODONS.items():
        by_letter.setdefault(letter, []).append(codon)
    ends = ["".join(rng.choice(list("ACGT"), size)) for size in rng.integers(0, 30, 2)]
    bases = ends[0] + "".join(rng.choice(by_letter[letter]) for letter in protein) + ends[1]
    return bases if rng.random() < 0.5 else bases[::-1].translate(COMPLEMENT)


def test_translations_are_the_best_of_six_frames() -> None:
    rng = np.random.default_rng(9)
    genes = {f"g{k}": coding(own, rng) for k, own in enumerate(drawn(6, 12))}
    targets = {f"t{k}": own for k, own in enumerate([*drawn(6, 12), *drawn(20, 13)])}
    result = search(genes, targets, translate=True, evalue=None, threads=1)
    for (name, bases), hits in zip(genes.items(), result.hits, strict=True):
        frames = {frame: translated(bases, frame) for frame in (1, 2, 3, -1, -2, -3)}
        best = {
            target: max(score(own, letters, mode="local", kind="protein") for own in frames.values())
            for target, letters in targets.items()
        }
        assert {hit.target_name: hit.score for hit in hits} == {k: v for k, v in best.items() if v > 0}
        assert hits[0].target_name == f"t{name[1:]}"
        for hit in hits:
            own = frames[hit.frame]
            assert hit.query.decode() == own
            assert hit.alignment == align(own, targets[hit.target_name], mode="local", kind="protein")
            row = {column: BLAST_COLUMNS[column].value(hit) for column in BLAST_COLUMNS}
            assert (row["qframe"], row["sframe"], row["frames"]) == (hit.frame, 0, f"{hit.frame}/0")
            assert (row["qlen"], hit.query_length) == (len(bases), len(bases))
            assert (row["qstart"] <= row["qend"]) == (hit.frame > 0)  # type: ignore[operator]
            first, last = sorted([row["qstart"], row["qend"]])  # type: ignore[type-var]
            piece = bases[first - 1 : last]  # type: ignore[operator]
            aligned = translated(piece, 1 if hit.frame > 0 else -1)
            assert aligned == str(row["qseq"]).replace("-", "")
            assert row["qcovs"] == (
                100 if len(piece) == len(bases) else min(99, int(0.5 + 100 * len(piece) / len(bases)))
            )
            assert hit.named[0] == f"{name} (frame {hit.frame:+})"


def test_translations_of_short_and_ambiguous_queries(tmp_path: Path) -> None:
    targets = {"t": "MKVLAWMKV"}
    result = search({"a": "AC", "b": "", "c": "ATGAARGTNCTNGCNTGG"}, targets, translate=True, evalue=None)
    assert [len(hits) for hits in result.hits] == [0, 0, 1]
    assert result.hits[2][0].alignment.cigar == "6="  # type: ignore[union-attr]
    masked = search({"c": "ATGAARgtnctnGCNTGG"}, targets, translate=True, mask_lower_case=True, evalue=None)
    assert masked.hits[0][0].score < result.hits[2][0].score
    with pytest.raises(InvalidInput, match="queries that look like proteins, expected nucleotides, to be"):
        search({"q": "MKVLAWEFIL"}, targets, translate=True)
    with pytest.raises(FormatError, match="queries that look like proteins, expected nucleotides, to be"):
        search(write(tmp_path / "q.fa", {"q": "MKVLAWEFIL"}), targets, translate=True)
    for query in ("ACGTQ" + 60 * "ACGT", "ACGT-" + 60 * "ACGT"):
        with pytest.raises(InvalidInput, match=f"query 'q': found '{query[4]}' at position 5"):
            search({"q": query}, targets, translate=True)
        with pytest.raises(FormatError, match=f"found '{query[4]}' at position 5"):
            search(write(tmp_path / "q.fa", {"q": query}), targets, translate=True, kind="protein")


# --- what BLAST says --------------------------------------------------------------------------------------

#: Results below are those of NCBI BLAST+ 2.12.0 (-seg no -word_size 2 -threshold 9 -max_hsps 1) for these.
BLAST_QUERY = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWKRQT"
BLAST_TARGETS = {
    "near": "MKTAYIPKQRRSISGEKMNVSAEERLGLEVQAPICSRVGDGKQDNLSAAEKAVQVKVKAGPDAQFEKVNLAHWKRQN",
    "far": "GSHMMKSRVIMVHFRQEYFVKFRFPRQTSEHMGWIELSWPKLSRHGIGQQWNHTGAKKAQQVKVKPNAQYVWHSLQKWQRSTLLEK",
    "lysines": "KKKAYIVKQCQIASKKHFKRQLEERVILIKQSVIRKRWGSGHQDSLKGKECVQIVKVKKHPDWFFEKKHKLKKWIRQKKEKKEKK",
    "other": "AFYISICQSWSLWCFYWRNGHNNALFNMSRDDGVDCIPCQVQFQNVERWDMNHRYYDMVCAFNLVSSKKR",
}
BLAST_GENE = (
    "ACGTTGCAATGAAGACCGCATATATCGCTAAACAGCGACAAATTTCATTCGTGAAATCCCATTTCTCTAGACAATTAGAAGAGCGCCTCGGGCTC"
    "ATCGAAGTTCAGGCTCCCATCCTGTCCAGGGTTGGTGACGGCACCCAGGACAATCTTTCAGGAGCGGAGAAAGCAGTACAGGTAAAAGTCAAAGCG"
    "TTACCTGATGCTCAATTTGAAGTTGTGCACAGCCTTGCTAAGTGGAAGAGACAGACAGGTAC"
)
BLASTX = """
forward near 75.000 80 15 4 9 245 1 76 1.02e-31 94.0 3 0 3/0 253 77
forward lysines 55.128 78 33 2 12 245 2 77 5.60e-21 67.0 3 0 3/0 253 85
forward far 56.338 71 28 2 36 248 15 82 4.67e-20 64.7 3 0 3/0 253 86
backward near 75.000 80 15 4 245 9 1 76 1.02e-31 94.0 -3 0 -3/0 253 77
backward lysines 55.128 78 33 2 242 9 2 77 5.60e-21 67.0 -3 0 -3/0 253 85
backward far 56.338 71 28 2 218 6 15 82 4.67e-20 64.7 -3 0 -3/0 253 86
"""
PSIBLAST = """
q40 far 53.333 30 14 0 10 39 15 44 2.44e-16 53.3 126
q40 near 68.293 41 9 3 1 40 1 38 6.54e-15 49.4 116
q40 lysines 63.333 30 10 1 2 31 2 30 4.16e-12 42.5 98
"""
#: Two of three: BLAST masks the end of the third, which is of low complexity.
COMPOSITION = """
near 72.152 79 19 3 1 79 1 76 1.23e-27 83.6 205
far 56.338 71 28 2 10 80 15 82 4.27e-18 59.3 142
"""
#: What ``psiblast -out_ascii_pssm`` wrote for the first forty residues, to the last score.
PSSM_LETTERS = "ARNDCQEGHILKMFPSTWYV"
PSSM_ROWS = """
M -1 -1 -2 -3 -1 0 -2 -3 -2 1 2 -1 6 0 -3 -2 -1 -2 -1 1
K -1 2 0 -1 -3 1 1 -2 -1 -3 -3 5 -1 -3 -1 0 -1 -3 -2 -2
T 0 0 0 -1 -2 0 0 -2 -1 -1 -2 2 -1 -3 -1 1 4 -3 -2 -1
A 4 -2 -2 -2 0 -1 -1 0 -2 -1 -2 -1 -1 -2 -1 1 0 -3 -2 0
Y -2 -2 -2 -3 -3 -2 -2 -3 2 -1 -1 -2 -1 3 -3 -2 -2 2 7 -1
I -1 -3 -3 -3 -1 -3 -3 -4 -3 4 2 -3 1 0 -3 -2 -1 -3 -1 3
A 2 -2 -2 -2 -1 -1 -2 -2 -2 0 -1 -1 -1 -2 5 0 0 -3 -2 2
K -1 2 0 -1 -3 1 1 -2 -1 -3 -3 5 -1 -3 -1 0 -1 -3 -2 -2
Q -1 1 0 0 -3 6 2 -2 0 -3 -2 1 0 -3 -1 0 -1 -2 -2 -2
R -1 5 -1 -2 5 0 -1 -3 -1 -3 -2 1 -2 -3 -2 -1 -1 -3 -2 -2
Q -1 3 0 -1 -3 5 1 -2 0 -3 -2 2 -1 -3 -2 0 -1 -2 -2 -2
I -1 -2 -2 -1 -2 -1 2 -3 -2 3 1 -1 1 -1 -2 -2 -1 -3 -2 2
S 2 -1 -1 -1 -1 -1 -1 -1 0 -2 -2 -1 -1 0 -1 3 0 0 4 -1
F 0 -2 -1 -2 -2 -2 -2 3 -1 -1 -1 -2 -1 4 -2 1 -1 -1 1 -2
V 0 -1 -1 0 -1 0 2 -2 -1 1 0 -1 0 -1 -1 -1 0 -2 -1 2
K -1 2 0 -1 -3 1 1 -2 -1 -3 -3 5 -2 -3 -1 0 -1 -3 -2 -2
S -1 0 -1 -2 -2 0 -1 -2 -1 0 0 2 3 3 -2 1 -1 -1 1 -1
H -2 3 3 0 -3 0 0 -2 6 -3 -3 0 -2 -2 -2 0 -1 -3 0 -3
F -2 -3 -3 -4 -2 -3 -3 -3 -2 1 0 -3 0 6 -3 -2 -1 0 2 1
S 0 0 0 -1 -2 0 0 -1 -1 -3 -3 2 -2 -3 4 3 0 -3 -2 -2
R -1 5 0 -1 -2 1 0 -2 0 -2 -2 2 -1 -2 -1 -1 -1 -2 -1 -2
Q -1 1 0 0 -2 5 1 -1 0 -2 -2 1 0 -2 -1 0 0 -1 -1 -2
L 2 -2 -2 -2 -1 -1 -2 -2 -2 0 2 -1 1 -1 -2 0 2 -2 -1 0
E 0 0 0 1 -3 1 4 -2 0 -3 -3 1 -2 -3 -1 2 0 -3 -2 -2
E -1 0 0 2 -4 2 5 -2 0 -3 -3 1 -2 -3 -1 0 -1 -3 -2 -3
R -2 5 0 -2 -4 1 0 -2 5 -3 -2 2 -2 -2 -2 -1 -1 -3 0 -3
L -1 -2 -3 -4 -1 -2 -3 -3 -3 2 3 -2 3 0 -3 -2 -1 -2 -1 2
G 0 -3 -1 -2 -2 -2 -3 5 -2 1 -1 -2 -1 -2 -2 -1 -1 -3 -3 0
L -2 -2 -4 -4 -2 -2 -3 -3 -3 1 3 -3 1 1 -3 -3 -2 7 0 0
I -1 -2 -2 -2 -1 -2 -2 -2 -2 4 1 -2 1 0 -2 -1 -1 -2 -1 2
E -1 1 0 1 -4 2 5 -2 0 -3 -3 2 -2 -3 -1 0 -1 -3 -2 -3
V -1 -3 -3 -3 -1 -2 -3 -3 -3 2 2 -2 1 0 -3 -2 0 -2 -1 3
Q 0 0 0 0 -2 4 1 -1 0 -3 -2 1 -1 -3 -1 2 0 -2 -2 -2
A 3 -2 -2 -3 -1 -1 -2 -1 -2 -2 -2 -1 -1 -1 -2 0 -1 8 0 -1
P -1 -2 -2 -2 -3 -1 -1 -2 -2 -3 -3 -1 -3 -4 8 -1 -1 -4 -3 -3
I -1 0 -2 -2 -2 -1 -1 -3 -2 3 1 2 0 -1 -2 -1 -1 -3 -2 2
L -1 -3 -3 -4 6 -3 -3 -3 -3 1 3 -3 1 0 -3 -2 -1 -2 -2 0
S 1 -1 1 0 -1 0 0 0 -1 -3 -3 0 -2 -3 -1 4 1 -3 -2 -2
R -2 6 -1 -2 -4 1 0 -2 0 -3 -2 2 -1 -3 -2 -1 -1 -3 -2 -3
V 0 -3 -3 -3 -1 -2 -3 -3 -3 3 1 -2 1 -1 -2 -2 0 -3 -1 4
"""
PSSM_END = """
                      K         Lambda
Standard Ungapped    0.1343     0.3247
Standard Gapped      0.0375     0.2670
PSI Ungapped         0.1225     0.3179
PSI Gapped           0.0375     0.2670
"""


def facts(text: str) -> list[list[str]]:
    return [line.split() for line in text.split("\n") if line]


def lines(result: SearchResult, columns: str, most: float = 0.1) -> list[list[str]]:
    """Hits as BLAST's table has them."""
    chosen = [BLAST_COLUMNS[name] for name in hit_columns("blast", columns.split(","), aligned=True)]
    found = (hit for hits in result.hits for hit in hits if hit.evalue is not None and hit.evalue < most)
    return [[column.text(column.value(hit)) for column in chosen] for hit in found]


def write_pssm(path: Path, rows: str = PSSM_ROWS, end: str = PSSM_END) -> Path:
    numbered = "\n".join(f"{k:5} {row}" for k, row in enumerate(rows.strip().split("\n"), 1))
    head = "Last position-specific scoring matrix computed, weighted observed percentages rounded down"
    path.write_text(f"\n{head}\n           {'  '.join(PSSM_LETTERS)}\n{numbered}\n{end}")
    return path


def test_translated_hits_are_those_of_blastx() -> None:
    backward = BLAST_GENE[::-1].translate(COMPLEMENT)
    genes = {"forward": BLAST_GENE, "backward": backward}
    result = search(genes, BLAST_TARGETS, translate=True, threads=1)
    assert lines(result, "std,qframe,sframe,frames,qlen,slen") == facts(BLASTX)


def test_hits_of_a_profile_are_those_of_psiblast(tmp_path: Path) -> None:
    result = search(write_pssm(tmp_path / "q40.pssm"), BLAST_TARGETS, threads=1)
    assert lines(result, "std,score") == facts(PSIBLAST)
    assert result.queries == ("q40",)


def test_composition_is_that_of_blastp() -> None:
    result = search({"q": BLAST_QUERY}, BLAST_TARGETS, composition=True, threads=1)
    rows = {
        row[0]: row[1:]
        for row in lines(
            result, "sseqid,pident,length,mismatch,gapopen,qstart,qend,sstart,send,evalue,bitscore,score"
        )
    }
    for name, *row in facts(COMPOSITION):
        assert rows[name][:8] + rows[name][9:] == row[:8] + row[9:]
        assert float(rows[name][8]) == pytest.approx(float(row[8]), rel=0.1)
    plain = search({"q": BLAST_QUERY}, BLAST_TARGETS, threads=1)
    assert {hit.target_name: hit.score for hit in plain.hits[0]}["lysines"] > int(rows["lysines"][-1])


# --- composition ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_composition_by_its_definition() -> None:
    """The sum over all pairs of chance times ratio to the power of the share is 1."""
    scoring = make_scoring()
    statistics = karlin_altschul(scoring)[0]
    assert statistics is not None
    rng = np.random.default_rng(5)
    letters = list(PROTEIN)
    for shares in (np.ones(20), np.arange(1, 21) ** 2.0, np.where(np.arange(20) == 3, 30.0, 1.0)):
        query, target = ("".join(rng.choice(letters, 200, p=shares / shares.sum())) for _ in range(2))
        scaled = composition_scores(statistics, scoring.encode(query), scoring.encode(target))
        matrix = SubstitutionMatrix("scaled", scoring.matrix.letters, scaled, "protein")
        found = search({"q": query}, {"t": target}, composition=True, evalue=None, kind="protein").hits[0]
        raw = score(query, target, mode="local", matrix=matrix, gap_open=384, gap_extend=32)
        assert [hit.score for hit in found] == [(raw + 16) // 32][: len(found)]
        # Tryptophans have the score that tells the share best.
        share = scaled[17, 17] / 32 * statistics.ungapped.lambda_ / np.log(38.1078)
        total = _sum_of_chances(query, target, share)
        assert 0.49 <= share <= 1.01
        assert (
            total == pytest.approx(1.0, abs=0.01)
            or (share > 0.99 and total < 1)
            or (share < 0.51 and total > 1)
        )


def _sum_of_chances(query: str, target: str, share: float) -> float:
    ratios = _pair_ratios()
    order = {letter: k for k, letter in enumerate(PROTEIN)}
    return sum(
        query.count(one)
        / len(query)
        * target.count(other)
        / len(target)
        * ratios[order[one], order[other]] ** share
        for one, other in product(PROTEIN, repeat=2)
    )


def test_ratios_of_pairs_are_those_of_the_matrix() -> None:
    matrix = load_matrix("BLOSUM62")
    order = matrix.codes[np.frombuffer(PROTEIN.encode(), np.uint8)]
    assert (np.rint(2 * np.log2(_pair_ratios())) == matrix.scores[np.ix_(order, order)]).all()


def test_composition_orders_and_bounds_hits() -> None:
    every = search({"q": BLAST_QUERY}, BLAST_TARGETS, composition=True, evalue=None, threads=1).hits[0]
    evalues = [hit.evalue for hit in every]
    assert evalues == sorted(evalues)  # type: ignore[type-var]
    assert all(hit.alignment is not None and hit.alignment.score == hit.score for hit in every)
    some = search({"q": BLAST_QUERY}, BLAST_TARGETS, composition=True, evalue=1e-10, min_score=140).hits[0]
    assert [hit.target_name for hit in some] == ["near", "far"]
    alone = search({"q": BLAST_QUERY}, BLAST_TARGETS, composition=True, score_only=True).hits[0]
    assert [(hit.score, hit.evalue, hit.alignment) for hit in alone][:2] == [
        (hit.score, hit.evalue, None) for hit in every
    ][:2]
    gene = search({"g": BLAST_GENE}, BLAST_TARGETS, composition=True, translate=True, threads=1).hits[0]
    assert [hit.target_name for hit in gene][:2] == ["near", "far"]
    for matrix in ("PAM30", "BLOSUM80"):
        with pytest.raises(InvalidInput, match=f"composition: found {matrix} .*, expected BLOSUM62"):
            search({"q": BLAST_QUERY}, BLAST_TARGETS, composition=True, matrix=matrix)


# --- profiles ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_a_profile_of_a_matrix_is_the_sequence(mode: Any) -> None:
    matrix = load_matrix("BLOSUM62")
    for name, letters in QUERIES.items():
        rows = matrix.scores[matrix.codes[np.frombuffer(letters.encode(), np.uint8)]]
        profile = Profile(name, letters.encode(), matrix.letters, rows)
        settings: Any = {"mode": mode, "top": 30, "evalue": None, **ONE}
        assert told(search(profile, TARGETS, **settings)) == told(
            search({name: letters}, TARGETS, **settings)
        )


@pytest.mark.slow
@pytest.mark.interpreted(alone=True)
def test_reference_of_rows_calls_no_kernel() -> None:
    matrix, settings = load_matrix("BLOSUM62"), {**ONE, "device": "reference", "evalue": None}
    profile = Profile("q", b"MKWVTF", matrix.letters, matrix.scores[matrix.codes[list(b"MKWVTF")]])
    targets = {"near": "GMKWTFG", "lone": 40 * "MKWVTF", "far": "GGG"}
    for how in ({}, {"mode": "overlap"}):
        assert told(search(profile, targets, **settings, **how)) == told(
            search({"q": "MKWVTF"}, targets, **settings, **how)
        )
    (found,) = search({"q": "MKWVTF"}, {"t": "GMKWTFG"}, composition=True, **settings).hits
    assert [hit.alignment.cigar for hit in found if hit.alignment] == ["3="]


# In 32 bits; overlaps of profiles with smaller scores are above.
@pytest.mark.parametrize("mode", ["local", pytest.param("overlap", marks=pytest.mark.slow)])
def test_profiles_by_their_definition(mode: Any) -> None:
    """A profile whose positions are letters of their own is a sequence of these."""
    rng = np.random.default_rng(3)
    rows = rng.integers(-6, 8, (12, 20)).astype(np.int32)
    rows[4] *= 40
    profile = Profile("p", b"ACDEFGHIKLMN", PROTEIN, rows)
    own = "BCDEFGHIJKLM"
    scores = np.full((12 + 20, 12 + 20), -99)
    # Letters of the positions are digits of a made-up alphabet, those of targets as they are.
    scores[:12, 12:] = rows
    letters = "0123456789:;" + PROTEIN
    with pytest.raises(InvalidInput, match="letters"):
        SubstitutionMatrix("too many", letters, scores, "protein")
    keep = [k for k, letter in enumerate(PROTEIN) if letter not in "WYV"]
    own, some = "0123456789:;", "".join(PROTEIN[k] for k in keep)
    scores = np.full((29, 29), -99)
    scores[:12, 12:] = rows[:, keep]
    matrix = SubstitutionMatrix("both", own + some, scores, "protein")
    targets = {name: letters for name, letters in TARGETS.items() if not set(letters) & set("WYV")}
    targets |= {f"s{k}": own for k, own in enumerate(drawn(40, 8, some))}
    found = search(profile, targets, mode=mode, top=1000, evalue=None, gap_open=9, gap_extend=3, **ONE)  # type: ignore[arg-type]
    for hit in found.hits[0]:
        single = align(own, targets[hit.target_name], mode=mode, matrix=matrix, gap_open=9, gap_extend=3)  # type: ignore[arg-type]
        ours = hit.alignment
        assert ours is not None
        assert (hit.score, ours.coordinates.tolist()) == (single.score, single.coordinates.tolist())
        assert (ours.similar, ours.gaps) == (single.similar, single.gaps)
    expected = [align(own, letters, mode=mode, matrix=matrix, gap_open=9, gap_extend=3).score  # type: ignore[arg-type]
                for letters in targets.values()]  # fmt: skip
    assert len(found) == (sum(one > 0 for one in expected) if mode == "local" else len(expected))


def test_letters_that_a_profile_lacks() -> None:
    matrix = load_matrix("BLOSUM62")
    rows = np.arange(40, dtype=np.int32).reshape(2, 20)
    found = Profile("p", b"AW", PROTEIN, rows).scores_for(matrix)
    place = {letter: k for k, letter in enumerate(matrix.letters)}
    assert found[:, place["A"]].tolist() == [0, 20]
    # B is D or N, at 3 and 2; halves go up.
    assert found[:, place["B"]].tolist() == [3, 23]
    assert found[:, place["X"]].tolist() == matrix.scores[[place["A"], place["W"]], place["X"]].tolist()
    with pytest.raises(
        InvalidInput, match="profile 'p': found '1' as a consensus, expected letters of BLOSUM62"
    ):
        Profile("p", b"A1", PROTEIN, rows).scores_for(matrix)
    for scores in (rows[:1], np.zeros((0, 20), np.int32), 40_000 * rows):
        with pytest.raises(InvalidInput, match="profile: found"):
            Profile("p", b"AW", PROTEIN, scores)


HMM = """HMMER3/f [3.3.2 | Nov 2020]
NAME  motif
LENG  2
ALPH  amino
RF    no
HMM          A        C        D        E        F        G        H        I        K        L        M        N        P        Q        R        S        T        V        W        Y
            m->m     m->i     m->d     i->m     i->i     d->m     d->d
  COMPO   2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5 2.5
          2.68618  4.42225  2.77519  2.73123  3.46354  2.40513  3.72494  3.29354  2.67741  2.69355  4.24690  2.90347  2.73739  3.18146  2.89801  2.37887  2.77519  2.98518  4.58477  3.61503
          0.01 4.6 5.3 0.6 0.7 0.0 *
      1   0.5 {rest} * 1 m - - -
          2.68618  4.42225  2.77519  2.73123  3.46354  2.40513  3.72494  3.29354  2.67741  2.69355  4.24690  2.90347  2.73739  3.18146  2.89801  2.37887  2.77519  2.98518  4.58477  3.61503
          0.01 4.6 5.3 0.6 0.7 0.0 *
      2   4.0 {rest} 0.3 2 y - - -
          2.68618  4.42225  2.77519  2.73123  3.46354  2.40513  3.72494  3.29354  2.67741  2.69355  4.24690  2.90347  2.73739  3.18146  2.89801  2.37887  2.77519  2.98518  4.58477  3.61503
          0.01 4.6 5.3 0.6 0.7 0.0 *
//
""".replace("{rest}", "4.0 " * 17 + "4.0")  # noqa: E501  # as HMMER lays it out


def test_match_states_of_hmmer(tmp_path: Path) -> None:
    file = tmp_path / "motif.hmm"
    file.write_text(HMM)
    profile = read_profile(file)
    assert (profile.name, profile.consensus, profile.letters) == ("motif", b"MY", "ACDEFGHIKLMNPQRSTVWY")
    # ln(p / background) / 0.3176, rounded: A at the first position, Y, never there, and Y at the second.
    expected = [np.log(np.exp(-0.5) / 0.0787945), -20.0 - np.log(0.0304133), np.log(np.exp(-0.3) / 0.0304133)]
    found = profile.scores[0, 0], profile.scores[0, 19], profile.scores[1, 19]
    assert [int(one) for one in found] == np.rint(np.array(expected) / 0.3176).astype(int).tolist()
    (hits,) = search(file, {"a": "WWAYWW", "b": "WWWW"}, min_score=10, **ONE).hits
    assert [(hit.target_name, hit.score) for hit in hits] == [
        ("a", int(profile.scores[0, 0] + profile.scores[1, 19]))
    ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("LENG  2", "LENG  ²"), "expected 0 states"),
        (("LENG  2", "LENG  3"), "2 match states and the line '//', expected 3 states"),
        (("//", ""), "2 match states and no line '//'"),
        (("ALPH  amino", "ALPH  DNA"), "a profile of 'DNA' is not supported"),
        (("1   0.5", "1   x.5"), "line 11: found 'x.5' for 'A'"),
        (("1   0.5", "1   -0.5"), "line 11: found '-0.5' for 'A', expected the negative logarithm"),
        (("        A        C", "        C        A"), "line 6: found the letters 'CAD"),
        (("//", "//\n" + HMM), "several profiles"),
        (("LENG  2", "LENG  \u00b2"), "2 match states and the line '//', expected 0 states"),
    ],
    ids=str,
)  # fmt: skip
def test_profiles_of_hmmer_that_are_wrong(change: tuple[str, str], what: str, tmp_path: Path) -> None:
    file = tmp_path / "motif.hmm"
    file.write_text(HMM.replace(*change))
    with pytest.raises((FormatError, Unsupported), match=what):
        search(file, TARGETS)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("", "found '1', expected position 1, its letter and 20 scores"),
        ("A 1 2 3", "position 1, its letter and 20 scores"),
        ("AC" + " 1" * 20, "position 1, its letter and 20 scores"),
        ("A" + " 1" * 19 + " 1.5", "found '1.5' for 'V', expected a whole number"),
        ("A" + " 1" * 19 + " 99999", "found '99999' for 'V', expected a whole number"),
        ("é" + " 1" * 20, "position 1, its letter and 20 scores"),
        ("ß" + " 1" * 20, "position 1, its letter and 20 scores"),
    ],
    ids=str,
)
def test_matrices_of_psiblast_that_are_wrong(rows: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=what):
        search(write_pssm(tmp_path / "q.pssm", rows), TARGETS)


def test_numbers_of_profiles_with_too_many_digits(tmp_path: Path) -> None:
    digits = 5000 * "9"
    file = tmp_path / "motif.hmm"
    file.write_text(HMM.replace("LENG  2", f"LENG  {digits}"))
    with pytest.raises(FormatError, match="2 match states and the line '//', expected 0 states"):
        read_profile(file)
    with pytest.raises(FormatError, match=r"found '9+', expected position"):
        read_profile(write_pssm(tmp_path / "q.pssm", end=f"{digits} A{' 1' * 20}\n"))


def test_consensus_letters_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "motif.hmm"
    for letter in ("mm", "\u00df", "1"):
        file.write_text(HMM.replace(" 1 m ", f" 1 {letter} "))
        assert read_profile(file).consensus == b"AY"
    matrix = write_pssm(tmp_path / "q.pssm", end="\u00b2 0.1 0.2\n" + PSSM_END)
    assert read_profile(matrix).k == 0.0375


def test_letters_of_a_matrix_of_psiblast(tmp_path: Path) -> None:
    file = write_pssm(tmp_path / "q.pssm")
    file.write_text(file.read_text().replace("A  R  N", "A  A  N"))
    with pytest.raises(
        FormatError, match=r"line 3: found the letters 'AAND.*', expected the twenty amino acids"
    ):
        read_profile(file)
    write_pssm(file)
    file.write_text(file.read_text().split("\n    1 ")[0])
    with pytest.raises(FormatError, match="found no row of scores"):
        read_profile(file)
    for number in ("²", 5000 * "9"):
        write_pssm(file)
        file.write_text(file.read_text().replace("\n    2 ", f"\n{number} "))
        with pytest.raises(FormatError, match="expected position 2, its letter"):
            read_profile(file)
    other = tmp_path / "none"
    other.write_text("nothing\n")
    with pytest.raises(FormatError, match="found 'nothing"):
        read_profile(other)
    plain = write_pssm(tmp_path / "k.pssm", end="PSI Gapped x 0.2\n")
    assert read_profile(plain).k is None
    assert read_profile(write_pssm(file)).k == 0.0375


def test_what_profiles_do_not_go_with(tmp_path: Path) -> None:
    file = write_pssm(tmp_path / "q.pssm")
    with pytest.raises(InvalidInput, match="profile: found a search of nucleotides"):
        search(file, {"t": "ACGT" * 30})
    for settings in ({"translate": True}, {"strand": "both"}):
        with pytest.raises(InvalidInput, match="profile: found a search of other strands or frames"):
            search(file, TARGETS, kind="protein", **settings)  # type: ignore[arg-type]
    for settings in ({"hits_per_target": 2}, {"composition": True}):
        with pytest.raises(InvalidInput, match="found a profile, expected sequences"):
            search(file, TARGETS, **settings)  # type: ignore[arg-type]


# --- columns ----------------------------------------------------------------------------------------------


def test_blast_has_a_word_for_its_own_columns() -> None:
    assert hit_columns("tsv", ["qlen", "std"], aligned=True)[:2] == ("qlen", "qseqid")
    assert hit_columns("tsv", ["std"], aligned=True) == hit_columns("tsv", None, aligned=True)
    with pytest.raises(InvalidInput, match="'evalue' more than once"):
        hit_columns("tsv", ["std", "evalue"], aligned=True)
    with pytest.raises(InvalidInput, match="hits that are not aligned"):
        hit_columns("tsv", ["std"], aligned=False)
