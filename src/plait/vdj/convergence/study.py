"""The public function of the study."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal

from plait.errors import InvalidInput
from plait.run.choice import open_executor
from plait.run.executor import Executor
from plait.vdj.calls import Ambiguity
from plait.vdj.convergence.pgen_tables import ModelCalls
from plait.vdj.convergence.run import Study, run_study
from plait.vdj.convergence.sample_sheet import SampleSheet, read_sample_sheet
from plait.vdj.convergence.settings import DEFAULT_MODEL, StudySettings
from plait.vdj.convergence.stages import StudyProgress
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.germline.germline_set import Chain
from plait.vdj.model.model_files import load_model
from plait.vdj.model.recombination_model import RecombinationModel
from plait.vdj.models import PathModel

_Path = str | os.PathLike[str]


def study(
    sheet: _Path,
    output: _Path,
    *,
    germline: GermlineSet | _Path,
    anchors: _Path | None = None,
    model: PathModel = DEFAULT_MODEL,
    chain: Chain | Literal["auto"] = "auto",
    ambiguous: Ambiguity = "first",
    overflow: Literal["null", "float"] = "null",
    layout: str = "airr",
    subject: str | None = None,
    shared_by: int = 2,
    predictor_models: Sequence[tuple[int, int]] | None = None,
    regression: bool = True,
    lambdas: int = 100,
    folds: int = 5,
    halves: int = 50,
    seed: int = 0,
    recombination_model: RecombinationModel | _Path | None = None,
    model_calls: ModelCalls = "use",
    model_note: str = "",
    cache: _Path | None = None,
    device: str = "auto",
    executor: Executor | None = None,
    threads: int | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Callable[[StudyProgress], None] | None = None,
) -> Study:
    """Study convergent recombination, from files of many subjects to tables and answers.

    Is what can be made in more ways found in more individuals, and more often? Paths are counted for every
    file of a sample sheet; rows are grouped to clonotypes (junction, V gene, J gene) and told by how many
    subjects share them; sharing and frequency are correlated with path counts and with what was inserted,
    and a regression says what predicts sharing. Memory does not grow with the number of rows.

    Parameters
    ----------
    sheet
        CSV or TSV with a column ``file``, and if wanted ``subject_id`` and covariates. Files are relative to
        its folder: rearrangements as for `plait vdj count`, or outputs of it. Where ``subject_id`` is blank,
        a column of the file tells subjects apart.
    output
        Folder of the results: study.json, tables, clonotypes and path counts.
    germline
        A germline set, or the name or path of one.
    anchors
        CSV of anchors that replace those of the germline set.
    model
        Model ``dp2`` with its sweep; by default pi 4 and nu 10, and all smaller limits.
    chain, ambiguous, overflow, device
        As for `count_paths`.
    layout
        Column layout of the files.
    subject
        Column that tells subjects apart; by default that of the layout.
    shared_by
        A clonotype is shared if so many subjects have it.
    predictor_models
        Models (pi, nu) whose path counts are predictors; by default the single model, the one without P
        nucleotides, and the one with at most 4 N nucleotides, as far as they are counted.
    regression
        Whether to fit the regression.
    lambdas, folds, halves, seed
        Penalties on its path, parts of the cross-validation, random halves for stability, and the seed.
    recombination_model
        A model of recombination, or the name or path of one (see `plait.vdj.model.load_model`): generation
        probabilities of all clonotypes are computed and compared with path counts. By default there are none.
    model_calls
        ``"use"``: the probability that a junction is made with the V and J gene of its clonotype, as path
        counts are of the genes that are called; ``"ignore"``: with any genes of the model.
    model_note
        What is to be known of the model wherever its results are told; for example, from which data it is.
    cache
        Folder of path counts that several studies share; by default ``counts`` in the output.
    executor
        Where the work is done; by default `threads` threads of this process.
    threads
        Number of threads; by default the processors that this process may use.
    resume
        Go on with what a run that was stopped has done.
    force
        Replace an earlier study in the folder, but for its path counts.
    progress
        Told how far it is.

    Returns
    -------
    Study
        What was found, and where the tables are.

    Raises
    ------
    InvalidInput
        If an argument is wrong, or the folder holds something else or an earlier study.
    FormatError
        If the sheet or a file is not what it should be.
    """
    alleles = germline
    if not isinstance(alleles, GermlineSet):
        alleles = load_germline(alleles, anchors=anchors)
    recombination = _loaded(recombination_model)
    settings = StudySettings(
        germline=alleles.name,
        anchors=None if anchors is None else os.fspath(anchors),
        chain=alleles.chain if chain == "auto" else chain,
        model=model,
        ambiguous=ambiguous,
        overflow=overflow,
        layout=layout,
        subject=subject,
        shared_by=shared_by,
        predictor_models=_predictor_models(model, predictor_models),
        regression=regression,
        lambdas=lambdas,
        folds=folds,
        halves=halves,
        seed=seed,
        recombination_model=None if recombination is None else recombination.name,
        model_digest=None if recombination is None else recombination.digest,
        model_calls=model_calls,
        model_note=model_note,
    )
    if recombination is not None:
        _check_model(settings, recombination, alleles)
    others = {"cache": cache, "device": device, "resume": resume, "force": force, "progress": progress}
    sheets = read_sample_sheet(sheet)
    return _run_on(executor, threads, sheets, output, settings, alleles, recombination, others)


def _run_on(
    executor: Executor | None,
    threads: int | None,
    samples: SampleSheet,
    output: _Path,
    settings: StudySettings,
    germline: GermlineSet,
    model: RecombinationModel | None,
    others: Mapping[str, Any],
) -> Study:
    with nullcontext(executor) if executor is not None else open_executor(threads=threads) as workers:
        return run_study(samples, output, settings, germline, executor=workers, model=model, **others)


def _loaded(model: RecombinationModel | _Path | None) -> RecombinationModel | None:
    return model if model is None or isinstance(model, RecombinationModel) else load_model(model)


def _check_model(settings: StudySettings, model: RecombinationModel, germline: GermlineSet) -> None:
    if (model.chain != "vj") != settings.with_d:
        raise InvalidInput(
            "model",
            found=f"{model.name!r}, a model of {'V-J' if model.chain == 'vj' else 'V-D-J'} joining",
            expected=f"one of {'V-D-J' if settings.with_d else 'V-J'} joining, as in the germline set",
            hint="choose the model of the chain that is studied",
        )
    for kind, genes, others in (("V", model.v, germline.v), ("J", model.j, germline.j)):
        if settings.model_calls == "use" and not {g.gene for g in genes} & {g.gene for g in others}:
            raise InvalidInput(
                "model",
                found=f"{model.name!r}, which has none of the {kind} genes of {germline.name!r}",
                expected="a model with genes of the germline set",
                hint="choose the model of the species and chain that are studied",
            )


def _predictor_models(
    model: PathModel, chosen: Sequence[tuple[int, int]] | None
) -> tuple[tuple[int, int], ...]:
    if chosen is not None:
        return tuple((pi, nu) for pi, nu in chosen)
    base = (model.pi, model.nu)
    wanted = [base, (0, model.nu), (model.pi, 4)]
    counted = {base}
    if model.is_sweep:
        counted |= {(pi, nu) for pi in model.axes[0] for nu in model.axes[1]}
    return tuple(dict.fromkeys(pair for pair in wanted if pair in counted))
