"""Parsers of databases, matrices and sheets, and of what runs leave on disk."""

from __future__ import annotations

import contextlib
import json
import struct
import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from support.recombination import small_model
from tests.fuzz.mutation import (
    bundle,
    bundle_mutation,
    json_mutation,
    mutated_bytes,
    raw_mutation,
    text_mutation,
    unbundle,
)
from tests.fuzz.tables import folder_of, new_place, place
from tests.fuzz.trial import Parser

from plait.align.database import DIGESTS, HEADER_BYTES, SECTIONS, build_database, digest_blocks, open_database
from plait.align.profiles import is_profile, read_profile
from plait.align.scoring import load_matrix
from plait.errors import FormatError, InvalidInput
from plait.formats.checkpoints import Checkpoint
from plait.formats.sheets import read_sample_sheet
from plait.mapping.index import Index
from plait.mapping.mapper import map_reads
from plait.reports.page import read_study
from plait.stats.design_file import DesignFile, DesignWriter
from plait.vdj.model.inference import InferenceState, StateStore


def _database(data: bytes, folder: Path) -> None:
    found = open_database(new_place(folder, data, "case.plaitdb"))
    if len(data) % 4 == 0:
        found.verify()
    for record in range(min(3, found.metadata["sequences"])):
        found.letters(record)
        assert isinstance(found.names[record], str) and isinstance(found.descriptions[record], str)


_FIXED = 16


def database_case(metadata: Any, data: bytes) -> bytes:
    """A database with another header, or text in its place; its checksum is right."""
    text = metadata if isinstance(metadata, bytes) else json.dumps(metadata).encode("utf-8", "replace")
    text = text[: HEADER_BYTES - _FIXED].ljust(HEADER_BYTES - _FIXED)
    head = bytearray(data[:_FIXED])
    struct.pack_into("<I", head, _FIXED - 4, zlib.crc32(text))
    return bytes(head) + text + data[HEADER_BYTES:]


def sealed_database(data: bytes) -> bytes:
    """A database whose sections have the right digests, whatever they hold."""
    facts = json.loads(data[_FIXED:HEADER_BYTES])
    spans = [(s["offset"], s["offset"] + s["bytes"]) for s in map(facts["sections"].get, SECTIONS)]
    digests = b"".join(digest_blocks(data[first:last]) for first, last in spans)
    facts["digests_crc32"] = zlib.crc32(digests)
    at = facts["sections"][DIGESTS]["offset"]
    return database_case(facts, data[:at] + digests)


def _database_parser() -> Parser:
    seeds = []
    with tempfile.TemporaryDirectory() as scratch:
        for kind, text in (("protein", b">a one\nMKVLAW\n>b\nWWW\n"), ("dna", b">n\nACGTN\n")):
            fasta = place(Path(scratch), text, f"{kind}.fasta")
            built = build_database([fasta], Path(scratch) / f"{kind}.plaitdb", kind=kind)
            seeds.append(Path(built.path).read_bytes())
    keys = ("kind", "sequences", "sections", "offset", "bytes", "digests_crc32", "file_bytes", "residues")
    header = json_mutation(keys, ("dna", "protein", 1 << 40, -8))

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = rng.choice(corpus)
        step = rng.random()
        if step < 0.25:
            return mutated_bytes(rng, data, corpus)
        if step < 0.6:
            spans = json.loads(data[_FIXED:HEADER_BYTES])["sections"]
            section = rng.choice([spans[name] for name in SECTIONS if spans[name]["bytes"]])
            at = section["offset"] + rng.randrange(section["bytes"])
            changed = (
                data[:at] + rng.choice((0, 1, 255, rng.randrange(256))).to_bytes(1, "big") + data[at + 1 :]
            )
            return sealed_database(changed) if step < 0.5 else changed
        # A header that says something else, with the right checksum.
        return database_case(header(rng, [data[_FIXED:HEADER_BYTES].rstrip()]), data)

    return Parser(name="database", seeds=seeds, mutate=mutate, read=_database)


_INDEX = struct.Struct("<8sIIQ")


def index_case(facts: Any, data: bytes, sections: bytes) -> bytes:
    """An index with another header, or text in its place, and sections; its checksum is right."""
    text = facts if isinstance(facts, bytes) else json.dumps(facts).encode("utf-8", "replace")
    magic, version, _, _ = _INDEX.unpack_from(data)
    head = _INDEX.pack(magic, version, zlib.crc32(text), len(text)) + text
    return head + bytes(-len(head) % 4096) + sections


def _index(data: bytes, folder: Path) -> None:
    found = Index.open(new_place(folder, data, "case.plait-index"))
    map_reads({"read": "ACGTTGCATGACGTTGCATGACGTTGCATG"}, found, errors=2, threads=1)


