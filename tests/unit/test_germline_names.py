"""What calls mean, in the styles of the programs that write them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.vdj.calls import Ambiguity, CallResolver
from plait.vdj.germline import Allele, GermlineSet, Segment, load_germline
from plait.vdj.germline.germline_set import canonical, gene_of, split_call


def a_set(*names: str, aliases: dict[str, tuple[str, ...]] | None = None) -> GermlineSet:
    alleles = [
        Allele(
            name=name,
            gene=gene_of(name),
            segment="V",
            sequence="ACGT",
            aliases=(aliases or {}).get(name, ()),
        )
        for name in names
    ]
    return GermlineSet(name="x", species="", locus="TRB", version="", source="", v=tuple(alleles), d=(), j=())


def name_of(germline: str, call: str, segment: Segment) -> str | None:
    loaded = load_germline(germline)
    index = loaded.resolve(call, segment)
    return None if index is None else loaded.alleles(segment)[index].name


@pytest.mark.parametrize(
    ("germline", "segment", "call", "name"),
    [
        ("human_trb", "V", "TRBV12-3*01", "TRBV12-3*01"),
        ("human_trb", "V", "TRBV12-3", "TRBV12-3*01"),
        ("human_trb", "V", " trbv12-3 ", "TRBV12-3*01"),
        ("human_trb", "V", "TRBV12-3*00(346.1)", "TRBV12-3*01"),
        ("human_trb", "V", "TRBV12-3*00", "TRBV12-3*01"),
        ("human_trb", "V", "TRBV10-1*02(12)", "TRBV10-1*02"),
        ("human_trb", "V", "TCRBV05-01", "TRBV5-1*01"),
        ("human_trb", "V", "TCRBV05-01*01", "TRBV5-1*01"),
        ("human_trb", "V", "TCRBV15-01", "TRBV15*01"),
        ("human_trb", "V", "TCRBV09-01*02", "TRBV9*02"),
        ("human_trb", "V", "TRBV05-01", "TRBV5-1*01"),
        ("human_trb", "V", "Homsap TRBV12-3*01 F", "TRBV12-3*01"),
        ("human_trb", "J", "TCRBJ02-07*01", "TRBJ2-7*01"),
        ("human_trb", "D", "TCRBD01-01*01", "TRBD1*01"),
        ("human_trb", "D", "TRBD2", "TRBD2*01"),
        ("human_trb", "D", "trbd2*02", "TRBD2*02"),
        ("human_tra", "V", "TRAV14/DV4*02", "TRAV14/DV4*02"),
        ("human_tra", "V", "TRAV14DV4*02", "TRAV14/DV4*02"),
        ("human_tra", "V", "TRAV14-DV4", "TRAV14/DV4*01"),
        ("human_tra", "V", "TRAV14", "TRAV14/DV4*01"),
        ("human_tra", "V", "TRAV14*02", "TRAV14/DV4*02"),
        ("human_tra", "V", "TRDV4", "TRAV14/DV4*01"),
        ("human_tra", "V", "TRAV38-2DV8*00(910.5)", "TRAV38-2/DV8*01"),
        ("mouse_tra", "V", "TRAV13-4/DV7", "TRAV13-4/DV7*01"),
        ("mouse_tra", "V", "TRAV14D-3/DV8*08", "TRAV14D-3/DV8*08"),
        ("mouse_tra", "V", "TRAV15-1/DV6-1", "TRAV15-1/DV6-1*01"),
        ("mouse_tra", "V", "TRAV15D-1DV6D-1*02", "TRAV15D-1/DV6D-1*02"),
        ("mouse_tra", "V", "TRAV16D/DV11*02", "TRAV16D/DV11*02"),
        ("human_tra", "V", "TRAV29/DV5", "TRAV29/DV5*01"),
    ],
)
def test_a_call_means(germline: str, segment: Segment, call: str, name: str) -> None:
    assert name_of(germline, call, segment) == name


@pytest.mark.parametrize(
    ("segment", "call"),
    [
        ("V", ""),
        ("V", "  "),
        ("V", "NA"),
        ("V", "TRBV"),
        ("V", "TRBV1000"),
        ("V", "TRBV12"),
        ("V", "TRBV12-3*77"),
        ("V", "TRBJ1-1*01"),
        ("J", "TRBV12-3*01"),
        ("V", "TRBV12-3,TRBV12-4"),
        ("V", "TRBV15-1"),
        ("V", "*01"),
        ("V", "()"),
    ],
)
def test_a_call_means_nothing(segment: Segment, call: str) -> None:
    assert load_germline("human_trb").resolve(call, segment) is None


def test_lists() -> None:
    germline = load_germline("human_trb")

    def names(call: str) -> list[str | None]:
        return [None if i is None else germline.v[i].name for i in germline.resolve_all(call, "V")]

    assert names("TRBV12-3*00(346.1),TRBV12-4*00(301)") == ["TRBV12-3*01", "TRBV12-4*01"]
    assert names("TRBV12-4, TRBV99, ") == ["TRBV12-4*01", None]
    assert names("TCRBV06-02/06-03*01") == ["TRBV6-2*01", "TRBV6-3*01"]
    assert names("Homsap TRBV6-2*01 F, or Homsap TRBV6-3*01 F") == ["TRBV6-2*01", "TRBV6-3*01"]
    assert names("TRBV6-2/6-3") == ["TRBV6-2*01", "TRBV6-3*01"]
    assert names("TRBV2/8") == ["TRBV2*01", None]
    assert names("TRBV2/TRBV28*01(3)") == ["TRBV2*01", "TRBV28*01"]
    assert names("") == []
    assert names(",") == []


@pytest.mark.parametrize(
    "between", [",", ";", " ; ", "|", "/", " / ", " or ", " OR ", ", or ", " and ", " & ", "+", " ", "-", "_"]
)
def test_several_names_are_a_list_whatever_is_between(between: str) -> None:
    germline = load_germline("mouse_trb")
    for first, second in (("TRBV13-1", "TRBV13-2"), ("trbv13-1*01", "trbv13-2*01")):
        found = germline.resolve_all(first + between + second, "V")
        assert [None if i is None else germline.v[i].gene for i in found] == ["TRBV13-1", "TRBV13-2"]
        assert germline.resolve(first + between + second, "V") is None


def test_policies_see_every_separator() -> None:
    germline = load_germline("mouse_trb")
    first, second = (germline.resolve(name, "V") for name in ("TRBV13-1", "TRBV13-2"))
    calls = pa.array(["TRBV13-1 or TRBV13-2", "TRBV13-1;TRBV13-2", "TRBV13-1|TRBV13-2", "TRBV13-1/TRBV13-2"])
    expected: dict[Ambiguity, object] = {
        "first": ("", (first,)),
        "all": ("", (first, second)),
        "fail": ("ambiguous_v_call", ()),
    }
    for policy, answer in expected.items():
        assert CallResolver(germline, "V", policy).resolve(calls)[1] == [answer] * 4


def test_a_gene_means_its_lowest_allele_wherever_it_stands() -> None:
    germline = a_set("TRBV1*10", "TRBV1*02", "TRBV2*01", "TRBV1*2x")
    assert germline.resolve("TRBV1", "V") == 1
    assert germline.resolve("TRBV1*00(5)", "V") == 1


def test_an_own_name_goes_before_an_alias_and_a_shorthand() -> None:
    germline = a_set("TRAV14/DV4*01", "TRAV14*01", "TRBV9*01", aliases={"TRBV9*01": ("TRAV14", "odd name")})
    assert germline.resolve("TRAV14*01", "V") == 1
    assert germline.resolve("odd name", "V") == 2
    assert germline.resolve("oddname", "V") == 2
    germline = a_set("TRBV2*01", "TRBV8*01", "TRBV2/8*01", "TRBV28*01", "mine|TRBV2")
    assert [germline.resolve(name, "V") for name in ("TRBV2/8*01", "TRBV28", "mine|TRBV2")] == [2, 3, 4]


def test_half_a_name_that_two_genes_have_is_not_guessed() -> None:
    germline = a_set("TRAV14/DV4*01", "TRAV14/DV5*01")
    assert germline.resolve("TRAV14", "V") is None
    assert germline.resolve("TRDV5", "V") == 1


def test_an_allele_numbered_zero_is_itself() -> None:
    germline = a_set("IGHV0-7M27*01", "IGHV0-7M27*00")
    assert germline.resolve("IGHV0-7M27*00", "V") == 1


def test_the_first_of_two_alleles_of_one_name_is_meant() -> None:
    assert a_set("TRBV1*01", "TRBV1*01").resolve("TRBV1*01", "V") == 0


def test_canonical_and_split() -> None:
    assert canonical("TRBV10-1*010") == "TRBV10-1*10"
    assert canonical("TRBV20-1") == "TRBV20-1"
    assert split_call("A(1),B (2.5) , C") == ("A", "B", "C")
    assert split_call("TRAV14/DV4") == ("TRAV14/DV4",)
    assert split_call("TCRBV12-03/12-04/12-05") == ("TCRBV12-03", "TCRBV12-04", "TCRBV12-05")
