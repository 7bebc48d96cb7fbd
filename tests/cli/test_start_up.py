"""What commands do not import."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.examples import often

#: Stands in the place of pandas, and tells when it is imported.
PANDAS = "import os\nopen(os.environ['PANDAS_SEEN'], 'w').close()\nraise ImportError('not a pandas')\n"
COUNT = ("vdj", "count", "rows.tsv", "--germline", "mouse_trb", "--device", "reference")
ANNOTATE = ("vdj", "annotate", "reads.fasta", "--germline", "mouse_trb", "--device", "cpu")
REFERENCE = ("--device", "reference")
ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"


@pytest.fixture
def folder(tmp_path: Path, write_tsv: Any, mouse_rows: Any) -> Path:
    (tmp_path / "pandas").mkdir()
    (tmp_path / "pandas" / "__init__.py").write_text(PANDAS)
    Path(write_tsv(mouse_rows(3))).rename(tmp_path / "rows.tsv")
    (tmp_path / "short.fasta").write_text(">a\nMKVLATW\n>b\nMKLATTW\n")
    read = "GGTGTATTTCTGTGCCAGCAGCCAAGATCGGGACAGTAACTATGCTGAGCAGTTCTTCGGACCAGGGACACGACTC"
    (tmp_path / "reads.fasta").write_text(f">read\n{read}\n")
    np.save(tmp_path / "cube.npy", np.arange(60, dtype=np.int16).reshape(3, 4, 5))
    return tmp_path


@pytest.mark.parametrize(
    "words",
    often(
        1,
        [
            ((*COUNT, "-o", "out.parquet"),),
            (("search", "short.fasta", "short.fasta", *REFERENCE, "-o", "out.parquet"),),
            (("hsi", "compress", "cube.npy", "-o", "out.bin"),),
            (("germline", "list"),),
            ((*COUNT, "-o", "out.tsv"),),
            (("vdj", "pgen", "rows.tsv", "--model", "human_TRB", *REFERENCE, "-o", "out.tsv"),),
            # Interpreted, one read takes ten times as long as with the kernels that other tests need, too.
            ((*ANNOTATE, "-o", "out.tsv"),),
            (("align", "short.fasta", "short.fasta", *REFERENCE, "-o", "out.tsv"),),
        ],
    ),
    ids=lambda words: " ".join([*words[:2], words[-1]]),
)
def test_no_command_imports_pandas(folder: Path, start_plait: Any, words: tuple[str, ...]) -> None:
    path = os.pathsep.join([str(folder), str(Path(__file__).resolve().parents[2] / "src")])
    seen = folder / "seen"
    environment = os.environ | {"PYTHONPATH": path, "PANDAS_SEEN": str(seen)}
    process = start_plait(*words, env=environment, cwd=folder)
    _, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    assert not seen.exists()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory is kept with glibc alone")
@pytest.mark.parametrize(
    ("given", "found"), often(1, [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")])
)
def test_memory_is_taken_as_the_environment_says(given: dict[str, str], found: str) -> None:
    program = "from plait.cli import main; main(['--version'])\nimport pyarrow; "
    program += "print(pyarrow.default_memory_pool().backend_name)"
    names = ("ARROW_DEFAULT_MEMORY_POOL", "GLIBC_TUNABLES", "LD_PRELOAD")
    environment = {
        name: text
        for name, text in os.environ.items()
        if name not in names and not name.startswith("MALLOC_")
    }
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment | given, capture_output=True, text=True, check=True
    )
    assert run.stdout.split()[-1] == found


def test_text_of_folds_needs_no_arrow(tmp_path: Path) -> None:
    (tmp_path / "rna.fa").write_text(">one\nGGGGAAAACCCC\n")
    program = "import sys; from plait.cli import main; "
    program += "main(['fold', 'rna.fa', '--device', 'reference', '-o', sys.argv[1]]); "
    for output, loaded in (("rna.txt", False), ("rna.parquet", True)):
        told = subprocess.run(
            [sys.executable, "-c", f"{program}print('pyarrow' in sys.modules)", output],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        assert told.stdout.strip() == str(loaded)
        assert (tmp_path / output).exists()
