"""Settings read from the environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plait.errors import InvalidInput
from plait.settings import cache_directory, thread_count


def test_the_cache_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAIT_CACHE_DIR", str(tmp_path / "compiled"))
    assert cache_directory() == tmp_path / "compiled"
    assert not cache_directory().exists()


def test_a_relative_cache_folder_is_relative_to_the_working_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAIT_CACHE_DIR", "compiled")
    assert cache_directory() == tmp_path / "compiled"


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("linux", Path(".cache", "plait")),
        ("darwin", Path("Library", "Caches", "plait")),
        ("win32", Path("AppData", "Local", "plait")),
    ],
)
def test_the_usual_place_of_each_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, expected: Path
) -> None:
    for name in ("PLAIT_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_directory() == tmp_path / expected


def test_the_xdg_variable_is_followed_when_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PLAIT_CACHE_DIR", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "plait"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == tmp_path / ".cache" / "plait"


def test_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: object) -> None:
        raise KeyError("getpwuid(): uid not found")

    for name in ("PLAIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nobody)
    # Nothing can be made there, as in a home that cannot be written.
    with pytest.raises(OSError):
        cache_directory().mkdir(parents=True)
    monkeypatch.setenv("PLAIT_CACHE_DIR", "~nobody-has-this-name/cache")
    with pytest.raises(InvalidInput, match="PLAIT_CACHE_DIR: found '~nobody-has-this-name/cache'"):
        cache_directory()


def test_threads_default_to_the_processors_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIT_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert thread_count() == 3


def test_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_THREADS", " 7 ")
    assert thread_count() == 7


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "\u0663"])
def test_threads_must_be_a_positive_whole_number(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PLAIT_THREADS", value)
    with pytest.raises(InvalidInput, match="PLAIT_THREADS") as caught:
        thread_count()
    assert caught.value.what == "PLAIT_THREADS"
