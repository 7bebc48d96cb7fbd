"""The most probable ways in which a junction was made, one by one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.vdj.model.recombination_model import RecombinationModel

__all__ = ["Scenario", "ScenarioFinder"]

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to make a junction.

    Attributes
    ----------
    probability
        Of choosing all of this.
    v, d, j
        Indices of the genes; d is -1 in a chain without D.
    v_deletion, d5_deletion, d3_deletion, j_deletion
        Nucleotides taken away; below zero, P nucleotides that are kept.
    v_end, d_start, d_end, j_start
        Where the parts lie in the junction, 0-based, ends exclusive; N nucleotides are between.
    """

    probability: float
    v: int
    d: int
    j: int
    v_deletion: int
    d5_deletion: int
    d3_deletion: int
    j_deletion: int
    v_end: int
    d_start: int
    d_end: int
    j_start: int


@dataclass(frozen=True, slots=True)
class _Ends:
    """Ways that an end of the junction comes from a gene."""

    weight: _Floats
    gene: NDArray[np.int64]
    cut: NDArray[np.int64]
    place: NDArray[np.int64]


class ScenarioFinder:
    """Finds the most probable scenarios of junctions.

    Parameters
    ----------
    model
        The model.
    """

    def __init__(self, model: RecombinationModel) -> None:
        self.model = model
        self._v = [model.extended("V", k) for k in range(len(model.v))]
        self._d = [model.extended("D", k) for k in range(len(model.d))]
        self._j = [model.extended("J", k) for k in range(len(model.j))]

    def best(
        self,
        junction: str,
        count: int = 1,
        *,
        v: Sequence[int] | None = None,
        j: Sequence[int] | None = None,
    ) -> list[Scenario]:
        """The most probable scenarios, the best first; equally probable ones by their genes and cuts.

        Parameters
        ----------
        junction
            Nucleotides A, C, G and T.
        count
            How many.
        v, j
            Genes that are possible; by default all functional ones.

        Raises
        ------
        InvalidInput
            If the junction has other letters, or `count` is less than 1.
        """
        if count < 1:
            raise InvalidInput("count", found=count, expected="at least 1")
        if set(junction) - set("ACGT") or not junction:
            raise InvalidInput("junction", found=repr(junction), expected="nucleotides A, C, G and T")
        genes_v = [k for k, g in enumerate(self.model.v) if g.functional] if v is None else list(v)
        genes_j = [k for k, g in enumerate(self.model.j) if g.functional] if j is None else list(j)
        left, right = self._prefixes(junction, genes_v), self._suffixes(junction, genes_j)
        if not left.weight.size or not right.weight.size:
            return []
        if not self.model.d:
            return self._without_d(junction, left, right, count)
        return self._with_d(junction, left, right, count)

    def _prefixes(self, junction: str, genes: Sequence[int]) -> _Ends:
        found = []
        deletions = self.model.p_v_deletions
        for k in genes:
            text = self._v[k]
            for kept in range(1, min(len(text), len(junction)) + 1):
                if text[kept - 1] != junction[kept - 1]:
                    break
                cut = len(text) - kept
                if cut < deletions.shape[1] and self.model.p_v[k] * deletions[k, cut] > 0:
                    found.append((self.model.p_v[k] * deletions[k, cut], k, cut, kept))
        return _ends(found)

    def _suffixes(self, junction: str, genes: Sequence[int]) -> _Ends:
        """The weights lack the probability of the gene."""
        found = []
        deletions = self.model.p_j_deletions
        for k in genes:
            text = self._j[k]
            for kept in range(1, min(len(text), len(junction)) + 1):
                if text[-kept] != junction[-kept]:
                    break
                cut = len(text) - kept
                if cut < deletions.shape[1] and deletions[k, cut] > 0:
                    found.append((deletions[k, cut], k, cut, len(junction) - kept))
        return _ends(found)

    def _inserted(self, junction: str, lengths: _Floats, steps: _Floats, first: _Floats) -> _Floats:
        """Probability (start, end) of inserting that stretch of the junction, from left to right."""
        codes = np.array(["ACGT".index(letter) for letter in junction])
        n = codes.size
        table = np.zeros((n + 1, n + 1))
        for start in range(n + 1):
            value = 1.0
            table[start, start] = lengths[0]
            for end in range(start + 1, min(n, start + lengths.size - 1) + 1):
                value *= first[codes[start]] if end == start + 1 else steps[codes[end - 2], codes[end - 1]]
                table[start, end] = value * lengths[end - start]
        return table

    def _without_d(self, junction: str, left: _Ends, right: _Ends, count: int) -> list[Scenario]:
        model = self.model
        table = self._inserted(junction, model.p_vd_length, model.vd_steps, model.vd_first)
        given = model.p_dj[left.gene if len(model.p_dj) > 1 else np.zeros(left.gene.size, int), 0]
        weights = left.weight[:, None] * given[:, right.gene] * right.weight
        weights = weights * table[left.place[:, None], right.place]
        found = []
        for at in np.argsort(-weights, axis=None, kind="stable")[:count]:
            x, y = np.unravel_index(at, weights.shape)
            if weights[x, y] > 0:
                ends = int(left.place[x]), int(right.place[y])
                found.append(self._scenario(float(weights[x, y]), left, int(x), right, int(y), None, ends))
        return found

    def _with_d(self, junction: str, left: _Ends, right: _Ends, count: int) -> list[Scenario]:
        model = self.model
        vd = self._inserted(junction, model.p_vd_length, model.vd_steps, model.vd_first)
        dj = self._inserted(junction[::-1], model.p_dj_length, model.dj_steps, model.dj_first)[::-1, ::-1].T
        places = self._places(junction)
        # Weights (options, place) up to where D begins, and (options, place, D) from where it ends.
        to_d = left.weight[:, None] * vd[left.place]
        from_d = (right.weight[:, None] * model.p_dj[0].T[right.gene])[:, None, :] * dj[:, right.place].T[
            :, :, None
        ]
        bounds = places[:, 0] * to_d.max(axis=0)[places[:, 2].astype(int)]
        bounds *= from_d.max(axis=0)[places[:, 3].astype(int), places[:, 1].astype(int)]
        best: list[tuple[float, tuple[int, ...]]] = []
        for at in np.argsort(-bounds, kind="stable"):
            if bounds[at] <= 0 or (len(best) == count and bounds[at] < best[0][0]):
                break
            weight, d, start, end = places[at, 0], *(int(x) for x in places[at, 1:4])
            lefts, rights = to_d[:, start] * weight, from_d[:, end, d]
            x_order, y_order = (
                np.argsort(-lefts, kind="stable")[:count],
                np.argsort(-rights, kind="stable")[:count],
            )
            for x in x_order:
                for y in y_order:
                    value = float(lefts[x] * rights[y])
                    if value <= 0 or (len(best) == count and value <= best[0][0]):
                        break
                    heapq.heappush(best, (value, (-int(at), int(x), int(y))))
                    if len(best) > count:
                        heapq.heappop(best)
        found = []
        for value, (at, x, y) in sorted(best, key=lambda item: (-item[0], -item[1][0], item[1][1:])):
            place = places[-at]
            ends = int(left.place[x]), int(right.place[y])
            found.append(self._scenario(value, left, x, right, y, place, ends))
        return found

    def _places(self, junction: str) -> _Floats:
        """Where D may lie: rows (probability of its cuts, D, start, end, left cut, right cut)."""
        rows = []
        for k, text in enumerate(self._d):
            deletions = self.model.p_d_deletions[k]
            for s in range(min(deletions.shape[0], len(text) + 1)):
                for t in range(max(s, len(text) - deletions.shape[1] + 1), len(text) + 1):
                    weight = deletions[s, len(text) - t]
                    if weight > 0:
                        part = text[s:t]
                        at = junction.find(part)
                        while at >= 0:
                            rows.append((weight, k, at, at + t - s, s, len(text) - t))
                            at = (
                                junction.find(part, at + 1)
                                if part
                                else (at + 1 if at < len(junction) else -1)
                            )
        return np.array(rows, float).reshape(-1, 6)

    def _scenario(
        self,
        value: float,
        left: _Ends,
        x: int,
        right: _Ends,
        y: int,
        place: _Floats | None,
        ends: tuple[int, int],
    ) -> Scenario:
        v, d5, d3, j = self.model.palindromes
        none = place is None
        return Scenario(
            probability=value,
            v=int(left.gene[x]),
            d=-1 if place is None else int(place[1]),
            j=int(right.gene[y]),
            v_deletion=int(left.cut[x]) - v,
            d5_deletion=0 if place is None else int(place[4]) - d5,
            d3_deletion=0 if place is None else int(place[5]) - d3,
            j_deletion=int(right.cut[y]) - j,
            v_end=ends[0],
            d_start=ends[1] if none else int(place[2]),  # type: ignore[index]
            d_end=ends[1] if none else int(place[3]),  # type: ignore[index]
            j_start=ends[1],
        )


def _ends(found: list[tuple[float, int, int, int]]) -> _Ends:
    weight, gene, cut, place = zip(*found, strict=True) if found else ((), (), (), ())
    return _Ends(np.array(weight, float), *(np.array(values, np.int64) for values in (gene, cut, place)))
