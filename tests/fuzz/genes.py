"""Parsers of germline sets, models, anchors, databases, matrices, sheets, and of what runs leave on disk."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from plait.align.cigar import parse_cigar
from plait.align.database import open_database
from plait.align.database_build import build_database
from plait.align.matrices import load_matrix
from plait.cli import main
from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import Checkpoint
from plait.formats.read_umis import UmiPlace
from plait.reports.study_inputs import read_study
from plait.statistics.design_file import DesignFile, DesignWriter
from plait.testing.recombination import small_model
from plait.vdj.convergence.sample_sheet import read_sample_sheet
from plait.vdj.convergence.stretches import Dealt
from plait.vdj.germline import load_germline, validate
from plait.vdj.germline.airr_json import parse_airr_json
from plait.vdj.germline.airr_write import airr_text
from plait.vdj.germline.overrides import apply_overrides, read_anchor_table
from plait.vdj.junctions import encode_junctions
from plait.vdj.model import RecombinationModel, read_model, write_model
from plait.vdj.model.inference_folder import InferenceState, StateStore
from tests.fuzz.mutation import (
    bundle,
    bundle_mutation,
    json_mutation,
    mutated_bytes,
    raw_mutation,
    text_mutation,
    unbundle,
)
from tests.fuzz.tables import new_place, place
from tests.fuzz.trial import Parser

_V = "GATGGGTACAAGGCCACCAGAACAACGCAAGAAGACTTCTTCCTCCTGCTGGAATTGGCTTCTCCCTCTCAGACATCTTTGTACTTCTGTGCCAGCAGTGATG"
_J = "TAACTATGCTGAGCAGTTCTTCGGACCAGGGACACGACTCACCGTCCTAG"


def _description(label: str, segment: str, sequence: str, **more: Any) -> dict[str, Any]:
    return {
        "allele_description_id": f"X:{label}",
        "acknowledgements": None,
        "label": label,
        "sequence": sequence,
        "coding_sequence": sequence,
        "locus": "TRB",
        "sequence_type": segment,
        "functional": True,
        "inference_type": "Rearranged only",
        "aliases": None,
    } | more


def _germline_content() -> dict[str, Any]:
    place_ = {"sequence_delineation_id": "1", "delineation_scheme": "IMGT", "cdr3_start": 1 + _V.index("TGTGCCAGC")}
    return {
        "GermlineSet": [
            {
                "germline_set_id": "X:1",
                "release_version": 3,
                "germline_set_name": "made up",
                "germline_set_ref": "X:1.3",
                "species": {"id": "NCBITAXON:10090", "label": "Mus musculus"},
                "locus": "TRB",
                "allele_descriptions": [
                    _description("TRBV13-1*01", "V", _V, v_gene_delineations=[place_]),
                    _description("TRBD1*01", "D", "GGGACAGGGGGC"),
                    _description("TRBJ2-1*01", "J", _J, j_cdr3_end=20, aliases=["TRBJ2-1*02"]),
                ],
            }
        ]
    }


def _germline_json(data: bytes, folder: Path) -> None:
    path = new_place(folder, data, "case.json")
    germline = load_germline(path)
    validate(germline)
    if len(data) % 4 == 0:
        again = parse_airr_json(path, airr_text(germline))
        assert again.digest == germline.digest, "another set when written and read"
    if len(data) % 16 == 1:
        with contextlib.suppress(FormatError):
            load_germline(path, strict=False)


def _germline_parser() -> Parser:
    content = _germline_content()
    seeds = [json.dumps(content).encode()]
    own = parse_airr_json("a.json", seeds[0].decode())
    seeds.append(airr_text(own).encode())
    keys = (*content["GermlineSet"][0], *_description("a", "V", "A"), "cdr3_start", "j_cdr3_end")
    values = (_V, _J, "TRB", "TRBV1*01", "V", "D", "J", "IGH", "Homo sapiens", "ACGTRYN", "...ACG")
    return Parser(
        name="germline", seeds=seeds, mutate=json_mutation(keys, values), read=_germline_json, cases=1_000_000
    )


def _models() -> list[RecombinationModel]:
    return [small_model(3), small_model(4, d=False, genes=1)]


def _model_bytes(model: RecombinationModel) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_model(model, Path(folder) / "m.json")
        return (Path(folder) / "m.json").read_bytes()


def _model_json(data: bytes, folder: Path) -> None:
    model = read_model(place(folder, data, "case.json"))
    if len(data) % 4 == 0:
        path = folder / "again.json"
        path.unlink(missing_ok=True)
        write_model(model, path)
        assert read_model(path).digest == model.digest, "another model when written and read"


def _model_parser() -> Parser:
    seeds = [_model_bytes(model) for model in _models()]
    content = json.loads(seeds[0])
    keys = (*content, *content["genes"], *content["palindromes"], *content["probabilities"])
    values = ([[0.25] * 4] * 4, [1.0], [0.5, 0.5], "TRXV1*01", "F", -1, 1e-320, " TRBD1*01")
    return Parser(
        name="model", seeds=seeds, mutate=json_mutation(keys, values), read=_model_json, cases=1_000_000
    )


def _folder(data: bytes, folder: Path) -> Path:
    path = folder / "folder"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for name, content in unbundle(data).items():
        place(path, content, name)
    return path


def _olga(data: bytes, folder: Path) -> None:
    path = _folder(data, folder)
    try:
        model = read_model(path)
    finally:
        with contextlib.suppress(FormatError, InvalidInput):
            validate(load_germline(path))
    if len(data) % 4 == 0:
        write_model(model, folder / "again.json")
        assert read_model(folder / "again.json").digest == model.digest


def _olga_parser() -> Parser:
    seeds = []
    with tempfile.TemporaryDirectory() as scratch:
        for k, model in enumerate(_models()):
            path = Path(scratch) / str(k)
            write_model(model, path)
            seeds.append(bundle({file.name: file.read_bytes() for file in sorted(path.iterdir())}))
    words = (b"@Event_list", b"@Edges", b"#GeneChoice;V_gene", b"%TRXV1*01;ACG;0", b"$Dim[2,3]", b"#[v_choice,0]", b"%0.5")
    text = text_mutation(words, b";,", raw=0.25)
    return Parser(name="olga", seeds=seeds, mutate=bundle_mutation({"": text}), read=_olga)


def _germline_folder(data: bytes, folder: Path) -> None:
    path = _folder(data, folder)
    germline = load_germline(path, strict=len(data) % 2 == 0)
    validate(germline)


def _fasta_parser() -> Parser:
    v = f">X1|TRBV13-1*01|Mus musculus|F|V-REGION|\n{_V.lower()}\n>TRBV2*01\n{_V[:50]}\n{_V[50:]}\n".encode()
    j, d = f">TRBJ2-1*01\n{_J}\n".encode(), b">TRBD1*01\nGGGACAGGGGGC\n"
    seeds = [bundle({"TRBV.fasta": v, "TRBD.fasta": d, "TRBJ.fasta": j}), bundle({"V.fa": v, "J.fa": j})]
    words = (b">", b"|", b"TRBV2*01", b"|F|", b"ACGT", b"...", b"Mus musculus", b"N" * 40)
    return Parser(
        name="germline_fasta", seeds=seeds, mutate=bundle_mutation({"": text_mutation(words, b"| ")}), read=_germline_folder
    )


def _anchors(data: bytes, folder: Path) -> None:
    path = place(folder, data, "case.csv")
    rows = read_anchor_table(path)
    assert len({row.name for row in rows}) == len(rows)
    apply_overrides(_germline(), path)


_KEPT: dict[str, Any] = {}


def _germline() -> Any:
    if "germline" not in _KEPT:
        _KEPT["germline"] = parse_airr_json("a.json", json.dumps(_germline_content()))
    return _KEPT["germline"]


def _anchor_parser() -> Parser:
    seeds = [
        b"gene,anchor_index,function\nTRBV13-1*01,6,F\nTRBJ2-1*01,3,(F) \n",
        b"\xef\xbb\xbfgene;anchor_index\r\nTRBJ2-1*01;3\r\n\r\n",
        b'gene\tanchor_index\n"TRBV13-1*01"\t-1\n',
    ]
    words = (b"gene", b"anchor_index", b"function", b"TRBV13-1*01", b"-1", b"1.5", b'"', b"9" * 5000, b"F")
    return Parser(name="anchors", seeds=seeds, mutate=text_mutation(words, b",;\t"), read=_anchors)


def _database(data: bytes, folder: Path) -> None:
    found = open_database(new_place(folder, data, "case.plaitdb"))
    if len(data) % 4 == 0:
        found.verify()
    for record in range(min(3, found.metadata["sequences"])):
        found.letters(record)
        assert isinstance(found.names[record], str) and isinstance(found.descriptions[record], str)


def _database_parser() -> Parser:
    seeds = []
    with tempfile.TemporaryDirectory() as scratch:
        for k, text in enumerate((b">a one\nMKVLAW\n>b\nWWW\n", b">n\nACGTN\n")):
            fasta = place(Path(scratch), text, f"{k}.fasta")
            built = build_database([fasta], Path(scratch) / f"{k}.plaitdb")
            seeds.append(Path(built.path).read_bytes())
    fixed = next(k for k in range(8, 64) if seeds[0][k : k + 1] == b"{")
    size = 4096 if seeds[0][fixed:4096].rstrip(b" \0\n").endswith(b"}") else len(seeds[0])
    keys = ("kind", "sequences", "sections", "offset", "bytes", "crc32", "file_bytes", "residues")
    header = json_mutation(keys, ("dna", "protein", 1 << 40, -8))

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = rng.choice(corpus)
        step = rng.random()
        if step < 0.3:
            return mutated_bytes(rng, data, corpus)
        if step < 0.5:
            at = rng.randrange(size, len(data))
            return data[:at] + rng.randrange(256).to_bytes(1, "big") + data[at + 1 :]
        # A header that says something else, with the right checksum.
        text = header(rng, [data[fixed:size].rstrip(b" \0\n")])[: size - fixed].ljust(size - fixed, data[size - 1 : size])
        head = bytearray(data[:fixed])
        struct.pack_into("<I", head, fixed - 4, zlib.crc32(text))
        return bytes(head) + text + data[size:]

    return Parser(name="database", seeds=seeds, mutate=mutate, read=_database)


def _matrix(data: bytes, folder: Path) -> None:
    load_matrix(place(folder, data, "case.mat"))


def _matrix_parser() -> Parser:
    seeds = [
        b"# a comment\n   A  C  G  T\nA  5 -4 -4 -4\nC -4  5 -4 -4\nG -4 -4  5 -4\nT -4 -4 -4  5\n",
        b"  A B *\nA 4 -2 -4\nB -2 4 -4\n* -4 -4 1\n",
    ]
    words = (b"A", b"*", b"-128", b"32768", b"1.5", b"#", b"-")
    return Parser(name="matrix", seeds=seeds, mutate=text_mutation(words, b" \t"), read=_matrix)


def _sheet(data: bytes, folder: Path) -> None:
    for name in "abc":
        if not (folder / f"{name}.tsv").exists():
            place(folder, b"x\n", f"{name}.tsv")
    sheet = read_sample_sheet(place(folder, data, "sheet.csv"))
    assert len({sample.path for sample in sheet.samples}) == len(sheet.samples)


def _sheet_parser() -> Parser:
    seeds = [
        b"file,subject_id,age\na.tsv,s1,3\nb.tsv,s2,4\nc.tsv,s1,3\n",
        b"\xef\xbb\xbffile\r\na.tsv\r\n\r\nb.tsv",
        b'file\tsubject_id\tsex\n"a.tsv"\ts1\tf\n',
    ]
    words = (b"file", b"subject_id", b"a.tsv", b"b.tsv", b".", b"/", b'"', b'""', b"s1", b"age")
    return Parser(name="sheet", seeds=seeds, mutate=text_mutation(words, b",\t"), read=_sheet)


_KEY = {"version": "1", "inputs": [["a.tsv", 3, 4]], "parameters": {"pi": 4}}


def _checkpoint(data: bytes, folder: Path) -> None:
    path = _folder(data, folder)
    stored = Checkpoint(path, key=_KEY, resume=True)
    for index in stored.blocks():
        batch = stored.get(index)
        assert batch is None or batch.schema.names == ["x"]


def _stored(put: Callable[[Checkpoint], None]) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "c"
        put(Checkpoint(path, key=_KEY, resume=False))
        return bundle({file.name: file.read_bytes() for file in sorted(path.iterdir())})


def _checkpoint_parser() -> Parser:
    batch = pa.record_batch({"x": pa.array([1, 2, 3])})
    seeds = [_stored(lambda c: (c.put(0, batch), c.put(1, batch))[0]), _stored(lambda c: c.put(3, batch))]
    ways = {".json": json_mutation(("kind", "version", "key", "inputs")), ".arrows": raw_mutation}
    return Parser(name="checkpoint", seeds=seeds, mutate=bundle_mutation(ways), read=_checkpoint)


def _state(data: bytes, folder: Path) -> None:
    path = _folder(data, folder)
    StateStore(Checkpoint(path, key=_KEY, resume=True)).get(small_model(3))


def _state_parser() -> Parser:
    state = InferenceState(model=small_model(3), batch=2, counts={"v": np.ones(2)}, history=[{"a": 1.0}])
    seeds = [_stored(lambda c: StateStore(c).put(state))]
    ways = {".json": json_mutation(("kind", "version", "key")), ".arrows": raw_mutation}
    outside, inside = bundle_mutation(ways), json_mutation(("batch", "history", "collected"))

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        if rng.random() < 0.5:
            return outside(rng, corpus)
        files = unbundle(corpus[0])
        name = next(name for name in files if name.endswith(".arrows"))
        batch = pa.ipc.open_stream(files[name][:-4]).read_next_batch()
        facts, arrays = batch["facts"][0].as_py().encode(), batch["arrays"][0].as_py()
        facts = inside(rng, [facts]).decode("utf-8", "replace")
        arrays = mutated_bytes(rng, arrays, [arrays]) if rng.random() < 0.4 else arrays
        row = pa.record_batch([pa.array([facts], pa.large_string()), pa.array([arrays], pa.large_binary())], schema=batch.schema)
        return _stored(lambda checkpoint: checkpoint.put(0, row))

    return Parser(name="inference_state", seeds=seeds, mutate=mutate, read=_state)


def _design(data: bytes, folder: Path) -> None:
    found = DesignFile(new_place(folder, data, f"case{zlib.crc32(data)}.design"))
    found.read(0, 5)


def _design_read(data: bytes, folder: Path) -> None:
    path = folder / f"case{zlib.crc32(data)}.design"
    try:
        _design(data, folder)
    finally:
        path.unlink(missing_ok=True)


def _design_parser() -> Parser:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "a.design"
        with DesignWriter(path, ["a", "b"]) as writer:
            writer.write(np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0]))
        seeds = [path.read_bytes()]
    data = seeds[0]
    length = int.from_bytes(data[-16:-8], "little")
    tree = json_mutation(("predictors", "events", "low", "high", "chunks"))

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        if rng.random() < 0.4:
            return mutated_bytes(rng, data, corpus)
        text = tree(rng, [data[-16 - length : -16]])
        return data[: -16 - length] + text + len(text).to_bytes(8, "little") + data[-8:]

    return Parser(name="design", seeds=seeds, mutate=mutate, read=_design_read)


def _description_of_study(data: bytes, folder: Path) -> None:
    path = folder / "study"
    (path / "tables").mkdir(parents=True, exist_ok=True)
    files = unbundle(data)
    place(path, files.get("study.json", b""), "study.json")
    place(path, files.get("samples.tsv", b""), "tables/samples.tsv")
    place(path, b'{"kind": "plait study", "version": 1}', "plait-study.json")
    found = read_study(path)
    for name in ("rows", "clonotypes", "subjects"):
        with contextlib.suppress(FormatError):
            found.number(name)
    _ = found.shared_by


def _study_parser() -> Parser:
    facts = {"rows": 3, "clonotypes": 2, "subjects": 2, "settings": {"shared_by": 2}, "version": "1"}
    table = b"sample\tfile\trows\nx\ta.tsv\t3\ny\tb.tsv\t4\n"
    seeds = [bundle({"study.json": json.dumps(facts).encode(), "samples.tsv": table})]
    ways = {".json": json_mutation(tuple(facts)), ".tsv": text_mutation((b"sample", b"rows"))}
    return Parser(name="study", seeds=seeds, mutate=bundle_mutation(ways), read=_description_of_study)


def _dealt(data: bytes, folder: Path) -> None:
    del folder
    Dealt.from_json(data.decode("utf-8", "replace"))


def _texts(data: bytes, folder: Path) -> None:
    """Junctions, CIGAR strings and the places of UMIs: a text in a cell or an option."""
    del folder
    text = data.decode("utf-8", "replace")
    encode_junctions(pa.array([text, None, "TGTGCC"]))
    if len(data) % 2:
        UmiPlace.parse(text)
    else:
        operations, lengths = parse_cigar(text)
        assert "".join(f"{n}{chr(o)}" for n, o in zip(lengths, operations, strict=True)) == text


def _text_parser() -> Parser:
    seeds = [b"TGTGCCAGC", b"12=1X3D", b"3I1=", b"read1:0-12", b"name:_([ACGT]+)", b"read2:0-8+read1:3-5", b"name", b""]
    words = (b"=", b"X", b"read1:", b"read2:", b"+", b":", b"-", b"N", b"0", b"1" * 30, b"name", b"header")
    return Parser(
        name="texts", seeds=seeds, mutate=text_mutation(words, b":=-"), read=_texts, least_accepted=0.02
    )


_COMMANDS = (
    "vdj count missing.tsv -o o.tsv --pi 4 --nu 5 --strands 2 --model dp2 --sweep-pi 0:4 --threads 2 --device cpu",
    "vdj annotate missing.fastq -o o.tsv --germline mouse_trb --min-junction-quality 10 --umi read1:0-12",
    "vdj pgen missing.tsv -o o.tsv --model human_TRB --layout airr --block-rows 100",
    "vdj scenarios missing.tsv -o o.tsv --model human_TRB --top 3",
    "vdj generate missing_model -o o.tsv --rows 5 --seed 1",
    "vdj infer missing.tsv -o o --model human_TRB --iterations 3",
    "vdj sharing missing.tsv -o o.tsv --by-subject s.tsv --subject x",
    "vdj study missing.csv -o o --shared-by 2 --bootstrap 5 --seed 3 --sweep-nu 0,5",
    "vdj report missing -o o.html",
    "vdj explain TRBV1 TRBJ1 TGTGCC --germline missing",
    "align missing.fasta other.fasta -o o.tsv --band -3:5 --free-ends query_start --match 2 --gap-open 3 --x-drop 5",
    "search missing.fasta db.plaitdb -o o.tsv --top 5 --evalue 1e-3 --columns qseqid,sseqid",
    "hsi compress missing.img -o o.c123 --shape 2,3,4 --dtype uint16 --dynamic-range 12 --blocks tiles:64x64",
    "hsi decompress missing.c123 -o o.img --format envi --interleave bsq",
    "germline convert missing.json -o o.json --anchors a.csv",
)
_WORDS = (
    *("-1", "0", "1e9", "nan", "", " ", "1:0", "0:4:5", "9" * 40, "٣", "\udcff", "--help", "-o", "--", "-", "=", "a=b"),
    *("--pi", "--sweep-nu", "--threads", "--device", "cuda:99", "reference", "/", ".", "o.parquet", "x.tsv.gz", "\0"),
    *("--band", "5:-5", "--shape", "1,2", "--germline", "tiles:0x0", "rows:-1", "1.5", "inf", "--resume", "--no-resume"),
)


def _options(data: bytes, folder: Path) -> None:
    words = data.decode("utf-8", "surrogateescape").split("\n")
    before = os.getcwd()
    told = io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
            status = main(words)
    finally:
        os.chdir(before)
    assert status in (0, 1, 2), f"status {status}: {told.getvalue()[-300:]}"
    if status:
        raise InvalidInput("options", found="wrong ones", expected=told.getvalue()[-40:] or "a message")


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
    return Parser(
        name="options", seeds=seeds, mutate=mutate, read=_options, least_accepted=0.0
    )


PARSERS = {
    "germline": _germline_parser,
    "model": _model_parser,
    "olga": _olga_parser,
    "germline_fasta": _fasta_parser,
    "anchors": _anchor_parser,
    "database": _database_parser,
    "matrix": _matrix_parser,
    "sheet": _sheet_parser,
    "checkpoint": _checkpoint_parser,
    "inference_state": _state_parser,
    "design": _design_parser,
    "study": _study_parser,
    "texts": _text_parser,
    "options": _option_parser,
}
