"""How often clonotypes are expected to be shared by generation and selection at random.

After Elhanati, Sethna, Callan, Mora and Walczak (2018), Immunological Reviews 284: 167-179: a share q of
all sequences passes selection, whichever they are; one that does is 1 / q times as frequent as generated.
A subject whose repertoire is N independent recombinations has it with probability 1 - exp(-N Pgen / q).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from plait.errors import InvalidInput, whole_fields
from plait.types import Tabular
from plait.vdj.airr import translations
from plait.vdj.calls import ClonotypeKey
from plait.vdj.model.pgen import GenerationProbability, named_statuses
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.model.sampling import JunctionSampler

_Floats = NDArray[np.float64]

_BLOCK_DRAWS: Final = 1 << 16
#: Blocks of draws without a productive one, after which a model is taken for one that makes none.
_MOST_EMPTY: Final = 16
#: Steps of the probabilities of drawn clonotypes in a decade; each stands for the draws next to it.
_PER_DECADE: Final = 200
#: The selection factor is looked for down to this one.
_LEAST_SELECTION: Final = 1e-6
#: Cells of the tables by clonotype and number of subjects that are held at a time.
_CELLS: Final = 1 << 22
#: Junctions as amino acids that can be productive.
_PRODUCTIVE: Final = "^C[ACDEFGHIKLMNPQRSTVWY]*[FW]$"


@dataclass(frozen=True, kw_only=True)
class GenerationSettings:
    """What is taken for how clonotypes come about.

    Attributes
    ----------
    model
        The recombination model.
    selection
        Share of the generated productive sequences that pass selection, above 0 and up to 1; or ``"fit"``: so
        that as many clonotypes are expected in two subjects or more as there are.
    draws
        Productive junctions drawn from the model, from which expected numbers are computed.
    seed
        What they depend on.
    device
        Where probabilities are computed, as for `plait.vdj.count_paths`.
    """

    model: RecombinationModel
    selection: float | Literal["fit"] = "fit"
    draws: int = 200_000
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        """Check the numbers."""
        share = self.selection
        if share != "fit" and not (isinstance(share, int | float) and 0 < share <= 1):
            raise InvalidInput(
                "selection", found=self.selection, expected="fit, or a share above 0 and up to 1"
            )
        whole_fields(self, "draws", least=1000, most=100_000_000)
        whole_fields(self, "seed", most=2**63 - 1)


class _Sample(NamedTuple):
    """Drawn clonotypes of like probability: `p` (steps,), and the share of draws that each stands for.

    `productive`: share of what is generated; `p` are probabilities among these.
    """

    p: _Floats
    share: _Floats
    productive: float
    draws: int


#: Columns of clonotypes whose nucleotides, and genes if they are part of the key, have been weighed before.
KNOWN: Final = ("pgen_nt", "pgen_status")
#: False discovery rate at which a clonotype is called more public than expected.
FALSE_DISCOVERIES: Final = 0.05


class ClonotypeGeneration:
    """Generation probabilities of clonotypes of a key."""

    def __init__(self, settings: GenerationSettings, key: ClonotypeKey, threads: int | None = None) -> None:
        self.settings, self.key = settings, key
        self._engine = GenerationProbability(settings.model, threads=threads, device=settings.device)

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers have a thread each.
        return type(self), (self.settings, self.key, 1)

    def pgen(self, clonotypes: pa.RecordBatch) -> tuple[_Floats, pa.Array]:
        """Probabilities of n clonotypes, with the columns of the key; 0 for those that the model cannot make.

        And a status of each: ``ok`` where it is above 0, ``nonproductive`` where selection is another matter,
        or as for ``plait vdj pgen``. What `KNOWN` columns have is taken from there.
        """
        junctions = clonotypes[self.key.columns[0]]
        if KNOWN[0] in clonotypes.schema.names:
            pgen, named = clonotypes[KNOWN[0]].to_numpy(zero_copy_only=False), clonotypes[KNOWN[1]]
        else:
            calls = [clonotypes[n] if n in self.key.columns else None for n in ("v_gene", "j_gene")]
            found = self._engine.compute(junctions, *calls, kind="aa" if self.key.acids else "nt")
            pgen, named = found.pgen, named_statuses(found)
        acids = junctions if self.key.acids else translations(junctions)
        productive = pc.fill_null(pc.match_substring_regex(acids, _PRODUCTIVE), False)
        status = pc.if_else(productive, named, "nonproductive")
        return np.where(np.asarray(productive), np.nan_to_num(pgen), 0.0), status

    @cached_property
    def sample(self) -> _Sample:
        """Clonotypes drawn from the model."""
        settings, model = self.settings, self.settings.model
        sampler = JunctionSampler(model, seed=settings.seed, functional=False)
        v, j = (np.array([gene.gene for gene in genes], object) for genes in (model.v, model.j))
        usable_v, usable_j = (np.array([g.functional for g in genes]) for genes in (model.v, model.j))
        found: list[_Floats] = []
        kept = blocks = 0
        while kept < settings.draws:
            draws = sampler.block(blocks * _BLOCK_DRAWS, _BLOCK_DRAWS)
            blocks += 1
            of_v, of_j = draws.fields[:, 0], draws.fields[:, 2]
            good = np.flatnonzero(draws.productive & usable_v[of_v] & usable_j[of_j])
            junctions = pa.array(draws.take(good).texts(), pa.large_string())
            columns = {
                "junction": junctions,
                "junction_aa": translations(junctions).cast(pa.large_string()),
                "v_gene": pa.array(v[of_v[good]], pa.large_string()),
                "j_gene": pa.array(j[of_j[good]], pa.large_string()),
            }
            pgen, _ = self.pgen(pa.record_batch({name: columns[name] for name in self.key.columns}))
            found.append(pgen[pgen > 0])
            kept += good.size
            if kept == 0 and blocks == _MOST_EMPTY:
                raise InvalidInput(
                    "model", found=f"{model.name!r}, which makes no productive junction", expected="one"
                )
        productive = kept / (blocks * _BLOCK_DRAWS)
        logs = np.log10(np.concatenate(found) / productive)
        _, step, count = np.unique(np.rint(logs * _PER_DECADE), return_inverse=True, return_counts=True)
        return _Sample(10.0 ** (np.bincount(step, logs) / count), count / kept, productive, kept)


@dataclass
class ObservedSharing:
    """Clonotypes that the model can make: `levels` by number of subjects, and `distinct` ones in each."""

    levels: NDArray[np.int64]
    distinct: NDArray[np.int64]

    @classmethod
    def of_subjects(cls, subjects: int) -> ObservedSharing:
        """None yet, of so many subjects."""
        return cls(np.zeros(subjects + 1, np.int64), np.zeros(subjects, np.int64))


class ExpectedSharing(Tabular):
    """What generation and selection lead to expect of subjects of given depths; `to_arrow` gives `table`.

    Attributes
    ----------
    selection
        The selection factor q, given or fitted.
    selection_interval
        95 % interval of a fitted one, from how many clonotypes are shared and from the draws; None if given.
    depths
        float64 (subjects,): independent recombinations that make as many distinct clonotypes as each has.
    table
        By number of subjects from 1: ``observed`` clonotypes, those ``expected``, their standard deviation
        ``expected_sd`` over repertoires and draws.
    more_shared
        Clonotypes that more subjects have than generation explains: ``q_sharing`` at most 0.05.
    """

    def __init__(self, generation: ClonotypeGeneration, observed: ObservedSharing) -> None:
        self._sample, self._observed = generation.sample, observed
        chosen = generation.settings.selection
        self.selection_interval: tuple[float, float] | None = None
        if chosen == "fit":
            self.selection, self.selection_interval = self._fitted()
        else:
            self.selection = float(chosen)
        self.depths = self._depths(self.selection)
        self.table = self._distribution()
        self.more_shared = 0

    def _table(self, rows: int | None) -> pa.Table:
        return self.table.slice(0, rows)

    def chances(self, pgen: _Floats, subjects: NDArray[np.int64]) -> tuple[_Floats, _Floats]:
        """Of clonotypes that somebody has: expected number of subjects, and p of so many `subjects` or more.

        Both are given that at least one of the subjects has the clonotype.
        """
        p = pgen / (self._sample.productive * self.selection)
        expected, tail = np.ones(p.size), np.ones(p.size)
        if not self.depths.any():
            # Nobody has what the model can make.
            return expected, tail
        some = -np.expm1(-p * self.depths.sum())
        rows = max(1, _CELLS // max(self.depths.size, 1))
        for first in range(0, p.size, rows):
            part = slice(first, first + rows)
            expected[part] = -np.expm1(-p[part, None] * self.depths).sum(axis=1) / some[part]
        for k in np.unique(subjects[subjects > 1]).tolist():
            of_k = np.flatnonzero(subjects == k)
            for first in range(0, of_k.size, max(1, _CELLS // (k + 1))):
                some_k = of_k[first : first + max(1, _CELLS // (k + 1))]
                tail[some_k] = self._levels(p[some_k], k)[-1] / some[some_k]
        return expected, np.minimum(tail, 1.0)

    def as_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        return {
            "selection": self.selection,
            "selection_interval": self.selection_interval,
            "draws": self._sample.draws,
            "productive": self._sample.productive,
            "recombinations": self.depths.tolist(),
            "distribution": self.table.to_pylist(),
        }

    def _levels(self, p: _Floats, most: int) -> _Floats:
        """Probabilities (most + 1, n) of 0, 1, ... subjects; the last one is of `most` or more."""
        found = np.zeros((most + 1, p.size))
        found[0] = 1.0
        for depth in self.depths.tolist():
            has = -np.expm1(-p * depth)
            has_not = np.exp(-p * depth)
            found[most] += found[most - 1] * has
            found[1:most] = found[1:most] * has_not + found[: most - 1] * has
            found[0] *= has_not
        return found

    def _depths(self, selection: float) -> _Floats:
        """Recombinations (subjects,) that make the observed numbers of distinct clonotypes."""
        distinct = self._observed.distinct.astype(np.float64)
        p, share = self._sample.p / selection, self._sample.share
        n = distinct.copy()
        # Newton's steps stay below the root, since the curve is concave.
        for _ in range(100):
            seen = -np.expm1(-n[:, None] * p) @ (share / p)
            slope = np.exp(-n[:, None] * p) @ share
            step = np.maximum(distinct - seen, 0.0) / np.maximum(slope, 1e-300)
            n = n + step
            if (step <= 1e-12 * n).all():
                return n
        raise InvalidInput(
            "model",
            found=f"{int(distinct.max()):,} different clonotypes in a subject",
            expected="no more than the model makes",
            hint="choose another key or model, or a larger selection factor",
        )

    def _public(self, selection: float) -> tuple[float, float]:
        """Expected number of clonotypes of two subjects or more, and its variance from the draws."""
        p, share = self._sample.p / selection, self._sample.share
        depths = self._depths(selection)
        x = p[:, None] * depths
        total = x.sum(axis=1)
        one = (np.exp(x - total[:, None]) - np.exp(-total)[:, None]).sum(axis=1)
        # Where a difference would lose most digits, the first term of its series.
        few = (total**2 - (x**2).sum(axis=1)) / 2
        values = np.where(total < 1e-4, few, -np.expm1(-total) - one) / p
        mean = float(values @ share)
        return mean, float((values - mean) ** 2 @ share) / self._sample.draws

    def _fitted(self) -> tuple[float, tuple[float, float]]:
        """The selection factor, with its interval."""
        public = int(self._observed.levels[2:].sum())
        low, high = math.log(_LEAST_SELECTION), 0.0
        if public == 0:
            return 1.0, (0.0, 1.0)
        if self._public(1.0)[0] >= public:
            low = 0.0
        for _ in range(50):
            if high - low < 1e-9:
                break
            middle = (low + high) / 2
            low, high = (middle, high) if self._public(math.exp(middle))[0] > public else (low, middle)
        at = (low + high) / 2
        mean, variance = self._public(math.exp(at))
        step = 1e-3
        slope = (self._public(math.exp(at - step))[0] - mean) / step
        sd = math.sqrt(max(mean, 1.0) + variance) / max(slope, 1e-300)
        return math.exp(at), (math.exp(at - 1.96 * sd), min(1.0, math.exp(at + 1.96 * sd)))

    def _distribution(self) -> pa.Table:
        n = self.depths.size
        p, share = self._sample.p / self.selection, self._sample.share
        mean, square = np.zeros(n + 1), np.zeros(n + 1)
        rows = max(1, _CELLS // (n + 2))
        for first in range(0, p.size, rows):
            part = slice(first, first + rows)
            values = self._levels(p[part], n) / p[part]
            mean += values @ share[part]
            square += values**2 @ share[part]
        variance = np.maximum(square - mean**2, 0.0) / self._sample.draws
        return pa.table(
            {
                "subjects": pa.array(np.arange(1, n + 1), pa.int32()),
                "observed": pa.array(self._observed.levels[1:]),
                "expected": pa.array(mean[1:]),
                "expected_sd": pa.array(np.sqrt(mean + variance)[1:]),
            }
        )
