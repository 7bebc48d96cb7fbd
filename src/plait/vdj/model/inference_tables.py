"""Tables of an inference: iterations, genes, and every probability with the evidence that it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.formats.atomic import output_errors
from plait.vdj.convergence.table_text import write_table
from plait.vdj.model.evidence_rows import EVIDENCE_STATUSES
from plait.vdj.model.maximisation import Evidence
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

__all__ = [
    "FEW",
    "INFERENCE_COLUMNS",
    "evidence_rows",
    "gene_rows",
    "mean_deletions",
    "write_inference_tables",
]

_Floats = NDArray[np.float64]
#: Probabilities that rest on fewer expected choices are marked: their standard error can be above 0.05.
FEW: Final = 100
_BASES: Final = "ACGT"
#: Columns of every table.
INFERENCE_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "iterations": ("iteration", "log_likelihood", "gain", "junctions", "impossible"),
    "genes": (
        "segment",
        "gene",
        "function",
        "probability",
        "standard_error",
        "expected_count",
        "mean_deletion",
        "few",
        "alike",
    ),
    "evidence": (
        "event",
        "given",
        "value",
        "probability",
        "standard_error",
        "expected_count",
        "total",
        "few",
    ),
    "entropy": ("choice", "bits"),
    "left_out": ("reason", "rows", "meaning", "examples"),
    "inputs": ("file", "digest", "rows", "evidence_rows"),
}


def write_inference_tables(
    folder: Path, model: RecombinationModel, evidence: Evidence, facts: Mapping[str, Any]
) -> dict[str, Path]:
    """Write all tables; their files by name.

    Parameters
    ----------
    folder
        Where to; made if it is not there.
    model
        The model.
    evidence
        What it was made of.
    facts
        What else is known of the run.
    """
    rows: dict[str, list[dict[str, object]]] = {
        "iterations": list(facts["history"]),
        "genes": gene_rows(model, evidence),
        "evidence": list(evidence_rows(model, evidence)),
        "entropy": [{"choice": name, "bits": bits} for name, bits in facts["entropies"].items()],
        "left_out": [
            {
                "reason": reason,
                "rows": n,
                "meaning": EVIDENCE_STATUSES[reason],
                "examples": "; ".join(facts["examples"].get(reason, ())),
            }
            for reason, n in facts["left_out"].items()
        ],
        "inputs": list(facts["inputs"]),
    }
    with output_errors(folder):
        folder.mkdir(exist_ok=True)
    paths = {name: folder / f"{name}.tsv" for name in rows}
    for name, path in paths.items():
        write_table(path, INFERENCE_COLUMNS[name], rows[name])
    return paths


def evidence_rows(model: RecombinationModel, evidence: Evidence) -> Iterator[dict[str, object]]:
    """Every probability that is not impossible, with its evidence.

    The standard error is that of a share p of n choices that were seen, sqrt(p (1 - p) / n), with the
    expected number of choices for n: what is not known of how a junction was made comes on top.

    Parameters
    ----------
    model
        The model.
    evidence
        What it was made of.

    Yields
    ------
    dict
        A row.
    """
    v, d, j = ([gene.name for gene in genes] for genes in (model.v, model.d, model.j))
    yield from _rows("v_gene", "", v, model.p_v, evidence.p_v)
    if model.d:
        pairs = [f"{one} {other}" for one in d for other in j]
        yield from _rows("d_and_j_gene", "", pairs, model.p_dj[0].ravel(), evidence.p_dj[0].ravel())
    else:
        for k, (p, n) in enumerate(zip(model.p_dj[:, 0], evidence.p_dj[:, 0], strict=True)):
            yield from _rows("j_gene", v[k] if len(model.p_dj) > 1 else "", j, p, n)
    five, three = model.palindromes[0], model.palindromes[3]
    for k, gene in enumerate(v):
        values = _deletions(model.p_v_deletions.shape[1], five)
        yield from _rows("v_3_deletion", gene, values, model.p_v_deletions[k], evidence.p_v_deletions[k])
    for k, gene in enumerate(d):
        left, right = (
            _deletions(size, most)
            for size, most in zip(model.p_d_deletions.shape[1:], model.palindromes[1:3], strict=True)
        )
        values = [f"{one} {other}" for one in left for other in right]
        tables = model.p_d_deletions[k].ravel(), evidence.p_d_deletions[k].ravel()
        yield from _rows("d_5_and_3_deletion", gene, values, *tables)
    for k, gene in enumerate(j):
        values = _deletions(model.p_j_deletions.shape[1], three)
        yield from _rows("j_5_deletion", gene, values, model.p_j_deletions[k], evidence.p_j_deletions[k])
    yield from _insertions(model, evidence)


def _insertions(model: RecombinationModel, evidence: Evidence) -> Iterator[dict[str, object]]:
    junctions = [("vd" if model.d else "vj", model.p_vd_length, evidence.p_vd_length)]
    chains = [(model.vd_steps, evidence.vd_steps)]
    if model.d:
        junctions.append(("dj", model.p_dj_length, evidence.p_dj_length))
        chains.append((model.dj_steps, evidence.dj_steps))
    for name, p, n in junctions:
        yield from _rows(f"{name}_insertions", "", [str(k) for k in range(p.size)], p, n)
    for (name, _, _), (steps, counts) in zip(junctions, chains, strict=True):
        for k, base in enumerate(_BASES):
            yield from _rows(f"{name}_nucleotide", f"after {base}", list(_BASES), steps[k], counts[k])


def _deletions(size: int, palindrome: int) -> list[str]:
    return [str(k - palindrome) for k in range(size)]


def _rows(
    event: str, given: str, values: Sequence[str], p: _Floats, counts: _Floats
) -> Iterator[dict[str, object]]:
    total = float(counts.sum())
    for value, share, n in zip(values, p.tolist(), counts.tolist(), strict=True):
        if share > 0 or n > 0:
            yield {
                "event": event,
                "given": given,
                "value": value,
                "probability": share,
                "standard_error": _error(share, total),
                "expected_count": n,
                "total": total,
                "few": "yes" if total < FEW else "no",
            }


def _error(p: float, n: float) -> float | None:
    return float(np.sqrt(max(p * (1 - p), 0.0) / n)) if n > 0 else None


def gene_rows(model: RecombinationModel, evidence: Evidence) -> list[dict[str, Any]]:
    """Every gene with its probability, evidence and mean deletion.

    Parameters
    ----------
    model
        The model.
    evidence
        What it was made of.
    """
    of_j = evidence.p_dj.sum(axis=(0, 1))
    p_j = model.p_dj.sum(axis=1)
    tables: list[tuple[str, Sequence[ModelGene], _Floats, _Floats]] = [
        ("V", model.v, model.p_v, evidence.p_v),
        ("D", model.d, model.p_dj[0].sum(axis=1), evidence.p_dj[0].sum(axis=1)),
        ("J", model.j, model.p_v @ p_j if len(p_j) > 1 else p_j[0], of_j),
    ]
    means = mean_deletions(model)
    rows: list[dict[str, Any]] = []
    for segment, genes, p, n in tables:
        alike = _alike(model, segment)
        for k, gene in enumerate(genes):
            rows.append(
                {
                    "segment": segment,
                    "gene": gene.name,
                    "function": gene.function,
                    "probability": float(p[k]),
                    "standard_error": _error(float(p[k]), float(n.sum())),
                    "expected_count": float(n[k]),
                    "mean_deletion": float(means[segment][k]),
                    "few": "yes" if n[k] < FEW else "no",
                    "alike": ", ".join(alike[k]),
                }
            )
    return rows


def mean_deletions(model: RecombinationModel) -> dict[str, _Floats]:
    """Mean number of deleted nucleotides of each gene, P nucleotides below zero; of D, both ends together.

    Parameters
    ----------
    model
        The model.
    """
    v, d5, d3, j = model.palindromes
    found = {}
    for segment, table, most in (("V", model.p_v_deletions, v), ("J", model.p_j_deletions, j)):
        found[segment] = table @ (np.arange(table.shape[1]) - most)
    five, three = (
        model.p_d_deletions.sum(axis=axis) @ (np.arange(model.p_d_deletions.shape[3 - axis]) - most)
        for axis, most in ((2, d5), (1, d3))
    )
    found["D"] = five + three
    return found


def _alike(model: RecombinationModel, segment: Any) -> list[list[str]]:
    """Other genes whose part of a junction is the same: junctions do not tell them apart, calls do."""
    genes = {"V": model.v, "D": model.d, "J": model.j}[segment]
    groups: dict[str, list[str]] = defaultdict(list)
    parts = [model.extended(segment, k) for k in range(len(genes))]
    for gene, part in zip(genes, parts, strict=True):
        groups[part].append(gene.name)
    return [
        [name for name in groups[part] if name != gene.name] if part else []
        for gene, part in zip(genes, parts, strict=True)
    ]
