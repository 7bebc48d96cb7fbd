"""All loci of reads: `plait map` and other mappers, each a command on one thread, with what they miss.

    python benchmarks/mapping_peers.py [REFERENCE.fa] [--letters 4600000] [--errors 5] [--reads 100000]

Without a file the reference is generated (`mapping_reads.generated`). Reads of 100 letters are drawn from it,
with 0 to E random substitutions, insertions and deletions. Mappers run where they are on the path; bwa,
bowtie2 and minimap2 are not made to list all loci, and are told to list as many as they do. Seconds are of
the processor, user and system, of the whole command; the making of an index is told apart.

A locus is found if a record of the mapper ends at most 2 E + 2 letters from it, on its strand. Of a mapper
that promises all, some loci that plait has not are printed, and some that it lacks itself, with the distance
that edlib finds there, where it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import shutil
import subprocess
import sys
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from mapping_reads import LETTERS, generated

from plait.formats.fasta import read_fasta

LENGTH = 100
#: Name: how an index is made, and how reads are mapped, with e errors (i percent the same).
COMMANDS = {
    "plait": (
        "{python} -m plait index g.fa -o g.plait-index --threads 1",
        "{python} -m plait map r.fq g.plait-index --errors {e} --threads 1 -o {out}",
    ),
    "razers3": ("", "razers3 -tc 1 -i {i} -rr 100 -m 1000000 -o {out} g.fa r.fq"),
    "yara_mapper": (
        "yara_indexer g.fa -o yara",
        "yara_mapper -t 1 -e {e} -s {e} -y full -sa record -o {out} yara r.fq",
    ),
    "bwa": ("bwa index -p bwa g.fa", "bwa mem -t 1 -a -o {out} bwa r.fq"),
    "bowtie2": ("bowtie2-build -q g.fa bt2", "bowtie2 -p 1 -a --very-sensitive -x bt2 -U r.fq -S {out}"),
    "minimap2": ("minimap2 -x sr -d g.mmi g.fa", "minimap2 -t 1 -ax sr -N 1000 -p 0.1 -o {out} g.mmi r.fq"),
}
Loci = dict[tuple[str, str, int], list[int]]


def drawn_reads(contigs: list[str], errors: int, count: int, rng: np.random.Generator) -> list[str]:
    """Reads of both strands with 0 to `errors` random changes, none with other letters than A, C, G, T."""
    found: list[str] = []
    sizes = np.array([len(contig) for contig in contigs], float)
    while len(found) < count:
        contig = contigs[int(rng.choice(len(contigs), p=sizes / sizes.sum()))]
        if len(contig) < LENGTH + errors:
            continue
        start = int(rng.integers(0, len(contig) - LENGTH - errors + 1))
        read = list(contig[start : start + LENGTH + errors])
        for _ in range(int(rng.integers(0, errors + 1))):
            place, kind = int(rng.integers(LENGTH)), int(rng.integers(3))
            letter = "ACGT"[int(rng.integers(4))]
            read[place : place + (kind != 1)] = [letter] if kind < 2 else []
        own = "".join(read)[:LENGTH]
        if set(own) <= set("ACGT"):
            turned = own[::-1].translate(str.maketrans("ACGT", "TGCA"))
            found.append(turned if rng.integers(2) else own)
    return found


def run(command: str, folder: Path) -> float:
    """Processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Where Python keeps no bytecode, it compiles all sources again.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env.setdefault("PYTHONPYCACHEPREFIX", str(folder / "bytecode"))
    done = subprocess.run(command.split(), cwd=folder, env=env, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{command}: {done.stderr[-500:]!r}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loci_of(path: Path) -> Loci:
    """Ends of records by contig, strand and read, sorted, with clipped letters counted as aligned."""
    found: Loci = defaultdict(list)
    with path.open() as lines:
        for line in lines:
            if line.startswith("@"):
                continue
            fields = line.split("\t", 12)
            flag = int(fields[1])
            if flag & 4:
                continue
            # Some leave alignments of further loci out: then they have about the letters of the read.
            runs = re.findall(r"(\d+)([MDN=XSH])", fields[5]) or [(LENGTH, "M")]
            lead = int(runs[0][0]) if runs[0][1] in "SH" else 0
            end = int(fields[3]) - 1 - lead + sum(int(count) for count, _ in runs)
            found[fields[2], "+-"[flag >> 4 & 1], int(fields[0][1:])].append(end)
    return {key: sorted(ends) for key, ends in found.items()}


def lacking(loci: Loci, others: Loci, errors: int) -> list[tuple[tuple[str, str, int], int]]:
    """Loci that are not among others; ends at most E + 1 letters apart, as in tandem repeats, are one."""
    missing, far = [], 2 * errors + 2
    for key, ends in loci.items():
        theirs, known, last = others.get(key, []), True, -far
        for k, end in enumerate(ends):
            if k == 0 or end - last > errors + 1:
                if not known:
                    missing.append((key, last))
                known = False
            at = bisect_left(theirs, end - far)
            known, last = known or (at < len(theirs) and theirs[at] <= end + far), end
        if not known:
            missing.append((key, last))
    return missing


def distance(contigs: dict[str, str], reads: list[str], locus: Any, errors: int) -> str:
    """What edlib says of a locus."""
    if importlib.util.find_spec("edlib") is None:
        return "edlib is not installed"
    import edlib

    (contig, strand, read), end = locus
    own = reads[read] if strand == "+" else reads[read][::-1].translate(str.maketrans("ACGT", "TGCA"))
    window = contigs[contig][max(end - LENGTH - 2 * errors, 0) : end + 2 * errors]
    return f"distance {edlib.align(own, window, mode='HW')['editDistance']}"


def main() -> None:
    """Run all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reference", nargs="?", type=Path)
    parser.add_argument("--letters", type=int, default=4_600_000)
    parser.add_argument("--errors", type=int, default=5)
    parser.add_argument("--reads", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=list(COMMANDS))
    options = parser.parse_args()
    rng, contigs = np.random.default_rng(options.seed), {}
    if options.reference is None:
        contigs["c"] = LETTERS[generated(options.letters, options.seed)].tobytes().decode()
    else:
        for block in read_fasta(options.reference):
            for k, name in enumerate(block.names):
                own = block.letters[block.offsets[k] : block.offsets[k + 1]]
                contigs[name] = own.tobytes().decode().upper()
    reads = drawn_reads(list(contigs.values()), options.errors, options.reads, rng)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "g.fa").write_text("".join(f">{name}\n{text}\n" for name, text in contigs.items()))
        (folder / "r.fq").write_text("".join(f"@r{k}\n{r}\n+\n{'I' * LENGTH}\n" for k, r in enumerate(reads)))
        compared(folder, contigs, reads, options)


def compared(folder: Path, contigs: dict[str, str], reads: list[str], options: argparse.Namespace) -> None:
    """Run the commands in a folder, and print a line of each."""
    known: Loci = {}
    print(f"{len(reads):,} reads, {sum(map(len, contigs.values())):,} letters, {options.errors} errors")
    for name in options.only:
        index, command = COMMANDS[name]
        if name != "plait" and shutil.which(name) is None:
            print(f"{name:12} is not installed")
            continue
        words = {"python": sys.executable, "e": options.errors, "i": 100 - options.errors, "out": "o.sam"}
        if name == "plait":
            # What is compiled is compiled once.
            run(index.format(**words), folder)
            run(command.format(**words), folder)
        seconds = [run(line.format(**words), folder) if line else 0.0 for line in (index, command)]
        found = loci_of(folder / "o.sam")
        known = known or found
        total = sum(map(len, known.values()))
        missing, more = lacking(known, found, options.errors), lacking(found, known, options.errors)
        print(
            f"{name:12} {total - len(missing):>9,} of {total:,} loci ({(1 - len(missing) / total):8.3%}), "
            f"{len(more):,} others; {len(reads) / seconds[1]:>9,.0f} reads/s, index {seconds[0]:.1f} s"
        )
        if name in ("razers3", "yara_mapper"):
            for text, loci in (("is missed", missing), ("is not plait's", more)):
                for locus in loci[:20]:
                    print(
                        f"    {text}: {locus} {distance(contigs, reads, locus, options.errors)}", flush=True
                    )
        print(f"    {command.format(**words | {'python': 'python'})}", flush=True)


if __name__ == "__main__":
    main()
