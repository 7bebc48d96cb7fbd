"""``plait doctor`` and ``plait compile``: what this machine has for plait."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import Parameter

from plait.cli.console import say
from plait.cli.options import WholeNumber

#: Small runs that need what commands usually do, the longest first; after a semicolon, what needs the former.
_RUNS = (
    "vdj annotate reads.fastq --mate mates.fastq --umi name --germline mouse_trb --clonotypes c.tsv -o a.tsv;"
    "vdj alleles a.tsv --germline mouse_trb -o found.tsv",
    "search proteins.fasta proteins.fasta -o hits.tsv",
    "vdj count rows.tsv --germline mouse_trb -o dp2.tsv",
    "vdj pgen rows.tsv --model human_TRB --of nt,aa -o pgen.tsv",
    "vdj scenarios rows.tsv --model human_TRB -o scenarios.tsv",
    "vdj generate --model human_TRB -n 40 --seed 1 --keep all -o drawn.tsv;"
    "vdj infer drawn.tsv --start human_TRB --rows all --iterations 1 --no-report -o model",
    "align proteins.fasta --pairs all -o aligned.tsv",
    "hsi compress cube.npy -o cube.c123; hsi decompress cube.c123 -o back.npy",
    "search reads.fasta reads.fasta -o found.tsv",
    "vdj study sheet.csv --germline mouse_trb --pi 1 --nu 4 --sweep-pi 0,1 --sweep-nu 4 --lambdas 5 -o study",
    "vdj scenarios rows.tsv --model human_TRB --posteriors -o posteriors.tsv",
    "vdj count rows.tsv --germline mouse_trb --model dp1 -o dp1.tsv",
)


def doctor(
    *,
    json_: Annotated[bool, Parameter(name="--json", negative="")] = False,
    quick: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Tell what plait can use on this machine, and what to do about the rest.

    Parameters
    ----------
    json_
        Print JSON.
    quick
        Do not run a small kernel on every GPU.
    """
    from plait.reports.doctor import doctor_text, examine

    machine = examine(try_devices=not quick)
    print(json.dumps(machine.as_dict(), indent=2) if json_ else doctor_text(machine), end="")
    if json_:
        print()


def compile_ahead(*, processes: WholeNumber | None = None) -> None:
    """Compile ahead what commands usually need on the CPU.

    What an installation has brought, or earlier commands have left, is not compiled again.

    Parameters
    ----------
    processes
        Processes that compile; otherwise the processors that this one may use.
    """
    from plait.lang.compile import compiled_cache
    from plait.settings import thread_count

    count = thread_count() if processes is None else processes
    folder = compiled_cache()
    before, start = set(folder.glob("*.o")), time.perf_counter()
    say(f"compiling with {count} process{'' if count == 1 else 'es'} what commands need")
    with TemporaryDirectory(prefix="plait-") as name, ThreadPoolExecutor(count) as pool:
        _write_inputs(Path(name))
        list(pool.map(partial(_run, Path(name)), _RUNS))
    made, seconds = len(set(folder.glob("*.o")) - before), time.perf_counter() - start
    say(f"compiled {made} kernel{'' if made == 1 else 's'} in {seconds:.1f} s, kept in {folder}")


def _run(folder: Path, lines: str) -> None:
    """Run command lines one after the other, each in a process of its own."""
    for line in lines.split(";"):
        command = [sys.executable, "-m", "plait", *line.split()]
        # One thread each: they only wait for the same kernel.
        settings = os.environ | {"PLAIT_THREADS": "1"}
        found = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True)
        if found.returncode:
            raise RuntimeError(f"plait {line.strip()}: {found.stderr.strip()}")


def _write_inputs(folder: Path) -> None:
    """Rearrangements of mouse TRB as rows and as reads, proteins and a cube: a few of each."""
    import numpy as np

    from plait.vdj.germline import load_germline

    rng, germline = random.Random(1), load_germline("mouse_trb")
    v = next(allele for allele in germline.v if allele.cdr3_end and len(allele.sequence) > 200)
    j = next(allele for allele in germline.j if allele.cdr3_end)
    ends = v.cdr3_end or "", j.cdr3_end or ""
    rows, reads = ["junction\tv_call\tj_call\tsubject_id\tduplicate_count"], []
    for k in range(24):
        junction = f"{ends[0]}{'A' * (k % 4)}{germline.d[0].sequence[:8]}{'C' * (k % 3)}{ends[1]}"
        rows.append(f"{junction}\t{v.name}\t{j.name}\ts{k % 4}\t{1 + k}")
        before, after = v.sequence.rpartition(ends[0])[0], j.sequence.partition(ends[1])[2]
        reads.append(f"{before}{junction}{after}"[-200:])
    turned = [read.translate(str.maketrans("ACGT", "TGCA"))[::-1] for read in reads]
    for file, texts in (("reads", reads), ("mates", turned)):
        records = [f"@r_{'ACGT'[k % 4] * 8}\n{text}\n+\n{'I' * len(text)}\n" for k, text in enumerate(texts)]
        (folder / f"{file}.fastq").write_text("".join(records))
    proteins = ["".join(rng.choices("ACDEFGHIKLMNPQRSTVWY", k=90)) for _ in range(8)]
    for file, texts in (("reads", reads), ("proteins", [*proteins, *(text[9:] for text in proteins)])):
        (folder / f"{file}.fasta").write_text("".join(f">{k}\n{text}\n" for k, text in enumerate(texts)))
    (folder / "rows.tsv").write_text("\n".join(rows) + "\n")
    (folder / "sheet.csv").write_text("file,subject_id\nrows.tsv,\n")
    walk = np.random.default_rng(1).integers(-30, 31, (8, 8, 8)).cumsum(axis=2)
    np.save(folder / "cube.npy", (2000 + walk).astype("<u2"))
