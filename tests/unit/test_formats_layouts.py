from __future__ import annotations

import pytest

from plait.errors import FormatError, InvalidInput
from plait.formats.rearrangements import LAYOUTS, assign_roles, layout_named

HEADERS = {
    "airr": "sequence_id junction extra v_call d_call j_call duplicate_count subject_id repertoire_id",
    "immunarch": "Clones Proportion CDR3.nt CDR3.aa V.name D.name J.name Sample",
    "vdjtools": "#count freq cdr3nt cdr3aa v d j VEnd DStart DEnd JStart",
    "mixcr": "cloneId readCount readFraction allVHitsWithScore allDHitsWithScore allJHitsWithScore nSeqCDR3",
}


@pytest.mark.parametrize("name", HEADERS)
def test_each_layout_finds_its_required_columns(name: str) -> None:
    columns = HEADERS[name].split()
    roles = assign_roles(layout_named(name), [("x.tsv", columns)])
    assert {"junction", "v_call", "j_call", "count"} <= roles.keys()
    assert set(roles.values()) <= set(columns)
    assert roles["junction"].lower().replace(".", "").endswith(("junction", "cdr3nt", "cdr3"))


@pytest.mark.parametrize("name", HEADERS)
def test_each_header_fits_one_layout_only(name: str) -> None:
    columns = HEADERS[name].split()
    assert [layout.name for layout in LAYOUTS.values() if layout.fits(columns)] == [name]


def test_alternative_names() -> None:
    vdjtools = assign_roles(layout_named("vdjtools"), [("x", ["count", "CDR3nt", "V", "J"])])
    assert vdjtools == {"junction": "CDR3nt", "v_call": "V", "j_call": "J", "count": "count"}
    best = assign_roles(layout_named("mixcr"), [("x", ["nSeqCDR3", "bestVGene", "bestJHit", "cloneCount"])])
    assert (best["v_call"], best["j_call"], best["count"]) == ("bestVGene", "bestJHit", "cloneCount")
    old = assign_roles(layout_named("mixcr"), [("x", ["N. Seq. CDR3", "All V hits", "Best J gene"])])
    assert (old["junction"], old["v_call"], old["j_call"]) == ("N. Seq. CDR3", "All V hits", "Best J gene")


def test_the_preferred_name_wins_where_several_are_there() -> None:
    columns = ["bestVHit", "allVHitsWithScore", "nSeqCDR3", "allJHitsWithScore"]
    assert assign_roles(layout_named("mixcr"), [("x", columns)])["v_call"] == "allVHitsWithScore"


def test_the_sample_of_immunarch_is_subject_and_repertoire() -> None:
    roles = assign_roles(layout_named("immunarch"), [("x", HEADERS["immunarch"].split())])
    assert roles["subject"] == roles["repertoire"] == "Sample"


def test_an_optional_role_needs_one_file_only() -> None:
    required = ["junction", "v_call", "j_call"]
    roles = assign_roles(layout_named("airr"), [("a", required), ("b", [*required, "subject_id"])])
    assert roles["subject"] == "subject_id"
    assert "count" not in roles


def test_an_unknown_layout_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"'adaptive'.*airr, immunarch, vdjtools, mixcr"):
        layout_named("adaptive")


def test_a_missing_column_is_named_with_found_expected_and_the_fitting_layout() -> None:
    with pytest.raises(FormatError) as caught:
        assign_roles(layout_named("airr"), [("m.tsv", HEADERS["mixcr"].split())])
    text = str(caught.value)
    assert text.startswith("m.tsv: found the columns 'cloneId', 'readCount'")
    assert "'airr' with the columns junction, v_call, j_call (missing: junction, v_call, j_call)" in text
    assert "--layout mixcr" in text


def test_only_what_is_missing_is_called_missing() -> None:
    with pytest.raises(FormatError, match=r"\(missing: allVHitsWithScore or bestVHit or"):
        assign_roles(layout_named("mixcr"), [("m.tsv", ["nSeqCDR3", "allJHitsWithScore"])])


@pytest.mark.parametrize(
    ("columns", "hint"),
    [
        (["junction,v_call,j_call"], "commas"),
        (["junction;v_call;j_call"], "semicolons"),
        (['"junction"', '"v_call"', '"j_call"'], "quote"),
        (["Junction", "v_call", "j_call"], "upper and lower case"),
        (["v_call", " junction", "j_call"], "upper and lower case and blanks"),
    ],
    ids=["commas", "semicolons", "quoted", "case", "blank"],
)
def test_hints_for_common_mistakes(columns: list[str], hint: str) -> None:
    with pytest.raises(FormatError) as caught:
        assign_roles(layout_named("airr"), [("x", columns)])
    assert hint in (caught.value.hint or "")


def test_no_hint_is_made_up() -> None:
    with pytest.raises(FormatError) as caught:
        assign_roles(layout_named("airr"), [("x", ["a", "b"])])
    assert caught.value.hint is None


def test_a_wide_header_is_shortened() -> None:
    with pytest.raises(FormatError, match="and 80 more"):
        assign_roles(layout_named("airr"), [("x", [f"c{i}" for i in range(100)])])


def test_files_that_keep_a_role_under_different_names_are_refused() -> None:
    one, other = ["nSeqCDR3", "bestVHit", "bestJHit"], ["nSeqCDR3", "bestVGene", "bestJHit"]
    with pytest.raises(FormatError) as caught:
        assign_roles(layout_named("mixcr"), [("a", one), ("b", other)])
    assert caught.value.path == "b"
    assert "'bestVHit', as in a" in caught.value.expected


def test_a_name_that_all_files_share_is_taken() -> None:
    one, other = ["nSeqCDR3", "bestVHit", "bestJHit"], ["nSeqCDR3", "bestVGene", "bestVHit", "bestJHit"]
    assert assign_roles(layout_named("mixcr"), [("a", one), ("b", other)])["v_call"] == "bestVHit"
