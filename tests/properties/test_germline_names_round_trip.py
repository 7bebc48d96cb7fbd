"""Every way to write a name of a bundled set leads back to its allele."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from plait.vdj.germline import Allele, GermlineSet, Segment, bundled_germlines, load_germline
from plait.vdj.germline.germline_set import canonical, split_call

SETS = tuple(load_germline(name) for name in bundled_germlines())


@st.composite
def members(draw: st.DrawFn) -> tuple[GermlineSet, Segment, int]:
    germline = draw(st.sampled_from(SETS))
    segment = draw(st.sampled_from([s for s in ("V", "D", "J") if germline.alleles(s)]))  # type: ignore[arg-type]
    return germline, segment, draw(st.integers(0, len(germline.alleles(segment)) - 1))


def padded(name: str) -> str:
    """Numbers with two digits, and TCR in the place of TR, as Adaptive writes them."""
    gene, star, allele = name.partition("*")
    prefixed = re.sub("^TR", "TCR", re.sub(r"(?<!\d)\d(?!\d)", lambda m: "0" + m.group(), gene))
    return prefixed + star + allele


STYLES: tuple[Callable[[str], str], ...] = (
    str.lower,
    lambda name: f"  {name} ",
    lambda name: name.replace("/", ""),
    lambda name: name.replace("/D", "-D"),
    lambda name: f"{name}(1234.5)",
    lambda name: f"Homsap {name} F",
    padded,
)


@given(members(), st.lists(st.sampled_from(STYLES), max_size=3))
def test_an_allele_name_in_any_style(
    member: tuple[GermlineSet, Segment, int], styles: list[Callable[[str], str]]
) -> None:
    germline, segment, index = member
    name = germline.alleles(segment)[index].name
    for style in sorted(set(styles), key=STYLES.index, reverse=True):
        name = style(name)
    assert germline.resolve(name, segment) == index


@given(members())
def test_a_gene_name_means_its_lowest_allele(member: tuple[GermlineSet, Segment, int]) -> None:
    germline, segment, index = member
    allele = germline.alleles(segment)[index]
    for call in (allele.gene, f"{allele.gene}*00", f"{allele.gene}*00(7)"):
        found = germline.resolve(call, segment)
        assert found is not None
        lowest = germline.alleles(segment)[found]
        assert lowest.gene == allele.gene
        assert lowest.name <= allele.name


@given(st.lists(members(), min_size=2, max_size=5))
def test_a_list_is_its_elements(drawn: list[tuple[GermlineSet, Segment, int]]) -> None:
    germline, segment, _ = drawn[0]
    names = [g.alleles(s)[i].name for g, s, i in drawn]
    expected = tuple(germline.resolve(name, segment) for name in names)
    assert germline.resolve_all(", ".join(names), segment) == expected
    assert germline.resolve(",".join(names), segment) is None


@given(st.text(max_size=40))
def test_no_text_is_an_error(call: str) -> None:
    for germline in SETS[:2]:
        found = germline.resolve_all(call, "V")
        assert len(found) == len(split_call(call))


@given(st.text("TRABVDJC0123-*/", max_size=20))
def test_the_canonical_form_is_stable(name: str) -> None:
    assert canonical(canonical(name).lower()) == canonical(name)


@given(st.lists(st.sampled_from([a.name for g in SETS for a in g.v]), unique=True, max_size=30))
def test_any_selection_resolves_by_its_own_names(names: list[str]) -> None:
    alleles = tuple(Allele(name=n, gene=n.split("*")[0], segment="V", sequence="ACGT") for n in names)
    germline = GermlineSet(name="x", species="", locus="TRB", version="", source="", v=alleles, d=(), j=())
    assert [germline.resolve(n, "V") for n in names] == list(range(len(names)))
