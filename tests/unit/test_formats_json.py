"""JSON from strangers: what is read is plain, and everything else is an error with its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plait.errors import FormatError
from plait.formats.files import parse_json, read_json

WRONG = {
    "deep lists": ("[" * 100_000, "nested too deeply"),
    "deep lists that end": ("[" * 65 + "]" * 65, "nested too deeply"),
    "deep objects": ('{"a":' * 66 + "1" + "}" * 66, "nested too deeply"),
    "many digits": ('{"a": ' + "9" * 5000 + "}", "thousands of digits"),
    "nan": ('{"a": NaN}', "NaN"),
    "infinity": ('{"a": -Infinity}', "-Infinity"),
    "twice": ('{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' twice"),
    "half a character": ('{"a": "\\ud800"}', "half of a character"),
    "no JSON": ('{"a":\n 1,}', "no JSON"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_read(case: str) -> None:
    text, told = WRONG[case]
    with pytest.raises(FormatError, match=r"^in\.json.*expected a thing") as caught:
        parse_json(text, "in.json", expected="a thing")
    assert told in str(caught.value.found)


def test_lines_are_named() -> None:
    with pytest.raises(FormatError) as caught:
        parse_json('{\n"a": 1,\n"b" 2}', "in.json", expected="a thing")
    assert caught.value.line == 3


def test_what_is_read(tmp_path: Path) -> None:
    deep = "[" * 64 + "]" * 64
    assert parse_json(deep, "in.json", expected="a thing")
    assert parse_json('"\\ud83d\\ude00"', "in.json", expected="a thing") == "\N{GRINNING FACE}"
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": [1, 2.5, null, true]}')
    assert read_json(tmp_path / "a.json", expected="a thing") == {"a": [1, 2.5, None, True]}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(FormatError, match="no UTF-8 text at position 7"):
        read_json(tmp_path / "a.json", expected="a thing")
    with pytest.raises(FormatError, match="no such file"):
        read_json(tmp_path / "none.json", expected="a thing")
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(FormatError, match="a pipe or device"):
        read_json(tmp_path / "pipe.json", expected="a thing")
