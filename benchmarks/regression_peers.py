"""The same regressions by scikit-learn and by R's glmnet."""

from __future__ import annotations

import shutil
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from plait.run.executor import LocalExecutor
from plait.stats.adaptive_lasso import AdaptiveLassoFit, fit_adaptive_lasso
from plait.stats.design_file import DesignFile, DesignWriter
from plait.stats.path_fits import AdaptiveLassoSettings

__all__ = ["agreement"]

_PLACES = (0, 9, 29, 59, 99)
_SCRIPT = """
suppressMessages(library(glmnet))
folder <- commandArgs(TRUE)[1]
n <- as.integer(commandArgs(TRUE)[2])
read <- function(name) readBin(file.path(folder, name), "double", n = 1e9)
x <- matrix(read("x.bin"), nrow = n); y <- read("y.bin"); w <- read("w.bin"); lambda <- read("lambda.bin")
begin <- proc.time()
fit <- glmnet(x, y, family = "binomial", lambda = lambda * mean(w), penalty.factor = w, standardize = FALSE,
              thresh = 1e-20, maxit = 1e8)
used <- proc.time() - begin
cat(used[3], length(fit$lambda), as.character(packageVersion("glmnet")), "\\n")
writeBin(as.vector(rbind(fit$a0, as.matrix(fit$beta))), file.path(folder, "beta.bin"))
"""


def agreement(
    values: NDArray[np.float64], outcome: NDArray[np.bool_], folder: Path, threads: int
) -> Iterator[str]:
    """Largest differences of coefficients on the whole path, and how long each one takes."""
    path = folder / "agreement.design"
    with DesignWriter(path, [f"x{k}" for k in range(values.shape[1])]) as writer:
        writer.write(values, outcome)
    begin = time.perf_counter()
    fit = fit_adaptive_lasso(
        DesignFile(path), AdaptiveLassoSettings(halves=0), executor=LocalExecutor(threads)
    )
    yield f"   {len(values):,} rows; plait: {time.perf_counter() - begin:.1f} s for all rows and 5 folds"
    if fit.notes:
        raise AssertionError(f"predictors were dropped: {dict(fit.notes)}")
    standard = (values - fit.mean) / fit.sd
    yield from by_glmnet(fit, standard, outcome, folder)
    yield from by_scikit_learn(fit, standard, outcome)


def by_glmnet(
    fit: AdaptiveLassoFit, standard: NDArray[np.float64], outcome: NDArray[np.bool_], folder: Path
) -> Iterator[str]:
    """The path of all rows by glmnet."""
    program = shutil.which("Rscript")
    if program is None:
        yield "   Rscript is not there: glmnet left out"
        return
    for name, array in (("x", standard.T), ("y", outcome), ("w", fit.weights), ("lambda", fit.lambdas)):
        np.ascontiguousarray(array, dtype=np.float64).tofile(folder / f"{name}.bin")
    script = folder / "path.R"
    script.write_text(_SCRIPT)
    done = subprocess.run([program, script, folder, str(len(outcome))], capture_output=True, text=True)
    if done.returncode:
        yield f"   glmnet left out: {done.stderr.strip().splitlines()[-1]}"
        return
    seconds, models, version = done.stdout.split()
    theirs = np.fromfile(folder / "beta.bin").reshape(int(models), -1)
    ours = np.column_stack([fit.intercepts, fit.coefficients])[: int(models)]
    yield (
        f"   glmnet {version}: {float(seconds):.1f} s for all rows, {models} penalties; largest difference "
        f"of any coefficient {np.abs(theirs - ours).max():.1e}"
    )


def by_scikit_learn(
    fit: AdaptiveLassoFit, standard: NDArray[np.float64], outcome: NDArray[np.bool_]
) -> Iterator[str]:
    """Some places of the path, and the unpenalised fit, by scikit-learn."""
    import sklearn
    from sklearn.linear_model import LogisticRegression

    begin = time.perf_counter()
    plain = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(standard, outcome)
    worst = [float(np.abs(plain.coef_[0] - fit.mle).max())]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in _PLACES:
            model = LogisticRegression(
                C=1.0 / (len(outcome) * fit.lambdas[k]), l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=5000
            ).fit(standard / fit.weights, outcome)
            worst.append(float(np.abs(model.coef_[0] / fit.weights - fit.coefficients[k]).max()))
    told = ", ".join(f"{error:.1e}" for error in worst[1:])
    yield (
        f"   scikit-learn {sklearn.__version__}: {time.perf_counter() - begin:.1f} s; largest differences: "
        f"unpenalised {worst[0]:.1e}, penalties number {', '.join(map(str, _PLACES))}: {told}"
    )
