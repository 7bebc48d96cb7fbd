"""Whether the genes of a model have their conserved codons where the model says."""

from __future__ import annotations

from dataclasses import replace

from plait.vdj.germline.anchor_repair import anchor_faults, repaired
from plait.vdj.germline.records import Allele, Segment, parse_functionality
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = ["gene_faults", "repair_model"]


def _allele(gene: ModelGene, segment: Segment) -> Allele:
    return Allele(
        name=gene.name,
        gene=gene.gene,
        segment=segment,
        sequence=gene.sequence,
        functionality=parse_functionality(gene.function) or "P",
        anchor=gene.anchor,
    )


def _alleles(model: RecombinationModel) -> list[tuple[Allele, float]]:
    """Functional V and J genes with a probability above zero, and that probability."""
    p_j = model.p_dj.sum(axis=1)
    p_j = model.p_v @ p_j if len(p_j) == model.p_v.size else p_j[0]
    both: tuple[tuple[Segment, tuple[ModelGene, ...], object], ...] = (
        ("V", model.v, model.p_v),
        ("J", model.j, p_j),
    )
    return [
        (_allele(gene, segment), float(p))
        for segment, genes, share in both
        for gene, p in zip(genes, share, strict=True)  # type: ignore[call-overload]  # an array
        if gene.functional and p > 0
    ]


def gene_faults(model: RecombinationModel) -> dict[str, str]:
    """What is wrong with the conserved codon of functional genes that the model chooses, by name.

    Parameters
    ----------
    model
        The model.

    Examples
    --------
    >>> from plait.vdj.model import bundled_model
    >>> gene_faults(bundled_model("human_TRB"))
    {}
    """
    share = {allele.name: p for allele, p in _alleles(model)}
    found = anchor_faults(allele for allele, _ in _alleles(model))
    return {name: f"probability {share[name]:.4g}: {message}" for name, message in found.items()}


def repair_model(model: RecombinationModel) -> tuple[RecombinationModel, dict[str, str]]:
    """A model with all genes of `gene_faults` that can be mended beyond doubt, and what was done to each.

    A gene is mended if its conserved codon has one convincing place: elsewhere in its sequence, or in the
    reverse complement. Probabilities stay as they are. The provenance of the model names the genes.

    Parameters
    ----------
    model
        The model.
    """
    faults = gene_faults(model)
    mended = {
        allele.name: fixed
        for allele, _ in _alleles(model)
        if allele.name in faults and (fixed := repaired(allele))
    }
    told = {name: what for name, (_, what) in mended.items()}
    if not told:
        return model, told

    def changed(genes: tuple[ModelGene, ...]) -> tuple[ModelGene, ...]:
        return tuple(
            replace(g, sequence=mended[g.name][0].sequence, anchor=mended[g.name][0].anchor)
            if g.name in mended
            else g
            for g in genes
        )

    provenance = {**model.provenance, "repaired_anchors": told}
    return replace(model, v=changed(model.v), j=changed(model.j), provenance=provenance), told
