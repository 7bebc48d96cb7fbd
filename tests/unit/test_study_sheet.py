"""The sample sheet: what it says, and what is wrong with it, by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import FormatError, InvalidInput
from plait.formats.sheets import file_names, read_sample_sheet


def written(folder: Path, text: str, name: str = "sheet.csv") -> Path:
    for file in ("a.tsv", "b.tsv", "c, d.tsv"):
        (folder / file).write_text("junction\tv_call\tj_call\n")
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "file,subject_id,age\na.tsv,x,3\nb.tsv,,\n",
        "\ufefffile\tsubject_id\tage\r\na.tsv\tx\t3\r\n\r\nb.tsv\t\t\r\n",
        '"file", "subject_id",age \n"a.tsv",x , 3\nb.tsv,,\n\n',
    ],
    ids=["commas", "tabs", "quotes"],
)
def test_commas_tabs_and_quotes_say_the_same(tmp_path: Path, text: str) -> None:
    sheet = read_sample_sheet(written(tmp_path, text))
    assert [sample.path for sample in sheet.samples] == [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    assert [sample.subject for sample in sheet.samples] == ["x", None]
    assert sheet.covariates == ("age",)
    assert [dict(sample.covariates) for sample in sheet.samples] == [{"age": "3"}, {}]


def test_other_names_mates_and_what_is_known_of_files(tmp_path: Path) -> None:
    text = "path,subject,mate,age\na.tsv,x,b.tsv,3\n'c, d.tsv',,,\n".replace("'", '"')
    sheet = read_sample_sheet(written(tmp_path, text))
    assert list(sheet) == [tmp_path / "a.tsv", tmp_path / "c, d.tsv"]
    assert [sample.mate for sample in sheet.samples] == [tmp_path / "b.tsv", None]
    assert sheet.facts == [{"subject_id": "x", "age": "3"}, {}]


def test_subjects_called_as_files() -> None:
    assert file_names(["a/x.1.tsv.gz", "y.parquet", "z.txz"], "subject_id") == ["x.1", "y", "z"]
    with pytest.raises(InvalidInput, match=r"several files that would be the subject 'x'.*--sheet"):
        file_names(["a/x.tsv", "b/x.csv"], "subject_id")


def test_a_name_with_a_comma_is_quoted(tmp_path: Path) -> None:
    sheet = read_sample_sheet(written(tmp_path, 'file\n"c, d.tsv"\n'))
    assert (sheet.samples[0].path.name, sheet.samples[0].line) == ("c, d.tsv", 2)


def test_covariates_of_subjects(tmp_path: Path) -> None:
    sheet = read_sample_sheet(written(tmp_path, "file,subject_id,age,sex\na.tsv,x,3,\nb.tsv,,3,m\n"))
    found = sheet.of_subjects([["x"], ["y", "x"]])
    assert found == {"x": {"age": "3", "sex": "m"}, "y": {"age": "3", "sex": "m"}}
    other = read_sample_sheet(written(tmp_path, "file,subject_id,age\na.tsv,x,3\nb.tsv,,4\n"))
    with pytest.raises(FormatError, match=r"line 3, column 'age': found '4' for subject 'x'.*line 2"):
        other.of_subjects([["x"], ["y", "x"]])


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("", None, "found an empty file"),
        ("\n \n", None, "found an empty file"),
        ("file\n", None, "a header and no lines"),
        ("subject_id\nx\n", 1, "expected a column 'file'"),
        ("File\na.tsv\n", 1, "in lower case"),
        ("file;subject_id\na.tsv;x\n", 1, "not semicolons"),
        ("junction\tv_call\tj_call\nTGT\tV\tJ\n", 1, "a table of rearrangements"),
        ("file,age,age\na.tsv,1,2\n", 1, "'age' more than once"),
        ("file,,age\na.tsv,1,2\n", 1, "a column without a name"),
        ("file,rows\na.tsv,1\n", 1, "a covariate called 'rows'"),
        ("file,subject,subject_id\na.tsv,1,1\n", 1, "a covariate called 'subject'"),
        ("file,mate\na.tsv,none\n", 2, "column 'mate': found 'none', which is no such file"),
        ("file,age\na.tsv,1\nb.tsv\n", 3, "found 1 column, expected 2 columns"),
        ("file,age\na.tsv,1\n,2\n", 3, "column 'file': found nothing"),
        ("file\nmissing.tsv\n", 2, "which is no such file"),
        ("file\n.\n", 2, "which is a folder"),
        ("file\na.tsv\nb.tsv\n./a.tsv\n", 4, "it is in line 2 already"),
        ("file,subject_id,age\na.tsv,x,3\nb.tsv,x,4\n", 3, "found '4' for subject 'x', expected '3'"),
        ('file\n"a.tsv\n', 2, "unexpected end of data"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, line: int | None, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(FormatError) as error:
        read_sample_sheet(path, taken=["rows"]).check_covariates()
    assert told in str(error.value)
    assert (error.value.path, error.value.line) == (str(path), line)


def test_other_content(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    with pytest.raises(FormatError, match="no such file"):
        read_sample_sheet(path)
    path.write_bytes(b"file\n\xff\n")
    with pytest.raises(FormatError, match="no UTF-8 text at position 5"):
        read_sample_sheet(path)
    path.write_bytes(b"file\n\0\n")
    with pytest.raises(FormatError, match="binary data"):
        read_sample_sheet(path)
