"""The encodings of texts: found out, declared, told by the client, or refused."""

from email.message import EmailMessage

import pytest

from backend.extraction.domain.blocks import Note, Paragraph
from backend.extraction.domain.chunking import readable_text
from backend.extraction.domain.media_types import CSV, EMAIL, HTML, JSON, MARKDOWN, TEXT, charset_of
from backend.extraction.formats.chosen import read_blocks
from backend.extraction.formats.cutting import ContentLimits, cut_file
from backend.search.domain.chunks import Chunk
from shared.errors import InvalidRequest, UnsupportedValue

CHINESE = (
    "部门预算说明：研发部今年的预算为一百二十万元，市场部为八十万元。各部门应当在每季度末提交报告，说明经费的"
    "使用情况。超出预算的项目必须事先得到财务部门的批准，否则不予报销。员工每年有十二天年假，病假需要医生证明"
    "。会议室的预订请通过内部系统办理，取消预订应提前一天通知。公司食堂每天中午十一点半开放，晚餐从五点半开始"
    "供应。新员工入职后须完成安全培训，并在第一个月内提交学习总结。出差的交通费用按照实际支出报销，住宿标准依"
    "城市不同而定。"
)
TRADITIONAL = (
    "部門預算說明：研發部今年的預算為一百二十萬元，市場部為八十萬元。各部門應當在每季度末提交報告，說明經費的"
    "使用情況。超出預算的項目必須事先得到財務部門的批准，否則不予報銷。員工每年有十二天年假，病假需要醫生證明"
    "。會議室的預訂請透過內部系統辦理，取消預訂應提前一天通知。公司餐廳每天中午十一點半開放，晚餐從五點半開始"
    "供應。新進員工到職後須完成安全訓練，並在第一個月內提交學習總結。出差的交通費用按照實際支出報銷，住宿標準"
    "依城市不同而定。"
)
JAPANESE = (
    "部署ごとの予算について説明します。開発部の今年の予算は百二十万円、マーケティング部は八十万円です。各部署"
    "は四半期の末に報告書を提出し、経費の使用状況を説明しなければなりません。予算を超える案件は事前に経理部の"
    "承認を得る必要があります。社員には毎年十二日の年次休暇があり、病気休暇には医師の診断書が必要です。会議室"
    "の予約は社内システムで行い、取り消しは前日までに連絡してください。社員食堂は毎日十一時半に開きます。"
)
KOREAN = (
    "부서별 예산을 설명합니다. 개발부의 올해 예산은 백이십만원이고 마케팅부는 팔십만원입니다. 각 부서는 분기 "
    "말에 보고서를 제출하고 경비 사용 내역을 설명해야 합니다. 예산을 초과하는 사업은 사전에 재무부의 승인을 받"
    "아야 합니다. 직원은 매년 십이 일의 연차 휴가를 가지며 병가에는 의사의 진단서가 필요합니다. 회의실 예약은"
    " 사내 시스템을 통해 합니다."
)
RUSSIAN = (
    "Отдел разработки получает в этом году бюджет сто двадцать тысяч рублей, отдел продаж восемьдесят тысяч. "
    "Каждый отдел должен в конце квартала представить отчёт и объяснить, как расходуются средства. Сотрудник "
    "имеет право на отпуск."
)
GREEK = (
    "Το τμήμα έρευνας έχει φέτος προϋπολογισμό εκατόν είκοσι χιλιάδες ευρώ, το τμήμα πωλήσεων ογδόντα χιλιάδε"
    "ς. Κάθε τμήμα πρέπει στο τέλος του τριμήνου να υποβάλλει έκθεση και να εξηγεί πώς χρησιμοποιούνται τα χρ"
    "ήματα."
)
POLISH = (
    "Dział rozwoju ma w tym roku budżet sto dwadzieścia tysięcy złotych, dział sprzedaży osiemdziesiąt tysięc"
    "y. Każdy dział musi na koniec kwartału złożyć sprawozdanie i wyjaśnić, jak wykorzystano środki. Żółw i ś"
    "więta są wolne od pracy."
)
GERMAN = (
    "Die Abteilung für Entwicklung erhält in diesem Jahr ein Budget von hundertzwanzigtausend Euro, der Vertr"
    "ieb achtzigtausend. Jede Abteilung muss erklären, wofür die Mittel verwendet wurden. Gebühr für Überführ"
    "ung: 90 €. Große Räume kosten mehr."
)
TURKISH = (
    "Geliştirme bölümünün bu yılki bütçesi yüz yirmi bin lira, satış bölümünün bütçesi seksen bin liradır. He"
    "r bölüm çeyreğin sonunda bir rapor sunmalı ve paranın nasıl kullanıldığını açıklamalıdır. Çalışanların y"
    "ılda on iki gün izin hakkı vardır."
)
TEXTS = {
    "gb18030": CHINESE,
    "big5": TRADITIONAL,
    "shift_jis": JAPANESE,
    "euc_jp": JAPANESE,
    "euc_kr": KOREAN,
    "cp1251": RUSSIAN,
    "koi8-r": RUSSIAN,
    "cp1253": GREEK,
    "cp1250": POLISH,
    "iso8859-2": POLISH,
    "cp1252": GERMAN,
    "cp1254": TURKISH,
}


def rows(text: str) -> str:
    return "\n".join(f"{place},{text[place : place + 20].replace(',', ' ')}" for place in range(0, len(text), 20))


def mail(text: str, encoding: str) -> bytes:
    return b"Subject: x\nContent-Transfer-Encoding: 8bit\n\n" + text.encode(encoding)


