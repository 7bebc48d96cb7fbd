"""What the regression sees of a clonotype: path counts, region lengths, compositions, gene families."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from plait.vdj.convergence.settings import StudySettings

__all__ = ["Predictor", "PredictorSet", "choose_predictors", "family_of"]

_FAMILY = re.compile(r"[A-Z]+\d+")
#: Families with this share of the rows or more are predictors, up to so many of V and of J; the most
#: frequent one is what they are compared with.
_LEAST_SHARE = 0.01
_MOST_FAMILIES = {"v": 8, "j": 3}
_LENGTHS = {
    "v_match_length": "nucleotides that match the V gene, P included",
    "j_match_length": "nucleotides that match the J gene, P included",
    "d_match_length": "nucleotides of the longest match with a D gene",
    "p3v_length": "P nucleotides at the V end",
    "p5d_length": "P nucleotides at the 5' end of D",
    "p3d_length": "P nucleotides at the 3' end of D",
    "p5j_length": "P nucleotides at the J end",
}
_BETWEEN = {"n1": "between V and D", "n2": "between D and J", "ndn": "between V and J, D included"}
#: What stands for the logarithm of a Pgen of zero, which has a predictor of its own: a usual value. What is
#: predicted does not depend on it.
_LOG_OF_ZERO = -10.0
_PGEN = {
    "log_pgen_nt": f"log10 of Pgen; {_LOG_OF_ZERO:g} where it is zero",
    "pgen_is_zero": "1 where the model cannot make the junction",
}
#: The fourth base, g, is what the others are compared with.
_BASES = "act"


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """One predictor.

    Attributes
    ----------
    name
        Its name.
    group
        ``path_count``, ``pgen``, ``region``, ``n1``, ``n2``, ``ndn``, ``v_family`` or ``j_family``.
    meaning
        In plain words.
    """

    name: str
    group: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorSet:
    """The predictors of a study; picklable.

    Attributes
    ----------
    predictors
        The predictors, in order.
    models
        Place of each chosen model in the sweep; None: the single model.
    families
        Families that are predictors, of V and of J.
    """

    predictors: tuple[Predictor, ...]
    models: tuple[int | None, ...]
    families: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        """Names, in order."""
        return tuple(predictor.name for predictor in self.predictors)

    def values(self, clonotypes: pa.Table) -> NDArray[np.float64]:
        """Values of the predictors.

        Parameters
        ----------
        clonotypes
            Clonotypes whose status is ``ok``, of `plait.vdj.convergence.schemas.clonotype_schema`.

        Returns
        -------
        ndarray of float64 (n, p)
            One row per clonotype.
        """
        found = np.zeros((clonotypes.num_rows, len(self.predictors)))
        place = {name: k for k, name in enumerate(self.names)}
        chosen = (p.name for p in self.predictors if p.group == "path_count")
        for name, values in zip(chosen, self._path_counts(clonotypes), strict=True):
            found[:, place[name]] = _single(np.log10(values + 1))
        if "log_pgen_nt" in place:
            pgen = _numbers(clonotypes, "pgen_nt")
            zero = pgen == 0
            logarithms = np.where(zero, _LOG_OF_ZERO, np.log10(np.where(zero, 1.0, pgen)))
            found[:, place["log_pgen_nt"]] = _single(logarithms)
            found[:, place["pgen_is_zero"]] = zero
        for predictor in self.predictors:
            if predictor.name in clonotypes.column_names:
                found[:, place[predictor.name]] = _numbers(clonotypes, predictor.name)
        for span in _BETWEEN:
            if f"{span}_a_share" in place:
                bases = {base: _numbers(clonotypes, f"{span}_{base}") for base in "acgt"}
                total = np.maximum(sum(bases.values()), 1)
                for base in _BASES:
                    found[:, place[f"{span}_{base}_share"]] = _single(bases[base] / total)
        for segment, names in self.families.items():
            encoded = clonotypes[f"{segment}_gene"].combine_chunks().dictionary_encode()
            families = np.array([family_of(gene) for gene in encoded.dictionary.to_pylist()], object)
            mine = families[np.asarray(encoded.indices)] if len(families) else families
            for name in names:
                found[:, place[f"{segment}_family_{name}"]] = mine == name
        return found

    def _path_counts(self, clonotypes: pa.Table) -> list[NDArray[np.float64]]:
        found = []
        swept = None
        if any(model is not None for model in self.models):
            lists = clonotypes["path_count_sweep"].combine_chunks()
            items = lists.type.list_size
            swept = np.asarray(lists.flatten().cast(pa.float64(), safe=False).fill_null(0)).reshape(-1, items)
        for model in self.models:
            if model is None:
                found.append(_numbers(clonotypes, "path_count"))
            else:
                assert swept is not None
                found.append(swept[:, model])
        return found


def family_of(gene: str) -> str:
    """The family of a gene, by its name.

    Parameters
    ----------
    gene
        A V or J gene.

    Examples
    --------
    >>> from plait.vdj.convergence.predictors import family_of
    >>> family_of("TRBV13-2"), family_of("TRAV14D-3/DV8"), family_of("TRBJ2-7"), family_of("V5")
    ('TRBV13', 'TRAV14', 'TRBJ2', 'V5')
    """
    match = _FAMILY.match(gene)
    return match[0] if match else gene


def choose_predictors(
    settings: StudySettings, v_genes: Mapping[str, int], j_genes: Mapping[str, int]
) -> PredictorSet:
    """The predictors of a study.

    Parameters
    ----------
    settings
        What is counted.
    v_genes, j_genes
        Rows by gene.
    """
    found: list[Predictor] = []
    places: list[int | None] = []
    base = (settings.model.pi, settings.model.nu)
    for pi, nu in settings.predictor_models:
        places.append(settings.sweep_models.index((pi, nu)) if (pi, nu) != base else None)
        found.append(
            Predictor(
                name=f"log_path_count_pi{pi}_nu{nu}",
                group="path_count",
                meaning=f"log10 of the path count + 1, with at most {pi} P and {nu} N nucleotides",
            )
        )
    for name, meaning in _PGEN.items() if settings.with_pgen else ():
        found.append(Predictor(name=name, group="pgen", meaning=meaning))
    found.append(Predictor(name="junction_length", group="region", meaning="nucleotides of the junction"))
    for name, meaning in _LENGTHS.items():
        if settings.with_d or name not in ("d_match_length", "p5d_length", "p3d_length"):
            found.append(Predictor(name=name, group="region", meaning=meaning))
    spans = {**_BETWEEN} if settings.with_d else {"n1": "between V and J"}
    for span, where in spans.items():
        if span != "ndn":
            text = f"nucleotides {where} that match neither"
            found.append(Predictor(name=f"{span}_length", group=span, meaning=text))
        for whole in _BASES:
            text = f"share of {whole.upper()} among the nucleotides {where}; 0 where there are none"
            found.append(Predictor(name=f"{span}_{whole}_share", group=span, meaning=text))
    families = {}
    for segment, genes in (("v", v_genes), ("j", j_genes)):
        chosen, reference = _families(genes, _MOST_FAMILIES[segment])
        families[segment] = chosen
        for name in chosen:
            text = f"1 where the {segment.upper()} family is {name}; compared with {reference} and rare ones"
            found.append(Predictor(name=f"{segment}_family_{name}", group=f"{segment}_family", meaning=text))
    return PredictorSet(predictors=tuple(found), models=tuple(places), families=families)


def _families(genes: Mapping[str, int], most: int) -> tuple[tuple[str, ...], str]:
    rows: Counter[str] = Counter()
    for gene, n in genes.items():
        rows[family_of(gene)] += n
    ordered = sorted(rows, key=lambda name: (-rows[name], name))
    if not ordered:
        return (), ""
    total = sum(rows.values())
    frequent = [name for name in ordered[1:] if rows[name] >= _LEAST_SHARE * total]
    return tuple(frequent[:most]), ordered[0]


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """In single precision, which is more than enough and halves the design on disk."""
    return values.astype(np.float32)


def _numbers(table: pa.Table, name: str) -> NDArray[np.float64]:
    """A column as floating-point numbers, 0 where it is null."""
    column = table[name].cast(pa.float64(), safe=False).fill_null(0)
    values: NDArray[np.float64] = column.to_numpy()
    return values
