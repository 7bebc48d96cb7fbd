from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import AtomicFile, output_errors, write_json


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_file_appears_when_complete(tmp_path: Path) -> None:
    with AtomicFile(tmp_path / "a") as file:
        file.stream.write(b"new")
        assert names(tmp_path) == [".a.partial"]
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_the_older_file(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(error), AtomicFile(tmp_path / "a") as file:
        file.stream.write(b"new")
        raise error
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_left_by_a_killed_run_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".a.partial").write_bytes(b"left over, and longer")
    with AtomicFile(tmp_path / "a") as file:
        file.stream.write(b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="file locks are taken on POSIX only")
def test_two_runs_cannot_write_one_output(tmp_path: Path) -> None:
    with AtomicFile(tmp_path / "a") as first:
        first.stream.write(b"first")
        with pytest.raises(InvalidInput, match="another run is writing"):
            AtomicFile(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"first"
    with AtomicFile(tmp_path / "a") as second:
        second.stream.write(b"second")
    assert (tmp_path / "a").read_bytes() == b"second"


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with AtomicFile(tmp_path / "link") as file:
        file.stream.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_rights_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_json(tmp_path / "a", {})
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_impossible_targets(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a directory"):
        AtomicFile(tmp_path)
    with pytest.raises(InvalidInput, match=r"does not exist.*mkdir -p"):
        AtomicFile(tmp_path / "none" / "a")
    with pytest.raises(InvalidInput, match="device or pipe"):
        AtomicFile("/dev/null")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EDQUOT, "quota"),
        (errno.EFBIG, "size of a file"),
        (errno.EACCES, "no permission"),
        (errno.EROFS, "read-only"),
        (errno.EIO, "Input/output error"),
    ],
)
def test_system_errors_name_the_output(code: int, found: str) -> None:
    with pytest.raises(FormatError) as caught, output_errors("out.tsv"):
        raise OSError(code, os.strerror(code))
    assert caught.value.path == "out.tsv"
    assert found in str(caught.value.found)


def test_an_unwritable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    # Rights do not bind the superuser, so the refusal is played.
    monkeypatch.setattr("plait.formats.atomic.os.open", refuse)
    with pytest.raises(FormatError, match="no permission to write there, expected a writable folder"):
        AtomicFile(tmp_path / "a")


def test_a_disk_that_is_full_only_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr("plait.formats.atomic.os.fsync", full)
    with pytest.raises(FormatError, match="no space left"), AtomicFile(tmp_path / "a") as file:
        file.stream.write(b"new")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


LIMITED = """
import resource, sys
from plait.errors import FormatError
from plait.formats.atomic import AtomicFile, output_errors
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with AtomicFile(sys.argv[1]) as file, output_errors(sys.argv[1]):
        for _ in range(1000):
            file.stream.write(bytes(10_000))
except FormatError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the kernel's limit on file sizes is a POSIX one")
def test_the_kernel_refusing_to_write_more(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "the limit on the size of a file reached" in done.stdout
    assert done.stderr == ""
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_json_is_sorted_and_readable(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": [1, "ä"], "a": None})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == (
        '{\n  "a": null,\n  "b": [\n    1,\n    "ä"\n  ]\n}\n'
    )
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"a": None, "b": [1, "ä"]}
