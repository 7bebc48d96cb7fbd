"""What is said about the package outside ``pyproject.toml`` agrees with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from plait import __version__


@pytest.mark.parametrize(
    ("file", "line"),
    [("CITATION.cff", r"version: (\S+)"), ("packaging/conda/meta.yaml", r'version: "(\S+)"')],
)
def test_the_version_is_the_same(repository: Path, file: str, line: str) -> None:
    assert re.findall(line, (repository / file).read_text(encoding="utf-8"))[-1] == __version__


def test_the_conda_recipe_asks_for_the_same(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (repository / "packaging/conda/meta.yaml").read_text(encoding="utf-8")
    asked = re.findall(r"    - (\S+) (>=\S+)", recipe.partition("  run:")[2].partition("test:")[0])
    wanted = [re.fullmatch(r"([a-z]+)(>=\S+)", line) for line in project["dependencies"]]
    expected = {(found[1], found[2]) for found in wanted if found} | {("python", project["requires-python"])}
    assert set(asked) == expected and len(expected) == len(wanted) + 1
    started = [f"{name} = {function}" for name, function in project["scripts"].items()]
    assert re.findall(r"entry_points:\n    - (.+)", recipe) == started


def test_the_container_asks_for_extras_that_there_are(repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(
        r"/source\[([^\]]+)\]", (repository / "packaging/Containerfile").read_text(encoding="utf-8")
    )
    assert set(extras[0].split(",")) <= set(project["optional-dependencies"])
