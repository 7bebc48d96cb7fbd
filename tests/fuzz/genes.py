"""Parsers of germline sets, models and anchors."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Any

from support.recombination import small_model
from tests.fuzz.mutation import bundle, bundle_mutation, json_mutation, text_mutation
from tests.fuzz.tables import folder_of, new_place, place
from tests.fuzz.trial import Parser

from plait.errors import FormatError, InvalidInput
from plait.vdj.germline import load_germline, validate
from plait.vdj.germline.airr_json import airr_text, parse_airr_json
from plait.vdj.germline.anchors import apply_overrides, read_anchor_table
from plait.vdj.model import RecombinationModel, read_model, write_model

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
    place_ = {
        "sequence_delineation_id": "1",
        "delineation_scheme": "IMGT",
        "cdr3_start": 1 + _V.index("TGTGCCAGC"),
    }
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


def _olga(data: bytes, folder: Path) -> None:
    path = folder_of(data, folder)
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
    words = (
        b"@Event_list",
        b"@Edges",
        b"#GeneChoice;V_gene",
        b"%TRXV1*01;ACG;0",
        b"$Dim[2,3]",
        b"#[v_choice,0]",
        b"%0.5",
    )
    text = text_mutation(words, b";,", raw=0.25)
    return Parser(name="olga", seeds=seeds, mutate=bundle_mutation({"": text}), read=_olga)


def _germline_folder(data: bytes, folder: Path) -> None:
    path = folder_of(data, folder)
    germline = load_germline(path, strict=len(data) % 2 == 0)
    validate(germline)


def _fasta_parser() -> Parser:
    v = f">X1|TRBV13-1*01|Mus musculus|F|V-REGION|\n{_V.lower()}\n>TRBV2*01\n{_V[:50]}\n{_V[50:]}\n".encode()
    j, d = f">TRBJ2-1*01\n{_J}\n".encode(), b">TRBD1*01\nGGGACAGGGGGC\n"
    seeds = [bundle({"TRBV.fasta": v, "TRBD.fasta": d, "TRBJ.fasta": j}), bundle({"V.fa": v, "J.fa": j})]
    words = (b">", b"|", b"TRBV2*01", b"|F|", b"ACGT", b"...", b"Mus musculus", b"N" * 40)
    return Parser(
        name="germline_fasta",
        seeds=seeds,
        mutate=bundle_mutation({"": text_mutation(words, b"| ")}),
        read=_germline_folder,
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


PARSERS = {
    "germline": _germline_parser,
    "model": _model_parser,
    "olga": _olga_parser,
    "germline_fasta": _fasta_parser,
    "anchors": _anchor_parser,
}
