"""Settings read from the environment."""

from __future__ import annotations

import os
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import plait
from plait.align import AlignmentSettings
from plait.align.settings import SearchSettings
from plait.errors import InvalidInput, whole
from plait.folding import FoldSettings
from plait.hyperspectral import ImageLayout, preset_parameters
from plait.mapping import FindSettings, MapSettings
from plait.settings import cache_directory, thread_count
from plait.vdj import AnnotationSettings


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


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "\u0663", "4097"])
def test_threads_must_be_a_positive_whole_number(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("PLAIT_THREADS", value)
    with pytest.raises(InvalidInput, match="PLAIT_THREADS") as caught:
        thread_count()
    assert caught.value.what == "PLAIT_THREADS"


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2), np.array(2)])
def test_whole_numbers_of_any_kind(value: Any) -> None:
    found = whole("n", value, 1, 2)
    assert found == 2 and type(found) is int
    for settings, name in ((FindSettings, "mismatches"), (MapSettings, "errors"), (FoldSettings, "max_span")):
        kept = getattr(settings(**{name: value}), name)
        assert kept == 2 and type(kept) is int


@pytest.mark.parametrize(
    "value", [1.0, 1.5, "1", True, np.bool_(True), np.float32(1), np.ones(2, int), 0, -1]
)
def test_what_is_no_whole_number(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^n: found .*, expected a whole number from 1 to 5$"):
        whole("n", value, 1, 5)
    if type(value) is int:
        return
    for settings, name in ((FindSettings, "mismatches"), (MapSettings, "errors"), (FoldSettings, "max_span")):
        with pytest.raises(InvalidInput, match=f"^{name}: found .*, expected a whole number"):
            settings(**{name: value})


def test_numbers_of_numpy_in_parameters_of_cubes() -> None:
    limits = {"max_error": (np.int64(1), np.int64(2)), "prediction_bands": np.int8(2)}
    image = {"rows": np.int64(3), "columns": np.int32(4), "bands": np.uint8(2), "dynamic_range": np.int64(12)}
    found = preset_parameters(ImageLayout(**image), **limits)  # type: ignore[arg-type]
    plain = {name: int(value) for name, value in image.items()}
    assert found == preset_parameters(ImageLayout(**plain), max_error=(1, 2), prediction_bands=2)
    assert type(found.image.rows) is type(found.predictor.prediction_bands) is int
    with pytest.raises(InvalidInput, match=r"^prediction_bands: found 2\.0, expected a whole number"):
        preset_parameters(ImageLayout(**plain), prediction_bands=2.0)


def test_none_only_where_it_is_the_default() -> None:
    assert MapSettings(errors=None).errors is None
    with pytest.raises(InvalidInput, match=r"^strata: found None, expected a whole number"):
        FindSettings(strata=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (plait.align.search, SearchSettings),
        (plait.mapping.find, FindSettings),
        (plait.mapping.map, MapSettings),
        (plait.vdj.annotate, AnnotationSettings),
    ],
)
def test_signatures_show_settings(function: Any, settings: Any) -> None:
    shown = signature(function).parameters
    assert {name: shown[name].default for name in signature(settings).parameters} == {
        name: own.default for name, own in signature(settings).parameters.items()
    }
    assert all(own.kind is not own.VAR_KEYWORD for own in shown.values())


def test_signatures_show_settings_of_alignments() -> None:
    for function in (plait.align.score, plait.align.align, plait.align.score_many, plait.align.end_pairs):
        shown = signature(function).parameters
        assert {*shown} > {*AlignmentSettings.__annotations__} and "settings" not in shown
        assert (shown["mode"].default, shown["device"].default) == ("global", "auto")
