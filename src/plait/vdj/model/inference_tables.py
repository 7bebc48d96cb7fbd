"""What an inference found: tables with their evidence, and sentences that claim no more than it allows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from plait.formats.atomic import output_errors
from plait.vdj.convergence.claims import write_table
from plait.vdj.model.evidence import EVIDENCE_STATUSES
from plait.vdj.model.expectations import Evidence
from plait.vdj.model.recombination_model import ModelGene, RecombinationModel

_Floats = NDArray[np.float64]
#: Probabilities that rest on fewer expected choices are marked: their standard error can be above 0.05.
FEW: Final = 100
_BASES: Final = "ACGT"
#: Columns of every table.
INFERENCE_COLUMNS: Final[Mapping[str, Sequence[str]]] = {
    table: columns.split()
    for table, columns in {
        "iterations": "iteration log_likelihood gain junctions impossible",
        "genes": "segment gene function probability standard_error expected_count mean_deletion few alike",
        "evidence": "event given value probability standard_error expected_count total few",
        "entropy": "choice bits",
        "left_out": "reason rows meaning examples",
        "inputs": "file digest rows evidence_rows",
    }.items()
}


def write_inference_tables(
    folder: Path, model: RecombinationModel, evidence: Evidence, facts: Mapping[str, Any]
) -> dict[str, Path]:
    """Write all tables of a model and its evidence to a folder, made if it is not there; their files by name.

    `facts` is what else is known of the run.
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
    """A row for every probability that is not impossible, with its evidence.

    The standard error is that of a share p of n choices that were seen, sqrt(p (1 - p) / n), with the
    expected number of choices for n: what is not known of how a junction was made comes on top.
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
    """Every gene with its probability, evidence and mean deletion."""
    of_j = evidence.p_dj.sum(axis=(0, 1))
    tables: list[tuple[str, Sequence[ModelGene], _Floats, _Floats]] = [
        ("V", model.v, model.p_v, evidence.p_v),
        ("D", model.d, model.p_dj[0].sum(axis=1), evidence.p_dj[0].sum(axis=1)),
        ("J", model.j, model.p_j, of_j),
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
    """Mean number of deleted nucleotides of each gene, P nucleotides below zero; of D, both ends together."""
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
    parts = model.extended_all(segment)
    for gene, part in zip(genes, parts, strict=True):
        groups[part].append(gene.name)
    return [
        [name for name in groups[part] if name != gene.name] if part else []
        for gene, part in zip(genes, parts, strict=True)
    ]


#: With fewer junctions than this most probabilities are no more than a sketch.
_FEW_JUNCTIONS: Final = 10_000


def inference_answers(
    model: RecombinationModel, evidence: Evidence, facts: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Answers in words, each with its headline and numbers; `facts` is what else is known of the run."""
    return [
        _of_evidence(facts),
        _of_fit(facts),
        _of_chance(facts),
        _of_ends(model, facts),
        _of_genes(model, evidence, facts),
        _limits(facts),
    ]


def selection_warning(facts: Mapping[str, Any]) -> str | None:
    """A sentence where rows that selection has shaped are among the evidence; None otherwise.

    Of the run's `facts`, ``parameters`` and ``rows_by_kind`` are enough.
    """
    rows = facts["parameters"]["rows"]
    productive = facts["rows_by_kind"].get("productive", 0)
    if rows not in ("productive", "all") or not productive:
        return None
    return (
        f"productive rows are evidence (--rows {rows}): selection has taken a part of them away, and what it "
        "prefers is in this model as if recombination made it more often"
    )


def _of_evidence(facts: Mapping[str, Any]) -> dict[str, Any]:
    kinds = facts["rows_by_kind"]
    told = ", ".join(f"{n:,} {kind.replace('_', ' ')}" for kind, n in kinds.items())
    few = facts["junctions"] < _FEW_JUNCTIONS
    selected = selection_warning(facts)
    headline = f"{facts['evidence_junctions']:,} different junctions with their genes are the evidence"
    if selected:
        headline += ", and selection has shaped them"
    text = (
        f"Of {facts['rows']:,} rows, those that can be read are {told}. Evidence are "
        f"{facts['parameters']['rows']} rows, from {facts['repertoires']:,} repertoire"
        f"{'' if facts['repertoires'] == 1 else 's'}; "
    )
    if facts["parameters"]["weights"] == "once":
        text += "each junction with its V and J counts once in every repertoire that has it."
    else:
        text += "each junction counts as often as the reads or molecules of its rows."
    if selected:
        text += f" Take care: {selected}."
    if few:
        text += (
            f" {facts['junctions']:,} junctions are few: what is rare in this model is not known well; see "
            "the standard errors in the table of evidence."
        )
    impossible = facts["impossible"]
    if impossible:
        reasons = facts.get("impossible_by_reason", {})
        told = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in reasons.items())
        text += f" {impossible:,} junctions cannot be made by the model and count for nothing"
        text += f": {told}." if told else "."
    figures = {"junctions": facts["junctions"], "rows": facts["rows"], "repertoires": facts["repertoires"]}
    return {"headline": headline, "text": text, "figures": figures}


