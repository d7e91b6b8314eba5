"""The grade `strict`: whatever a reply holds, nothing leaves but sentences that we have for codes of closed lists."""

import math
import re
import tomllib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.restricted.domain.figure_marks import OwnFigures, mark_figures
from backend.restricted.domain.receipts import BITS_OF_FINDINGS
from chat_shell.sealed.codes import Confidence
from chat_shell.sealed.gate.codebook import (
    EXTENSIBLE,
    WrongCodebook,
    extend_codebook,
    read_shipped,
)
from chat_shell.sealed.gate.typed import MAX_OWN_AREAS, TypedCase, choose_areas, describe_form, judge_codes
from chat_shell.sealed.verdicts import Blocked, Refused, Released, Verdict
from shared.disclosure.languages import Language
from shared.models.safe_summary import MAX_AREAS, MAX_FINDINGS, GateCode, PolicyRefusal, ReleasedSummary
from tests.fakes.sealed_room import protected_chunk

BOOK = read_shipped()
DOCS = Path(__file__).parents[5] / "docs"
HONEST = Path(__file__).parents[4] / "leaks" / "strangers" / "honest_findings.toml"
AREAS = ("purchasing", "night shift", "in general")
SECRET = "Odile Brandt keeps 4,800 in the cold room"
WEAK = {"area": "purchasing", "weakness": "no_owner", "severity": "high", "action": "name_owner"}


def case(language: Language = Language.ENGLISH) -> TypedCase:
    return TypedCase(BOOK, AREAS, frozenset({"bcdfghjklm"}), language)


def reply(*findings: object, **changes: object) -> bytes:
    form = {"decision": "answer", "reason": "none", "support": "several", "confidence": "high", "findings": findings}
    return orjson.dumps(form | changes)


def said(verdict: Verdict) -> str:
    assert isinstance(verdict, Released)
    return "\n".join((verdict.summary, *verdict.observations, *verdict.risks, *verdict.recommended_actions))


def test_a_weakness_is_said_in_the_readers_language():
    english = judge_codes(reply(WEAK), case())
    assert said(english) == (
        "The findings rest on several documents; confidence is high.\n"
        "Purchasing: nobody is clearly responsible (serious).\n"
        "Purchasing: name somebody who is responsible."
    )
    assert said(judge_codes(reply(WEAK), case(Language.CHINESE))).splitlines()[1:] == [
        "purchasing：没有明确的负责人（严重）。",
        "purchasing：指定负责人。",
    ]


def test_strengths_effects_and_relations_have_sentences_of_their_own():
    findings = (
        {"area": "purchasing", "strength": "reliable"},
        {"area": "night shift", "effect": "standstill"},
        {"area": "night shift", "relation": "depends_on", "other": "purchasing"},
    )
    assert said(judge_codes(reply(*findings), case())).splitlines()[1:] == [
        "Purchasing: the work is reliable.",
        "Night shift depends on purchasing.",
        "Night shift: this can lead to a standstill.",
    ]


@pytest.mark.parametrize(
    "finding",
    [
        SECRET,
        {**WEAK, "area": "Odile Brandt"},
        {**WEAK, "weakness": SECRET},
        {**WEAK, "severity": "none"},
        {**WEAK, "action": ["name_owner"]},
        {"area": "purchasing", "relation": "depends_on", "other": "purchasing"},
        {"area": ["purchasing"], "strength": "reliable"},
        {"area": "purchasing", "strength": "Reliable"},
    ],
)
def test_what_is_no_code_is_dropped(finding: object):
    assert judge_codes(reply(finding), case()) == Blocked((GateCode.SCHEMA,))
    assert judge_codes(reply(finding, WEAK), case()) == judge_codes(reply(WEAK), case())


def test_further_fields_and_values_outside_of_the_lists_say_nothing():
    plain = judge_codes(reply(WEAK, support="one", confidence="low"), case())
    told = reply({**WEAK, "note": SECRET}, support=SECRET, confidence=SECRET, summary=SECRET)
    assert judge_codes(told, case()) == plain


