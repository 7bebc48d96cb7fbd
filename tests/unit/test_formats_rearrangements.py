from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import FormatError, InvalidInput
from plait.formats.rearrangements import RearrangementReader, open_rearrangements

HEADER = "sequence_id\tjunction\tv_call\tj_call\tnote\n"
ROWS = [f"s{i}\tTGTGCC{'ACGT' * (i % 5)}TTC\tTRBV{i}\tTRBJ1-{i}\tNA" for i in range(50)]
TEXT = HEADER + "".join(row + "\n" for row in ROWS)


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def table(reader: RearrangementReader) -> pa.Table:
    return pa.Table.from_batches(list(reader), reader.schema)


def cells(reader: RearrangementReader) -> list[str]:
    rows = zip(*(column.to_pylist() for column in table(reader).columns), strict=True)
    return ["\t".join(row) for row in rows]


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


ENCODINGS = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "gz members": lambda data: gzip.compress(data[:700]) + gzip.compress(data[700:]) + gzip.compress(b""),
    "zst": zstd,
    "zst frames": lambda data: zstd(data[:700]) + zstd(data[700:]),
    "zst skippable frame": lambda data: b"\x50\x2a\x4d\x18\x03\0\0\0abc" + zstd(data),
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "no last line end": lambda data: data.rstrip(b"\n"),
    "no last line end, crlf": lambda data: data.replace(b"\n", b"\r\n")[:-1],
    "blank lines at the end": lambda data: data + b"\n\r\n\n",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_gives_the_cells_as_written(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "content decides, not the name.txt", ENCODINGS[encoding](TEXT.encode()))
    reader = open_rearrangements(path, block_rows=7)
    assert cells(reader) == ROWS
    assert set(reader.schema.types) == {pa.string()}
    assert reader.bytes_read() == reader.total_bytes == path.stat().st_size


def test_nothing_is_taken_for_a_null_a_number_or_a_quote(tmp_path: Path) -> None:
    row = 'NA\t"A\tnull\t007\t 1e5 '
    reader = open_rearrangements(write(tmp_path / "a", HEADER + row + "\n\t\t\t\t\n"), block_rows=10)
    assert cells(reader) == [row, "\t\t\t\t"]
    assert table(reader).column("note").null_count == 0


@pytest.mark.parametrize("rows", [1, 7, 50, 1000])
def test_blocks_have_exactly_the_asked_for_rows(tmp_path: Path, rows: int) -> None:
    half = HEADER + "".join(row + "\n" for row in ROWS[:25])
    rest = pa.table(
        {name: [row.split("\t")[i] for row in ROWS[25:]] for i, name in enumerate(HEADER.split())}
    )
    pq.write_table(rest, tmp_path / "b.parquet", row_group_size=4)
    reader = open_rearrangements([write(tmp_path / "a.tsv", half), tmp_path / "b.parquet"], block_rows=rows)
    lengths = [block.num_rows for block in reader]
    assert lengths == [rows] * (50 // rows) + [50 % rows] * (50 % rows > 0)
    assert cells(reader) == ROWS


def test_iterating_again_starts_again(tmp_path: Path) -> None:
    reader = open_rearrangements(write(tmp_path / "a", TEXT + "\n"), block_rows=7)
    first = next(iter(reader))
    assert next(iter(reader)).equals(first)
    assert len(cells(reader)) == 50
    assert reader.blank_lines == 1


def test_pieces_of_a_large_text_join_seamlessly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 13, 64, 100):
        monkeypatch.setattr("plait.formats.rearrangements._PIECE_BYTES", size)
        monkeypatch.setattr("plait.formats.rearrangements._HEADER_PIECE_BYTES", size)
        path = write(tmp_path / "a", b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
        assert cells(open_rearrangements(path, block_rows=8)) == ROWS


def test_very_long_cells(tmp_path: Path) -> None:
    long = "ACGT" * 2_500
    huge = "A" * (9 << 20)
    text = HEADER + f"a\t{long}\tV\tJ\t{huge}\nb\t{long}\tV\tJ\t\n"
    block = next(iter(open_rearrangements(write(tmp_path / "a", text), block_rows=10)))
    assert block.column("junction").to_pylist() == [long, long]
    assert block.column("note")[0].as_py() == huge


def test_roles_layout_and_identities(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "#count\tx\tcdr3nt\tv\tj\n1\ty\tTGT\tV\tJ\n")
    with open_rearrangements(path, layout="vdjtools", block_rows=10) as reader:
        same = {role: role for role in ("junction", "v_call", "j_call")}
        assert reader.roles == {**same, "count": "duplicate_count"}
        assert reader.identities == [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns)]
        block = next(iter(reader))
        assert block.column("#count").to_pylist() == ["1"]
        assert block.column("duplicate_count").to_pylist() == [1]


