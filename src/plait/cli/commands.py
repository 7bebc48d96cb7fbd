"""The tree of commands. Each is loaded when it is called, so that help and ``--version`` are instant."""

from __future__ import annotations

from cyclopts import App

from plait._version import __version__

__all__ = ["app"]

app = App(
    name="plait",
    version=__version__,
    # The entry point tells the user how to go on.
    suppress_keyboard_interrupt=False,
    help="Exact V(D)J recombination path counts, sequence alignment and search, hyperspectral compression.",
)

_vdj = App(
    name="vdj",
    help="From reads to rearrangements; count recombination paths, explain a count, count sharing.",
    version_flags=[],
)
_vdj.command(
    "plait.cli.annotate:annotate",
    name="annotate",
    help="Find V, D, J and the junction of every read, and count clonotypes.",
)
_vdj.command(
    "plait.cli.alleles:alleles",
    name="alleles",
    help="Find V and J alleles that the germline set lacks, in annotated reads.",
)
_vdj.command(
    "plait.cli.count:count",
    name="count",
    help="Count the recombination paths of every row of one or more tables.",
)
_vdj.command(
    "plait.cli.explain:explain",
    name="explain",
    help="Show where one path count comes from, and which limit holds it down.",
)
_vdj.command(
    "plait.cli.pgen:pgen",
    name="pgen",
    help="Compute the generation probability of every row of one or more tables.",
)
_vdj.command(
    "plait.cli.scenarios:scenarios",
    name="scenarios",
    help="List the most probable ways in which every row of one or more tables was made.",
)
_vdj.command(
    "plait.cli.generate:generate", name="generate", help="Draw junctions from a recombination model."
)
_vdj.command(
    "plait.cli.infer:infer",
    name="infer",
    help="Infer a recombination model from one or more tables.",
)
_vdj.command(
    "plait.cli.sharing:sharing", name="sharing", help="Count in how many individuals each clonotype occurs."
)
_vdj.command(
    "plait.cli.study:study",
    name="study",
    help="Study convergent recombination: path counts, sharing, frequency, and what predicts sharing.",
)
_vdj.command(
    "plait.cli.report:report",
    name="report",
    help="Write the report of a study as one HTML file, with its figures.",
)
app.command(_vdj)
app.command(
    "plait.cli.align:align",
    name="align",
    help="Align the sequences of two FASTA files, or those of one with each other.",
)
app.command(
    "plait.cli.search:app",
    name="search",
    help="Search a database for sequences that are similar to those of a file.",
)
app.command(
    "plait.cli.hsi:app",
    name="hsi",
    help="Compress hyperspectral cubes without loss (CCSDS 123), and get them back.",
)
app.command("plait.cli.germline:app", name="germline", help="List, show, check and convert germline sets.")
app.command(
    "plait.cli.doctor:doctor", name="doctor", help="Tell what plait can use on this machine, and what not."
)
app.command(
    "plait.cli.demo:demo", name="demo", help="Study the repertoires of 12 human donors, up to a report."
)
