"""Germline sets: the V, D, J and C alleles that recombination starts from, and where their CDR3 parts lie."""

from __future__ import annotations

from plait.vdj.germline.airr_json import read_airr_json, write_airr_json
from plait.vdj.germline.anchors import (
    Finding,
    apply_overrides,
    find_j_anchor,
    find_v_anchor,
    gapped_v_anchor,
    validate,
    write_csv,
)
from plait.vdj.germline.bundled import bundled_germlines, load_germline, load_germlines, read_olga_model
from plait.vdj.germline.fasta import read_fasta, read_fasta_trio, write_fasta_trio
from plait.vdj.germline.germline_set import Allele, GermlineSet, Segment

__all__ = [
    "Allele",
    "Finding",
    "GermlineSet",
    "Segment",
    "apply_overrides",
    "bundled_germlines",
    "find_j_anchor",
    "find_v_anchor",
    "gapped_v_anchor",
    "load_germline",
    "load_germlines",
    "read_airr_json",
    "read_fasta",
    "read_fasta_trio",
    "read_olga_model",
    "validate",
    "write_airr_json",
    "write_csv",
    "write_fasta_trio",
]
