"""Write commands/: the small inputs of the command lines whose outputs are golden.

Run ``python tests/golden/make_command_inputs.py``. The inputs are files, so that they stay as they are when
germline sets grow.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from support.episodes import neurons

from plait.states import HiddenMarkovModel
from plait.vdj.germline import load_germline

FOLDER = Path(__file__).parent / "commands"
_PARTNERS = str.maketrans("ACGT", "TGCA")
_OTHERS = {letter: [other for other in "ACGT" if other != letter] for letter in "ACGTN"}


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


def _changed(text: str, rng: random.Random, share: float) -> str:
    """Letters lost, doubled or others, at this share of the places."""
    found = []
    for letter in text:
        kept = rng.random() >= share
        found.append(letter if kept else rng.choice(("", letter * 2, *_OTHERS[letter])))
    return "".join(found)


def write_genome(rng: random.Random) -> None:
    """Contigs with a repeat, N and lower case; guides, primers, barcodes; reads, mates and barcoded ones."""
    texts = ["".join(rng.choices("ACGT", k=size)) for size in (1700, 900, 600)]
    repeat = texts[0][200:380]
    texts[1] += _changed(repeat, rng, 0.02) + "".join(rng.choices("ACGT", k=200)) + repeat.lower()
    texts[2] = texts[2][:300] + "N" * 40 + "RYKM" + texts[2][300:] + "CAG" * 40
    names = ("first", "second", "third")
    records = [f">{name} a contig\n{text}\n" for name, text in zip(names, texts, strict=True)]
    (FOLDER / "genome.fasta").write_text("".join(records))
    guides = []
    for number in range(6):
        # 20 letters before an NGG of either strand.
        text = texts[number % 2].upper()
        text = text if number % 3 else text.translate(_PARTNERS)[::-1]
        place = rng.choice([k for k in range(30, len(text)) if text[k : k + 2] == "GG"])
        guides.append(f"guide{number}\t{_changed(text[place - 21 : place - 1], rng, 0.05)}\n")
    (FOLDER / "guides.tsv").write_text("".join(guides))
    first, last = texts[0][500:522], texts[0][900:921].translate(_PARTNERS)[::-1]
    (FOLDER / "primers.fasta").write_text(f">forward\n{first[:4]}N{first[5:]}\n>reverse\n{last}\n")
    barcodes = ["".join(rng.choices("ACGT", k=10)) for _ in range(4)]
    (FOLDER / "barcodes.txt").write_text("\n".join(barcodes) + "\n")
    files: dict[str, list[str]] = {"short_1.fastq": [], "short_2.fastq": [], "barcoded.fastq": []}
    for number in range(60):
        text = rng.choice(texts).upper()
        start = rng.randrange(len(text) - 220)
        ends = text[start : start + 100], text[start + 120 : start + 220].translate(_PARTNERS)[::-1]
        own = _changed(rng.choice(barcodes), rng, 0.04) + ends[0][:40]
        for records, letters in zip(files.values(), (*ends, own), strict=True):
            read = "".join(c if c in "ACGT" else "N" for c in letters)
            read = _changed(read, rng, 0.02 if number % 3 else 0)[: rng.randrange(50, 101)]
            scores = "".join(chr(rng.randrange(35, 74)) for _ in read)
            records.append(f"@short{number}\n{read}\n+\n{scores}\n")
    for name, records in files.items():
        (FOLDER / name).write_text("".join(records))


def write_molecules(rng: random.Random) -> None:
    """RNA of 1 to 200 bases, T and lower case too; structures of some."""
    sizes = (1, 12, *(rng.randrange(40, 90) for _ in range(10)), 200)
    texts = ["".join(rng.choices("ACGU", k=size)) for size in sizes]
    texts[3], texts[4] = texts[3].lower(), texts[4].replace("U", "T")
    records = [f">rna{k} number {k}\n{text}\n" for k, text in enumerate(texts)]
    (FOLDER / "rna.fasta").write_text("".join(records))
    (FOLDER / "structures.txt").write_text(
        ">hairpin\nGGGGAAAACCCC\n((((....))))\n"
        ">loops\nGGGAAGGAAACCAGAGAAAACUCAACCCA\n(((..((...)).(((....)))..))).\n"
        "GGCGGAAACCGCC\n((.((...)).))\n"
    )


def write_signals(seed: int) -> None:
    """Events of neurons; a model with its sequences, a graph with its frames; bits to encode."""
    types, times, _ = neurons(seconds=2)
    lines = [f"n{k}\t{t:.2f}\n" for k, t in zip(types, times, strict=True) if k < 15]
    (FOLDER / "events.tsv").write_text("type\ttime\n" + "".join(lines))
    emissions = [[0.35, 0.15, 0.15, 0.35], [0.1, 0.4, 0.4, 0.1]]
    steps, names = [[0.95, 0.05], [0.1, 0.9]], ("sea", "island")
    HiddenMarkovModel([0.5, 0.5], steps, emissions, names, tuple("ACGT")).write(FOLDER / "islands.json")
    (FOLDER / "dna.fasta").write_text(">one\nATTATATATTAGCGCGCGGCGCGCCGATATTATATA\n>two\nAT\n")
    (FOLDER / "graph.txt").write_text("0 1 1 7 0.5\n1 0 2 8\n0 1 0 0 2.25\n0\n1 1\n")
    rng = np.random.default_rng(seed)
    np.save(FOLDER / "frames.npy", np.round(-rng.exponential(size=(6, 2)), 3))
    np.save(FOLDER / "bits.npy", rng.integers(2, size=(3, 288)).astype(np.uint8))


def write_cells() -> None:
    """Contigs of three cells, as 10x writes them: a pair, an orphan, and one with two chains of a kind."""
    header = (
        "barcode,is_cell,contig_id,high_confidence,length,chain,v_gene,d_gene,j_gene,c_gene,full_length,"
        "productive,cdr3,cdr3_nt,reads,umis,raw_clonotype_id,raw_consensus_id"
    )
    alpha = "TRA,TRAV1-2,,TRAJ33,TRAC,True,True,CAVMDSNYQLIW,TGTGCTGTGATGGATAGCAACTATCAGTTAATCTGG"
    first = "TRB,TRBV6-1,TRBD1,TRBJ2-1,TRBC2,True,True,CASSEGNEQFF,TGTGCCAGCAGTGAAGGTAATGAGCAGTTCTTC"
    other = "TRB,TRBV20-1,,TRBJ1-2,TRBC1,True,True,CSARDYGYTF,TGCAGTGCTAGAGATTATGGCTACACCTTC"
    rows = (
        ("AAAC", 1, 500, alpha, "900,9"),
        ("AAAC", 2, 510, first, "1200,12"),
        ("AAAG", 1, 505, other, "300,3"),
        ("AACC", 1, 505, "TRA,TRAV12-1,,TRAJ20,TRAC,True,False,,", "120,2"),
        ("AACC", 2, 505, other, "310,4"),
        ("AACC", 3, 505, first, "290,4"),
    )
    lines = [header]
    for number, (cell, contig, length, chain, counts) in enumerate(rows, 1):
        name = f"{cell}-1,True,{cell}-1_contig_{contig},True,{length}"
        lines.append(f"{name},{chain},{counts},clonotype_{cell},c{number}")
    (FOLDER / "cells.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    write_table(random.Random(1))
    write_reads(random.Random(2))
    write_sequences(random.Random(3))
    write_cube(4)
    write_genome(random.Random(5))
    write_molecules(random.Random(6))
    (FOLDER / "sheet.csv").write_text("file,subject_id\nrows.tsv,\n")
    write_signals(1)
    write_cells()
