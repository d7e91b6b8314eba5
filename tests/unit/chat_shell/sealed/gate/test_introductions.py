"""How a term is introduced, and that it is protected afterwards."""

import pytest

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.gate.chinese_definitions import defined_in_chinese
from chat_shell.sealed.gate.english_definitions import defined_in_english, named_by_kind
from chat_shell.sealed.gate.labels import items_in, rows_in, set_off_in
from chat_shell.sealed.gate.terms import ChunkSource, terms_of
from chat_shell.sealed.verdicts import Blocked
from tests.unit.chat_shell.sealed.gate.planting import chunk, reply


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("A slow gate means a gate that nobody watches.", "slow gate"),
        ("An *idle bell* is a bell nobody rings.", "idle bell"),
        ("By warm stone we understand a stone that was paid twice.", "warm stone"),
        ("The deputy (hereafter the dawn porter) decides.", "dawn porter"),
        ("We speak of a mute parcel if nobody signs.", "mute parcel"),
        ("It holds what we call the spare tongue, which is rare.", "spare tongue"),
        ("The list, known in the yard as the long nap, grows.", "long nap"),
        ("It goes on the list (the Lost Kettle) at once.", "Lost Kettle"),
        ("The second word is paper bridge. It is short.", "paper bridge"),
        ("内部习惯叫它老磨。老磨不记账。", "老磨"),
        ("值守分为浅水、深水、漫水三个状态。", "漫水"),
        ("三次扫描叫头关、腰关、尾关。", "腰关"),
        ("各级依次叫作浅滩、暗礁。", "暗礁"),
        ("这种件叫“悬鱼”，即无人签收的件。", "悬鱼"),
        ("- 影子床：指登记有人而无人住的床。", "影子床"),
        ("所谓底耗，即无人时的用电，去年测过。", "底耗"),
        ("留在网点的现金称为暂滞，须逐日上报。", "暂滞"),
        ("“回件”，是已签收又退回的件。", "回件"),
        ("- 晾晒日：每月一次、全楼晾晒被褥的日子。", "晾晒日"),
        ("2. 老租户：期满后仍未搬离的人员，含家属。", "老租户"),
        ("1. 砥柱：连年没有欠款。", "砥柱"),
        ("内部代号为长风（见附件）。", "长风"),
        ("大家都叫它长风——不记账。", "长风"),
        ("大家都叫它长风！不记账。", "长风"),
        ("代号为： 长风。", "长风"),
        ("這種件稱為長風，須逐日上報。", "长风"),
        ("值守分為淺水、深水、漫水三個狀態。", "漫水"),
        ("各级依次叫作浅滩、\n暗礁。", "暗礁"),
        ("都要领取**青灯**，不得代领。", "青灯"),
        ("（一）所谓底耗，即无人时的用电。", "底耗"),
        ("The staff call it the long nap (and sleep).", "long nap"),
        ("Staff call this the long nap!", "long nap"),
        ("The list, known in the yard as the long\n  nap, grows.", "long nap"),
        ("> - A slow gate means a gate\n> that nobody watches.", "slow gate"),
        ("(a) An idle bell is a bell nobody rings.", "idle bell"),
        ("It goes into the 'glass ledger' at night.", "glass ledger"),
        ("It goes into the «glass ledger» at night.", "glass ledger"),
        ("| x | y |\n|---|---|\n  | Murmur shelf | low |", "Murmur shelf"),
        ('A <strong class="x">slow lantern</strong> waits.', "slow lantern"),
        ("A slow door. <h2>Slow lantern</h2> It waits.", "Slow lantern"),
        ("It is called the [long nap](a.md), there.", "long nap"),
        ("We buy from Quill\u00admarrow House.", "Quillmarrow House"),
        ("We buy from Quill-\nmarrow House.", "Quillmarrow House"),
    ],
)
def test_a_definition_introduces_its_term(text: str, term: str):
    found = terms_of(ChunkSource("a.md", (), text))
    # the gate holds Chinese by `han` alone
    assert term in (found.phrases if term.isascii() else found.han)


@pytest.mark.parametrize(
    "text", ["It is called for by the rules.", "They call off the search.", "停工的项目由他叫停。", "We call it off."]
)
def test_a_turn_of_phrase_introduces_nothing(text: str):
    assert not {*defined_in_english(text), *defined_in_chinese(text)}


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("From the **murmur shelf** we take one.", "murmur shelf"),
        ("Files in class Pebble wait.", "class Pebble"),
        ("Project Second Coat makes copies.", "Second Coat"),
    ],
)
def test_markup_and_kinds_set_a_term_off(text: str, term: str):
    assert term in {*set_off_in(text), *named_by_kind(text)}


def test_labels_stand_before_items_and_rows():
    assert list(items_in("- Quick coat: dries at once\n2. Late coat: does not\n")) == ["Quick coat", "Late coat"]
    assert list(rows_in("| Tier | Limit |\n|---|---|\n| Ripple | low |\n")) == ["Tier", "Ripple"]


