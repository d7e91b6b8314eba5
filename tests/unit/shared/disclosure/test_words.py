"""A word leaves if the user wrote it, if it is everyday, or if it is general and not from here; no quantity does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Released
from shared.disclosure import english
from shared.disclosure.english import FORMS
from shared.disclosure.word_lists import lines
from tests.examples import examples
from tests.unit.chat_shell.sealed.gate.planting import chunk, reply
from tests.unit.shared.disclosure.asking import ASKED, ASKED_CHINESE, SOURCE, codes, of, phrases, released

_CASE = prepare([chunk(SOURCE, "a.md")], ASKED, [])
_EVERYDAY, _SPANS = set(lines("english_everyday")), set(lines("english_spans"))
_BASES = [line.partition("/") for line in lines("english_dictionary")]
_LISTED = (
    _EVERYDAY
    | _SPANS
    | {base for base, _, _ in _BASES}
    | {base.removesuffix(FORMS[flag][0]) + FORMS[flag][1] for base, _, flags in _BASES for flag in flags}
    | set("ai")
)
_PREFIXES = ("", "un", "re", "non", "mis", "over", "under", "pre")
_SUFFIXES = ("", "s", "er", "r", "ers", "rs")


def _is_form_of_a_listed_word(word: str) -> bool:
    cut = (word[len(prefix) :] for prefix in _PREFIXES if word.startswith(prefix))
    return any(rest.removesuffix(suffix) in _LISTED for rest in cut for suffix in _SUFFIXES if rest.endswith(suffix))


@st.composite
def _near_words(draw: st.DrawFn) -> str:
    """Draw a listed word of which one letter is changed, left out, doubled or added."""
    word = draw(st.sampled_from(_SOME_LISTED))
    at = draw(st.integers(0, len(word) - 1))
    put = draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))
    return draw(
        st.sampled_from(
            [word[:at] + put + word[at + 1 :], word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:], word + put]
        )
    )


_SOME_LISTED = sorted(word for word in _LISTED if word.isalpha() and len(word) > 4)[::7]


def _is_released(word: str) -> bool:
    return isinstance(judge(reply(f"Owners drift and {word} waits."), _CASE), Released)


@examples(1_000)
@given(_near_words())
def test_a_near_word_that_is_in_no_dictionary_does_not_leave(word: str):
    if not _is_form_of_a_listed_word(word):
        assert not _is_released(word)


@examples(500)
@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=12))
def test_letters_in_a_row_that_are_in_no_dictionary_do_not_leave(word: str):
    if not _is_form_of_a_listed_word(word):
        assert not _is_released(word)


@examples(500)
@given(st.text(min_size=1, max_size=12))
def test_whatever_is_written_nothing_leaves_that_is_in_no_dictionary(said: str):
    verdict = judge(reply(f"Owners drift and {said} waits."), _CASE)
    if isinstance(verdict, Released):
        words = verdict.summary.lower().replace(".", " ").replace(",", " ").replace("'s", "").replace("-", " ").split()
        assert [word for word in words if word.isascii() and not english.is_known(word)] == []


def test_the_dictionary_is_no_license_for_any_letters():
    many = [first + word[1:] for word in _SOME_LISTED[::9] for first in "qxz"]
    assert sum(map(english.is_known, many)) < 0.05 * len(many)


@pytest.mark.parametrize("word", ["marzipan", "obelisk", "obelisks"])
def test_a_rare_word_leaves_only_where_it_is_not_from_here(word: str):
    assert english.is_known(word)
    assert not english.is_everyday(word)
    assert of(word) == set()
    assert of(word, f"They keep an {word.removesuffix('s')} there.") == {"identifiers"}
    assert of(word, f"They keep an {word} there.", f"What of the {word}?") == set()


@pytest.mark.parametrize("word", ["kitchen", "kitchens", "quietly", "misreading"])
def test_an_everyday_word_leaves_though_it_is_from_here(word: str):
    assert of(word, f"They keep the {word} there.") == set()


@pytest.mark.parametrize("word", ["quvvex", "zqrt", "ownersship", "b", "aGVsbG", "nrcreg", "kcehc"])
def test_a_word_that_is_none_leaves_only_where_the_user_wrote_it(word: str):
    assert of(word, f"They keep the {word} there.") == {"decoders"}
    assert of(word, f"They keep the {word} there.", f"What of {word}?") == set()


@pytest.mark.parametrize(
    "words",
    [
        "twelve", "third", "twice", "a dozen", "a fortnight", "a month", "each year", "within the hour",
        "a year's wait", "Monday", "Easter", "September", "noon", "half", "triple", "tenfold", "twenty-one",
        "fortnightly", "kilometres", "euros", "percent", "12", "１２", "⑫", "4.5", "9:30", "1/2", "2nd",
    ],
)  # fmt: skip
def test_a_quantity_or_a_time_leaves_only_where_the_user_wrote_it(words: str):
    assert "figures" in codes(f"Practice hangs on {words} and little else.")
    assert codes(f"Practice hangs on {words} and little else.", asked=f"What of {words}?") == set()


@pytest.mark.parametrize(
    ("said", "over"),
    [
        ("Checks are a daily habit and little else.", "They check the lids daily."),
        ("Access is worst in winter and on each weekend.", "In winter the gate is shut. On a weekend it is not."),
        ("现有做法取决于每月的安排。", "他们每月清点一次。"),
        ("这两步出错没法弥补。", "这两步须复核。"),
    ],
)
def test_a_time_that_comes_again_and_a_pair_leave_where_the_source_does_not_have_them(said: str, over: str):
    asked = "Where is it weak?" if said.isascii() else "哪里薄弱？"
    assert codes(said, asked=asked) == set()
    assert codes(said, over, asked) == {"identifiers"}


@pytest.mark.parametrize(
    ("said", "over"),
    [
        ("Review the open points every week.", "The lids are checked weekly."),
        ("Hand over in writing at the end of each day.", "The lids are checked daily."),
        ("Complaints that come twice as often are a warning.", "Two guards keep the gate."),
        ("每个季度看一看权限。", "每季度清点一次。"),
    ],
)
def test_advice_how_often_leaves_where_the_source_says_nothing_of_it(said: str, over: str):
    asked = "Where is it weak?" if said.isascii() else "哪里薄弱？"
    assert codes(said, asked=asked) == set()
    assert codes(said, over, asked) == {"figures"}


@pytest.mark.parametrize("said", ["风险会成倍上升。", "压力倍增时先停下。", "几周后再看。", "直接上报，提供支持。"])
def test_an_extent_without_a_number_leaves(said: str):
    assert codes(said, asked="哪里薄弱？") == set()


@pytest.mark.parametrize("said", ["不得超过两周期限。", "两个月内答复。", "三个工作日内答复。", "压力翻倍时停下。"])
def test_a_limit_in_words_does_not_leave(said: str):
    assert "figures" in codes(said, asked="哪里薄弱？")


@pytest.mark.parametrize("said", ["They'd see it if you'll ask, and we've seen who's late.", "I'd say it won't hold."])
def test_shortened_verbs_are_words(said: str):
    assert codes(said) == set()


@pytest.mark.parametrize("word", ["centuries", "doubled", "furlong", "weekday", "quartet", "oxford", "japan"])
def test_a_form_of_a_quantity_and_a_proper_name_do_not_leave(word: str):
    assert codes(f"Practice hangs on {word} and little else.")


@pytest.mark.parametrize(
    "word",
    ["春节", "国庆", "立冬", "丑时", "世纪", "小时", "海里", "翻番", "打对折", "龙抬头", "上官", "独孤"],
)
def test_a_chinese_time_unit_multiple_or_family_name_does_not_leave(word: str):
    assert codes(f"现有做法取决于{word}的安排。", asked="哪里薄弱？")


@pytest.mark.parametrize("word", ["零件", "零售", "半成品", "半途而废"])
def test_a_word_with_the_sign_of_a_part_that_states_no_quantity_leaves(word: str):
    assert codes(f"现有做法取决于{word}的安排。", asked="哪里薄弱？") == set()


def test_an_element_leaves_only_where_the_source_speaks_of_it():
    said = "Storage of lithium is uneven."
    assert codes(said) == {"figures"}
    assert codes(said, "Cells of lithium are kept by the gate.", "What of lithium cells?") == set()


@pytest.mark.parametrize(
    "word",
    [
        "十二", "两成", "三倍", "一年", "周五", "半数", "几百", "欧元", "凌晨", "第三", "本周", "去年", "一半",
        "上海", "12",
    ],
)  # fmt: skip
def test_a_chinese_quantity_time_or_place_leaves_only_where_the_user_wrote_it(word: str):
    said = f"现有做法取决于{word}的安排。"
    assert "figures" in codes(said, asked=ASKED_CHINESE)
    assert codes(said, asked=f"{word}的安排哪里薄弱？") == set()


@pytest.mark.parametrize(
    "said",
    [
        "First of all, name an owner.",
        "Owners come first and checks are second to none.",
        "Weeks of unrest wear teams out.",
        "Some of the hours are wasted.",
    ],
)
def test_an_idiom_or_a_span_without_a_number_states_no_quantity(said: str):
    assert codes(said) == set()


@pytest.mark.parametrize("word", ["一致", "十分重要", "进一步", "统一"])
def test_a_chinese_idiom_with_a_numeral_states_no_quantity(word: str):
    assert of(word) == set()


@pytest.mark.parametrize(
    ("word", "over"),
    [("冗笔", "他们留着冗笔。"), ("隼巢", "他们留着隼巢。"), ("黛瓮", "他们看守黛瓮。")],
)
def test_lone_characters_that_stand_together_in_the_source_do_not_leave_together(word: str, over: str):
    assert of(word) == set()
    assert of(word, over) == {"identifiers"}
    assert of(word, over, f"{word}如何？") == set()


@pytest.mark.parametrize(("row", "is_word"), [("隼黛瓮", False), ("隼黛", True), ("大小多少", True)])
def test_three_rare_characters_in_a_row_are_no_words(row: str, is_word: bool):
    assert of(row) == (set() if is_word else {"decoders"})


@pytest.mark.parametrize(
    ("parts", "over"), [("ro tunda", "rotunda"), ("mar zipan", "marzipan"), ("hob nail", "hobnail")]
)
def test_a_rare_word_of_the_source_does_not_leave_in_two_parts(parts: str, over: str):
    assert of(parts, f"They keep the {over} there.") >= {"identifiers"}


@pytest.mark.parametrize(
    ("said", "follows"),
    [
        ("Owners drift drift and wait.", True),
        ("Owners. Drift. Wait. Nobody answers.", True),
        ("Owners drift, wait, guess.", False),
        ("Owners drift. Wait. Nobody answers.", False),
    ],
)
def test_words_twice_in_a_row_and_rows_of_lone_words_are_no_sentence(said: str, follows: bool):
    assert codes(said) == ({"decoders"} if follows else set())


def test_a_rewrite_is_told_every_word_that_may_not_leave():
    said = "Practice hangs on twelve marzipan obelisks, quvvex and Harper."
    over = "The list was made by Jill Harper. They keep marzipan and an obelisk."
    assert set(phrases(said, over)) >= {"twelve", "marzipan", "obelisks", "quvvex", "harper"}


def test_no_word_of_the_chunk_is_needed_to_judge():
    assert released("Owners drift and nobody answers.").summary == "Owners drift and nobody answers."


@pytest.mark.parametrize("word", ["reportss", "reportser", "auditorss"])
def test_an_ending_stands_once(word: str):
    assert of(word) == {"decoders"}


def test_a_term_written_as_one_word_is_the_term():
    over = "It is known as the Flood Gate."
    assert of("floodgate", over) == {"identifiers"}
    assert of("floodgates", over) == {"identifiers"}
    assert of("floodgate") == set()
    assert of("floodgate", over, "Is the floodgate weak?") == set()
    assert of("floodgate", f"{over} A floodgate is a door.", "Is a gate weak?") != {"decoders"}


def test_a_term_whose_letters_are_a_plain_word_of_the_source_leaves_that_word_free():
    over = "It is known as the Under Stand. They understand little of it."
    assert of("understand", over) == set()
    assert of("understand", "It is known as the Under Stand.") == {"identifiers"}