@pytest.mark.parametrize(
    "raw", [b"", b"{}", b"[]", SECRET.encode(), b'{"decision":"answer"}', reply()[:-1], reply(*[WEAK] * 200)]
)
def test_a_reply_of_another_form_is_blocked(raw: bytes):
    assert judge_codes(raw, case()) == Blocked((GateCode.SCHEMA,))


def test_a_refusal_passes_on_a_reason_of_the_list_alone():
    assert judge_codes(reply(decision="refuse", reason="verbatim"), case()) == Refused(PolicyRefusal.VERBATIM)
    assert judge_codes(reply(decision="refuse", reason=SECRET), case()) == Refused(PolicyRefusal.OUT_OF_SCOPE)


def test_a_canary_blocks_and_is_counted():
    assert judge_codes(reply(WEAK, note="b-c-d-f-g-h-j-k-l-m"), case()) == Blocked((GateCode.CANARY,), 1)


def test_neither_order_nor_repetition_carries_anything():
    other = {**WEAK, "severity": "critical"}
    more = [{"area": "purchasing", "strength": code} for code in ("reliable", "trusted", "skilled")]
    assert judge_codes(reply(WEAK, other, WEAK), case()) == judge_codes(reply(other, WEAK), case())
    verdict = judge_codes(reply(WEAK, other, *more), case())
    assert isinstance(verdict, Released)
    assert [finding.severity for finding in verdict.findings] == ["critical", "high", None, None]


def _sentences() -> set[str]:
    """List all that can be said about `AREAS`."""
    return set(chain.from_iterable(_said_of(finding) for finding in _findings()))


def _findings() -> Iterable[dict[str, str]]:
    lists = BOOK.lists
    for area in AREAS:
        for weakness, severity in ((w, s) for w in lists["weaknesses"] for s in lists["severities"]):
            yield {"area": area, "weakness": weakness, "severity": severity, "action": "train"}
        yield from ({**WEAK, "area": area, "action": action} for action in lists["actions"])
        yield from ({"area": area, "strength": strength} for strength in lists["strengths"])
        yield from ({"area": area, "effect": effect} for effect in lists["effects"])
        others = [other for other in AREAS if other != area]
        yield from ({"area": area, "relation": r, "other": other} for r in lists["relations"] for other in others)


def _said_of(finding: dict[str, str]) -> list[str]:
    return said(judge_codes(reply(finding), case())).splitlines()[1:]


CODES = st.sampled_from([code for phrases in BOOK.lists.values() for code in phrases])
ANYTHING = st.one_of(CODES, st.sampled_from([*AREAS, "none", SECRET]), st.text(max_size=12), st.integers(), st.none())
FIELDS = ("area", "weakness", "severity", "action", "strength", "effect", "relation", "other", "note")
HOSTILE = st.lists(st.dictionaries(st.sampled_from(FIELDS), ANYTHING) | ANYTHING, max_size=6)
SAYABLE = _sentences()


@given(HOSTILE, ANYTHING, ANYTHING)
def test_whatever_a_model_replies_each_sentence_is_one_of_ours(findings: list[object], support: object, sure: object):
    verdict = judge_codes(reply(*findings, support=support, confidence=sure), case())
    if isinstance(verdict, Released):
        assert {*said(verdict).splitlines()[1:]} <= SAYABLE
        assert re.fullmatch(r"The findings rest on [a-z ]+; confidence is (low|medium|high)\.", verdict.summary)
        assert ReleasedSummary.model_validate(verdict.as_object()).findings == verdict.findings


def test_no_phrase_is_marked_as_a_figure_or_as_long_as_a_run_that_a_scan_looks_for():
    for english, chinese in (phrase for phrases in BOOK.lists.values() for phrase in phrases.values()):
        assert mark_figures(english, OwnFigures("")) == english
        assert mark_figures(chinese, OwnFigures("有什么")) == chinese
        assert (len(english.split()) <= 8, len(re.sub(r"{\w+}", "", chinese)) <= 13) == (True, True)


