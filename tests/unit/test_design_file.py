"""Design files: what is written is read, whatever the types and the cuts."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from plait.errors import FormatError, InvalidInput
from plait.stats.design_file import DesignFile, DesignWriter


def write(
    path: Path, values: NDArray[np.float64], outcome: NDArray[np.bool_], chunk_rows: int = 7
) -> DesignFile:
    names = [f"x{k}" for k in range(values.shape[1])]
    with DesignWriter(path, names, chunk_rows=chunk_rows) as writer:
        for start in range(0, len(values), 5):
            writer.write(values[start : start + 5], outcome[start : start + 5])
    return DesignFile(path)


COLUMNS = {
    "int8": [-128, 127, 0],
    "uint8": [0, 255, 3],
    "int16": [-32768, 32767, 1],
    "int32": [-(2**31), 2**31 - 1, 2],
    "float32": [0.5, -(2.0**40), 2.0**-20],
    "float64": [0.1, 1e300, -5e-324],
    "large whole": [2.0**53, 2.0**31, 0.0],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_is_read_as_it_was(tmp_path: Path, name: str) -> None:
    values = np.array(COLUMNS[name], np.float64)[:, None]
    design = write(tmp_path / "a.design", values, np.array([True, False, True]))
    found, outcome = design.read(0, 3)
    assert found.tobytes() == values.T.tobytes()
    assert outcome.tolist() == [True, False, True]
    assert (design.rows, design.events) == (3, 2)
    assert (design.low[0], design.high[0]) == (values.min(), values.max())


def test_whole_numbers_take_a_byte(tmp_path: Path) -> None:
    write(tmp_path / "a.design", np.arange(1000.0).reshape(-1, 1) % 100, np.zeros(1000, bool), 1000)
    assert (tmp_path / "a.design").stat().st_size < 2 * 1000 + 300


@given(sizes=st.lists(st.integers(0, 20), min_size=1, max_size=5), data=st.data())
def test_parts_read_like_one_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(sum(sizes))
    values, outcome = rng.normal(size=(sum(sizes), 2)), rng.random(sum(sizes)) < 0.5
    edges = np.cumsum([0, *sizes])
    for k in range(len(sizes)):
        span = slice(edges[k], edges[k + 1])
        write(folder / f"{k}.design", values[span], outcome[span], chunk_rows=1 + k)
    design = DesignFile(folder)
    assert (design.rows, design.events) == (sum(sizes), outcome.sum())
    start = data.draw(st.integers(0, sum(sizes)))
    stop = data.draw(st.integers(start, sum(sizes)))
    for own in (design, pickle.loads(pickle.dumps(design))):
        found, events = own.read(start, stop)
        assert found.tobytes() == np.ascontiguousarray(values[start:stop].T).tobytes()
        assert events.tolist() == outcome[start:stop].tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf], ids=str)
def test_a_value_that_is_no_number_is_told_with_its_row(tmp_path: Path, bad: float) -> None:
    path = tmp_path / "a.design"
    values = np.ones((4, 2))
    values[2, 1] = bad
    with DesignWriter(path, ["first", "second"]) as writer:
        writer.write(np.ones((3, 2)), np.zeros(3))
        with pytest.raises(InvalidInput, match=r"predictor 'second', row 5: found (nan|-?inf)"):
            writer.write(values, np.zeros(4))
    assert DesignFile(path).rows == 3


def test_an_outcome_is_0_or_1(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidInput, match="outcome, row 1: found 2"),
        DesignWriter(tmp_path / "a.design", ["x"]) as writer,
    ):
        writer.write(np.ones((2, 1)), np.array([1, 2]))
    assert not list(tmp_path.iterdir())


def test_shapes_must_fit(tmp_path: Path) -> None:
    with DesignWriter(tmp_path / "a.design", ["x"]) as writer:
        with pytest.raises(InvalidInput, match=r"shapes \(2, 2\) and \(2,\)"):
            writer.write(np.ones((2, 2)), np.zeros(2))
        with pytest.raises(InvalidInput, match="shapes"):
            writer.write(np.ones((2, 1)), np.zeros(3))


@pytest.mark.parametrize("names", [[], ["a", "b", "a"]], ids=["none", "twice"])
def test_names_are_there_and_differ(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(InvalidInput, match="predictors"):
        DesignWriter(tmp_path / "a.design", names)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.design"
    write(path, np.ones((9, 1)), np.zeros(9, bool))
    whole = path.read_bytes()
    for damaged in (b"", b"something else, long enough to be one", whole[:-3], whole[:20] + whole[40:]):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"a\.design"):
            DesignFile(path).read(0, 9)


def test_parts_have_the_same_predictors(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with DesignWriter(tmp_path / f"{name}.design", [name]):
            pass
    with pytest.raises(FormatError, match="other predictors"):
        DesignFile(tmp_path)


def test_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no file"):
        DesignFile(tmp_path)
    with pytest.raises(FormatError, match="No such file"):
        DesignFile(tmp_path / "a.design")
