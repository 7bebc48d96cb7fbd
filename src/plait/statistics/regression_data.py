"""What every regression on a design begins with: moments, dropped predictors, folds, a sample."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from plait.errors import InvalidInput
from plait.executors.local import LocalExecutor
from plait.executors.protocol import Executor
from plait.settings import thread_count
from plait.statistics.collinearity import Collinearity, find_collinearity
from plait.statistics.design_file import DesignFile
from plait.statistics.model_passes import NO_ROWS
from plait.statistics.path_fits import LogisticFits, PathFit
from plait.statistics.regression_settings import AdaptiveLassoSettings, FitProgress
from plait.statistics.row_draws import ALL_ROWS, RowDraws
from plait.statistics.row_sample import draw_sample
from plait.statistics.sample_paths import PathSpec
from plait.statistics.standard_rows import Moments, StandardRows, find_moments

__all__ = ["EVERYWHERE", "RegressionData", "Unpenalised", "prepare_regression", "running_executor"]

#: Kinds of rows of a model that is fitted on all of them and judged on none.
EVERYWHERE = (ALL_ROWS, NO_ROWS)
_NO_PENALTY = np.zeros(1)


class Unpenalised(NamedTuple):
    """Fits without a LASSO penalty.

    Attributes
    ----------
    fits
        Maximum likelihood fits; where there is no finite one, with a small penalty of the squares.
    finite
        Whether the maximum likelihood estimate is finite.
    away
        The last step of the search for it; float64, shape (width,).
    """

    fits: list[PathFit]
    finite: list[bool]
    away: list[NDArray[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionData:
    """A design that is ready for fits.

    Attributes
    ----------
    design, settings
        As given.
    moments
        Of all predictors.
    collinearity
        What is dropped and why.
    fits
        Fits models; it has the rows, the folds and the sample.
    """

    design: DesignFile
    settings: AdaptiveLassoSettings
    moments: Moments
    collinearity: Collinearity
    fits: LogisticFits

    @property
    def kept(self) -> NDArray[np.int64]:
        """Numbers of the predictors that are kept."""
        return self.collinearity.kept

    @property
    def fold_kinds(self) -> list[tuple[int, int]]:
        """Kinds of the rows of each fold's models, fitted and judged; folds without rows are left out."""
        draws, counts = self.fits.draws, self.fits.counts
        kinds = [(draws.outside(k), draws.inside(k)) for k in range(self.settings.folds)]
        return [pair for pair in kinds if counts[list(pair), 0].all()]

    def penalties(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Penalties of all coefficients of a model from those of the kept predictors."""
        found = np.full(self.fits.rows.width, np.inf)
        found[0] = 0.0
        found[1 : 1 + self.kept.size] = shares
        return found

    def spec(
        self,
        kinds: tuple[int, int],
        shares: NDArray[np.float64],
        lambdas: NDArray[np.float64] = _NO_PENALTY,
        ridge: float = 0.0,
    ) -> PathSpec:
        """A path that begins with the share of events among its rows; fixed there if all are the same."""
        rows, events = self.fits.counts[kinds[0]].tolist()
        fixed = events in (0, rows)
        if fixed:
            events, rows = events + 0.5, rows + 1
        start = np.zeros(self.fits.rows.width)
        start[0] = np.log(events / (rows - events))
        return PathSpec(kinds[0], kinds[1], self.penalties(shares), lambdas, ridge, start, fixed)

    def unpenalised(
        self, models: Sequence[tuple[tuple[int, int], NDArray[np.float64]]], what: str
    ) -> Unpenalised:
        """Maximum likelihood fits, or the next best.

        Parameters
        ----------
        models
            Of each the kinds of its rows, and 0 for a predictor in the model, infinite for another.
        what
            What is fitted, for the progress.
        """
        specs = [self.spec(kinds, shares) for kinds, shares in models]
        found = self.fits.fit(specs, what)
        finite = [bool(fit.settled.all()) and not spec.fixed for fit, spec in zip(found, specs, strict=True)]
        away = [fit.step[0] for fit in found]
        again = [k for k, fine in enumerate(finite) if not fine]
        ridge = self.settings.ridge
        others = self.fits.fit(
            [self.spec(*models[k], ridge=ridge) for k in again], f"{what}, with squares penalised"
        )
        for k, fit in zip(again, others, strict=True):
            found[k] = fit
        return Unpenalised(found, finite, away)


def prepare_regression(
    design: DesignFile,
    settings: AdaptiveLassoSettings,
    executor: Executor,
    progress: Callable[[FitProgress], None],
) -> RegressionData:
    """Read the design three times: for its means, its covariances, and a sample.

    Parameters
    ----------
    design
        Predictors and outcomes.
    settings
        Seed, folds, halves and tolerance.
    executor
        Where passes run.
    progress
        Told of every batch.

    Raises
    ------
    InvalidInput
        If there are no rows, all of them have the same outcome, or no predictor varies.
    """
    if not 0 < design.events < design.rows:
        raise InvalidInput(
            "outcome",
            found=f"{design.events} events in {design.rows} rows",
            expected="at least one row with the event and one without",
        )
    if not (design.high > design.low).any():
        raise InvalidInput(
            "predictors", found="none that has more than one value", expected="at least one that varies"
        )
    n = design.rows
    moments = find_moments(
        design, executor, lambda done: progress(FitProgress("means and correlations", done, 2 * n))
    )
    collinearity = find_collinearity(moments.correlation, design.predictors)
    kept = collinearity.kept
    rows = StandardRows(design, kept, moments.mean[kept], 1.0 / moments.sd[kept])
    draws = RowDraws(settings.seed, settings.folds, settings.halves)
    sample, counts = draw_sample(
        rows, draws, executor, lambda done: progress(FitProgress("drawing a sample", done, n))
    )
    fits = LogisticFits(
        rows=rows,
        draws=draws,
        sample=sample,
        counts=counts,
        executor=executor,
        tolerance=settings.tolerance,
        progress=progress,
    )
    return RegressionData(
        design=design, settings=settings, moments=moments, collinearity=collinearity, fits=fits
    )


@contextmanager
def running_executor(executor: Executor | None, threads: int | None) -> Generator[Executor, None, None]:
    """The executor that was given, or threads of this process.

    Parameters
    ----------
    executor
        None for threads.
    threads
        Their number; None for as many as the settings say.

    Yields
    ------
    Executor
        To run passes on.
    """
    yield executor if executor is not None else LocalExecutor(thread_count() if threads is None else threads)
