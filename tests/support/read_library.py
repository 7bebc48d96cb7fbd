"""Whole simulated sequencing libraries: clones of unequal size, labels of molecules, noise, and their files.

The same settings and seed give the same files, to the byte, in every version of Python.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

import numpy as np
from support.molecule_simulation import (
    JoiningLengths,
    Molecule,
    chimera,
    random_molecule,
    random_sequence,
    simulate_productive,
)
from support.read_simulation import ReadPart, Sequencing, SimulatedRead

from plait.formats.fastq import ReadBlock
from plait.vdj.germline.germline_set import GermlineSet

__all__ = [
    "TRUTH_COLUMNS",
    "Library",
    "block_of",
    "simulate_reads",
    "truth_row",
    "write_fastq",
    "write_truth",
]

_MATE_COLUMNS = ("start", "end", "rev_comp", "changes", "junction", "v_bases", "j_bases")
#: Columns of the table of truth. Places are 1-based and closed, as in AIRR tables.
TRUTH_COLUMNS = (
    "sequence_id",
    "kind",
    "clone",
    "umi",
    "locus",
    "v_call",
    "d_call",
    "j_call",
    "junction",
    "rev_comp",
    "start",
    "end",
    "changes",
    "read_junction",
    "read_junction_start",
    "read_junction_end",
    "v_bases",
    "j_bases",
    *(f"mate_{name}" for name in _MATE_COLUMNS),
)
#: Easily made, and so made in many individuals: few inserted nucleotides.
_EASY = JoiningLengths(inserted=0.7, inserted_without_d=1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What a library holds.

    Attributes
    ----------
    reads
        Reads, or pairs.
    clones
        Clones to choose from.
    common
        How many of them are of a pool that libraries with the same `common_seed` share: each is taken from
        twice as many, which have few inserted nucleotides.
    common_seed
        See `common`.
    skew
        Sizes of clones fall with their rank to this power; 0 makes them equal.
    productive
        Share of the clones that are made to be productive.
    chimeras, noise
        Shares of the reads that are chimeras of two clones, and random DNA.
    umi_length
        Length of the labels of molecules, which stand in the names of reads; 0 for none.
    reads_per_umi
        Mean number of reads of a labelled molecule.
    head, tail
        What stands before V, and behind J; by default 20 and 120 random nucleotides.
    sequencing
        How it is read.
    """

    reads: int = 2000
    clones: int = 500
    common: int = 0
    common_seed: int = 0
    skew: float = 0.7
    productive: float = 0.9
    chimeras: float = 0.0
    noise: float = 0.0
    umi_length: int = 0
    reads_per_umi: float = 3.0
    head: str | None = None
    tail: str | None = None
    sequencing: Sequencing = field(default_factory=Sequencing)


def block_of(
    sequences: Sequence[str], *, names: Sequence[str] | None = None, qualities: Sequence[str] | None = None
) -> ReadBlock:
    """Reads of texts, as a reader of files gives them.

    Parameters
    ----------
    sequences
        Their bases.
    names
        Their names; by default read_1, read_2, ...
    qualities
        Their scores as letters, Phred + 33; by default they have none.
    """
    starts = np.zeros(len(sequences) + 1, np.int64)
    starts[1:] = np.cumsum([len(sequence) for sequence in sequences])
    scores = None
    if qualities is not None:
        scores = np.frombuffer("".join(qualities).encode(), np.uint8) - np.uint8(33)
    letters = np.frombuffer("".join(sequences).encode(), np.uint8).copy()
    given = [f"read_{i + 1}" for i in range(len(sequences))] if names is None else list(names)
    return ReadBlock(given, letters, starts, scores)


def simulate_reads(
    germlines: Sequence[GermlineSet], library: Library, *, seed: int
) -> Iterator[SimulatedRead]:
    """Read a library.

    Parameters
    ----------
    germlines
        Alleles, one set a locus; clones are shared out evenly.
    library
        What it holds.
    seed
        Of all that is random but the pool of common clones and the default of the tail.
    """
    rng = random.Random(f"reads {seed}")
    clones = _clones(germlines, library, rng)
    cumulative = list(accumulate((rank + 1) ** -library.skew for rank in range(len(clones))))
    count, left, clone, umi = 0, 0, 0, ""
    while count < library.reads:
        name = f"read_{count + 1}"
        kind = rng.random()
        if kind < library.noise:
            molecule, clone_of = random_molecule(rng, 4 * library.sequencing.length), -1
        elif kind < library.noise + library.chimeras:
            molecule, clone_of = _chimera(clones, rng), -1
        else:
            if left == 0:
                clone = rng.choices(range(len(clones)), cum_weights=cumulative)[0]
                umi = random_sequence(rng, library.umi_length)
                more = 1.0 - 1.0 / library.reads_per_umi
                while umi and rng.random() < more:
                    left += 1
            else:
                left -= 1
            molecule, clone_of = clones[clone], clone
        label = umi if clone_of >= 0 else random_sequence(rng, library.umi_length)
        name += f"_{label}" if label else ""
        yield library.sequencing.read(molecule, rng, name=name, clone=clone_of, umi=label)
        count += 1


