"""The tree of commands. Each is loaded when it is called, so that help and ``--version`` are instant."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, Final

from cyclopts import App

from plait._version import __version__
from plait.cli.options import HYPHEN, compilation_told, say, with_hyphens
from plait.errors import (
    DeviceFailure,
    DeviceMemoryError,
    InvalidInput,
    PlaitError,
    TargetUnavailable,
    TaskFailed,
)
from plait.settings import show_tracebacks

_WRONG_REQUEST = 2
_INTERNAL_ERROR = 70
_BROKEN_PIPE = 128 + 13
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
#: Commands of ``plait vdj`` that have ``--resume``.
_RESUMABLE = ("annotate", "count", "generate", "infer", "pgen", "scenarios", "study")


#: Settings of the environment for memory.
_ALLOCATION: Final = (
    "ARROW_DEFAULT_MEMORY_POOL",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
)
#: Of malloc.h: M_MMAP_THRESHOLD, at its highest, and M_TRIM_THRESHOLD.
_KEPT: Final = ((-3, 32 << 20), (-1, 256 << 20))


class _Stopped(KeyboardInterrupt):
    """A signal asked this process to end; work under way is cleaned up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        self.status = 128 + number
        super().__init__()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after ``plait``; those of this process by default.

    Returns
    -------
    int
        Exit status: 0 done; 1 a checked germline set has errors; 2 a wrong request or input; 70 an error of
        plait itself; 130 and 143 ended by Ctrl-C and by SIGTERM.
    """
    words = with_hyphens(sys.argv[1:] if arguments is None else arguments)
    _keep_pages()
    try:
        with (
            _signals(),
            _own_warnings(),
            _without_pandas(),
            _said_of_files(),
            compilation_told(words),
        ):
            status = _run(words)
            sys.stdout.flush()
            return status
    except KeyboardInterrupt as stop:
        return _stopped(stop, words)
    except BrokenPipeError:
        # The reader of our output has gone. Python would complain when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except SystemExit as stop:
        # So ends the library that lays out tables and help, where the reader of its output has gone.
        if isinstance(stop.__context__, BrokenPipeError):
            return _BROKEN_PIPE
        raise
    except (DeviceFailure, DeviceMemoryError, TargetUnavailable) as error:
        return _failed(_for_commands(str(error)), _WRONG_REQUEST)
    except TaskFailed as error:
        return _failed(str(error), _INTERNAL_ERROR if error.unexpected else _WRONG_REQUEST)
    except PlaitError as error:
        # Freeing space costs no finished work; nothing else that goes wrong is known to be mended so.
        full = getattr(error.__cause__, "errno", None) in _FULL
        return _failed(f"{error}{_way_on(words) if full else ''}", _WRONG_REQUEST)
    except MemoryError:
        return _failed("the memory of this machine is used up; fewer --threads need less", _WRONG_REQUEST)
    except OSError as error:
        return _file_failed(error)
    except Exception as error:
        return _unexpected(error)


def _show_examples(words: Sequence[str]) -> None:
    """Below the help of a command, lines that can be copied; long ones go on indented."""
    lines = EXAMPLES.get(" ".join(words[:2])) or EXAMPLES.get(words[0], ())
    if lines:
        print("For example:")
    for line in lines:
        print(
            *textwrap.wrap(line, 76, initial_indent="  ", subsequent_indent="      ", break_on_hyphens=False),
            sep=" \\\n",
        )


def _file_failed(error: OSError) -> int:
    """A file went away, or turned out to be unusable, while the command was at it."""
    if error.filename is not None:
        name = os.fsdecode(error.filename)
        return _failed(f"{name}: found {error.strerror}, expected a file", _WRONG_REQUEST)
    # Python tells no name where what is printed finds no room, nor where it asks for the current folder.
    if error.errno in (*_FULL, errno.EBADF):
        found = "it closed" if error.errno == errno.EBADF else error.strerror
        return _failed(f"output: found {found}, expected room for it", _WRONG_REQUEST)
    if error.errno == errno.ENOENT:
        return _failed("current folder: found it removed, expected one that is there", _WRONG_REQUEST)
    return _unexpected(error)


def _unexpected(error: Exception) -> int:
    first_line = f"{type(error).__name__}: {error}".splitlines()[0]
    text = f"{first_line} (an error of plait itself; PLAIT_DEBUG=1 shows where)"
    return _failed(text, _INTERNAL_ERROR)


def _run(words: list[str]) -> int:
    from cyclopts import CycloptsError, MissingArgumentError

    bad = next((word for word in words if "\0" in word), None)
    if bad is not None:
        raise InvalidInput("arguments", found=f"{bad!r:.80}", expected="words without NUL characters")
    try:
        result = app(
            words,
            exit_on_error=False,
            print_error=False,
            result_action="return_int_as_exit_code_else_zero",
        )
        if {"-h", "--help"}.intersection(words):
            _show_examples(words)
    except CycloptsError as error:
        chain = " ".join(["plait", *(error.command_chain or ())])
        text = f"{error}".strip()
        text = text if text.endswith("...") else text.rstrip(".")
        if isinstance(error, MissingArgumentError) and error.keyword is None:
            text = text.replace("requires an argument", "is required")
        _tell(text)
        print(f"See {chain} --help", file=sys.stderr)
        return _WRONG_REQUEST
    return int(result)


def _failed(message: str, status: int) -> int:
    if show_tracebacks():
        traceback.print_exc()
    _tell(message)
    return status


def _tell(message: str) -> None:
    # Messages of libraries can hold line breaks.
    print("plait: error:", " ".join(line.strip() for line in message.splitlines()), file=sys.stderr)


def _for_commands(message: str) -> str:
    from plait.reports.plain_text import as_options

    return as_options(message)


@contextmanager
def _own_warnings() -> Iterator[None]:
    """Show what plait warns of as a line of its own, without the place in the program."""
    before = warnings.showwarning

    def show(message: Warning | str, kind: type[Warning], filename: str, line: int, *rest: Any) -> None:
        if Path(__file__).parents[1] in Path(filename).parents:
            print("plait: warning:", _for_commands(str(message)), file=sys.stderr)
        else:
            before(message, kind, filename, line, *rest)

    warnings.showwarning = show  # type: ignore[assignment]  # the names of its parameters do not matter
    try:
        yield
    finally:
        warnings.showwarning = before


class _NoPandas:
    """Keeps pyarrow from importing pandas, which takes longer than many a command; anndata alone needs it."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas" and "anndata" not in sys.modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@contextmanager
