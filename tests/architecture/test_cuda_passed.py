"""Tests of CUDA kernels are left out only while everything is as it was when they passed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.cuda_passed import Passed, Sources, digest_of, imported, keep, kept, unchanged

SOURCES = {"src/plait/a.py", "tests/test_a.py"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in SOURCES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}\n")
    return tmp_path


def recorded(tree: Path) -> Passed:
    sources = tuple(sorted(SOURCES))
    return Passed(
        {"tests/test_a.py": Sources(3, digest_of(sources, tree), sources)}, {"test_b.py::test": "1f"}
    )


def test_what_was_kept_is_read(tree: Path) -> None:
    record = tree / "passed.toml"
    assert unchanged(record, tree) == {}
    assert kept(record) == Passed({}, {})
    passed = recorded(tree)
    keep(passed, record)
    assert kept(record) == passed
    assert unchanged(record, tree) == {"tests/test_a.py": 3}


@pytest.mark.parametrize("name", sorted(SOURCES))
@pytest.mark.parametrize("change", ["edited", "gone", "another's"])
def test_any_change_counts(tree: Path, name: str, change: str) -> None:
    record = tree / "passed.toml"
    keep(recorded(tree), record)
    if change == "gone":
        (tree / name).unlink()
    else:
        (tree / name).write_text("1\n" if change == "edited" else f"# {min(SOURCES - {name})}\n")
    assert unchanged(record, tree) == {}


def test_names_count(tree: Path) -> None:
    (tree / "src" / "plait" / "b.py").write_text((tree / "src" / "plait" / "a.py").read_text())
    assert digest_of({"src/plait/a.py"}, tree) != digest_of({"src/plait/b.py"}, tree)


def test_the_lane_leaves_them_out_and_says_so(
    pytester: pytest.Pytester, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conftest = (repository / "tests" / "conftest.py").read_text(encoding="utf-8")
    # As if kernels were simulated, which nothing here does.
    planted = "\n\ndef simulated():\n    return True\n\n\ndef missing_simulator():\n    return 'planted'\n"
    pytester.makeconftest(conftest + planted)
    pytester.makeini("[pytest]\nmarkers =\n    gpu: a device\n    cuda_simulator: small\n")
    test = "import pytest\n\n@pytest.mark.cuda_simulator\ndef test_it():\n    pass\n"
    pytester.makepyfile(test_old=test, test_new=test)
    old = f"{pytester.path.name}/test_old.py"
    monkeypatch.setattr("support.cuda_passed.unchanged", lambda: {old: 1})
    pytester.runpytest_inprocess("-q").assert_outcomes(skipped=2)
    found = pytester.runpytest_inprocess("-q", "--kernels=changed")
    found.assert_outcomes(skipped=1)
    found.stdout.fnmatch_lines(["left out: 1 simulator tests of 1 files, *"])
    # Whoever names a file wants its tests.
    pytester.runpytest_inprocess("-q", "--kernels=changed", "test_old.py").assert_outcomes(skipped=1)
    (pytester.path / "test_new.py").unlink()
    assert pytester.runpytest_inprocess("-q", "--kernels=changed").ret == 0


def test_what_tests_import_counts(tmp_path: Path) -> None:
    test = "from plait.devices import driver\n\ndef test():\n    import plait.lang.warps\n    import numpy\n"
    (tmp_path / "test_a.py").write_text(test)
    assert imported(tmp_path / "test_a.py") == {
        "src/plait/devices/__init__.py",
        "src/plait/devices/driver.py",
        "src/plait/lang/warps.py",
    }


def test_a_digest_of_ones_own(
    pytester: pytest.Pytester, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest((repository / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers =\n    made_of: digest\n")
    test = "import pytest\n\n@pytest.mark.made_of({!r})\ndef test_it():\n    pass\n"
    pytester.makepyfile(test_old=test.format("1f"), test_new=test.format("2f"))
    record = pytester.path / "passed.toml"
    monkeypatch.setattr("support.cuda_passed.RECORD", record)
    monkeypatch.setattr("support.cuda_passed.kept", lambda: kept(record))
    keep(Passed({}, {"test_old.py::test_it": "1f", "test_new.py::test_it": "1f"}), record)
    pytester.runpytest_inprocess("--kernels=changed").assert_outcomes(passed=1, deselected=1)
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