def test_a_file_is_an_input_once(tmp_path: Path) -> None:
    path, link = write(tmp_path / "a.tsv", TEXT + "\n"), tmp_path / "link.tsv"
    link.symlink_to(path)
    for again in (path, link):
        with pytest.raises(InvalidInput, match="twice, expected different files"):
            open_rearrangements([path, again], block_rows=10)


def test_header_only_is_a_table_without_rows(tmp_path: Path) -> None:
    for name, content in (("a", HEADER), ("b", HEADER.rstrip()), ("c", gzip.compress(HEADER.encode()))):
        reader = open_rearrangements(write(tmp_path / name, content), block_rows=10)
        assert list(reader) == []
        assert reader.schema.names == HEADER.split()


class TestSeveralFiles:
    def test_columns_are_joined_in_order_of_appearance(self, tmp_path: Path) -> None:
        one = write(tmp_path / "1", "v_call\tjunction\tj_call\tx\nV\tA\tJ\t1\n")
        two = write(tmp_path / "2", "y\tjunction\tj_call\tv_call\n2\tB\tK\tW\n")
        reader = open_rearrangements([one, two], block_rows=10)
        assert table(reader).to_pydict() == {
            "v_call": ["V", "W"],
            "junction": ["A", "B"],
            "j_call": ["J", "K"],
            "x": ["1", None],
            "y": [None, "2"],
        }

    def test_whole_numbers_beside_text_become_text(self, tmp_path: Path) -> None:
        one = tmp_path / "1.parquet"
        pq.write_table(pa.table({"junction": ["A"], "v_call": ["V"], "j_call": ["J"], "n": [12]}), one)
        two = write(tmp_path / "2.tsv", "junction\tv_call\tj_call\tn\nB\tV\tJ\t007\n")
        reader = open_rearrangements([one, two], block_rows=10)
        assert table(reader).column("n").to_pylist() == ["12", "007"]

    @pytest.mark.parametrize(
        ("a", "b", "joined"),
        [
            (pa.int16(), pa.int32(), pa.int64()),
            (pa.float32(), pa.float64(), pa.float64()),
            (pa.null(), pa.int8(), pa.int8()),
            (pa.int8(), pa.null(), pa.int8()),
            (pa.large_string(), pa.string(), pa.string()),
            (pa.bool_(), pa.bool_(), pa.bool_()),
            (pa.int64(), pa.float64(), None),
            (pa.uint64(), pa.int64(), None),
            (pa.bool_(), pa.string(), pa.string()),
            (pa.bool_(), pa.int8(), None),
        ],
        ids=str,
    )
    def test_types_are_joined_without_loss_or_refused(
        self, tmp_path: Path, a: pa.DataType, b: pa.DataType, joined: pa.DataType | None
    ) -> None:
        paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        for path, kind in zip(paths, (a, b), strict=True):
            columns = {"junction": ["A"], "v_call": ["V"], "j_call": ["J"], "n": pa.nulls(1, kind)}
            pq.write_table(pa.table(columns), path)
        if joined is None:
            with pytest.raises(FormatError) as caught:
                open_rearrangements(paths, block_rows=10)
            assert (caught.value.path, caught.value.column) == (str(paths[1]), "n")
            assert str(paths[0]) in caught.value.expected
        else:
            reader = open_rearrangements(paths, block_rows=10)
            assert table(reader).column("n").type == joined


