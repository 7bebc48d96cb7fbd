"""``plait vdj pgen``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from plait.cli.console import RowProgress, say_if_compiling
from plait.cli.options import LayoutOption, OutputOption, WholeNumber
from plait.cli.recombination_model import CallsOption, model_named

__all__ = ["pgen"]


def pgen(
    *inputs: Path,
    model: str,
    output: OutputOption,
    kind: Literal["nt", "aa", "both", "motif"] = "nt",
    calls: CallsOption = "both",
    layout: LayoutOption = "airr",
    threads: WholeNumber | None = None,
) -> None:
    """Compute the generation probability of every row of one or more tables.

    Parameters
    ----------
    inputs
        Tables with junctions: TSV (plain, .gz or .zst) or Parquet.
    model
        A model: a JSON file of plait, a folder of IGoR or OLGA, or the name of a bundled model.
    output
        The table to write: .parquet, .tsv, .tsv.gz or .tsv.zst.
    kind
        Probabilities of the nucleotides (nt), of the amino acids (aa), of both, or of motifs of amino
        acids, in which [..] is one of several and . any. Amino acids that a table lacks are translated.
    calls
        Which calls of a row are taken for what it was made of; over all functional genes is summed otherwise.
    layout
        Column names of the inputs.
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    """
    from plait.reports.pgen_text import pgen_text
    from plait.vdj.model.pgen_files import pgen_files

    found = model_named(model)
    say_if_compiling("weighted_kernels")
    start = time.perf_counter()
    with RowProgress("computing") as progress:
        made = pgen_files(
            inputs,
            output,
            found,
            kind=kind,
            calls=calls,
            layout=layout,
            threads=threads,
            progress=progress,
        )
    print(pgen_text(made, seconds=time.perf_counter() - start), end="")