def _index_parser() -> Parser:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "i"
        Index.build({"c": "ACGTTGCATG" * 9, "d": "", "e": "NNACGT"}, threads=1).save(path)
        seed = path.read_bytes()
    size = _INDEX.unpack_from(seed)[3]
    first = -(-(_INDEX.size + size) // 4096) * 4096
    keys = ("seed_length", "names", "sizes", "checksums", "start", "entries", "words", "starts", "lengths")
    header = json_mutation(keys, (4, 5, 8, 1 << 40, -8))

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        step = rng.random()
        if step < 0.3:
            return mutated_bytes(rng, seed, corpus)
        text = seed[_INDEX.size : _INDEX.size + size]
        if step < 0.6:
            return index_case(header(rng, [text]), seed, seed[first:])
        # Other numbers in a section, with the right checksum.
        facts, sections, at = json.loads(text), bytearray(seed[first:]), 0
        chosen = rng.choice(list(facts["sizes"]))
        for name, count in facts["sizes"].items():
            if name == chosen:
                for _ in range(rng.randrange(1, 4)):
                    sections[at + rng.randrange(count)] = rng.choice((0, 1, 255, rng.randrange(256)))
                facts["checksums"][name] = [zlib.crc32(sections[at : at + count])]
            at += count + -count % 4096
        return index_case(facts, seed, bytes(sections))

    return Parser(name="index", seeds=[seed], mutate=mutate, read=_index)


def _matrix(data: bytes, folder: Path) -> None:
    load_matrix(place(folder, data, "case.mat"))


def _matrix_parser() -> Parser:
    seeds = [
        b"# a comment\n   A  C  G  T\nA  5 -4 -4 -4\nC -4  5 -4 -4\nG -4 -4  5 -4\nT -4 -4 -4  5\n",
        b"  A B *\nA 4 -2 -4\nB -2 4 -4\n* -4 -4 1\n",
    ]
    words = (b"A", b"*", b"-128", b"32768", b"1.5", b"#", b"-")
    return Parser(name="matrix", seeds=seeds, mutate=text_mutation(words, b" \t"), read=_matrix)


def _profile(data: bytes, folder: Path) -> None:
    path = place(folder, data, "case.pssm")
    if is_profile(path):
        found = read_profile(path)
        with contextlib.suppress(InvalidInput):
            found.scores_for(load_matrix("BLOSUM62"))


def _profile_parser() -> Parser:
    letters = "ARNDCQEGHILKMFPSTWYV"
    rows = "".join(f"{k:5} {letter} {'  '.join(['-1'] * 20)}\n" for k, letter in enumerate("MKV", 1))
    end = "\n                      K         Lambda\nPSI Gapped           0.0375     0.2670\n"
    head = "\nLast position-specific scoring matrix computed\n"
    states = "".join(
        f"      {k}   {'2.5  ' * 20} {k} m - - -\n  {'2.5 ' * 20}\n  0.1 * 0.2\n" for k in (1, 2)
    )
    facts = "HMMER3/f [3.3]\nNAME  motif\nLENG  2\nALPH  amino\n"
    hmm = f"{facts}HMM   {'  '.join(sorted(letters))}\n  m->m\n{states}//\n"
    seeds = [f"{head}      {'  '.join(letters * 2)}\n{rows}{end}".encode(), hmm.encode()]
    words = (
        b"A",
        b"*",
        b"nan",
        b"inf",
        b"1e400",
        b"99999",
        b"1.5",
        b"//",
        b"LENG",
        b"HMM",
        b"PSI Gapped 2",
        b"4",
    )
    return Parser(name="profile", seeds=seeds, mutate=text_mutation(words, b" \n"), read=_profile)


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
    path = folder_of(data, folder)
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
    path = folder_of(data, folder)
    StateStore(Checkpoint(path, key=_KEY, resume=True)).get(small_model(3))


def _state_parser() -> Parser:
    numbers = ("rows", "repertoires", "distinct_junctions", "evidence_junctions", "evidence_weight")
    state = InferenceState(
        model=small_model(3),
        batch=2,
        counts={"v": np.ones(2)},
        history=[{"iteration": 1, "log_likelihood": -2.5, "junctions": 3, "impossible": 0}],
        collected={
            **dict.fromkeys(numbers, 2),
            "rows_by_kind": {"evidence": 2},
            "left_out": {},
            "unknown_calls": {"TRBV9": 1},
            "examples": {"unknown": ["a"]},
        },
    )
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
        row = pa.record_batch(
            [pa.array([facts], pa.large_string()), pa.array([arrays], pa.large_binary())], schema=batch.schema
        )
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

    def mutate(rng: Random, corpus: Sequence[bytes]) -> bytes:
        data = bytearray(corpus[0])
        if rng.random() < 0.5:
            return mutated_bytes(rng, bytes(data), corpus)
        # The numbers have no checksum; the index has one.
        data[rng.randrange(8, data.index(b"{"))] = rng.randrange(256)
        return bytes(data)

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


PARSERS = {
    "database": _database_parser,
    "index": _index_parser,
    "matrix": _matrix_parser,
    "profile": _profile_parser,
    "sheet": _sheet_parser,
    "checkpoint": _checkpoint_parser,
    "inference_state": _state_parser,
    "design": _design_parser,
    "study": _study_parser,
}
