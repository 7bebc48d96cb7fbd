"""Parsers of words: cells of tables, values of options, whole command lines."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
from tests.fuzz.mutation import mutated_bytes, text_mutation
from tests.fuzz.trial import Parser

from plait.align.results import parse_cigar
from plait.cli import main
from plait.errors import InvalidInput
from plait.formats.reads import BarcodePlace
from plait.vdj.calls import encode_junctions


def _texts(data: bytes, folder: Path) -> None:
    """Junctions, CIGAR strings and the places of UMIs: a text in a cell or an option."""
    del folder
    text = data.decode("utf-8", "replace")
    encode_junctions(pa.array([text, None, "TGTGCC"]))
    if len(data) % 2:
        BarcodePlace.parse(text)
    else:
        operations, lengths = parse_cigar(text)
        assert "".join(f"{n}{chr(o)}" for n, o in zip(lengths, operations, strict=True)) == text


def _text_parser() -> Parser:
    seeds = [
        b"TGTGCCAGC",
        b"12=1X3D",
        b"3I1=",
        b"read1:0-12",
        b"name:_([ACGT]+)",
        b"read2:0-8+read1:3-5",
        b"name",
        b"",
    ]
    words = (b"=", b"X", b"read1:", b"read2:", b"+", b":", b"-", b"N", b"0", b"1" * 30, b"name", b"header")
    return Parser(
        name="texts", seeds=seeds, mutate=text_mutation(words, b":=-"), read=_texts, least_accepted=0.02
    )


_COMMANDS = (
    "vdj count missing.tsv -o o.tsv --pi 4 --nu 5 --strands 2 --model dp2 --sweep-pi 0:4 --threads 2",
    "vdj annotate missing.fastq -o o.tsv --germline mouse_trb --min-junction-quality 10 --umi read1:0-12",
    "vdj pgen missing.tsv -o o.tsv --model human_TRB --layout airr --block-rows 100",
    "vdj scenarios missing.tsv -o o.tsv --model human_TRB --top 3",
    "vdj generate missing_model -o o.tsv --rows 5 --seed 1",
    "vdj infer missing.tsv -o o --model human_TRB --iterations 3",
    "vdj sharing missing.tsv -o o.tsv --by-subject s.tsv --subject x",
    "vdj study missing.csv -o o --shared-by 2 --bootstrap 5 --seed 3 --sweep-nu 0,5",
    "vdj report missing -o o.html",
    "vdj explain TRBV1 TRBJ1 TGTGCC --germline missing",
    "align missing.fasta other.fasta -o o.tsv --band -3:5 --free-ends query_start --gap-open 3 --x-drop 5",
    "search missing.fasta db.plaitdb -o o.tsv --top 5 --evalue 1e-3 --columns qseqid,sseqid",
    "hsi compress missing.img -o o.c123 --shape 2,3,4 --dtype uint16 --dynamic-range 12 --blocks tiles:64x64",
    "hsi decompress missing.c123 -o o.img --format envi --interleave bsq",
    "germline convert missing.json -o o.json --anchors a.csv",
    "ldpc decode missing.npy -o o.npy --code wimax-576 --iterations 5 --method min-sum --schedule flooding",
    "ldpc simulate -o o.tsv --code wimax-576 --ebn0 1:2:0.5 --words 3 --errors 2 --seed 1 --iterations 2",
    "random sobol --count 5 --dimensions 3 --skip 7 --seed 1 --distribution normal --dtype float32",
    "decode missing.json missing.npy -o o.tsv --what best --beam 3 --active 5 --threads 1",
    "episodes missing.tsv -o o.tsv --window 0:5 --window 5:15 --support 3 --max-size 3 --type-column a",
    "similar missing.tsv other.tsv -o o.tsv --column a -q 3 --at-least 0.5 --threads 1",
)
_WORDS = (
    *(
        "-1",
        "0",
        "1e9",
        "nan",
        "",
        " ",
        "1:0",
        "0:4:5",
        "9" * 40,
        "٣",
        "\udcff",
        "--help",
        "-o",
        "--",
        "-",
        "=",
        "a=b",
    ),
    *(
        "--pi",
        "--sweep-nu",
        "--threads",
        "--device",
        "cuda:99",
        "reference",
        "/",
        ".",
        "o.parquet",
        "x.tsv.gz",
        "\0",
    ),
    *(
        "--band",
        "5:-5",
        "--shape",
        "1,2",
        "--germline",
        "tiles:0x0",
        "rows:-1",
        "1.5",
        "inf",
        "--resume",
        "--no-resume",
    ),
)


def _options(data: bytes, folder: Path) -> None:
    words = data.decode("utf-8", "surrogateescape").split("\n")
    before = os.getcwd()
    # What is printed as bytes goes there, too.
    told = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            status = main(words)
    finally:
        os.chdir(before)
    text = told.buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]
    assert status in (0, 1, 2), f"status {status}: {text[-300:]}"
    if status:
        raise InvalidInput("options", found="wrong ones", expected=text[-40:] or "a message")


def _option_parser() -> Parser:
    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        words = rng.choice(corpus).split(b"\n")
        known = [word.encode("utf-8", "surrogateescape") for word in _WORDS]
        for _ in range(1 + int(rng.expovariate(1))):
            at, step = rng.randrange(2, len(words) + 1), rng.randrange(4)
            if step == 0:
                words.insert(at, rng.choice(known))
            elif step == 1 and at < len(words):
                del words[at]
            elif step == 2 and at < len(words):
                words[at] = mutated_bytes(rng, words[at], known).replace(b"\n", b"")
            elif at < len(words):
                words[at] = rng.choice(known)
        return b"\n".join(words)

    seeds = [command.replace(" ", "\n").encode() for command in _COMMANDS]
    return Parser(name="options", seeds=seeds, mutate=mutate, read=_options, least_accepted=0.0)


PARSERS = {"texts": _text_parser, "options": _option_parser}
