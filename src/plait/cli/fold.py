"""``plait fold``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from plait.cli.options import (
    DeviceOption,
    FurtherTable,
    OptionalTable,
    RowProgress,
    ThreadsOption,
    WholeNumber,
    files_of,
    say,
)
from plait.errors import InvalidInput, whole
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.folding.folds import FoldSettings
    from plait.folding.inputs import Inputs

app = App(name="fold", help_format="markdown", version_flags=[])

# Written out here, so that help and checks of options need not load what the words mean.
FormatOption = Literal["text", "tsv", "jsonl", "parquet"]
Flag = Annotated[bool, Parameter(negative="")]


@Parameter(name="*", group="What is known")
@dataclass(frozen=True, kw_only=True)
class ShapeOptions:
    """How reactive bases are.

    Attributes
    ----------
    shape
        File of SHAPE reactivities: lines of a base, maybe its letter, and a number or NA, below ``>name``
        where there are several sequences.
    shape_slope
        What a logarithm of a reactivity and one costs a side of a stack, in kcal/mol.
    shape_intercept
        What it costs besides.
    """

    shape: Path | None = None
    shape_slope: float = 1.8
    shape_intercept: float = -0.6


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class KnownOptions:
    """What is known of the sequences beforehand.

    Attributes
    ----------
    constraint
        Below each sequence may stand a constraint, of the signs ``. | x < > ( )`` as for RNAfold.
    constraint_file
        File of constraints, one for each sequence in their order.
    enforce
        Bases with ``|``, and pairs in brackets, do pair.
    """

    constraint: Flag = False
    constraint_file: Path | None = None
    enforce: Flag = False

    def inputs(self, sequences: str | Path, shape: Path | None) -> Inputs:
        """The files they name."""
        from plait.folding.inputs import Inputs

        if self.constraint and self.constraint_file is not None:
            raise InvalidInput("--constraint-file", found="--constraint, too", expected="one of both")
        if self.enforce and not self.constraint and self.constraint_file is None:
            raise InvalidInput(
                "--enforce", found="no constraints", expected="--constraint or --constraint-file"
            )
        return Inputs(sequences, self.constraint, self.constraint_file, shape)


_KNOWN, _SHAPE = KnownOptions(), ShapeOptions()


@Parameter(name="*", group="Energies")
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What structures are weighed by.

    Attributes
    ----------
    parameters
        File of energy parameters in ViennaRNA's format 2.0, or of CONTRAfold's; contrafold for those that
        come with plait (a file called so is written ./contrafold); otherwise those of Turner, 2004.
    temperature
        Degrees Celsius; other than 37 needs a file of parameters with enthalpies.
    dangles
        2: bases beside stems stack on them; 0: they do not. CONTRAfold's scores have them: 2 alone.
    max_span
        Most bases from one of a pair to the other, both included.
    """

    parameters: str | None = None
    temperature: float = 37.0
    dangles: WholeNumber = 2
    max_span: WholeNumber | None = None

    def settings(self, shape: ShapeOptions, *, enforce: bool = False) -> FoldSettings:
        """The settings they ask for."""
        from plait.folding.energies import Model
        from plait.folding.folds import FoldSettings
        from plait.folding.parameters import Parameters

        if self.max_span is not None:
            whole("--max-span", self.max_span, 1)
        if shape.shape is None and shape != _SHAPE:
            raise InvalidInput("--shape-slope, --shape-intercept", found="no --shape", expected="its file")
        if self.parameters is None:
            energies = Parameters.standard()
        elif self.parameters == "contrafold":
            energies = Parameters.contrafold()
        else:
            energies = Parameters.read(self.parameters)
        model = Model(energies, self.temperature, self.dangles)
        energies.at(self.temperature)
        return FoldSettings(model, self.max_span, enforce, shape.shape_slope, shape.shape_intercept)


_MODEL = ModelOptions()


