"""The public function of the study."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from plait._version import __version__
from plait.errors import InvalidInput
from plait.formats.atomic import AtomicFile, output_errors
from plait.formats.checkpoints import KeptSteps
from plait.formats.layouts import AUTO, LayoutChoice
from plait.formats.sheets import SampleSheet, file_names, read_sample_sheet
from plait.run.executor import Executor, open_executor
from plait.vdj.calls import STATUS_MEANINGS, Ambiguity
from plait.vdj.convergence.answers import answers
from plait.vdj.convergence.claims import read_table, write_table
from plait.vdj.convergence.pgen_tables import ModelCalls, PgenColumns
from plait.vdj.convergence.public_clonotypes import PublicClonotypes
from plait.vdj.convergence.regression import PredictorSet, Regression, choose_predictors, regress
from plait.vdj.convergence.settings import (
    DEFAULT_MODEL,
    TAKEN,
    CountedSample,
    PlannedSample,
    StudySettings,
    count_plan,
    counted_summary,
    plan_sample,
)
from plait.vdj.convergence.stages import (
    DealtRows,
    Stages,
    StudyFolder,
    StudyProgress,
)
from plait.vdj.count_files import CountPlan, CountSummary
from plait.vdj.germline import GermlineSet, load_germline
from plait.vdj.germline.anchors import anchor_faults
from plait.vdj.germline.germline_set import Chain
from plait.vdj.model.pgen import ZERO_REASONS
from plait.vdj.model.recombination_model import RecombinationModel, gene_faults, load_model
from plait.vdj.models import PathModel
from plait.vdj.repertoires.sharing import SharingSettings

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
    layout: LayoutChoice = AUTO,
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
    sharing: SharingSettings | None = None,
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
        Layout of the files, as of `plait.vdj.sharing`.
    subject
        Column that tells subjects apart; by default ``subject_id``, or what the layout has for it;
        where a file has none, its name is its subject.
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
    sharing
        What makes a clonotype where it is told who shares what and what generation leads to expect, and what
        is near it (``key``, ``mismatches``, ``edits``). Path counts are always of junctions with V and J.
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
    alleles = germline if isinstance(germline, GermlineSet) else load_germline(germline, anchors=anchors)
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
        sharing=sharing or SharingSettings(),
    )
    _check_model(settings, recombination, alleles)
    samples = read_sample_sheet(sheet, taken=TAKEN)
    with nullcontext(executor) if executor is not None else open_executor(threads=threads) as workers:
        run = partial(_finished, samples, Path(output), settings, alleles, recombination, workers)
        return run(cache=cache, device=device, resume=resume, force=force, progress=progress)


def _finished(
    sheet: SampleSheet,
    output: Path,
    settings: StudySettings,
    germline: GermlineSet,
    model: RecombinationModel | None,
    executor: Executor,
    *,
    cache: _Path | None,
    device: str,
    resume: bool,
    force: bool,
    progress: Callable[[StudyProgress], None] | None,
) -> Study:
    # What can be known to be wrong before any file is read.
    sheet.check_covariates()
    plan = count_plan(settings, germline, device=device, executor=executor)
    planned = [plan_sample(sample, settings, plan) for sample in sheet.samples]
    unsaid = [one for one in planned if one.sample.subject is None and "subject" not in one.roles]
    file_names((one.sample.path for one in unsaid), "subject_id")
    # Absolute, for workers that have been started elsewhere.
    kept = None if cache is None else Path(cache).absolute()
    folder = StudyFolder(output.absolute(), counts=kept)
    run = _Run(settings, folder, executor, progress or (lambda state: None))
    # Open from start to end: it keeps another run out of the folder.
    with AtomicFile(folder.study) as file:
        folder.check_replaceable(resume=resume, force=force)
        folder.study.unlink(missing_ok=True)
        if not resume:
            folder.start_anew()
        facts = run.facts(sheet, planned, plan, germline, model, resume=resume)
        with output_errors(folder.study):
            text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
            file.stream.write(f"{text}\n".encode())
        folder.tidy()
    return Study(folder=output, facts=facts, tables=run.tables)


def _loaded(model: RecombinationModel | _Path | None) -> RecombinationModel | None:
    return model if model is None or isinstance(model, RecombinationModel) else load_model(model)


def _check_model(settings: StudySettings, model: RecombinationModel | None, germline: GermlineSet) -> None:
    if model is None:
        return
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A finished study.

    Attributes
    ----------
    folder
        Its folder.
    facts
        Content of study.json.
    tables
        File of each table, by its name.
    """

    folder: Path
    facts: Mapping[str, Any]
    tables: Mapping[str, Path]