def _without_pandas() -> Iterator[None]:
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Said(logging.Handler):
    """Shows what plait logs as lines for the user."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


@contextmanager
def _said_of_files() -> Iterator[None]:
    """Say of every file that has been replaced that it was there, and of inputs that are copies."""
    log, handler = logging.getLogger("plait.formats"), _Said()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _way_on(words: list[str]) -> str:
    resumable = len(words) > 1 and words[0] == "vdj" and words[1] in _RESUMABLE
    # What came by standard input is gone.
    there = resumable and f"./{HYPHEN}" not in words
    return "; the same command with --resume continues where it stopped" if there else ""


def _stopped(stop: KeyboardInterrupt, words: list[str]) -> int:
    print(f"plait: stopped{_way_on(words)}", file=sys.stderr)
    return getattr(stop, "status", 128 + signal.SIGINT)


def _keep_pages() -> None:
    """Keep memory that is given back for what is asked for next, within limits: the kernel clears new pages.

    Blocks of rows are tens of megabytes, again and again. Arrow takes the C library's memory, too. Nothing
    changes where the environment says how memory is to be had, or with another C library than glibc.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in _ALLOCATION):
        return
    import ctypes

    with suppress(AttributeError):
        change = ctypes.CDLL(None).mallopt
        for parameter, size in _KEPT:
            change(parameter, size)
        # Before Arrow is loaded; processes that are started find it, too.
        os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"


