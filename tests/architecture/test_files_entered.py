"""How many files of plait a command runs through, and how many calls stand between it and a kernel.

A newcomer who follows a command reads these. Whoever makes the way shorter lowers a limit here.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

INPUTS = Path(__file__).parents[1] / "golden" / "commands"
PROGRAM = """
import contextlib, io, json, sys
from plait.cli import main
from trace_command import traced
with contextlib.redirect_stdout(io.StringIO()):
    main("vdj generate --model human_TRB -n 60 --seed 3 -o drawn.tsv".split())
found = {}
for command in sys.argv[1:]:
    trace = traced(command.split(), "lang/compile")
    frames = [len(stack) - 1 for name, stack in trace.stacks.items() if name.endswith(":__call__")]
    found[command] = len(trace.calls), max(frames)
print(json.dumps(found))
"""
#: Most files, and most calls above that of a kernel.
LIMITS = {
    "vdj count {inputs}/rows.tsv --germline mouse_trb -o counts.tsv --device cpu --threads 1": (30, 10),
    "vdj pgen drawn.tsv --model human_TRB -o pgen.tsv --device cpu --threads 1": (29, 9),
    "search {inputs}/proteins.fasta {inputs}/proteins.fasta -o hits.m8 --device cpu --threads 1": (31, 11),
    "vdj annotate {inputs}/reads_1.fastq --germline mouse_trb -o reads.tsv --device cpu --threads 1": (
        36,
        13,
    ),
}


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> dict[str, list[int]]:
    """Files and frames of every command line."""
    words = [command.format(inputs=INPUTS) for command in LIMITS]
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.append({str(repository / 'tools')!r})\n{PROGRAM}",
            *words,
        ],
        cwd=tmp_path_factory.mktemp("traced"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return dict(json.loads(found.stdout))


@pytest.mark.parametrize("command", LIMITS)
def test_a_command_runs_through_few_files(traced: dict[str, list[int]], command: str) -> None:
    files, frames = traced[command.format(inputs=INPUTS)]
    most_files, most_frames = LIMITS[command]
    # Fewer than half would mean that nothing was traced.
    assert most_files // 2 < files <= most_files
    assert most_frames // 2 < frames <= most_frames
