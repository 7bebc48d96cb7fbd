"""``plait align``."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from plait.cli.options import (
    CellProgress,
    DeviceOption,
    Flag,
    KindOption,
    OptionalTable,
    Signed,
    ThreadsOption,
    WholeNumber,
    files_of,
    say,
    words_of,
)
from plait.errors import InvalidInput, whole
from plait.lang.compiling import work_time

if TYPE_CHECKING:
    from plait.align.files import AlignedFiles
    from plait.align.scoring import Scoring
    from plait.align.settings import WhichAlignments

# Written out here, so that help and checks of options need not load what the words mean.
PairsOption = Literal["order", "all", "one"]
ModeOption = Literal["global", "local", "semiglobal", "overlap", "extension"]
TracebackOption = Literal["auto", "full", "linear"]
FormatOption = Literal["text", "tsv", "sam", "paf", "jsonl", "parquet"]
StrandOption = Literal["given", "both"]


@Parameter(name="*", group="Scores")
@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """What is aligned, and what it scores.

    Attributes
    ----------
    matrix
        Name of a bundled matrix (BLOSUM62, PAM30, NUC.4.4, ...) or a file in NCBI's format; otherwise
        BLOSUM62 for proteins, and match and mismatch scores for nucleotides.
    match
        Score of two equal letters, in the place of a matrix; otherwise 2.
    mismatch
        Score of two different letters, 0 or less; otherwise -3.
    gap_open
        Cost of the first residue of a gap, as a positive number. BLAST's existence and extension together.
    gap_extend
        Cost of each further residue of a gap, as a positive number.
    kind
        protein or dna (RNA too); otherwise what the matrix is for, or else what the letters of both files
        look like; needed where they leave it open.
    mask_lower_case
        Take lower-case letters as X, those of nucleotides as N.
    """

    matrix: str | None = None
    match: Annotated[WholeNumber | None, Signed] = None
    mismatch: Annotated[WholeNumber | None, Signed] = None
    gap_open: Annotated[WholeNumber | None, Signed] = None
    gap_extend: Annotated[WholeNumber | None, Signed] = None
    kind: KindOption | None = None
    mask_lower_case: Flag = False


@Parameter(name="*", group="Which alignments")
@dataclass(frozen=True, kw_only=True)
class WhichOptions:
    """Which alignments of a pair are written.

    Attributes
    ----------
    best
        Local alignments of each pair, at the most, best first; otherwise the best.
    apart
        With --best: an end counts if no better one is less than so many residues away in both sequences;
        otherwise 5.
    disjoint
        With --best, in place of --apart: no two residues are aligned with each other twice.
    min_score
        Leave out alignments with a lower score.
    evalue
        Leave out local alignments with a larger E-value.
    strand
        both: of nucleotides, the reverse complements of the queries too.
    """

    best: Annotated[WholeNumber | None, Signed] = None
    apart: Annotated[WholeNumber | None, Signed] = None
    disjoint: Flag = False
    min_score: Annotated[WholeNumber | None, Signed] = None
    evalue: float | None = None
    strand: StrandOption = "given"


_DEFAULT = ScoreOptions()
_THE_BEST = WhichOptions()
_GIGA = 1e9
#: What is slower is the time to start, not that to align.
_SLOWEST = 0.01


def align(
    queries: Path,
    targets: Path | None = None,
    /,
    *,
    output: OptionalTable = None,
    pairs: PairsOption | None = None,
    mode: ModeOption = "global",
    free_ends: str | None = None,
    scores: ScoreOptions = _DEFAULT,
    which: WhichOptions = _THE_BEST,
    band: Annotated[str | None, Signed] = None,
    x_drop: Annotated[WholeNumber | None, Signed] = None,
    traceback: TracebackOption = "auto",
    format: FormatOption | None = None,
    columns: str | None = None,
    score_only: Flag = False,
    md: Flag = False,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Align the sequences of two FASTA or FASTQ files, or those of one file with each other.

    Parameters
    ----------
    queries
        FASTA or FASTQ file: plain, .gz or .zst; - for standard input.
    targets
        FASTA or FASTQ file of what they are aligned with, or -. Without it every record of the first file is
        aligned with all that follow it there.
    output
        The file to write: .txt, .tsv, .sam, .paf, .jsonl (each also .gz or .zst) or .parquet; otherwise, and
        for -, standard output.
    pairs
        order: the first query with the first target and so on; all: every query with every target; one: the
        single query with every target. Otherwise order for two files, and all for one.
    mode
        What has to be aligned. global: both sequences from end to end; local: the best stretch of each;
        semiglobal: all but the free ends; overlap: all four ends are free; extension: from both starts to
        wherever it is best.
    free_ends
        For semiglobal: query_start, query_end, target_start and target_end, with commas between; otherwise
        both of the target.
    scores
        What is aligned, and what it scores.
    which
        Which alignments of a pair are written.
    band
        Align only where target position less query position is within N either way, or from LOW to HIGH:
        N or LOW:HIGH. A band without a start or an end of the mode is an error.
    x_drop
        For extension: stop where the score has fallen so far below the best.
    traceback
        full keeps the choices of all cells, linear needs memory for the lengths alone; auto picks one by
        size. The alignment is the same.
    format
        What to write, where the name of the output does not say it.
    columns
        Columns of tsv, jsonl and parquet, with commas between.
    score_only
        Leave out the alignments, which is faster. So it is too if the columns need none.
    md
        SAM: write the tag MD.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    """
    given = dict(locals())
    with files_of([path for path in (queries, targets) if path is not None]) as files:
        _align(given, files)