@contextmanager
def _signals() -> Iterator[None]:
    """Turn SIGINT and SIGTERM into exceptions, once; a second signal ends the process at once."""
    found: dict[signal.Signals, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        for known in found:
            signal.signal(known, signal.SIG_DFL)
        # Not through sys.stderr, which may be in the middle of a line.
        os.write(2, b"\nplait: stopping when the work under way is done; once more to stop at once\n")
        raise _Stopped(number)

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            # A signal that the parent asked to ignore, as nohup does, stays ignored.
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                found[number] = signal.signal(number, stop)
    except ValueError:
        # Only the main thread of a program can set handlers; elsewhere its own stay in force.
        found.clear()
    try:
        yield
    finally:
        for number, before in found.items():
            signal.signal(number, before)


_REPERTOIRES, _SEQUENCES = "Immune repertoires", "Sequences and structures"
_CUBES, _MACHINE = "Spectral cubes, codes, numbers", "This machine"
#: Command lines that help shows at work.
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "vdj annotate": (
        "plait vdj annotate reads.fastq.gz --germline human_trb -o reads.airr.tsv",
        "plait vdj annotate r1.fastq.gz --mate r2.fastq.gz --umi read1:0-12 --germline mouse_tra,mouse_trb "
        "-o reads.airr.tsv --clonotypes clonotypes.tsv",
    ),
    "vdj alleles": ("plait vdj alleles reads.airr.tsv --germline human_trb -o alleles.tsv",),
    "vdj count": (
        "plait vdj count clonotypes.tsv --germline mouse_trb -o counts.parquet",
        "plait vdj count clonotypes.tsv --germline mouse_trb --sweep-pi 0:4 --sweep-nu 0:10 -o sweep.parquet",
    ),
    "vdj explain": ("plait vdj explain TGTGCCAGCAGTTGGGACTGGTATGAACAGTACTTC --v TRBV13-1 --j TRBJ2-7",),
    "vdj pgen": (
        "plait vdj pgen clonotypes.tsv --model human_TRB -o pgen.parquet",
        "plait vdj pgen motifs.txt --layout lines --of motif --model human_TRB -o pgen.tsv",
    ),
    "vdj scenarios": ("plait vdj scenarios clonotypes.tsv --model human_TRB --best 3 -o scenarios.tsv",),
    "vdj generate": ("plait vdj generate --model human_TRB -n 1000000 --seed 1 -o drawn.parquet",),
    "vdj infer": ("plait vdj infer clonotypes.tsv --germline mouse_trb -o model/",),
    "vdj sharing": (
        "plait vdj sharing mouse1.tsv mouse2.tsv -o sharing.tsv --by-subject who.tsv --overlap overlap.tsv",
        "plait vdj sharing donor*.tsv --key cdr3aa+v --model human_TRB -o public.tsv",
    ),
    "vdj cells": (
        "plait vdj cells filtered_contig_annotations.csv -o cells.tsv",
        "plait vdj cells clonotypes.tsv -o cells.parquet",
    ),
    "vdj neighbours": (
        "plait vdj neighbours known.tsv donors.tsv --model human_TRB -o near.tsv",
        "plait vdj neighbours known.tsv donors.tsv --control healthy.tsv --edits 1 -o near.tsv",
    ),
    "vdj diversity": (
        "plait vdj diversity donors.tsv -o diversity.tsv --rarefaction curves.tsv --usage usage.tsv",
    ),
    "vdj study": ("plait vdj study samples.csv --germline mouse_trb -o study/",),
    "vdj report": ("plait vdj report study/",),
    "align": (
        "plait align queries.fa targets.fa --mode local -o pairs.tsv",
        "plait align queries.fa targets.fa --mode local --best 20 -o best.paf",
        "plait align genomes.fa --score-only --match 1 --mismatch -1 --gap-open 2 --gap-extend 1",
        "plait align reads.fq.gz primer.fa --pairs all --mode semiglobal -o primer.sam",
    ),
    "search": (
        "plait search queries.fa database.fa --top 20 -o hits.m8",
        "plait search genes.fa proteins.fa --translate --columns std,frames",
        "plait search query.pssm proteins.fa --evalue 1e-3",
        "plait search primers.fa genomes.fa --mode semiglobal --strand both",
    ),
    "search index": ("plait search index database.fa -o database.plait",),
    "find": (
        "plait find guides.fa genome.2bit --mismatches 4 --pam NGG -o off-targets.tsv",
        "plait find primers.fa genome.fa.gz --errors 2 --edits --pairs -o products.tsv",
        "plait find barcodes.fa reads.fastq.gz --anchored --errors 1 --demultiplex -o barcodes.tsv",
    ),
    "map": (
        "plait map reads.fastq.gz genome.fa --errors 3 -o loci.bam",
        "plait map r1.fastq.gz genome.index --mate r2.fastq.gz --errors 3 --report best -o loci.sam",
    ),
    "index": ("plait index genome.fa -o genome.index",),
    "similar": (
        "plait similar clonotypes.tsv --column junction_aa -q 3 --at-least 0.7 -o near.tsv",
        "plait similar molecules.smi library.smi --smiles --nearest 10 -o nearest.parquet",
    ),
    "fold": ("plait fold rna.fa --probabilities --mea --plot pictures/", "plait fold rna.fa --suboptimal 2"),
    "fold eval": ("plait fold eval structures.txt",),
    "hsi compress": ("plait hsi compress scene.hdr -o scene.c123",),
    "hsi decompress": ("plait hsi decompress scene.c123 -o restored/",),
    "hsi verify": ("plait hsi verify scene.c123 scene.hdr",),
    "hsi info": ("plait hsi info scene.c123",),
    "hsi read-121": ("plait hsi read-121 scene.aec -o scene.npy --shape 512,614,224 --depth 14",),
    "hsi index": ("plait hsi index scene.c123 -o scene.index",),
    "ldpc decode": ("plait ldpc decode llrs.npy --code c2 --method min-sum -o bits.npy",),
    "ldpc encode": ("plait ldpc encode bits.npy --code ar4ja-1/2-1024 -o words.npy",),
    "ldpc simulate": ("plait ldpc simulate --code wimax-1248 --ebn0 1:2.5:0.5 --words 2000 -o rates.tsv",),
    "random": (
        "plait random mrg32k3a -n 1000000 --distribution normal --skip 1000000 -o numbers.npy",
        "plait random sobol -n 1024 --dimensions 3 -o points.npy",
    ),
    "decode": (
        "plait decode model.json sequences.fasta -o states.tsv",
        "plait decode graph.txt frames.npy --beam 12 --active 20000 -o words.tsv",
    ),
    "episodes": (
        "plait episodes spikes.tsv --window 5:15 --support 300 -o episodes.tsv",
        "plait episodes spikes.parquet --list episodes.tsv -o counts.tsv",
    ),
    "demo": ("plait demo -o demo",),
    "compile": ("plait compile --processes 2",),
    "doctor": ("plait doctor --json",),
    "completion": ("plait completion bash > ~/.local/share/bash-completion/completions/plait",),
    "germline list": ("plait germline list",),
    "germline show": ("plait germline show mouse_trb",),
    "germline validate": ("plait germline validate genes.fasta",),
    "germline convert": ("plait germline convert genes.fasta -o genes.json",),
}


