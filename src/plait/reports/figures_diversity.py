"""Figures of the diversity of repertoires: clonotypes seen and estimated, rarefaction, V genes."""

from __future__ import annotations

from typing import Final

from plait.reports.figure import StudyFigure, drawn, gene_order
from plait.vdj.repertoires.diversity import RepertoireDiversity

#: Of curves; with more subjects, all have one.
_COLOURS: Final = ("$count", "$shared", "$n2", "$n1", "$ndn", "$region", "$pgen", "$alone")
_ROW: Final = 24
_GENE_ROW: Final = 15


def diversity_figures(found: RepertoireDiversity) -> list[StudyFigure]:
    """The figures, each with what it shows in words."""
    rows = found.diversity.to_pylist()
    told = "; ".join(
        f"{row['subject']} {row['hill_0']:,.0f} of {row['hill_0_estimate']:,.0f}" for row in rows[:12]
    )
    curves = [row for row in found.rarefaction.to_pylist() if row["order"] == 0]
    few = len(rows) <= len(_COLOURS)
    usage = [row | {"gene": row["v_gene"]} for row in found.usage.to_pylist() if row["segment"] == "V"]
    genes = {gene: k for k, gene in enumerate(sorted({row["gene"] for row in usage}, key=gene_order))}
    usage = [row | {"order": genes[row["gene"]]} for row in usage]
    most = max(usage, key=lambda row: row["clonotypes_share"])
    return [
        drawn(
            "diversity",
            "Distinct clonotypes seen, and how many there are at least (Chao1), with intervals of 95 %.",
            f"Clonotypes seen of those estimated: {told}{'; ...' if len(rows) > 12 else ''}.",
            rows,
            height=_ROW * len(rows),
        ),
        drawn(
            "rarefaction",
            "Expected clonotypes by the number of copies; dots are what was seen, dashed lines go to "
            "double the depth, bands are intervals of 95 %.",
            f"One rising curve for each of {len(rows)} subjects, with its interval.",
            curves,
            colours=list(_COLOURS[: len(rows)]) if few else ["$count"] * len(rows),
            legend={"title": None, "symbolOpacity": 1} if few else None,
        ),
        drawn(
            "v_by_subject",
            "Share of the clonotypes of each subject that have a V gene.",
            f"The largest share: {most['gene']} in {most['subject']}, {most['clonotypes_share']:.1%}.",
            usage,
            height=_GENE_ROW * len(genes),
        ),
    ]
