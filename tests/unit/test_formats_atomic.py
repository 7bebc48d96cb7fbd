from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from plait.errors import FormatError, InvalidInput
from plait.formats.atomic import (
    AtomicFile,
    HiddenOutput,
    claim_folder,
    folder_or_nothing,
    output_errors,
    write_json,
)


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


def planted(folder: Path, kind: str) -> Path:
    """Something that another user has put where an output is prepared."""
    victim, hidden = folder / "victim", folder / ".a.partial"
    victim.write_bytes(b"precious")
    if kind == "link":
        hidden.symlink_to(victim)
    elif kind == "dangling link":
        hidden.symlink_to(folder / "made by plait")
    elif kind == "pipe":
        os.mkfifo(hidden)
    elif kind == "folder":
        hidden.mkdir()
    else:
        hidden.hardlink_to(victim)
    return victim


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_what_others_have_put_at_the_hidden_name_is_not_opened(tmp_path: Path, kind: str) -> None:
    victim = planted(tmp_path, kind)
    before = names(tmp_path)
    with pytest.raises(InvalidInput, match=r"\.a\.partial', which is no plain file"):
        AtomicFile(tmp_path / "a")
    with pytest.raises(InvalidInput, match=r"\.a\.partial', which is no plain file"):
        HiddenOutput(tmp_path / "a")
    assert victim.read_bytes() == b"precious"
    assert names(tmp_path) == before


def test_a_second_name_of_another_file_is_not_written_to(tmp_path: Path) -> None:
    victim = planted(tmp_path, "hard link")
    with AtomicFile(tmp_path / "a") as file:
        file.stream.write(b"new")
    assert (victim.read_bytes(), (tmp_path / "a").read_bytes()) == (b"precious", b"new")
    assert names(tmp_path) == ["a", "victim"]


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_that_somebody_puts_in_place_of_the_unfinished_one(tmp_path: Path, durable: bool) -> None:
    (tmp_path / "a").write_bytes(b"old")
    with (
        pytest.raises(InvalidInput, match="another run is writing"),
        AtomicFile(tmp_path / "a", durable=durable) as file,
    ):
        file.stream.write(b"new")
        (tmp_path / ".a.partial").unlink()
        (tmp_path / ".a.partial").write_bytes(b"somebody's")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / ".a.partial").read_bytes() == b"somebody's"


def test_the_folder_reaches_the_disk_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    replace, fsync = os.replace, os.fsync

    def synced(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def renamed(*paths: Path) -> None:
        done.append("rename")
        replace(*paths)

    monkeypatch.setattr("plait.formats.atomic.os.fsync", synced)
    monkeypatch.setattr("plait.formats.atomic.os.replace", renamed)
    write_json(tmp_path / "a", {})
    assert done == ["file", "rename", "folder"]


def test_what_replaces_a_file_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    write_json(tmp_path / "a", {})
    assert caplog.messages == []
    write_json(tmp_path / "a", {})
    assert caplog.messages == [f"{str(tmp_path / 'a')!r} was there before and has been replaced"]


def test_a_hidden_folder_for_libraries(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    (tmp_path / "a.tif").write_bytes(b"old")
    left = tmp_path / ".a.tif.partial-files"
    left.mkdir()
    (left / "a.tif").write_bytes(b"of a killed run")
    output = HiddenOutput(tmp_path / "a.tif")
    assert not output.hidden.exists()
    assert stat.S_IMODE(output.hidden.parent.stat().st_mode) == 0o700
    with pytest.raises(InvalidInput, match="another run is writing"):
        HiddenOutput(tmp_path / "a.tif")
    output.hidden.write_bytes(b"new")
    output.hidden.with_name("a.tif.aux.xml").touch()
    output.close()
    assert (tmp_path / "a.tif").read_bytes() == b"new"
    assert names(tmp_path) == ["a.tif"]
    assert len(caplog.messages) == 1
    output = HiddenOutput(tmp_path / "a.tif")
    output.hidden.write_bytes(b"newer")
    output.discard()
    assert (tmp_path / "a.tif").read_bytes() == b"new"
    assert names(tmp_path) == ["a.tif"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/1"])
def test_streams_of_the_process_are_no_files(name: str) -> None:
    with pytest.raises(InvalidInput, match="a stream of this process"):
        AtomicFile(name)


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
    with pytest.raises(InvalidInput, match=r"device or pipe.*take - for standard output"):
        AtomicFile("/dev/null")


def test_a_hyphen_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="found '-', standard output, expected the name of a file"):
        AtomicFile("-")
    assert not list(tmp_path.iterdir())


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "none" / "a")
    with pytest.raises(InvalidInput, match=f"a link to .*does not exist.*mkdir -p {tmp_path / 'none'}$"):
        AtomicFile(tmp_path / "link")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InvalidInput, match="leads to itself"):
        AtomicFile(tmp_path / "loop")
    assert names(tmp_path) == ["link", "loop"]


