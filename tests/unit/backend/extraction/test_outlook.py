"""Messages that Outlook has saved."""

from collections.abc import Mapping
from dataclasses import replace
from struct import pack
from typing import Any

import pytest

from backend.extraction.domain.blocks import Block, Heading, Note, Paragraph
from backend.extraction.domain.media_types import OUTLOOK, media_type_of
from backend.extraction.formats.chosen import read_blocks
from shared.errors import InvalidRequest
from tests.unit.backend.extraction.made_files import pdf_of
from tests.unit.backend.extraction.outlook_files import compound_file, storage, wide

TEXT = {"p0037001F": wide("Ölstand"), "p1000001F": wide("Voll.\r\n")}
SENT = {0x0039: pack("<Q", 132_539_328_000_000_000)}
PACKED_RTF = bytes.fromhex(
    "2d000000 2b000000 4c5a4675 f1c5c7a7 03000a00 72637067 31323542 320af320 68656c09 00206277 05b06c64 7d0a800f a0"
)
"""The example of [MS-OXRTFCP], 3.2."""


NOTHING: Mapping[int, bytes] = {}


def item(fixed: Mapping[int, bytes] = NOTHING, **further: Any) -> bytes:
    return compound_file(storage(fixed, 32, **further))


def read(body: bytes) -> list[Block]:
    return [block for block in read_blocks(body, OUTLOOK) if block.text.strip()]


def test_a_message_is_read_as_an_e_mail_with_what_is_attached() -> None:
    people = {
        f"recip_{number}": storage({0x0C15: pack("<II", kind, 0)}, 8, p3001001F=wide(name), p39FE001F=wide(address))
        for number, (kind, name, address) in enumerate(
            [(1, "Vance, Imogen (HQ)", "imogen@example.org"), (2, "hall@example.org", "hall@example.org")]
        )
    }
    inner = storage({}, 24, p0037001F=wide("Inside"), p1000001F=wide("Inner text."))
    attached = {
        "attach_0": storage({}, 8, p3707001F=wide("Prüfung.pdf"), p37010102=pdf_of(("Tested.",))),
        "attach_1": storage({}, 8, p3701000D=inner),
    }
    sender = {"p0C1A001F": wide("Bo"), "p5D01001F": wide("bo@example.org")}
    body = item(SENT, p001A001F=wide("IPM.Note"), **TEXT, **sender, **people, **attached)
    assert media_type_of(None, "a.msg", body) == OUTLOOK
    head = (
        "From: Bo <bo@example.org>\nTo: Vance, Imogen (HQ) <imogen@example.org>\nCc: hall@example.org\nSubject: Ölstand"
    )
    assert read(body) == [
        Heading(level=1, text="Ölstand"),
        Paragraph(text=f"{head}\nDate: 2021-01-01T00:00:00+00:00"),
        Paragraph(text="Voll.\n"),
        Heading(level=2, text="Attachment: Prüfung.pdf"),
        *(replace(block, text="Tested.") for block in read(body)[4:5]),
        Heading(level=2, text="Inside"),
        Paragraph(text="Subject: Inside"),
        Paragraph(text="Inner text.\n"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ({"p10130102": "<p>Grüße</p>".encode("cp1252")}, "Grüße"),
        ({"p1013001F": wide("<p>Grüße</p>")}, "Grüße"),
        ({"p10090102": PACKED_RTF}, "hello world"),
        ({"p1000001E": "Füllstand".encode("cp1252")}, "Füllstand"),
    ],
)
def test_a_text_is_found_in_each_of_its_forms(text: dict[str, bytes], said: str) -> None:
    code_page = {0x3FDE: pack("<II", 1252, 0)}
    assert [block.text.strip() for block in read(item(code_page, p001A001F=wide("IPM.Note"), **text))][-1] == said


def test_what_is_no_e_mail_or_of_no_known_encoding_is_noted() -> None:
    body = item(p001A001F=wide("IPM.Appointment"), p0037001F=wide("Visit"), p1000001E="Body öäü Body".encode("cp1252"))
    assert [block.text for block in read(body) if isinstance(block, Note)] == [
        "Of this Outlook item (IPM.Appointment) only what e-mails have was read: its other fields were not.",
        "The encoding of some texts of the message is not told: they were read as Windows-1252.",
    ]
    assert Paragraph(text="Body öäü Body\n") in read(body)


@pytest.mark.parametrize(
    "body", [b"no message", item(NOTHING, **TEXT)[:700], b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000)]
)
def test_what_is_damaged_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="no message of Outlook, or damaged"):
        read(body)
