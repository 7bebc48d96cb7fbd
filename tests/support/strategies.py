"""Hypothesis strategies: germline sets, models, and junctions that they are likely to make.

Everything is small, because the oracles build every string. Random junctions would hardly ever have a
path, so most are put together from pieces of the drawn genes, with N nucleotides, hidden palindromes and a
few changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from support.cases import Batch, Junction, make_germline
from support.oracles import LETTERS, extended_d, palindrome_after, palindrome_before, reverse_complement

from plait.lang.lanes import LANES
from plait.vdj.germline import GermlineSet
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import EmptyD, ModelName, PathModel

__all__ = [
    "CODES",
    "batches",
    "dp1_models",
    "dp2_models",
    "germline_sets",
    "junctions",
    "lane_widths",
    "sequences",
]

#: Codes of more than one nucleotide.
CODES = "RYSWKMBDHVN"
_LOCUS: dict[Chain, str] = {"vj": "TRA", "vdj": "TRB", "vddj": "TRD"}


@st.composite
def sequences(draw: st.DrawFn, shortest: int, longest: int, *, codes: bool = False) -> str:
    """Nucleotide sequences.

    Parameters
    ----------
    draw
        Given by hypothesis.
    shortest, longest
        Limits of the length.
    codes
        Whether some symbols are ambiguity codes.
    """
    # Two letters out of four make matches, palindromes and ties likely.
    few = "".join(draw(st.sets(st.sampled_from(LETTERS), min_size=2)))
    symbols = few * 4 + CODES if codes else few
    return draw(st.text(st.sampled_from(symbols), min_size=shortest, max_size=longest))


@st.composite
def germline_sets(
    draw: st.DrawFn, chain: Chain, *, codes: bool = False, alleles: int = 2, longest: int = 6
) -> GermlineSet:
    """Germline sets of one or more alleles per segment, with and without joining rules.

    Parameters
    ----------
    draw
        Given by hypothesis.
    chain
        ``"vj"``, ``"vdj"`` or ``"vddj"``.
    codes
        Whether there may be ambiguity codes.
    alleles
        Most alleles per segment.
    longest
        Longest V end; D genes are a little shorter.
    """
    some = codes and draw(st.booleans())
    v = draw(st.lists(sequences(1, longest, codes=some), min_size=1, max_size=alleles))
    j = draw(st.lists(sequences(3, longest, codes=some), min_size=1, max_size=alleles))
    # Many D genes do not fit into one machine word.
    most_d = draw(st.sampled_from((alleles, alleles, 6))) if chain == "vdj" else alleles
    d = draw(st.lists(sequences(1, longest - 1, codes=some), min_size=1, max_size=most_d))
    locus = _LOCUS[chain]
    d_genes = [f"{locus}D{k + 1}" for k in range(len(d))]
    j_genes = [f"{locus}J{k + 1}" for k in range(len(j))]
    order = st.dictionaries(st.sampled_from(d_genes), st.sets(st.sampled_from(j_genes)).map(tuple))
    pairs = [(a, b) for a in d_genes for b in d_genes]
    pair_rule = st.none() | st.sets(st.sampled_from(pairs), min_size=1).map(lambda s: tuple(sorted(s)))
    return make_germline(
        v,
        [] if chain == "vj" else d,
        j,
        locus=locus,
        d_j_order=draw(st.just({}) | order) if chain != "vj" else {},
        d_d_order=draw(pair_rule) if chain == "vddj" else None,
    )


@st.composite
def dp2_models(draw: st.DrawFn, *, strands: int | None = None, pi: int = 3, nu: int = 3) -> PathModel:
    """DP-2, with and without a sweep and separate limits.

    Parameters
    ----------
    draw
        Given by hypothesis.
    strands
        1 or 2, or either.
    pi, nu
        Largest values drawn.
    """
    all_pi, all_nu = st.integers(0, pi), st.integers(0, nu)
    every_nu = all_nu.map(lambda most: tuple(range(most + 1)))
    some_nu = st.sets(all_nu, max_size=3).map(lambda s: tuple(sorted(s)))
    apart = draw(st.booleans())
    sweep_nu = draw(st.just(()) | every_nu | some_nu)
    # A sweep of nu beside limits of both junctions is refused: it would change nothing.
    nu_vd = draw(st.none() | all_nu) if apart else None
    both = not sweep_nu or nu_vd is None
    return PathModel(
        name="dp2",
        strands=strands or draw(st.sampled_from((1, 2))),
        pi=draw(all_pi),
        nu=draw(all_nu),
        nu_vd=nu_vd,
        nu_dj=draw(st.none() | all_nu) if apart and both else None,
        sweep_pi=draw(st.just(()) | st.sets(all_pi, max_size=3).map(lambda s: tuple(sorted(s)))),
        sweep_nu=sweep_nu,
    )


@st.composite
def dp1_models(draw: st.DrawFn, *, name: ModelName = "dp1", pi: int = 3, most: int = 3) -> PathModel:
    """DP-1 or its proof by enumeration.

    Parameters
    ----------
    draw
        Given by hypothesis.
    name
        ``"dp1"`` or ``"exhaustive"``.
    pi, most
        Largest values drawn.
    """
    empty: EmptyD = draw(st.sampled_from(("positions", "once", "none")))
    return PathModel(name=name, pi=draw(st.integers(0, pi)), max_n=draw(st.integers(0, most)), empty_d=empty)


@st.composite
def junctions(draw: st.DrawFn, germline: GermlineSet, model: PathModel, *, codes: bool = False) -> Junction:
    """Junctions, most of them made of pieces of the genes.

    Parameters
    ----------
    draw
        Given by hypothesis.
    germline, model
        What they are made of.
    codes
        Whether some symbols become ambiguity codes.
    """
    v = draw(st.integers(0, len(germline.v) - 1))
    j = draw(st.integers(0, len(germline.j) - 1))
    if draw(st.integers(0, 7)) == 0:
        return Junction(draw(sequences(0, 9, codes=codes)), v, j)
    pi = max(model.pis)
    v_end, j_end = germline.v[v].cdr3_end or "", germline.j[j].cdr3_end or ""
    v_ext, j_ext = v_end + palindrome_after(v_end, pi), palindrome_before(j_end, pi) + j_end
    made = j_ext[draw(st.integers(0, len(j_ext))) :]
    for _ in range({"vj": 0, "vdj": 1, "vddj": 2}[germline.chain]):
        made = draw(sequences(0, 2)) + made
        d_ext = extended_d(draw(st.sampled_from([d.sequence for d in germline.d])), pi)
        s, t = sorted(draw(st.tuples(*[st.integers(0, len(d_ext))] * 2)))
        made = d_ext[s:t] + made
        hidden = made[: draw(st.integers(0, min(pi, len(made))))] if draw(st.booleans()) else ""
        made = reverse_complement(hidden) + made
    made = v_ext[: draw(st.integers(0, len(v_ext)))] + draw(sequences(0, 2)) + made
    return Junction(draw(_changed(made.replace("?", ""), CODES if codes else LETTERS)), v, j)


@st.composite
def _changed(draw: st.DrawFn, sequence: str, letters: Sequence[str]) -> str:
    """A sequence with up to two other symbols; codes of the germline are made plain unless asked for."""
    plain = "".join(draw(st.sampled_from(LETTERS)) if s in CODES else s for s in sequence)
    symbols = list(plain)
    for _ in range(draw(st.integers(0, 2)) if symbols else 0):
        symbols[draw(st.integers(0, len(symbols) - 1))] = draw(st.sampled_from(letters))
    return "".join(symbols)


@st.composite
def batches(
    draw: st.DrawFn,
    chain: Chain,
    models: st.SearchStrategy[PathModel],
    *,
    codes: bool = False,
    longest: int = 6,
    most: int = 3,
) -> Batch:
    """Batches of junctions of one drawn germline set.

    Parameters
    ----------
    draw
        Given by hypothesis.
    chain
        ``"vj"``, ``"vdj"`` or ``"vddj"``.
    models
        Where the model comes from.
    codes
        Whether genes and junctions may have ambiguity codes.
    longest
        Longest V end.
    most
        Most junctions.
    """
    germline = draw(germline_sets(chain, codes=codes, longest=longest))
    model = draw(models)
    items = st.lists(
        junctions(germline, model, codes=codes and draw(st.booleans())), min_size=1, max_size=most
    )
    return Batch(germline, model, tuple(draw(items)))


def lane_widths() -> st.SearchStrategy[int]:
    """Numbers of lanes that go together."""
    return st.sampled_from(sorted(LANES))
