"""RTF as word processors write it, and as nobody should."""

import pytest

from backend.extraction.domain.blocks import Heading, Note
from backend.extraction.domain.media_types import RTF
from backend.extraction.formats.chosen import read_blocks


def texts(source: str) -> list[str]:
    body = rb"{\rtf1\ansi\ansicpg1252 " + source.encode("latin-1") + b"}"
    return [block.text for block in read_blocks(body, RTF) if block.text.strip()]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            r"Rent{\super\chftn}{\footnote\pard\chftn  in leap years} is due.\par",
            ["Rent is due.", "Footnote: in leap years"],
        ),
        (r"Fee{\*\atnid A}{\*\annotation\pard ask the notary} due\par", ["Fee due", "Comment: ask the notary"]),
        (r"{\header\pard Port\par}{\headerf\pard Port\par}{\footer HR-7\par}Ships\par", ["Port", "Ships", "HR-7"]),
        (
            r"{\shp{\*\shpinst{\sp{\sn name}{\sv x}}{\shptxt\pard Box\par}}{\shprslt old box}}Text\par",
            ["Text", "Box"],
        ),
        (r"Due in {\deleted thirty }{\revised ninety }days\par", ["Due in ninety days"]),
        (r"Seen {\v unseen}text\v  gone\v0\par", ["Seen text", "Hidden texts that were left out: 2."]),
        (r"{\pict 0102}{\*\shppict{\pict 01}}{\nonshppict{\pict 01}}x\par", ["x", "Pictures that were not read: 2."]),
        (r"{\field{\*\fldinst HYPERLINK x}{\fldrslt the sheet}}\par", ["the sheet"]),
        (r"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset128 B;}}a\f1\'93\'fa\'8c{\f0 b}\par", ["a日\ufffdb"]),
        (r"{\fonttbl{\f1\fcharset128 B;}}\f1\'83\'5c\'83g\par", ["ソト"]),
        (r"\uc2\u26085\'93\'fa\u-10179??\u-8704??\uc0\u8364 !\par", ["日😀€!"]),
        (r"{\info{\title x}}{\*\generator y}a\tab b\line c\emdash d\~e\_f\-g\{\par", ["a\tb\nc—d\u00a0e-fg{"]),
        ("a\\bin3 {}}b\\par", ["ab"]),
        ("a\\'zz}}b{{{", ["azzb"]),
    ],
)
def test_what_is_seen_is_read_and_nothing_else(source: str, wanted: list[str]) -> None:
    assert texts(source) == wanted


def test_tables_are_read_row_by_row_and_styles_of_headings_make_headings() -> None:
    row = r"\trowd{}\pard\intbl {}\cell {}\cell\row "
    table = "".join(
        row.format(*cells) for cells in ((r"\trhdr", "Ship", r"Tons\par net"), ("", "Aino", "31"), ("", "Ida", "4"))
    )
    source = r"{\stylesheet{\s3\outlinelevel1 head;}}\pard\s3 Fleet\par\pard " + table + r"\pard End\par"
    body = rb"{\rtf1 " + source.encode() + b"}"
    blocks = [block for block in read_blocks(body, RTF) if block.text.strip()]
    assert blocks[0] == Heading(level=2, text="Fleet")
    assert [block.text for block in blocks[1:]] == ["Ship: Aino\nTons net: 31", "Ship: Ida\nTons net: 4", "End"]
    assert not [block for block in blocks if isinstance(block, Note)]


def test_groups_may_be_nested_without_end() -> None:
    assert texts("{" * 300_000 + "deep") == ["deep"]