def _clones(germlines: Sequence[GermlineSet], library: Library, rng: random.Random) -> list[Molecule]:
    """Molecules of the clones; those of the pool stand anywhere among the others."""
    pool = random.Random(f"pool {library.common_seed}")
    head = random_sequence(pool, 20) if library.head is None else library.head
    tail = random_sequence(pool, 120) if library.tail is None else library.tail
    drawn: list[Molecule] = []
    for number in range(2 * library.common):
        germline = germlines[number % len(germlines)]
        made = simulate_productive(germline, pool, head=head, tail=tail, lengths=_EASY)
        drawn.append(made.molecule)
    clones = rng.sample(drawn, library.common)
    for number in range(library.clones - library.common):
        germline = germlines[number % len(germlines)]
        made = simulate_productive(germline, rng, head=head, tail=tail, share=library.productive)
        clones.append(made.molecule)
    rng.shuffle(clones)
    return clones


def _chimera(clones: Sequence[Molecule], rng: random.Random) -> Molecule:
    """Two clones joined, most often at about the same place of V, as it happens in PCR."""
    first, second = rng.choice(clones), rng.choice(clones)
    at = rng.randint(1, len(first.sequence) - 1)
    near = at + (second.j_place[0] - first.j_place[0])
    second_start = max(0, min(near, len(second.sequence) - 1))
    return chimera(first, second, first_end=at, second_start=second_start)


def write_fastq(reads: Iterable[SimulatedRead], path: Path, mates: Path | None = None) -> list[SimulatedRead]:
    """Write reads, and second mates to another file; gzip where a name ends in ``.gz``. Returns the reads.

    Parameters
    ----------
    reads
        The reads.
    path, mates
        The files.
    """
    kept = list(reads)
    with ExitStack() as stack:
        first = _opened(stack, path)
        second = None if mates is None else _opened(stack, mates)
        for read in kept:
            first.write(_record(read.name, read.read))
            if second is not None and read.mate is not None:
                second.write(_record(read.name, read.mate))
    return kept


def _opened(stack: ExitStack, path: Path) -> BinaryIO | gzip.GzipFile:
    file = stack.enter_context(path.open("wb"))
    if path.suffix != ".gz":
        return file
    packed = gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    stack.callback(packed.close)
    return packed


def _record(name: str, part: ReadPart) -> bytes:
    return f"@{name}\n{part.sequence}\n+\n{part.quality}\n".encode()


def truth_row(read: SimulatedRead) -> tuple[str, ...]:
    """What is known of a read, in the order of `TRUTH_COLUMNS`."""
    molecule, part, mate = read.molecule, read.read, read.mate
    known = part.junction_start >= 0
    row = (
        read.name,
        molecule.kind,
        read.clone if read.clone >= 0 else "",
        read.umi,
        molecule.locus,
        molecule.v_call,
        molecule.d_call,
        molecule.j_call,
        molecule.junction,
        "T" if part.rev_comp else "F",
        part.start + 1,
        part.end,
        part.changes,
        part.junction,
        part.junction_start + 1 if known else "",
        part.junction_end if known else "",
        part.v_bases,
        part.j_bases,
    )
    if mate is None:
        return (*map(str, row), *[""] * len(_MATE_COLUMNS))
    strand = "T" if mate.rev_comp else "F"
    others = (mate.start + 1, mate.end, strand, mate.changes, mate.junction, mate.v_bases, mate.j_bases)
    return tuple(map(str, (*row, *others)))


def write_truth(reads: Iterable[SimulatedRead], path: Path) -> None:
    """Write the table of truth, tab-separated.

    Parameters
    ----------
    reads
        The reads.
    path
        The file.
    """
    with ExitStack() as stack:
        file = _opened(stack, path)
        file.write(("\t".join(TRUTH_COLUMNS) + "\n").encode())
        for read in reads:
            file.write(("\t".join(truth_row(read)) + "\n").encode())