app = App(
    name="plait",
    version=__version__,
    # The entry point tells the user how to go on.
    suppress_keyboard_interrupt=False,
    help="Exact V(D)J recombination path counts and probabilities; alignment, search, finding and mapping of "
    "sequences; RNA folding; hyperspectral compression.",
    # Lists of commands have no paragraphs: what lays these out takes longer to load than all else.
    help_format="plaintext",
)
_vdj = App(
    name="vdj",
    help="From reads to rearrangements; count recombination paths, explain a count, count sharing.",
    version_flags=[],
    group=_REPERTOIRES,
)
#: Commands by name: module of `plait.cli`, with the function where that is named otherwise, and help.
_OF_VDJ = {
    "annotate": ("annotate", "Find V, D, J and the junction of every read, and count clonotypes."),
    "alleles": ("annotate", "Find V and J alleles that the germline set lacks, in annotated reads."),
    "count": ("count", "Count the recombination paths of every row of one or more tables."),
    "explain": ("count", "Show where one path count comes from, and which limit holds it down."),
    "pgen": ("model", "Compute the generation probability of every row of one or more tables."),
    "scenarios": ("model", "List the most probable ways in which every row of one or more tables was made."),
    "generate": ("model", "Draw junctions from a recombination model."),
    "infer": ("model", "Infer a recombination model from one or more tables."),
    "sharing": ("sharing", "Tell who shares which clonotypes, and which more than generation explains."),
    "cells": ("repertoires", "Pair the chains of every cell, and tell doublets and orphans."),
    "neighbours": ("repertoires", "Count clonotypes near receptors of known specificity, beside chance."),
    "diversity": (
        "repertoires",
        "Diversity of repertoires: Hill numbers, rarefaction, lengths of junctions, usage of genes.",
    ),
    "study": ("study", "Study convergent recombination: path counts, and what predicts sharing."),
    "report": ("study", "Write the report of a study as one HTML file, with its figures."),
}
_OTHERS = {
    _SEQUENCES: {
        "align": ("align", "Align the sequences of two FASTA files, or those of one with each other."),
        "search": ("search:app", "Search a database for sequences that are similar to those of a file."),
        "find": ("find", "Find every place where short patterns occur with at most so many errors."),
        "map": ("map:map_reads", "Map reads: every locus within so many errors, guaranteed."),
        "index": ("map:index_reference", "Index a reference for map."),
        "similar": ("search", "Find similar texts by the q-grams that they share."),
        "fold": ("fold:app", "Fold RNA: structures of least energy, and probabilities of pairs."),
    },
    _CUBES: {
        "hsi": ("hsi:app", "Compress and restore hyperspectral cubes (CCSDS 123), with or without loss."),
        "ldpc": ("signals:app", "Decode, encode and simulate parity-check codes: CCSDS, WiMAX, alist."),
        "random": ("signals", "Draw random numbers from any place of a standard stream."),
        "episodes": ("signals", "Find serial episodes that are frequent in a stream of events."),
        "decode": ("signals:hidden_states", "Decode sequences by hidden Markov models and weighted graphs."),
    },
    _REPERTOIRES: {
        "germline": ("germline:app", "List, show, check and convert germline sets."),
        "demo": ("study", "Study the repertoires of 12 human donors, up to a report."),
    },
    _MACHINE: {
        "compile": ("machine:compile_ahead", "Compile ahead what commands need and nobody has compiled yet."),
        "completion": ("machine", "Print what lets a shell complete commands and options."),
        "doctor": ("machine", "Tell what plait can use on this machine, and what not."),
    },
}


def _add(to: App, names: dict[str, tuple[str, str]], **settings: str) -> None:
    for name, (place, told) in names.items():
        function = place if ":" in place else f"{place}:{name}"
        # An app has its own format.
        own = {} if function.endswith(":app") else {"help_format": "markdown"}
        to.command(f"plait.cli.{function}", name=name, help=told, **settings, **own)


_add(_vdj, _OF_VDJ)
app.command(_vdj)
for _group, _names in _OTHERS.items():
    _add(app, _names, group=_group)
