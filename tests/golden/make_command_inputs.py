"""Write commands/: the small inputs of the command lines whose outputs are golden.

Run ``python tests/golden/make_command_inputs.py``. The inputs are files, so that they stay as they are when
germline sets grow.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from plait.vdj.germline import load_germline

FOLDER = Path(__file__).parent / "commands"
_PARTNERS = str.maketrans("ACGT", "TGCA")


def _junction(v: str, d: str, j: str, rng: random.Random) -> str:
    start = rng.randrange(4)
    inserted = ["".join(rng.choices("ACGT", k=rng.randrange(6))) for _ in range(2)]
    end = v[: len(v) - rng.randrange(6)]
    return end + inserted[0] + d[start : start + rng.randrange(3, 9)] + inserted[1] + j[rng.randrange(6) :]


def write_table(rng: random.Random) -> None:
    """Rows of mouse TRB, some of them shared by subjects, some that cannot be counted."""
    germline = load_germline("mouse_trb")
    v = [a for a in germline.v if a.cdr3_end]
    j = [a for a in germline.j if a.cdr3_end]
    kinds = []
    for _ in range(60):
        first, last = rng.choice(v), rng.choice(j)
        text = _junction(first.cdr3_end, rng.choice(germline.d).sequence, last.cdr3_end, rng)
        kinds.append((text, first.name, last.name.partition("*")[0]))
    kinds += [
        ("", v[0].name, j[0].name),
        (kinds[0][0], "TRBV99", j[0].name),
        ("TGTXCC", v[0].name, j[0].name),
    ]
    lines = ["junction\tv_call\tj_call\tsubject_id\tduplicate_count"]
    for _ in range(160):
        row = rng.choice(kinds)
        lines.append("\t".join([*row, f"s{rng.randrange(4)}", str(rng.randrange(1, 9))]))
    (FOLDER / "rows.tsv").write_text("\n".join(lines) + "\n")


def write_reads(rng: random.Random) -> None:
    """Reads and mates of mouse TRB, with errors, poor bases and UMIs; some are nothing."""
    germline = load_germline("mouse_trb")
    v = [a for a in germline.v if a.cdr3_end and len(a.sequence) > 200]
    j = [a for a in germline.j if a.cdr3_end]
    molecules = []
    for _ in range(30):
        first, last = rng.choice(v), rng.choice(j)
        text = _junction(first.cdr3_end, rng.choice(germline.d).sequence, last.cdr3_end, rng)
        before = first.sequence[: first.sequence.rindex(first.cdr3_end)]
        after = last.sequence[last.sequence.index(last.cdr3_end) + len(last.cdr3_end) :]
        molecules.append((before + text + after)[-230:])
    molecules.append("".join(rng.choices("ACGT", k=200)))
    reads, mates = [], []
    for number in range(90):
        molecule = rng.choice(molecules)
        umi = "".join(rng.choices("ACGT", k=8))
        mate = molecule[:150].translate(_PARTNERS)[::-1]
        for records, text in ((reads, molecule[-150:]), (mates, mate)):
            quality = [rng.choice((2, 12, 25, 37, 37, 37, 37, 37, 37, 40)) for _ in text]
            wrong = [
                rng.choice("ACGT") if rng.random() < 10 ** (-q / 10) else b
                for b, q in zip(text, quality, strict=True)
            ]
            scores = "".join(chr(33 + q) for q in quality)
            records.append(f"@read{number}_{umi}\n{''.join(wrong)}\n+\n{scores}\n")
    (FOLDER / "reads_1.fastq").write_text("".join(reads))
    (FOLDER / "reads_2.fastq").write_text("".join(mates))


def write_sequences(rng: random.Random) -> None:
    """Proteins and nucleotides, some of them copies of each other with changes."""
    for name, letters in (("proteins", "ACDEFGHIKLMNPQRSTVWY"), ("nucleotides", "ACGT")):
        texts = ["".join(rng.choices(letters, k=rng.randrange(20, 120))) for _ in range(12)]
        for text in texts[:8]:
            start, end = sorted(rng.sample(range(len(text) + 1), 2))
            changed = [rng.choice(letters) if rng.random() < 0.15 else c for c in text[start:end]]
            texts.append("".join(rng.choices(letters, k=9)) + "".join(changed))
        records = [f">{name}{k} number {k}\n{text}\n" for k, text in enumerate(texts)]
        (FOLDER / f"{name}.fasta").write_text("".join(records))


def write_cube(seed: int) -> None:
    """A smooth cube with noise: 12 rows, 10 columns, 14 bands of 12 bits."""
    draws = np.random.Generator(np.random.PCG64(seed))
    walk = draws.integers(-30, 31, (12, 10, 14)).cumsum(axis=0).cumsum(axis=1).cumsum(axis=2)
    cube = (2000 + walk % 1900).astype("<u2")
    np.save(FOLDER / "cube.npy", cube)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write_table(random.Random(1))
    write_reads(random.Random(2))
    write_sequences(random.Random(3))
    write_cube(4)
    (FOLDER / "sheet.csv").write_text("file,subject_id\nrows.tsv,\n")
