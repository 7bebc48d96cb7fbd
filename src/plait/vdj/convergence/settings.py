"""What a study computes: everything that its results depend on, besides the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from plait.errors import InvalidInput
from plait.vdj.germline.germline_set import Chain
from plait.vdj.models import PathModel

#: Counted with by default: pi 4 and nu 10, and all smaller limits.
DEFAULT_MODEL = PathModel(pi=4, nu=10, sweep_pi=tuple(range(5)), sweep_nu=tuple(range(11)))
#: Models (pi, nu) whose path counts are predictors by default: all that is allowed, no P, and few N.
DEFAULT_PREDICTOR_MODELS = ((4, 10), (0, 10), (4, 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """Parameters of a study, as those of `plait.vdj.study`, resolved; picklable.

    `germline` is a name, file or folder, `anchors` a CSV that replaces its anchors; without a
    `recombination_model` (a name) there are no generation probabilities. `overflow`: ``"null"``, whole
    numbers, with a status where they do not fit; ``"float"``. InvalidInput if one is out of range, or a
    predictor's model is not counted.
    """

    germline: str
    chain: Chain
    anchors: str | None = None
    model: PathModel = DEFAULT_MODEL
    ambiguous: Literal["first", "all", "fail"] = "first"
    overflow: Literal["null", "float"] = "null"
    layout: str = "airr"
    subject: str | None = None
    shared_by: int = 2
    predictor_models: tuple[tuple[int, int], ...] = DEFAULT_PREDICTOR_MODELS
    regression: bool = True
    lambdas: int = 100
    folds: int = 5
    halves: int = 50
    seed: int = 0
    recombination_model: str | None = None
    model_digest: str | None = None
    model_calls: Literal["use", "ignore"] = "use"
    model_note: str = ""

    def __post_init__(self) -> None:
        """Check every parameter."""
        if self.model.name != "dp2":
            raise InvalidInput(
                "model", found=repr(self.model.name), expected="'dp2', whose limits can be swept"
            )
        if self.overflow not in ("null", "float"):
            raise InvalidInput("overflow", found=repr(self.overflow), expected="'null' or 'float'")
        if self.model_calls not in ("use", "ignore"):
            raise InvalidInput("model_calls", found=repr(self.model_calls), expected="'use' or 'ignore'")
        for name, least, most in _RANGES:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidInput(name, found=repr(value), expected=f"a whole number from {least} to {most}")
        for pi, nu in self.predictor_models:
            if (pi, nu) not in self.counted_models:
                raise InvalidInput(
                    "models",
                    found=f"pi {pi}, nu {nu}",
                    expected="models of the sweep, or the single one",
                    hint="widen --sweep-pi and --sweep-nu, or choose others with --models",
                )
        if len(set(self.predictor_models)) != len(self.predictor_models):
            raise InvalidInput("models", found="a model twice", expected="every model once")

    @property
    def with_d(self) -> bool:
        """Whether there is a D gene."""
        return self.chain != "vj"

    @property
    def sweep_models(self) -> tuple[tuple[int, int], ...]:
        """Models (pi, nu) in the order of the items of `path_count_sweep`: pi outer, nu inner."""
        if not self.model.is_sweep:
            return ()
        pis, nus = self.model.axes
        return tuple((pi, nu) for pi in pis for nu in nus)

    @property
    def counted_models(self) -> tuple[tuple[int, int], ...]:
        """The single model, then those of the sweep that differ from it."""
        base = (self.model.pi, self.model.nu)
        return (base, *(model for model in self.sweep_models if model != base))

    @property
    def with_pgen(self) -> bool:
        """Whether there are generation probabilities."""
        return self.recombination_model is not None

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        found = {
            "germline": self.germline,
            "anchors": self.anchors,
            "chain": self.chain,
            **self.model.as_dict(),
            "ambiguous": self.ambiguous,
            "overflow": self.overflow,
            "layout": self.layout,
            "subject": self.subject,
            "shared_by": self.shared_by,
            "predictor_models": [list(model) for model in self.predictor_models],
            "regression": self.regression,
            "lambdas": self.lambdas,
            "folds": self.folds,
            "halves": self.halves,
            "seed": self.seed,
        }
        if self.with_pgen:
            found |= {
                "recombination_model": self.recombination_model,
                "model_digest": self.model_digest,
                "model_calls": self.model_calls,
                "model_note": self.model_note,
            }
        return found


_RANGES = (
    ("shared_by", 2, 1_000_000),
    ("lambdas", 2, 10_000),
    ("folds", 2, 100),
    ("halves", 0, 1000),
    ("seed", 0, 2**63 - 1),
)