def test_general_words_are_no_terms():
    text = (
        "## Known weaknesses\n\nThe Product Team and the **response time** matter; “检查” does, and Self-hosted does."
    )
    found = terms_of(ChunkSource("a.md", ("A Title", "Regional leads"), text))
    assert {"Known weaknesses", "Product Team", "response time", "Regional leads"}.isdisjoint(found.phrases)
    assert {"selfhosted", "howto", "检查"}.isdisjoint(found.words | found.han)


@pytest.mark.parametrize(
    ("heading", "term"),
    [
        ("3.1 Quiet orchard", "Quiet orchard"),
        ("3. Quiet orchard", "Quiet orchard"),
        ("Chapter 3: Quiet orchard", "Quiet orchard"),
        ("Appendix B – Quiet orchard", "Quiet orchard"),
        ("IV. Quiet orchard", "Quiet orchard"),
        ("Quiet orchard (2024)", "Quiet orchard"),
        ("Quiet orchard {#q}", "Quiet orchard"),
        ("第三章 枯井换水", "枯井换水"),
        ("三、枯井换水", "枯井换水"),
        ("（三）枯井换水", "枯井换水"),
        ("附录一：枯井换水", "枯井换水"),
        ("枯井换水（试行）", "枯井换水"),
    ],
)
@pytest.mark.parametrize("level", [1, 2])
def test_a_heading_is_a_term_without_its_number_and_note(heading: str, term: str, level: int):
    for source in (
        ChunkSource("a.md", ("Title",) * (level - 1) + (heading,), ""),
        ChunkSource("a.md", (), f"{'#' * level} {heading}"),
    ):
        found = terms_of(source)
        assert term in found.phrases | found.han


@pytest.mark.parametrize(
    "text",
    [
        "1. 检查：须有统一的标准。",
        "所谓检查，即看一眼。",
        "- 主要风险：供应商过于集中的局面。",
        "- 改进建议：统一登记的口径。",
        "- 根本原因：无人复核的环节。",
        "- 薄弱环节：交接时的步骤。",
        "- 服务质量：客户看重的方面。",
        "采购流程：先批后买的办法。",
    ],
)
def test_a_label_of_general_words_is_no_term(text: str):
    assert not terms_of(ChunkSource("a.md", (), text)).han


def test_headings_of_a_table_in_parted_lines_are_its_first_row_alone():
    found = terms_of(ChunkSource("a.md", (), "Tier | Keeper\n\nRipple | danger to life\n\nBrook | the night shift"))
    assert not {"danger to life", "the night shift"} & found.phrases


def test_a_heading_that_is_a_sentence_is_a_term():
    found = terms_of(ChunkSource("a.md", ("A Title", "The purpose of a fence"), "Text."))
    assert "The purpose of a fence" in found.phrases


def test_a_title_is_a_term_in_each_of_its_parts():
    found = terms_of(ChunkSource("a.md", ("Hiring, Grades and Pay Corridors at Marrowgate",), "Text."))
    assert "Pay Corridors at Marrowgate" in found.phrases
    assert "marrowgate" in found.words


def test_a_chunk_of_one_short_line_is_a_heading():
    assert "Quiet orchard" in terms_of(ChunkSource("a.md", ("Title",), "Quiet orchard")).phrases
    assert "枯井换水" in terms_of(ChunkSource("a.md", ("Title",), "第三章 枯井换水")).han


def test_names_joined_by_and_are_names_each():
    found = terms_of(ChunkSource("a.md", (), "We lend to Saint Ambrin and Lower Fell."))
    assert {"Saint Ambrin", "Lower Fell"} <= found.phrases


@pytest.mark.parametrize("name", ["听松咨询", "麦穗巷", "北辰银行", "晨潮计划"])
def test_what_stands_before_its_kind_is_a_name(name: str):
    assert name in terms_of(ChunkSource("a.md", (), f"审计外包给{name}办理。")).han


SHOWN = "Files at the short road wait, and 影子床 keep the quiet harbour."
INTRODUCING = "By short road we understand payment within a week. 内部习惯叫它影子床。A long road means the rest."


@pytest.mark.parametrize(
    ("said", "is_blocked"),
    [("the short road", True), ("影子床", True), ("the long road", False), ("the harbour", False)],
)
def test_what_a_sibling_introduces_is_a_term_where_a_chunk_uses_it(said: str, is_blocked: bool):
    shown, sibling = chunk(SHOWN, "a.md"), chunk(INTRODUCING, "a.md", ordinal=1)
    answer = reply(f"Practice around {said} is uneven.")
    assert isinstance(judge(answer, prepare([shown], "", [], [sibling])), Blocked) == is_blocked
    assert not isinstance(judge(answer, prepare([shown], "", [])), Blocked)
