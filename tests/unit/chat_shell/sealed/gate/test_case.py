"""What is read out of the chunks' names, and which of the user's words are theirs."""

import pytest

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Blocked, Released
from shared.disclosure.own_words import MAX_USER_CHARACTERS
from tests.unit.chat_shell.sealed.gate.planting import ENGLISH, HONEST, chunk, reply

_DOCUMENTS = ("a/Ladder inspections.md", "b/Visitor badges.md", "c/Waste sorting.md")
_POINTS = [
    "Ladders lack regular inspections.",
    "Badges for visitors go missing.",
    "Sorting of waste is left to chance.",
]
_RUN = "until the auditor has signed the release"


def _codes(form: bytes, documents: tuple[str, ...], text: str, user_words: str) -> set[str]:
    chunks = [chunk(text, document, ordinal=place) for place, document in enumerate(documents)]
    judged = judge(form, prepare(chunks, user_words, []))
    return {code.value for code in judged.codes} if isinstance(judged, Blocked) else set()


@pytest.mark.parametrize(
    ("documents", "points", "follows"),
    [
        (_DOCUMENTS, _POINTS, True),
        (_DOCUMENTS[::-1], _POINTS, True),
        (_DOCUMENTS, _POINTS[::-1], False),
        (_DOCUMENTS[:2], _POINTS, False),
        (_DOCUMENTS, [_POINTS[0], HONEST, _POINTS[2]], False),
    ],
)
def test_the_names_of_the_documents_are_an_outline(documents: tuple[str, ...], points: list[str], follows: bool):
    found = _codes(reply(observations=points), documents, "Nothing much stands here.", "")
    assert ("structure" in found) == follows


@pytest.mark.parametrize(("order", "follows"), [(1, True), (-1, False)])
def test_the_headings_of_one_document_are_an_outline(order: int, follows: bool):
    headings = ("Ladder inspections", "Visitor badges", "Waste sorting")
    chunks = [chunk("Nothing much.", "a.md", (heading,), place) for place, heading in enumerate(headings)]
    judged = judge(reply(observations=_POINTS[::order]), prepare(chunks[::-1], "", []))
    assert (isinstance(judged, Blocked) and "structure" in judged.codes) == follows


def _older(words: str, characters: int) -> str:
    """Return words of the user's with as many characters after them."""
    return f"{words} {'why ' * characters}"[: len(words) + characters]


@pytest.mark.parametrize(
    ("code", "said", "own"),
    [
        ("identifiers", "It concerns the golden copy most.", "golden copy"),
        ("overlap", f"It is so {_RUN} of it.", "until the auditor has"),
        ("decoders", "Teams speak of zorbles most.", "zorbles"),
    ],
)
def test_only_the_newest_of_the_users_words_are_theirs(code: str, said: str, own: str):
    def found(user_words: str) -> set[str]:
        return _codes(reply(said), ("a.md",), f"{ENGLISH} {_RUN}", user_words)

    whole = MAX_USER_CHARACTERS - len(own)
    assert code in found("")
    assert code not in found(own)
    assert code not in found(_older(own, whole))
    assert code in found(_older(own, whole + 1))
    assert code not in found(f"{'why ' * MAX_USER_CHARACTERS}{own}")


def test_the_users_newest_words_are_some_twenty_thousand_characters():
    assert MAX_USER_CHARACTERS == 20_000


_SIBLING = "A quiet ladder means a row that nobody owns. It is run by Joan Shepherd. Crews polish velvet lids at dark."


@pytest.mark.parametrize(
    ("said", "is_seen"),
    [
        ("Practice around the quiet ladder is uneven.", True),
        ("The shepherd of the list is late.", True),
        ("Crews who polish velvet lids do so at dark.", False),
    ],
)
def test_of_a_sibling_terms_and_names_count_and_passages_do_not(said: str, is_seen: bool):
    shown, sibling = chunk("Some of it is kept.", "a.md"), chunk(_SIBLING, "a.md", ordinal=1)
    assert isinstance(judge(reply(said), prepare([shown], "", [])), Released)
    assert isinstance(judge(reply(said), prepare([shown], "", [], [sibling])), Blocked) == is_seen
    assert isinstance(judge(reply(said), prepare([sibling], "", [])), Blocked)


@pytest.mark.parametrize(
    "text",
    [
        "A copy is stored in the [vault](https://wiki.example.org/spaces/ops/vault) until the auditor has signed.",
        "A copy is stored in the vault[^vault-rules] until the auditor has signed.",
        "A copy is stored in the <!-- see the wiki --> vault ![](x.png) until&nbsp;the auditor has signed.",
        "A copy is stored\n> in the vault until\n> the auditor has signed.",
        "A copy is stored in the <b>vault</b> until the <a href='x'>auditor</a> has signed.",
    ],
)
def test_markup_breaks_no_run(text: str):
    said = reply("It matters that a copy is stored in the vault until the auditor has signed.")
    judged = judge(said, prepare([chunk(text, "a.md")], "", []))
    assert isinstance(judged, Blocked)
    assert "overlap" in judged.codes