@app.default
def fold(
    sequences: Path,
    /,
    *,
    output: OptionalTable = None,
    format: FormatOption | None = None,
    probabilities: Flag = False,
    centroid: Flag = False,
    mea: Flag = False,
    gamma: float | None = None,
    samples: WholeNumber = 0,
    seed: WholeNumber = 0,
    suboptimal: float | None = None,
    most: WholeNumber = 100_000,
    pairs: FurtherTable = None,
    plot: Path | None = None,
    known: KnownOptions = _KNOWN,
    shape: ShapeOptions = _SHAPE,
    model: ModelOptions = _MODEL,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Fold RNA: a structure of least energy for every sequence, and what all structures together say.

    Parameters
    ----------
    sequences
        FASTA, or a sequence a line; plain, .gz or .zst; - for standard input. T counts as U. A file called
        eval is written ./eval.
    output
        The file to write: .txt or .db (as RNAfold writes), .tsv, .jsonl (each also .gz or .zst) or .parquet;
        otherwise, and for -, standard output.
    format
        What to write, where the name of the output does not say it.
    probabilities
        Sum over all structures: energy of the ensemble, what each base mostly does, centroid and diversity.
    centroid
        The same as --probabilities.
    mea
        The structure of which most is expected to be right, too.
    gamma
        What a pair counts for with --mea, beside its two bases unpaired; otherwise 1, or 6 with CONTRAfold's.
    samples
        Draw so many structures, each as often as it is probable.
    seed
        Which ones are drawn.
    suboptimal
        All structures of at most so many kcal/mol more than the least energy (nats, with CONTRAfold's).
    most
        Suboptimal structures of a sequence that are written, the best ones.
    pairs
        Table to write (.tsv or .parquet): every pair that is at least 1e-6 probable, bases from 1 on.
    plot
        Folder for drawings of each sequence: structure, pairs and mountain plot as SVG, and a page with all.
    known
        What is known of the sequences.
    shape
        How reactive bases are.
    model
        What structures are weighed by.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto, cpu, or cuda: best structures, sums and probabilities of pairs; reference is plain Python.
    """
    from plait.folding.files import FoldRequest, fold_file
    from plait.folding.inputs import survey
    from plait.reports.plain_text import plural
    from plait.settings import thread_count

    _check(mea, gamma, suboptimal, samples=samples, seed=seed, most=most)
    of_pairs = probabilities or centroid or mea or plot is not None or pairs is not None
    request = FoldRequest(of_pairs, mea, samples, seed, suboptimal, most, plot is not None, gamma)
    settings = model.settings(shape, enforce=known.enforce)
    start = work_time()
    with files_of([sequences]) as (path,), RowProgress("folding", "sequences") as progress:
        inputs = known.inputs(path, shape.shape)
        workers = max(threads or thread_count(), 1)
        count, note = survey(inputs, settings, ensemble=request.ensemble, samples=samples, threads=workers)
        if note:
            say(note)
        done = fold_file(
            inputs,
            output,
            settings,
            request,
            format=format,
            pairs=pairs,
            drawings=plot,
            threads=threads,
            each=max(workers // max(count, 1), 1),
            device=device,
            progress=progress,
        )
    if done.cut:
        told = f"{plural(done.cut, 'sequence')} with more suboptimal structures"
        say(f"{told}: the best {most:,} are written; see --most")
    say(f"{plural(done.sequences, 'sequence')} in {work_time() - start:.2f} s; {settings.model.name}")


def _check(mea: bool, gamma: float | None, suboptimal: float | None, **counts: int) -> None:
    if suboptimal is not None and not 0 <= suboptimal < 1000:
        raise InvalidInput("--suboptimal", found=suboptimal, expected="a number from 0 to 1000")
    if gamma is not None and not (mea and 0 < gamma < 1e6):
        raise InvalidInput("--gamma", found=gamma, expected="a number above 0" if mea else "--mea, too")
    for name, value in counts.items():
        whole(f"--{name}", value, int(name == "most"))


@app.command
def eval(
    structures: Path,
    /,
    *,
    shape: ShapeOptions = _SHAPE,
    model: ModelOptions = _MODEL,
) -> None:
    """Explain the energies of structures, loop by loop.

    Parameters
    ----------
    structures
        As RNAfold writes: header if any, sequence, structure in brackets; - for standard input.
    shape
        How reactive bases are.
    model
        What structures are weighed by.
    """
    from plait.folding.inputs import Inputs, evaluated

    settings = model.settings(shape)
    with files_of([structures]) as (path,):
        for name, sequence, structure, loops in evaluated(Inputs(path, shape=shape.shape), settings):
            if name is not None:
                print(f">{name}")
            for loop in loops:
                pairs = loop.inner if loop.closing is None else [loop.closing, *loop.inner]
                told = " ".join(f"{sequence[i]}{i + 1}-{sequence[j]}{j + 1}" for i, j in pairs)
                print(f"{loop.kind:<10} {loop.energy:8.2f}  {told}".rstrip())
            print(f"{structure} ({sum(loop.energy for loop in loops):6.2f})")
