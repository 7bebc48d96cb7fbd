"""The description of a made-up study: what ``study.json`` says."""

from __future__ import annotations

from collections.abc import Sequence

from support.study_regression import regression_summary

__all__ = ["study_description"]


def study_description(
    names: Sequence[str],
    files: Sequence[str],
    *,
    rows: int,
    clonotypes: int,
    shared: int,
    regression: bool,
    path_counts: bool,
) -> dict[str, object]:
    """What ``study.json`` says.

    Parameters
    ----------
    names
        Of the subjects.
    files
        Names of the inputs; ordinary ones if there are none.
    rows, clonotypes, shared
        How many.
    regression, path_counts
        Whether there are any.
    """
    named = list(files) or [f"{name}.tsv.gz" for name in names]
    model = {"name": "dp2", "pi": 4, "nu": 10, "sweep_pi": [0, 1, 2, 3, 4], "sweep_nu": list(range(11))}
    parameters = {"shared_by": 2, "seed": 0, "germline": "mouse_trb", "model": model, "layout": "airr"}
    return {
        "version": "0.0.0",
        "created": "2026-11-21T12:00:00Z",
        "parameters": parameters,
        "provenance": {"plait": "0.0.0", "device": "cpu", "schedule": "chain_product"},
        "inputs": [
            {
                "file": file,
                "digest": f"{k:032x}",
                "rows": rows // len(named),
                "subject": names[k % len(names)],
            }
            for k, file in enumerate(named)
        ],
        "rows": rows,
        "left_out": {"no_v_anchor": 12},
        "clonotypes": clonotypes,
        "subjects": len(names),
        "shared_by": 2,
        "shared_clonotypes": shared,
        "answers": _answers(clonotypes) if path_counts and len(names) > 1 else [],
        "regression": regression_summary(clonotypes, shared) if regression else None,
        "timings": {"counts": 1.5, "clonotypes": 0.25, "regression": 3.0},
    }


def _answers(n: int) -> list[dict[str, object]]:
    return [
        {
            "id": "drivers",
            "headline": "N2 length tells shared from unshared clonotypes better than path counts do",
            "text": "Held-out deviance of the model with N composition alone is lower than that of the "
            "model with path counts alone. The published study found the same: N2 length and A/T-rich N2, "
            "not counts.",
            "figures": {
                "counts_alone_less_n2_alone": 0.0312,
                "counts_alone_less_n2_alone_low": 0.0223,
                "counts_alone_less_n2_alone_high": 0.0401,
                "n": n,
            },
        },
        {
            "id": "sharing",
            "headline": "Clonotypes with more paths are found in more subjects, weakly",
            "text": "Spearman's rank correlation of path count and number of subjects is 0.11.",
            "figures": {
                "spearman": 0.11,
                "spearman_low": 0.079,
                "spearman_high": 0.141,
                "n": n,
            },
        },
        {
            "id": "frequency",
            "headline": "No association of path count and frequency can be told from these data",
            "text": "The interval of Spearman's rank correlation holds 0 in most subjects.",
            "figures": {"spearman": 0.022, "spearman_low": -0.009, "spearman_high": 0.053, "n": n},
        },
    ]
