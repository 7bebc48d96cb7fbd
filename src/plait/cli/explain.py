"""``plait vdj explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import ChainOption, StrandsOption, WholeNumber


def explain(
    junction: str,
    *,
    v_call: Annotated[str, Parameter(name=["--v", "--v-call"])],
    j_call: Annotated[str, Parameter(name=["--j", "--j-call"])],
    germline: str | None = None,
    anchors: Path | None = None,
    strands: StrandsOption = 1,
    pi: WholeNumber = 4,
    nu: WholeNumber = 10,
    nu_vd: WholeNumber | None = None,
    nu_dj: WholeNumber | None = None,
    chain: ChainOption = "auto",
    format: Literal["text", "json"] = "text",
) -> None:
    """Show where one path count comes from, and which limit holds it down (model dp2).

    Parameters
    ----------
    junction
        Nucleotides from the conserved Cys to the conserved Phe or Trp codon, both included.
    v_call
        V gene or allele.
    j_call
        J gene or allele.
    germline
        Name of a bundled germline set (see plait germline list), or a file or folder; left out, the one
        bundled set that has both calls.
    anchors
        CSV table gene,anchor_index[,function] of anchors that replace those of the germline set.
    strands
        Hairpins opened on one strand, or on either one of two.
    pi
        Longest palindromic (P) extension of a gene end.
    nu
        Most random (N) nucleotides at a junction.
    nu_vd
        Another limit between V and D.
    nu_dj
        Another limit between D and J.
    chain
        What is joined; auto takes what the germline set implies.
    format
        What to print; positions in json are counted from 0.
    """
    from plait.reports.count_text import explanation_text
    from plait.vdj.explanation import explain as explain_count
    from plait.vdj.germline import load_germline
    from plait.vdj.germline.bundled import guess_germline
    from plait.vdj.models import PathModel

    told = explain_count(
        junction,
        v_call,
        j_call,
        germline=load_germline(germline or guess_germline(v_call, j_call), anchors=anchors),
        model=PathModel(strands=strands, pi=pi, nu=nu, nu_vd=nu_vd, nu_dj=nu_dj),
        chain=chain,
    )
    if format == "json":
        print(json.dumps(told.as_dict(), indent=2))
    else:
        print(explanation_text(told, guessed=germline is None), end="")