def test_a_file_that_is_protected_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"precious")
    (tmp_path / "a").chmod(0o444)
    # Rights do not bind the superuser, so the refusal is played.
    monkeypatch.setattr("plait.formats.atomic.os.access", lambda path, mode: path != tmp_path / "a")
    with pytest.raises(InvalidInput, match="which is there and which you may not write to"):
        AtomicFile(tmp_path / "a")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("step", ["open", "fdopen", "fstat"])
def test_a_signal_while_it_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    real = getattr(os, step)
    calls = []

    def stop(*words: object) -> object:
        calls.append(words)
        if len(calls) == 1:
            # Of the first, the result is lost on the way back.
            if step == "open":
                real(*words)
            raise KeyboardInterrupt
        return real(*words)

    monkeypatch.setattr(f"plait.formats.atomic.os.{step}", stop)
    with pytest.raises(KeyboardInterrupt):
        AtomicFile(tmp_path / "a")
    assert not names(tmp_path)
    with AtomicFile(tmp_path / "a") as file:
        file.stream.write(b"new")
    assert names(tmp_path) == ["a"]


def test_a_signal_while_it_is_discarded_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = Path.unlink, []

    def interrupted(path: Path, missing_ok: bool = False) -> None:
        calls.append(path)
        if len(calls) == 1:
            raise KeyboardInterrupt
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt), AtomicFile(tmp_path / "a") as file:
        file.discard()
    assert names(tmp_path) == [] and len(calls) == 2


def test_no_room_for_a_file_that_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = os.open, []

    def full(path: Path, *rest: int) -> int:
        calls.append(path)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "full")
        return real(path, *rest)

    def refused(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "open", full)
    monkeypatch.setattr(os, "fdopen", refused)
    with pytest.raises(FormatError, match="no space left"):
        AtomicFile(tmp_path / "a")
    assert names(tmp_path) == []


def test_a_signal_before_it_is_used_leaves_nothing(tmp_path: Path) -> None:
    file = AtomicFile(tmp_path / "a")
    assert names(tmp_path) == [".a.partial"]
    del file
    assert not names(tmp_path)


def test_a_folder_whose_marker_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("plait.formats.atomic.os.open", refuse)
    with pytest.raises(FormatError, match="no space left"):
        claim_folder(tmp_path / "new", marker="m.json", kind="k", what="study")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "b").mkdir()
    with pytest.raises(KeyboardInterrupt), folder_or_nothing(tmp_path / "old"):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["old"]


def test_what_another_user_has_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".a.partial"
    left.write_bytes(b"of another")
    real = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        # Rights do not bind the superuser, so the refusal is played.
        if path == left and not flags & os.O_EXCL:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, mode)

    monkeypatch.setattr("plait.formats.atomic.os.open", refuse)
    with pytest.raises(InvalidInput, match=r"\.a\.partial', which is another user's.*another output"):
        AtomicFile(tmp_path / "a")
    assert left.read_bytes() == b"of another"


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
