"""``plait find``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from plait.cli.options import (
    DeviceOption,
    OptionalTable,
    PartParameters,
    RunParameters,
    WholeNumber,
    files_of,
    say,
)
from plait.errors import InvalidInput
from plait.lang.compiling import work_time
from plait.reports.plain_text import plural

if TYPE_CHECKING:
    from plait.mapping.files import FindSummary

# Written out here, so that help and checks of options need not load what the words mean.
FormatOption = Literal["tsv", "parquet", "jsonl", "bed", "paf", "sam", "bam", "cas-offinder"]
StrandOption = Annotated[Literal["both", "+", "-"], Parameter(allow_leading_hyphen=True)]
Flag = Annotated[bool, Parameter(negative="")]
Number = Annotated[WholeNumber | None, Parameter(allow_leading_hyphen=True)]
#: Patterns whose status is told one by one.
_MOST_TOLD = 6
_GIGA = 1e9
_PAM = Parameter(group="Guides: PAM and bulges")
_USES = Parameter(group="Primers and barcodes")


def find(
    patterns: str,
    /,
    *texts: Path,
    output: OptionalTable = None,
    format: FormatOption | None = None,
    errors: Number = None,
    mismatches: Number = None,
    edits: Flag = False,
    pam: Annotated[str, _PAM] = "",
    pam_side: Annotated[WholeNumber, _PAM] = 3,
    pam_mismatches: Annotated[WholeNumber, _PAM] = 0,
    dna_bulges: Annotated[WholeNumber, _PAM] = 0,
    rna_bulges: Annotated[WholeNumber, _PAM] = 0,
    strand: StrandOption | None = None,
    report: Literal["loci", "ends", "best"] = "loci",
    strata: WholeNumber = 0,
    max_hits: Number = None,
    count_only: Flag = False,
    text_iupac: Flag = False,
    overhang: Flag = False,
    anchored: Annotated[Flag, _USES] = False,
    pairs: Annotated[Flag, _USES] = False,
    max_product: Annotated[WholeNumber, _USES] = 3000,
    demultiplex: Annotated[Flag, _USES] = False,
    device: DeviceOption = "auto",
    run: RunParameters = RunParameters(),
    parts: PartParameters = PartParameters(),
) -> None:
    """Find every place where short patterns occur with at most so many errors.

    For guides, primers, probes and barcodes of 8 to 64 letters: nothing within the limits is left out. To
    find what is similar to longer sequences, see plait search; to map long reads, take minimap2.

    Parameters
    ----------
    patterns
        A file (FASTA, FASTQ, a table of name, sequence and, if any, PAM, one sequence a line, or
        Cas-OFFinder's input), or one sequence. IUPAC codes match any of their letters.
    texts
        FASTA, FASTQ or 2bit files, FASTA and FASTQ also .gz or .zst; indexes made by plait index; - for
        standard input. Without any, the one that Cas-OFFinder's input names.
    output
        The file to write: .tsv, .jsonl, .bed, .paf, .sam, .txt (Cas-OFFinder's columns), each also .gz or
        .zst, .bam or .parquet; or a folder of parts, whose name ends in a slash; otherwise, and for -, a
        table on standard output.
    format
        What to write, where the name of the output does not say it.
    errors
        Most errors of all kinds.
    mismatches
        Most substitutions.
    edits
        Count insertions and deletions as errors, too (with --errors).
    pam
        Letters that have to stand beside a pattern, as NGG.
    pam_side
        3: the PAM is behind the pattern; 5: before it.
    pam_mismatches
        Letters of the PAM that may be others.
    dna_bulges
        With a PAM: most letters that the text has in addition.
    rna_bulges
        With a PAM: most letters of the pattern that the text lacks.
    strand
        both, + or -; otherwise both, and + for anchored patterns.
    report
        loci: a row a place; ends: all ends (with --edits); best: of each pattern the hits with fewest errors.
    strata
        With best: this many errors more than the fewest, too.
    max_hits
        Write no more hits of a pattern; they are counted, and the pattern is told of.
    count_only
        Only count hits by pattern and distance.
    text_iupac
        Let ambiguity codes in the text match; otherwise they match nothing.
    overhang
        Let patterns stick out at the ends of sequences, an error a letter.
    anchored
        Patterns begin where a sequence begins, as barcodes of reads do.
    pairs
        Write pairs of hits on opposite strands instead: the products of primers.
    max_product
        Longest product of a pair, primers included.
    demultiplex
        Write the barcode of each read instead: the anchored pattern with fewest errors, if there is one.
    device
        auto takes the first GPU that can be used, else the CPU; cpu; cuda, cuda:N or cuda:all for GPUs;
        reference is plain Python.
    run
        How the work is done. Other workers than threads write parts alone, of all hits: whole texts, or some
        sequences of a 2bit file. Parts alone can be resumed.
    parts
        How a folder of parts is cut.
    """
    given = locals()
    from plait.mapping.files import find_files
    from plait.mapping.search import FindSettings

    if pairs and demultiplex:
        raise InvalidInput("pairs", found="demultiplex besides", expected="either")
    names = FindSettings.__dataclass_fields__.keys() & given.keys()
    settings = FindSettings(
        **{name: given[name] for name in names},
        strands=strand or ("+" if anchored else "both"),
        threads=run.threads,
    )
    start = work_time()
    path = Path(patterns)
    with files_of([path, *texts]) as files, run.open() as executor:
        done = find_files(
            files[0] if files[0].exists() or str(files[0]) != patterns else patterns,
            files[1:],
            output,
            settings,
            format=format,
            what="products" if pairs else "barcodes" if demultiplex else "hits",
            longest=max_product,
            executor=executor,
            resume=run.resume,
            parts=parts.settings,
        )
    _tell(done, work_time() - start)


def _tell(done: FindSummary, seconds: float) -> None:
    for word, count in Counter(done.statuses).items():
        if word != "ok":
            every = zip(done.names, done.statuses, done.hits, strict=True)
            own = [
                f"{name} ({hits:,})" if word == "too_many_hits" else name
                for name, status, hits in every
                if status == word
            ]
            shown = ", ".join(own[:_MOST_TOLD]) + (", ..." if len(own) > _MOST_TOLD else "")
            say(f"warning: {count:,} of {len(done.names):,} patterns {word.replace('_', ' ')}: {shown}")
    if done.repeated:
        say(f"warning: several sequences are named {done.repeated}")
    if done.strange:
        say(f"warning: the texts have {', '.join(map(repr, done.strange[:_MOST_TOLD]))}, which match nothing")
    fit = ("ok", "too_many_hits")
    counts = [count for count, status in zip(done.hits, done.statuses, strict=True) if status in fit]
    sites = f", {done.sites:,} sites" if done.sites else ""
    rate = done.letters * len(done.names) / max(seconds, 1e-9) / _GIGA
    say(
        f"{plural(len(done.names), 'pattern')} in {plural(done.sequences, 'sequence')} "
        f"({done.letters:,} letters{sites}): {plural(sum(done.hits), 'hit')}, "
        f"{counts.count(0):,} without any; {plural(done.rows, 'row')} in {seconds:.2f} s, "
        f"{rate:.1f} G letters x patterns/s"
    )
