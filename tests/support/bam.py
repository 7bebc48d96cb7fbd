"""Records of BAM as lines of SAM."""

from __future__ import annotations

import gzip
import struct


def bam_records(data: bytes) -> tuple[str, list[list[str]]]:
    """The header, and the fields of each record, as SAM has them."""
    text = gzip.decompress(data)
    assert text[:4] == b"BAM\1"
    size = struct.unpack_from("<i", text, 4)[0]
    header, at = text[8 : 8 + size].decode(), 8 + size
    names = []
    count, at = struct.unpack_from("<i", text, at)[0], at + 4
    for _ in range(count):
        width = struct.unpack_from("<i", text, at)[0]
        names.append(text[at + 4 : at + 3 + width].decode())
        at += 8 + width
    rows = []
    while at < len(text):
        total, ref, pos, name_size, mapq, _, runs, flag, length, *mate = struct.unpack_from(
            "<iiiBBHHHiiii", text, at
        )
        assert mate == [-1, -1, 0]
        place = at + 36
        name, place = text[place : place + name_size - 1].decode(), place + name_size
        cigar = "".join(
            f"{run >> 4}{'MIDNSHP=X'[run & 15]}" for run in struct.unpack_from(f"<{runs}I", text, place)
        )
        place += 4 * runs
        letters = "".join(
            "=ACMGRSVTWYHKDBN"[b >> 4] + "=ACMGRSVTWYHKDBN"[b & 15] for b in text[place:][: (length + 1) // 2]
        )
        place += (length + 1) // 2
        qualities = text[place : place + length]
        tags, place = [], place + length
        while place < at + 4 + total:
            tag, kind, place = text[place : place + 2].decode(), chr(text[place + 2]), place + 3
            if kind == "i":
                value, place = struct.unpack_from("<i", text, place)[0], place + 4
            else:
                end = text.index(b"\0", place)
                value, place = text[place:end].decode(), end + 1
            tags.append(f"{tag}:{kind}:{value}")
        shown = "*" if not qualities or qualities[0] == 255 else "".join(chr(33 + q) for q in qualities)
        target = "*" if ref < 0 else names[ref]
        rows.append(
            [
                name,
                str(flag),
                target,
                str(pos + 1),
                str(mapq),
                cigar or "*",
                "*",
                "0",
                "0",
                letters[:length] or "*",
                shown,
                *tags,
            ]
        )
        at = place
    return header, rows
