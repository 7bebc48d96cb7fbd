"""Groups of predictors: what they are called, and their colours."""

from __future__ import annotations

from typing import Final

from plait.reports.study_figure import Spec
from plait.reports.study_inputs import Study
from plait.reports.study_palette import GROUP_COLOURS

__all__ = ["group_colour", "predictor_groups", "predictor_meanings"]

_GROUPS: Final = {
    "path_count": "path counts",
    "pgen": "Pgen",
    "n2": "N2",
    "n1": "N1",
    "ndn": "V-J gap",
    "region": "regions",
    "v_family": "V family",
    "j_family": "J family",
}


def predictor_groups(study: Study) -> dict[str, str]:
    """Names of groups by predictor.

    Parameters
    ----------
    study
        What has predictors, or has not.
    """
    table = study.table("predictors")
    found = table.rows("predictor", "group") if table else ()
    return {predictor: _GROUPS.get(group, group) for predictor, group in found}


def group_colour(groups: list[str]) -> Spec:
    """The colour channel of marks that have a field ``group``.

    Parameters
    ----------
    groups
        Names of all groups that are drawn.
    """
    colours = {_GROUPS.get(group, group): colour for group, colour in GROUP_COLOURS.items()}
    names = [group for group in colours if group in groups]
    names += sorted(set(groups) - set(names))
    return {
        "field": "group",
        "type": "nominal",
        "title": None,
        "scale": {"domain": names, "range": [colours.get(name, "$ink") for name in names]},
        "legend": {"symbolOpacity": 1},
    }


def predictor_meanings(study: Study) -> dict[str, str]:
    """What predictors mean.

    Parameters
    ----------
    study
        What has predictors, or has not.
    """
    table = study.table("predictors")
    if table is None or "meaning" not in table:
        return {}
    return dict(zip(table.texts("predictor"), table.texts("meaning"), strict=True))