def _align(given: Mapping[str, Any], files: Sequence[Path]) -> None:
    from plait.align.aligner import make_aligner
    from plait.align.files import align_files, scoring_of_files
    from plait.align.scoring import masked

    options = asdict(given["scores"])
    mask = options.pop("mask_lower_case")
    scoring = scoring_of_files(files, **options)
    if mask:
        scoring = masked(scoring)
    aligner = make_aligner(
        scoring,
        free_ends=words_of(given["free_ends"]),  # type: ignore[arg-type]
        band=_band(given["band"]),
        **{name: given[name] for name in ("mode", "x_drop", "traceback", "threads", "device")},
    )
    start = work_time()
    with CellProgress("aligning") as progress:
        done = align_files(
            files[0],
            files[1] if len(files) > 1 else None,
            given["output"],
            aligner,
            columns=words_of(given["columns"]),
            which=_which(given["which"]),
            command=_command(given),
            **{name: given[name] for name in ("pairs", "format", "score_only", "md")},
            progress=progress,
        )
    for note in done.notes:
        say(f"note: {note}")
    say(_summary(done, scoring, work_time() - start))


def _which(given: WhichOptions) -> WhichAlignments:
    from plait.align.settings import SeveralBest, WhichAlignments

    if given.best is None and (given.apart is not None or given.disjoint):
        option = "--disjoint" if given.disjoint else "--apart"
        raise InvalidInput(option, found="no --best", expected="--best K with it")
    if given.disjoint and given.apart is not None:
        raise InvalidInput("--disjoint", found="--apart too", expected="one of them")
    if given.apart is not None:
        whole("--apart", given.apart, 1)
    several = None
    if given.best is not None:
        apart = 0 if given.disjoint else given.apart or SeveralBest(most=1).apart
        several = SeveralBest(most=given.best, apart=apart, min_score=max(given.min_score or 1, 1))
    return WhichAlignments(
        several=several, min_score=given.min_score, evalue=given.evalue, strand=given.strand
    )


def _band(text: str | None) -> tuple[int, int] | int | None:
    if text is None:
        return None
    parts = text.split(":")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) == 1 and numbers[0] >= 0:
        return numbers[0]
    if len(numbers) == 2 and numbers[0] <= numbers[1]:
        return numbers[0], numbers[1]
    raise InvalidInput(
        "--band", found=repr(text), expected="a number such as 100, or two such as -50:200, the lower first"
    )


def _command(given: Mapping[str, object]) -> str:
    """The command line that asks for what is not the default."""
    words = ["plait", "align"]
    for name, parameter in inspect.signature(align).parameters.items():
        value = given[name]
        if isinstance(value, ScoreOptions | WhichOptions):
            usual = asdict(type(value)())
            pairs = [(key, own) for key, own in asdict(value).items() if own != usual[key]]
        else:
            pairs = [(name, value)] if value != parameter.default else []
        for key, one in pairs:
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                words.append(f"--{key.replace('_', '-')}")
            if one is not True:
                words.append(str(one))
    return shlex.join(words)


def _summary(done: AlignedFiles, scoring: Scoring, seconds: float) -> str:
    speed = done.cells / seconds / _GIGA if seconds > 0 else 0.0
    rate = f" ({speed:,.2f} GCUPS)" if speed >= _SLOWEST else ""
    told = (
        f"{done.pairs:,} pair{'s' if done.pairs != 1 else ''}, {done.cells:,} cells in {seconds:.1f} s{rate}"
    )
    if done.alignments != done.pairs:
        told += f"; {done.alignments:,} alignment{'s' if done.alignments != 1 else ''}"
    if done.without:
        told += f"; {done.without:,} pair{'s' if done.without != 1 else ''} without one that is asked for"
    told += f"; {scoring.matrix.name}, gaps {scoring.gap_open}/{scoring.gap_extend}"
    if done.left_out:
        told += f"; {done.left_out:,} without aligned residues have no line"
    return told if done.output is None else f"{told}; {done.output}"