def test_the_capacity_of_an_answer_is_that_of_the_lists():
    sizes = {name: len(phrases) for name, phrases in BOOK.lists.items()}
    assert (sizes["weaknesses"], sizes["severities"], sizes["actions"]) == (40, 4, 60)
    assert round(math.log2(MAX_AREAS * 40 * 4 * 60), 1) == 17.8
    weak, relations = sizes["weaknesses"] * sizes["severities"] * sizes["actions"], sizes["relations"] * (MAX_AREAS - 1)
    findings = MAX_AREAS * (weak + sizes["strengths"] + sizes["effects"] + relations)
    assert round(math.log2(findings), 1) == 17.8
    sets = sum(math.comb(findings, size) for size in range(MAX_FINDINGS + 1))
    answer = math.log2(sets * sizes["supports"] * len(Confidence))
    pages = ("restricted-knowledge.md", "how-the-gate-decides.md", "threat-model.md")
    assert round(60 * answer, -2) == 4_200
    assert round(answer) == BITS_OF_FINDINGS
    for page in pages:
        assert f"{answer:.1f}" in (DOCS / page).read_text(encoding="utf-8")
    assert len(list(_findings())) == len(AREAS) * (40 * 4 + 60 + sizes["strengths"] + sizes["effects"]) + 6 * 8


def test_the_schema_offers_the_codes_and_areas_alone():
    form: Any = describe_form(BOOK, AREAS)
    finding = form["properties"]["findings"]["items"]
    assert finding["properties"]["area"]["enum"] == [*AREAS]
    assert finding["required"] == [*finding["properties"]]
    assert (form["additionalProperties"], finding["additionalProperties"]) == (False, False)


def test_areas_are_the_keywords_and_everyday_words_of_the_user():
    chunk = protected_chunk("Ruth Calloway keeps the zebrafish valve shut at night.")
    areas = choose_areas(("Stock", "stock"), "Is Calloway to blame for the zebrafish at 48 degrees?", [chunk], None)
    assert areas == ("Stock", "blame", "in general")
    chinese = choose_areas((), "张三负责的维护有什么问题", [protected_chunk("张三负责维护。")], Language.CHINESE)
    assert "张三" not in "".join(chinese)
    assert (chinese[-1], "维护" in chinese) == ("总体", True)


def test_the_users_words_take_the_room_that_the_keywords_leave():
    many = tuple(f"area {chr(97 + place)}" for place in range(MAX_AREAS))
    assert choose_areas(many, "repair training storage", [], None) == many
    words = "repair training storage budget people kitchen garden water travel music"
    assert len(choose_areas((), words, [], None)) == MAX_OWN_AREAS + 1


def test_an_operator_adds_codes_in_a_file():
    book = extend_codebook('[actions]\nask_union = ["ask the works council", "征求工会意见"]\n')
    assert (len(book.lists["actions"]), book.lists["actions"]["ask_union"][0]) == (61, "ask the works council")
    assert (book.version != "", BOOK.version) == (True, "")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[actions", "Expected"),
        ("[severities]\nworst = ['a', 'b']", "[severities]"),
        ("[actions]\ntrain = ['a', 'b']", "[actions] train"),
        ("[actions]\nTrain = ['a', 'b']", "[actions] Train"),
        ("[actions]\nnone = ['a', 'b']", "[actions] none"),
        ("[actions]\nwait = ['wait 3 days', '等']", "[actions] wait"),
        ("[actions]\nwait = ['wait']", "[actions] wait"),
        ("actions = 7", "actions"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(text: str, told: str):
    with pytest.raises(WrongCodebook, match=re.escape(told)):
        extend_codebook(text)


def test_every_list_that_can_be_extended_is_there():
    assert {*EXTENSIBLE} < {*BOOK.lists}


def test_the_lists_say_what_honest_analysts_would():
    asked = tomllib.loads(HONEST.read_text(encoding="utf-8"))["questions"]
    states, actions = zip(*(pair for question in asked for pair in question["says"]), strict=True)
    assert all(len(question["says"]) == len(question["findings"]) for question in asked)
    assert {*states} <= BOOK.lists["weaknesses"].keys() | BOOK.lists["strengths"].keys()
    said_actions = [action for action in actions if action]
    assert {*said_actions} <= BOOK.lists["actions"].keys()
    assert (len(said_actions), len(actions)) == (76, 81)