def read(body: bytes, media_type: str, charset: str | None = None) -> tuple[str, str]:
    """Return a document's text without white space, and its notes."""
    cut = cut_file(body, media_type, ContentLimits(), charset)
    text = "".join(piece for batch in cut.batches for _, piece, *_ in batch)
    return "".join(text.split()), " ".join(cut.notes)


@pytest.mark.parametrize(("encoding", "text"), TEXTS.items(), ids=list(TEXTS))
@pytest.mark.parametrize("media_type", [TEXT, CSV, HTML, EMAIL])
def test_the_encoding_of_a_text_is_found_out_and_noted(media_type: str, encoding: str, text: str) -> None:
    body = {
        TEXT: text.encode(encoding),
        CSV: rows(text).encode(encoding),
        HTML: f"<html><body><p>{text}</p></body></html>".encode(encoding),
        EMAIL: mail(text, encoding),
    }[media_type]
    found, notes = read(body, media_type)
    wanted = "".join(text[:20].split())
    assert (wanted in found, "was read as" in notes) == (True, True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig"])
def test_marked_texts_and_utf_16_are_no_guess(encoding: str) -> None:
    assert read("The vault opens at nine.".encode(encoding), TEXT) == ("Thevaultopensatnine.", "")


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ('<meta charset="gb2312">', "gbk"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">', "cp1252"),
        ('<?xml version="1.0" encoding="shift_jis"?>', "cp932"),
        ('<meta charset="iso-2022-jp">', "iso-2022-jp"),
    ],
)
def test_a_page_is_read_as_it_declares(declaration: str, encoding: str) -> None:
    word = "€ ü" if encoding == "cp1252" else "年"
    assert read(f"{declaration}<p>{word}</p>".encode(encoding), HTML) == ("".join(word.split()), "")


def test_utf_8_goes_before_a_wrong_declaration_and_letters_before_one_that_cannot_be() -> None:
    assert read('<meta charset="gb2312"><p>Größe</p>'.encode(), HTML) == ("Größe", "")
    found, notes = read(f'<meta charset="utf-8"><p>{RUSSIAN}</p>'.encode("cp1251"), HTML)
    assert (found[:5], notes) == ("Отдел", "The encoding is not declared: the text was read as CP1251.")


def test_who_tells_the_encoding_is_taken_at_their_word() -> None:
    body = "Müll".encode("mac-roman")
    assert read(body, TEXT, charset_of("text/plain; charset=macintosh")) == ("Müll", "")
    with pytest.raises(InvalidRequest, match="not valid UTF-8 at byte 1"):
        read(body, TEXT, charset_of('text/plain; Charset="UTF-8"'))
    with pytest.raises(UnsupportedValue, match="no encoding named 'klingon'"):
        charset_of("text/plain; charset=klingon")
    assert charset_of("text/plain") is charset_of(None) is charset_of("text/plain; charset=us-ascii") is None


@pytest.mark.parametrize("body", ["Żółw".encode("cp1250"), bytes(range(128, 256)) * 9])
def test_an_uncertain_encoding_is_refused_with_guesses(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"encoding is uncertain.*'charset'"):
        read(body, TEXT)


def test_json_and_markdown_may_have_any_encoding() -> None:
    assert read(f'{{"отдел": "{RUSSIAN}"}}'.encode("cp1251"), JSON)[0].startswith("отдел:Отдел")
    assert read(f"# x\n\n{RUSSIAN}".encode("koi8-r"), MARKDOWN)[0].startswith("Отдел")
    assert read('{"a": "b"}\n{"a": "c"}'.encode("utf-16"), JSON)[0] == "a:ba:c"


def test_a_mail_says_its_headers_in_the_encoding_of_its_text() -> None:
    head = "From: a@x\nSubject: 年假通知\nContent-Type: text/plain; charset=gb2312\nContent-Transfer-Encoding: 8bit\n\n"
    found, notes = read(f"{head}员工每年有十二天年假。".encode("gbk"), EMAIL)
    assert ("Subject:年假通知" in found, "员工每年有十二天年假。" in found, notes) == (True, True, "")


def test_a_message_that_is_attached_as_a_file_is_read() -> None:
    def attach(inner: bytes) -> bytes:
        message = EmailMessage()
        message["Subject"] = "Outer"
        message.set_content("see below")
        message.add_attachment(inner, "application", "octet-stream", cte="7bit", filename="old.eml")
        return message.as_bytes()

    body = b"From: c@x\nSubject: Terms\n\nThe term is sixty days.\n"
    assert "sixtydays" in read(attach(body), EMAIL)[0]
    for _ in range(40):
        body = attach(body)
    assert "deepineachother" in read(body, EMAIL)[0]


def test_the_text_of_a_document_in_another_encoding_is_that_of_its_chunks() -> None:
    chunk = Chunk(id="chunk_a", document_id="doc_a", ordinal=0, heading_path=(), text="Отдел", tokens=2)
    for encoding in ("cp1251", "utf-16"):
        assert readable_text(TEXT, "Отдел".encode(encoding), [chunk]) == "Отдел"
    assert readable_text(TEXT, b"x\n\n\ny", [chunk]) == "x\n\n\ny"


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="control characters"):
        read(b"\x01\x02\x03\x04 some text", TEXT)


def test_a_note_is_no_text() -> None:
    blocks = list(read_blocks(RUSSIAN.encode("cp1251"), TEXT))
    assert blocks == [Paragraph(text=RUSSIAN), Note(text="The encoding is not declared: the text was read as CP1251.")]
