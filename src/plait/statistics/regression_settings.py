"""What a regression is asked for, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plait.errors import InvalidInput

__all__ = ["CHOICES", "AdaptiveLassoSettings", "FitProgress"]

#: Rules by which one lambda of the path is chosen.
CHOICES: Final = ("cv_min", "cv_1se", "bic")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveLassoSettings:
    """Settings of an adaptive LASSO.

    Attributes
    ----------
    lambdas
        Number of penalties on the path, from the smallest one at which no predictor is in the model downwards
        in equal steps of the logarithm.
    lambda_ratio
        Last penalty as a share of the first.
    gamma
        Power of the adaptive weights ``1 / |initial estimate| ** gamma``; 0 gives the plain LASSO.
    folds
        Folds of the cross-validation, at least 2.
    halves
        Random halves of the rows in which the choice of predictors is repeated; 0 for none. They come in
        pairs, a half and the rows that are not in it.
    stability_at
        Rule that picks the penalty of the halves: ``"cv_min"``, ``"cv_1se"`` or ``"bic"``.
    seed
        Of the folds and halves.
    ridge
        Penalty of the squares where a maximum likelihood estimate does not exist and one is needed all the
        same, per row and in units of standardised predictors.
    tolerance
        A fit is done when the step that the exact gradient still asks for changes no standardised
        coefficient by more than this.
    confidence
        Level of all intervals.
    """

    lambdas: int = 100
    lambda_ratio: float = 1e-4
    gamma: float = 1.0
    folds: int = 5
    halves: int = 50
    stability_at: str = "cv_1se"
    seed: int = 0
    ridge: float = 1e-4
    tolerance: float = 1e-7
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name, low, high in (
            ("lambdas", 1, 10_000),
            ("folds", 2, 100),
            ("halves", 0, 1000),
            ("seed", 0, 2**63 - 1),
        ):
            value = getattr(self, name)
            if not (isinstance(value, int) and low <= value <= high):
                raise InvalidInput(name, found=repr(value), expected=f"a whole number from {low} to {high}")
        for name, least, most in (
            ("lambda_ratio", 1e-12, 0.999),
            ("gamma", 0.0, 10.0),
            ("ridge", 1e-12, 1.0),
            ("tolerance", 1e-12, 1e-2),
            ("confidence", 0.5, 0.9999),
        ):
            number = getattr(self, name)
            if not least <= number <= most:
                raise InvalidInput(name, found=repr(number), expected=f"a number from {least:g} to {most:g}")
        if self.stability_at not in CHOICES:
            raise InvalidInput(
                "stability_at", found=repr(self.stability_at), expected=f"one of {', '.join(CHOICES)}"
            )


@dataclass(frozen=True, slots=True)
class FitProgress:
    """How far a regression is.

    Attributes
    ----------
    stage
        What is being done, in a few words.
    done, total
        Models of this stage that are fitted, and all of them; or rows.
    """

    stage: str
    done: int
    total: int