class _Run(Stages):
    """One study: its stages, the tables that are written, and what is told of them."""

    tables: dict[str, Path]
    _regression = Regression()

    def facts(
        self,
        sheet: SampleSheet,
        planned: list[PlannedSample],
        plan: CountPlan,
        germline: GermlineSet,
        model: RecombinationModel | None,
        *,
        resume: bool,
    ) -> dict[str, Any]:
        """Do everything; the content of study.json."""
        settings = self.settings
        self.begin(resume=resume)
        samples = self.count(planned, plan)
        dealt = self.deal(samples, resume=resume)
        subjects = _subjects(sheet, dealt)
        predictors = None
        if settings.regression:
            predictors = choose_predictors(settings, dealt.totals.v_genes, dealt.totals.j_genes)
        pgen = None
        if model is not None:
            pgen = PgenColumns(model=model, calls=settings.model_calls, folder=self.folder.counts)
        duplicates = any(sample.duplicate_count is not None for sample in samples)
        kept = self.steps(samples, dealt.parts, subjects)
        grouped = self._kept(kept, lambda: self._grouped(dealt, predictors, subjects, duplicates, pgen))
        told = self._kept(kept, lambda: self._shared(samples, dealt, model))
        shared = PublicClonotypes(facts=told["facts"], tables=told["tables"])
        self._write_tables(grouped, dealt, shared)
        if predictors is not None:
            self._regress(grouped, predictors, kept)
        notes = [
            *_gene_notes(germline, model),
            *_remarks(samples, germline),
            *_notes(samples),
            *grouped["notes"],
        ]
        facts = {
            **self._figures(samples, dealt, grouped, notes),
            "subjects": len(subjects),
            "sharing": shared.facts,
            "provenance": plan.provenance.as_dict(),
        }
        facts["parameters"]["layout"] = ", ".join(sorted({one.layout for one in planned}))
        plain: dict[str, Any] = _without_nan({**facts, "answers": self._answers(facts)})
        return plain

    def _kept(self, kept: KeptSteps, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What a stage tells, also from a run that was stopped, if the files that it names are there."""

        def told() -> dict[str, Any]:
            before = set(self.seconds)
            found = make()
            return {**found, "seconds": {name: s for name, s in self.seconds.items() if name not in before}}

        def whole(told: dict[str, Any]) -> bool:
            return all((self.folder.path / name).is_file() for name in told["files"])

        found: dict[str, Any] = kept.facts(told, whole)
        self.seconds |= found["seconds"]
        return found

    def _grouped(
        self,
        dealt: DealtRows,
        predictors: PredictorSet | None,
        subjects: Mapping[str, Mapping[str, object]],
        duplicates: bool,
        pgen: PgenColumns | None,
    ) -> dict[str, Any]:
        """Group all rows, and write the tables behind the figures; what is needed after that."""
        found = self.group(dealt, predictors, duplicate_count=duplicates, pgen=pgen)
        self.report(StudyProgress("writing tables", 0, 1))
        with self.timed("tables"):
            for path in self.folder.tables.iterdir():
                path.unlink()
            tables = found.figures.write(self.folder.tables, subjects=subjects)
        files = [*self.folder.clonotypes.iterdir(), *map(self.folder.pairs, range(dealt.parts))]
        return {
            "clonotypes": found.clonotypes,
            "counted": found.counted,
            "shared": found.shared,
            "notes": found.figures.notes(),
            "designs": [path.name for path in found.designs],
            "tables": {name: path.name for name, path in tables.items()},
            "files": [
                os.path.relpath(path, self.folder.path) for path in (*files, *found.designs, *tables.values())
            ],
        }

    def _shared(
        self, samples: list[CountedSample], dealt: DealtRows, model: RecombinationModel | None
    ) -> dict[str, Any]:
        found = self.share(samples, dealt.parts, model)
        return {"facts": found.facts, "tables": found.tables, "files": [self.folder.sharing.name]}

    def _write_tables(self, grouped: Mapping[str, Any], dealt: DealtRows, shared: PublicClonotypes) -> None:
        self.tables = {name: self.folder.tables / file for name, file in grouped["tables"].items()}
        self.tables["statuses"] = _write_statuses(self.folder, dealt.totals.statuses)
        for name, (columns, rows) in shared.tables.items():
            self.tables[name] = self.folder.tables / f"{name}.tsv"
            write_table(self.tables[name], columns, rows)

    def _regress(self, grouped: Mapping[str, Any], predictors: PredictorSet, kept: KeptSteps) -> None:
        with self.timed("regression"):
            self._regression = regress(
                [self.folder.design / name for name in grouped["designs"]],
                predictors,
                self.settings,
                executor=self.executor,
                progress=lambda state: self.report(StudyProgress(state.stage, state.done, state.total)),
                kept=kept,
            )
        for name, rows in self._regression.tables.items():
            self.tables[name] = self.folder.tables / f"{name}.tsv"
            write_table(self.tables[name], self._regression.columns[name], rows)

    def _figures(
        self, samples: list[CountedSample], dealt: DealtRows, grouped: Mapping[str, Any], notes: list[str]
    ) -> dict[str, Any]:
        """Numbers of study.json, with how they were made."""
        return {
            "version": __version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "parameters": self.settings.as_dict(),
            "inputs": [_input_facts(sample) for sample in samples],
            "rows": dealt.totals.rows,
            "left_out": dict(dealt.totals.left_out),
            "clonotypes": grouped["clonotypes"],
            "counted_clonotypes": grouped["counted"],
            "shared_by": self.settings.shared_by,
            "shared_clonotypes": grouped["shared"],
            **self._pgen_facts(),
            "notes": notes,
            "regression": dict(self._regression.summary),
            "tables": {
                name: os.path.relpath(path, self.folder.path) for name, path in sorted(self.tables.items())
            },
            "timings": dict(self.seconds),
        }

    def _answers(self, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What the tables say."""
        tables = self._regression.tables
        groups = {row["predictor"]: row["group"] for row in tables.get("predictors", ())}
        return answers(
            facts,
            read_table(self.tables["correlations"]),
            groups=tables.get("group_comparison", ()),
            coefficients=[
                {**row, "group": groups[row["predictor"]]} for row in tables.get("coefficients", ())
            ],
            pgen=read_table(self.tables["pgen_comparison"]) if "pgen_comparison" in self.tables else (),
            pgen_groups=tables.get("pgen_groups", ()),
        )

    def _pgen_facts(self) -> dict[str, Any]:
        """How many clonotypes have which kind of Pgen; nothing where the study has none."""
        if "pgen_statuses" not in self.tables:
            return {}
        rows = read_table(self.tables["pgen_statuses"])
        found = {row["status"]: int(row["clonotypes"]) for row in rows}
        zero = sum(n for status, n in found.items() if status in ZERO_REASONS)
        positive = found.get("ok", 0)
        without = sum(found.values()) - zero - positive
        known = ("ok", *ZERO_REASONS)
        shared = sum(int(row["shared_clonotypes"]) for row in rows if row["status"] in known)
        numbers = {"above_zero": positive, "zero": zero, "without": without, "shared": shared}
        return {"pgen": {**numbers, "statuses": found}}


def _subjects(sheet: SampleSheet, dealt: DealtRows) -> dict[str, dict[str, object]]:
    """What is known of each subject before clonotypes are."""
    # A subject of the sheet whose files have no rows is one all the same.
    named = [
        set(found) | ({sample.subject} if sample.subject else set())
        for sample, found in zip(sheet.samples, dealt.subjects, strict=True)
    ]
    covariates = sheet.of_subjects([sorted(names) for names in named])
    files: Counter[str] = Counter(name for names in named for name in names)
    return {
        subject: {
            "files": files[subject],
            "rows_left_out": dealt.totals.left_out_of[subject],
            **{name: values.get(name, "") for name in sheet.covariates},
        }
        for subject, values in covariates.items()
    }


def _write_statuses(folder: StudyFolder, statuses: Counter[str]) -> Path:
    path = folder.tables / "statuses.tsv"
    rows = [
        {"status": status, "rows": statuses[status], "meaning": STATUS_MEANINGS.get(status, "")}
        for status in sorted(statuses, key=lambda status: (-statuses[status], status))
    ]
    write_table(path, ["status", "rows", "meaning"], rows)
    return path


def _input_facts(sample: CountedSample) -> dict[str, Any]:
    return {
        "file": str(sample.source),
        "digest": sample.digest,
        "rows": sample.rows,
        "subject": sample.subject,
        "subject_column": sample.subject_column,
        "counts": str(sample.counts),
        "counts_reused": sample.reused,
    }


def _without_nan(value: Any) -> Any:
    """What JSON has no word for is missing."""
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _remarks(samples: list[CountedSample], germline: GermlineSet) -> list[str]:
    """What is to be said of all rows together: foreign genes, and causes of zeros."""
    whole = CountSummary()
    for sample in samples:
        one = counted_summary(sample)
        if one is not None:
            whole.merge(one)
    return whole.remarks(germline)


def _gene_notes(germline: GermlineSet, model: RecombinationModel | None) -> list[str]:
    """What is wrong with genes, and what has been mended."""
    found = [(f"germline set {germline.name}", anchor_faults(germline.alleles()))]
    notes = [
        f"In the germline set {germline.name}, {note}."
        for note in germline.notes
        if note.startswith("repaired ")
    ]
    if model is not None:
        found.append((f"model {model.name}", gene_faults(model)))
        repaired = model.provenance.get("repaired_anchors", {})
        notes += [f"In the model {model.name}, repaired {name}: {what}." for name, what in repaired.items()]
    return notes + [
        f"In the {whose}, {name} may have a wrong conserved codon ({fault}): its rows may come out wrong."
        for whose, faults in found
        for name, fault in faults.items()
    ]


def _notes(samples: list[CountedSample]) -> list[str]:
    """What looks odd about the input."""
    first: dict[str, Path] = {}
    notes = []
    for sample in samples:
        known = first.setdefault(sample.digest, sample.source)
        if known is not sample.source and sample.rows:
            notes.append(f"{str(sample.source)!r} has the same content as {str(known)!r}.")
    return notes