def _of_fit(facts: Mapping[str, Any]) -> dict[str, Any]:
    history = facts["history"]
    first, last = history[0]["log_likelihood"], history[-1]["log_likelihood"]
    steps = facts["iterations_done"]
    if facts["converged"]:
        headline = f"The likelihood stopped growing after {steps} iterations"
    else:
        headline = f"The likelihood was still growing when {steps} iterations were done"
    text = (
        f"The mean log-likelihood of a junction rose from {first:.4f} to {last:.4f}. The geometric mean of "
        f"the probabilities is 2^-{-last / math.log(2):.1f}. "
    )
    if facts["converged"]:
        text += "It is a maximum near which the search began; others are possible, and not known."
    else:
        text += "More --iterations would change the model."
    rate = facts.get("error_rate")
    if rate is not None:
        how = "found with the model" if facts["parameters"]["error_rate"] == "fit" else "as given"
        text += f" Of 10,000 nucleotides of junctions {10_000 * rate:.1f} were misread, {how}."
    return {
        "headline": headline,
        "text": text,
        "figures": {"log_likelihood": last, "bits_a_junction": -last / math.log(2), "iterations": steps},
    }


def _of_chance(facts: Mapping[str, Any]) -> dict[str, Any]:
    bits = {name: value for name, value in facts["entropies"].items() if name != "total"}
    total = facts["entropies"]["total"]
    inserted = sum(value for name, value in bits.items() if name.startswith(("insertions", "nucleotides")))
    genes = sum(value for name, value in bits.items() if name in ("V", "J", "D given J"))
    headline = f"Recombination chooses among scenarios with {total:.1f} bits of entropy"
    share = inserted / total if total else 0.0
    text = (
        f"{inserted:.1f} bits ({100 * share:.0f} %) come from inserted nucleotides, {genes:.1f} from the "
        f"choice of genes, {total - inserted - genes:.1f} from deletions. Different scenarios can make the "
        "same junction, so that junctions have less entropy than scenarios."
    )
    return {"headline": headline, "text": text, "figures": {"bits": total, "bits_inserted": inserted}}


def _of_ends(model: RecombinationModel, facts: Mapping[str, Any]) -> dict[str, Any]:
    lengths = [("V-D" if model.d else "V-J", model.p_vd_length)]
    lengths += [("D-J", model.p_dj_length)] if model.d else []
    inserted = {name: float(p @ np.arange(p.size)) for name, p in lengths}
    none = {name: float(p[0]) for name, p in lengths}
    headline = " and ".join(f"{mean:.1f} nucleotides between {name}" for name, mean in inserted.items())
    means = mean_deletions(model)
    v, j = float(model.p_v @ means["V"]), float(model.p_j @ means["J"])
    nothing = " and ".join(f"{100 * p:.1f} % of junctions at {name}" for name, p in none.items())
    text = (
        f"Nothing is inserted in {nothing}. On average V loses {v:.1f} nucleotides and J {j:.1f}; P "
        "nucleotides count below zero."
    )
    figures = {f"inserted_{name}": mean for name, mean in inserted.items()}
    return {
        "headline": f"{headline} are inserted on average",
        "text": text,
        "figures": {**figures, "deleted_V": v, "deleted_J": j},
    }


def _of_genes(model: RecombinationModel, evidence: Evidence, facts: Mapping[str, Any]) -> dict[str, Any]:
    rows = gene_rows(model, evidence)
    few = {
        segment: [row["gene"] for row in rows if row["segment"] == segment and row["few"] == "yes"]
        for segment in "VDJ"
    }
    total = {segment: sum(row["segment"] == segment for row in rows) for segment in "VDJ"}
    weak = ", ".join(f"{len(few[s])} of {total[s]} {s}" for s in "VDJ" if few[s])
    never = [str(row["gene"]) for row in rows if row["segment"] in "VJ" and row["expected_count"] == 0]
    most = {
        segment: max((row for row in rows if row["segment"] == segment), key=lambda row: row["probability"])
        for segment in "VJ"
    }
    shares = ", ".join(
        f"{most[s]['gene']} ({100 * most[s]['probability']:.1f} % of {s} choices)" for s in "VJ"
    )
    text = f"Most frequent are {shares}. "
    if weak:
        headline = f"{weak} genes have fewer than {FEW} expected choices"
        text += "Their deletions are hardly known, and marked in the table of genes. "
    else:
        headline = f"Every gene has {FEW} or more expected choices"
    if never:
        shown = ", ".join(never[:8]) + (f" and {len(never) - 8} more" if len(never) > 8 else "")
        added = facts["parameters"].get("pseudocount")
        known = "are all equally probable" if added else "stay as they were at the start"
        text += f"Never seen: {shown}; their deletions {known}. "
    return {"headline": headline, "text": text.strip(), "figures": {}}


def _limits(facts: Mapping[str, Any]) -> dict[str, Any]:
    left = {reason: n for reason, n in facts["left_out"].items() if reason.startswith("unknown")}
    text = (
        "Standard errors take choices as if they had been seen; what is not known of how a junction was made "
        "comes on top, and repertoires differ by more than chance. "
    )
    if facts.get("error_rate") is None:
        text += "A sequencing error in a junction is taken for an insertion or a deletion. "
    else:
        text += "Errors are taken to fall on all nucleotides alike. "
    text += "Genes whose part of a junction is the same cannot be told apart by junctions, only by calls. "
    if facts["parameters"]["calls"] == "use":
        text += "Calls are believed: a wrong one counts for the wrong gene. "
    else:
        text += (
            "Calls were ignored: where deletions leave of a gene what others have too, its probability and "
            "its deletions depend on the model that the search began with; only what they give together is "
            "found. "
        )
    if left:
        rows = sum(left.values())
        calls = ", ".join(list(facts["unknown_calls"])[:6])
        text += f"{rows:,} rows have a call that the model does not know and are left out ({calls}). "
    assumed = facts["start"].get("functionality_assumed")
    if assumed:
        text += f"For {assumed} genes the germline set states no functionality; they count as functional. "
    return {"headline": "What these figures cannot say", "text": text.strip(), "figures": {}}