class TestParquet:
    def test_types_stay_and_text_of_the_roles_becomes_string(self, tmp_path: Path) -> None:
        columns = {
            "junction": pa.array(["A", "B"], pa.large_string()),
            "v_call": pa.array(["V", "V"]).dictionary_encode(),
            "j_call": pa.array(["J", None]),
            "subject_id": pa.array([1, 2]),
            "score": pa.array([0.5, None], pa.float32()),
            "list": pa.array([[1, 2], None]),
            "other": pa.array(["x", "y"], pa.large_string()),
            "category": pa.array([3, 4]).dictionary_encode(),
        }
        pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=1)
        reader = open_rearrangements(tmp_path / "a.parquet", block_rows=10)
        expected = [pa.string()] * 3 + [
            pa.int64(),
            pa.float32(),
            pa.list_(pa.field("element", pa.int64())),
            pa.large_string(),
            pa.int64(),
        ]
        assert [str(kind) for kind in reader.schema.types] == [str(kind) for kind in expected]
        assert table(reader).to_pydict() == pa.table(columns).to_pydict()

    def test_no_rows(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({name: pa.array([], pa.string()) for name in HEADER.split()}), tmp_path / "a")
        assert list(open_rearrangements(tmp_path / "a", block_rows=10)) == []

    def test_numbers_for_a_junction_are_refused(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"junction": [1], "v_call": ["V"], "j_call": ["J"]}), tmp_path / "a")
        with pytest.raises(
            FormatError, match=r"column 'junction': found values of type int64, expected text"
        ):
            open_rearrangements(tmp_path / "a", block_rows=10)

    def test_a_column_name_twice_is_refused(self, tmp_path: Path) -> None:
        twice = pa.table([["A"], ["V"], ["J"], ["J"]], names=["junction", "v_call", "j_call", "j_call"])
        pq.write_table(twice, tmp_path / "a")
        with pytest.raises(FormatError, match="'j_call' more than once"):
            open_rearrangements(tmp_path / "a", block_rows=10)

    def test_a_missing_column_is_named(self, tmp_path: Path) -> None:
        pq.write_table(pa.table({"junction": ["A"]}), tmp_path / "a")
        with pytest.raises(FormatError, match="missing: v_call, j_call"):
            open_rearrangements(tmp_path / "a", block_rows=10)

    def test_damage_is_reported(self, tmp_path: Path) -> None:
        columns = {name: [row.split("\t")[i] for row in ROWS] for i, name in enumerate(HEADER.split())}
        pq.write_table(pa.table(columns), tmp_path / "a", write_page_checksum=True)
        whole = (tmp_path / "a").read_bytes()
        with pytest.raises(FormatError, match="damaged or unreadable Parquet"):
            open_rearrangements(write(tmp_path / "cut", whole[:-20]), block_rows=10)
        middle = whole[:200] + bytes(byte ^ 0xFF for byte in whole[200:300]) + whole[300:]
        reader = open_rearrangements(write(tmp_path / "flipped", middle), block_rows=10)
        with pytest.raises(FormatError, match="damaged or unreadable Parquet"):
            list(reader)


def failing_read(path: Path) -> FormatError:
    with pytest.raises(FormatError) as caught:
        list(open_rearrangements(path, block_rows=10))
    assert caught.value.path == str(path)
    return caught.value


