"""``plait similar``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from plait.cli.options import (
    DeviceOption,
    Flag,
    OptionalOutput,
    Signed,
    ThreadsOption,
    WholeNumber,
    files_of,
    say,
)
from plait.lang.compiling import work_time


def similar(
    texts: Path,
    targets: Path | None = None,
    /,
    *,
    output: OptionalOutput = None,
    q: Annotated[WholeNumber, Parameter(name=["--q", "-q"], allow_leading_hyphen=True)] = 4,
    at_least: Annotated[float | None, Signed] = None,
    nearest: Annotated[WholeNumber | None, Signed] = None,
    column: str | None = None,
    smiles: Flag = False,
    threads: ThreadsOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Find similar texts by the q-grams that they share: junctions, SMILES, names, any sequences.

    The similarity of two texts is the number of q-grams that both have, each as often as both have it, by
    the number that either has (multiset Tanimoto). No pair is left out.

    Parameters
    ----------
    texts
        FASTA, a text a line with its name behind, or a table with --column; plain, .gz or .zst; - for
        standard input.
    targets
        The texts to compare them with; otherwise themselves.
    output
        A table of pairs (.tsv, also .gz or .zst, or .parquet), otherwise on standard output; or a .npy file
        of all similarities.
    q
        Letters of a q-gram.
    at_least
        Write pairs of this similarity or more; otherwise 0.5.
    nearest
        Write so many most similar targets of each text instead.
    column
        The texts are a column of tables.
    smiles
        The texts are SMILES: digits of rings count as 0, Cl and Br as one letter (LINGO).
    threads
        Number of threads; otherwise PLAIT_THREADS, otherwise the processors this process may use.
    device
        auto, cpu, or cuda; the answers are the same.
    """
    from plait.qgrams.files import similar_file

    start = work_time()
    with files_of([texts] if targets is None else [texts, targets]) as files:
        left, right, found = similar_file(
            files[0],
            None if targets is None else files[1],
            output,
            column=column,
            smiles=smiles,
            q=q,
            at_least=at_least,
            nearest=nearest,
            threads=threads,
            device=device,
        )
    say(f"{left:,} texts by {right:,}: {found:,} pairs in {work_time() - start:.2f} s")