class TestBadInput:
    def test_missing_file(self, tmp_path: Path) -> None:
        assert failing_read(tmp_path / "none").found == "no such file"

    def test_directory(self, tmp_path: Path) -> None:
        assert failing_read(tmp_path).found == "a directory"

    def test_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert "pipe" in str(failing_read(tmp_path / "pipe").found)

    def test_no_permission(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        path = write(tmp_path / "a", TEXT)
        monkeypatch.setattr("builtins.open", refuse)
        assert failing_read(path).found == "Permission denied"

    @pytest.mark.parametrize("content", [b"", gzip.compress(b""), zstd(b"")], ids=["plain", "gz", "zst"])
    def test_empty_file(self, tmp_path: Path, content: bytes) -> None:
        assert failing_read(write(tmp_path / "a", content)).found in ("an empty file", "no text at all")

    def test_blank_header(self, tmp_path: Path) -> None:
        assert failing_read(write(tmp_path / "a", "\n" + TEXT)).line == 1

    def test_repeated_column(self, tmp_path: Path) -> None:
        error = failing_read(write(tmp_path / "a", "junction\tv_call\tj_call\tv_call\n"))
        assert (error.line, error.found) == (1, "column name 'v_call' more than once")

    @pytest.mark.parametrize("mark", [",", ";"])
    def test_commas_and_semicolons(self, tmp_path: Path, mark: str) -> None:
        text = TEXT.replace("\t", mark)
        assert cells(open_rearrangements(write(tmp_path / "a.csv", text), block_rows=7)) == ROWS
        error = failing_read(write(tmp_path / "b.csv", text + f"a{mark}b\n"))
        assert (error.line, error.found) == (52, "2 columns")

    @pytest.mark.parametrize("line", [2, 3, 27, 51])
    @pytest.mark.parametrize(
        ("bad", "columns"), [("a\tb", "2 columns"), ("a", "1 column"), ("\t" * 6, "7 columns")]
    )
    @pytest.mark.parametrize("size", [100, 4 << 20])
    def test_ragged_row(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int, bad: str, columns: str, size: int
    ) -> None:
        monkeypatch.setattr("plait.formats.rearrangements._PIECE_BYTES", size)
        lines = TEXT.splitlines()
        lines[line - 1] = bad
        error = failing_read(write(tmp_path / "a", "\n".join(lines)))
        assert (error.line, error.found) == (line, columns)
        assert error.expected == "5 columns, as in the header"

    def test_blank_lines_hold_no_row_and_still_count_as_lines(self, tmp_path: Path) -> None:
        good = HEADER + "\n" + ROWS[0] + "\r\n\r\n\n" + ROWS[1] + "\n"
        reader = open_rearrangements(write(tmp_path / "a", good), block_rows=10)
        assert cells(reader) == ROWS[:2]
        assert reader.blank_lines == 3
        assert failing_read(write(tmp_path / "b", good + "x\n")).line == 7

    def test_rows_before_the_bad_one_are_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("plait.formats.rearrangements._PIECE_BYTES", 64)
        reader = open_rearrangements(write(tmp_path / "a", TEXT + "ragged\n"), block_rows=7)
        seen = []
        with pytest.raises(FormatError, match="line 52"):
            seen.extend(block.num_rows for block in reader)
        assert sum(seen) == 49

    @pytest.mark.parametrize("cut", [5, 100, -9, -4])
    def test_truncated_gzip(self, tmp_path: Path, cut: int) -> None:
        error = failing_read(write(tmp_path / "a.tsv.gz", gzip.compress(TEXT.encode())[:cut]))
        assert "an early end of the gzip stream after" in str(error.found)
        assert error.line is not None

    def test_truncated_zstd(self, tmp_path: Path) -> None:
        assert "an early end of the zstd stream" in str(
            failing_read(write(tmp_path / "a", zstd(TEXT.encode())[:-5]))
        )

    def test_damaged_gzip(self, tmp_path: Path) -> None:
        data = bytearray(gzip.compress(TEXT.encode()))
        data[-6] ^= 0xFF
        assert "damaged data" in str(failing_read(write(tmp_path / "a", bytes(data))))

    def test_the_line_of_a_truncation_is_near_the_last_row(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("plait.formats.rearrangements._PIECE_BYTES", 100)
        monkeypatch.setattr("plait.formats.rearrangements._HEADER_PIECE_BYTES", 100)
        data = gzip.compress(TEXT.encode()) + gzip.compress(b"x" * 100)[:-8]
        assert failing_read(write(tmp_path / "a", data)).line in (50, 51, 52)

    @pytest.mark.parametrize(
        ("head", "what"),
        [
            (b"\x89PNG\r\n\x1a\n\0\0", "PNG"),
            (b"PK\x03\x04\x14\0", "Excel"),
            (b"BZh91AY&SY", "bzip2"),
            (b"\xfd7zXZ\x00", "xz"),
            (b"ARROW1\0\0", "Arrow IPC"),
            (b"BAM\x01\0\0", "BAM"),
            ("junction\tv_call".encode("utf-16"), "UTF-16"),
            (b"a\tb\0c\n", "NUL"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    @pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
    def test_binary_content(self, tmp_path: Path, head: bytes, what: str, pack: type[bytes]) -> None:
        assert what in str(failing_read(write(tmp_path / "a.tsv", pack(head + bytes(range(256))))).found)

    def test_binary_in_the_middle(self, tmp_path: Path) -> None:
        error = failing_read(write(tmp_path / "a", TEXT + "a\tb\tc\td\t\0\n"))
        assert (error.line, "NUL" in str(error.found)) == (52, True)

    @pytest.mark.parametrize("line", [1, 2, 30])
    def test_latin1(self, tmp_path: Path, line: int) -> None:
        lines = TEXT.encode().splitlines()
        lines[line - 1] += b"\xe9"
        error = failing_read(write(tmp_path / "a", b"\n".join(lines)))
        assert (error.line, "0xe9" in str(error.found)) == (line, True)
        assert "iconv" in (error.hint or "")

    def test_carriage_return_inside_a_line(self, tmp_path: Path) -> None:
        error = failing_read(write(tmp_path / "a", TEXT + "a\tb\rc\td\te\tf\n"))
        assert (error.line, error.found) == (52, "a carriage return inside the line")

    def test_endless_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("plait.formats.rearrangements.LARGEST_ROW", 5 << 20)
        for end in ("", "\n"):
            error = failing_read(write(tmp_path / "a", HEADER + "A" * (9 << 20) + end))
            assert (error.line, " bytes or more" in str(error.found)) == (2, True)
            assert error.expected == "rows of at most 5,242,880 bytes"

    def test_wrong_calls(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a", TEXT)
        with pytest.raises(InvalidInput, match="no input file"):
            open_rearrangements([], block_rows=10)
        with pytest.raises(InvalidInput, match="block_rows: found 0"):
            open_rearrangements(path, block_rows=0)
        with pytest.raises(InvalidInput, match="layout"):
            open_rearrangements(path, layout="none", block_rows=10)


def test_leaving_the_loop_ends_the_thread(tmp_path: Path) -> None:
    # By name: other tests of the process may have left threads of libraries, which end when they like.
    def reading() -> list[str]:
        return [found.name for found in threading.enumerate() if "read-ahead" in found.name]

    path = write(tmp_path / "a", HEADER + TEXT.removeprefix(HEADER) * 100)
    with open_rearrangements(path, block_rows=7) as reader:
        iterator = iter(reader)
        next(iterator)
        assert len(reading()) == 1, threading.enumerate()
    assert reading() == []
    with pytest.raises(KeyboardInterrupt), open_rearrangements(path, block_rows=7) as reader:
        for _ in reader:
            raise KeyboardInterrupt
    assert reading() == []


def test_the_real_mouse_file(shared_data: Path) -> None:
    path = shared_data / "mouse_TRB_real_8mice_36samples.tsv.gz"
    reader = open_rearrangements(path, block_rows=65_536)
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        header = next(stream).rstrip("\n").split("\t")
        for block in reader:
            columns = [column.to_pylist() for column in block.columns]
            for row, line in zip(zip(*columns, strict=True), stream, strict=False):
                assert "\t".join(row) + "\n" == line
        assert next(stream, None) is None
    assert reader.schema.names == header


@pytest.mark.parametrize("rows", [1, 5])
def test_a_footer_with_another_number_of_rows_is_refused(tmp_path: Path, rows: int) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({name: ["x"] * 3 for name in ("junction", "v_call", "j_call")}), path)
    content = path.read_bytes()
    # Field 3 of the footer, before the list of row groups.
    said, other = (b"\x16" + bytes([2 * n]) + b"\x19\x1c" for n in (3, rows))
    assert content.count(said) == 1
    path.write_bytes(content.replace(said, other))
    with pytest.raises(
        FormatError, match=f"3 rows in its row groups, where its footer says {rows}, expected"
    ):
        list(open_rearrangements(path, block_rows=2))
