"""Ask the gate from the command line, as an auditor does before they trust it.

    python -m chat_shell.sealed.judge < cases.jsonl

Each line of standard input is an object `{"documents": [{"title", "heading_path", "text"}], "user_messages": [str],
"query": str, "reply": str}`, where `reply` is the raw text of a secondary model. `"grade": "open"|"strict"` may stand
beside them, `open` where it is missing, and for `strict` `"areas": [str]`, the keywords of the base; `"support": int`
and `"content": "documents"|"records"` are those of the base, by default 3 and `documents`. For each, one line is
written: `{"verdict": "released"|"blocked"|"refused", "codes": [str], "pre_screen": null|str, "released": null|{..}}`,
and `"findings": [{..}]` where codes left. `refused` is a reply that is itself a refusal in the agreed form;
`pre_screen` is the refusal that the last message or the query would have got before anything was retrieved. A line that
is no such object gets `{"error": {"line", "message"}}`, and the command ends with 1.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

import orjson
from pydantic import Field, ValidationError

from chat_shell.sealed.codes import GateCode
from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.gate.case import names_record
from chat_shell.sealed.gate.codebook import read_shipped
from chat_shell.sealed.gate.typed import TypedCase, choose_areas, judge_codes
from chat_shell.sealed.pre_screen import pre_screen
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.question_language import ShownEvidence, select_evidence
from chat_shell.sealed.verdicts import Blocked, Released, Verdict
from shared.disclosure.frame import BaseRules
from shared.models.invalid_fields import refusal_of
from shared.models.safe_summary import LEAST_SUPPORT, MAX_SUPPORT, BaseContent, PolicyRefusal, RestrictedGrade
from shared.models.values import Value

USAGE = """\
usage: python -m chat_shell.sealed.judge < cases.jsonl

Reads cases from standard input, one JSON object a line with the keys documents, user_messages, query and reply, and
optionally grade ("open" or "strict"), areas, support and content, and writes the gate's verdict on each as one line. It
takes no file names and no options but --help. It ends with 0; with 1 if a line was no such object; with 2 for arguments
that it does not know. More: docs/how-the-gate-decides.md
"""

_NOWHERE = "judge"
_NO_CASE = "The line must be one JSON object with the keys documents, user_messages, query and reply."


class JudgedDocument(Value):
    """A chunk of a document, as it would be shown to the secondary model."""

    title: str
    heading_path: tuple[str, ...]
    text: str


class JudgedCase(Value):
    """What the gate is asked about."""

    documents: tuple[JudgedDocument, ...]
    user_messages: tuple[str, ...]
    query: str
    reply: str
    grade: Literal["open", "strict"] = "open"
    areas: tuple[str, ...] = ()
    support: Annotated[int, Field(ge=LEAST_SUPPORT, le=MAX_SUPPORT)] = LEAST_SUPPORT
    content: Literal["documents", "records"] = "documents"

    @property
    def rules(self) -> BaseRules:
        """What the owner says of the base."""
        return BaseRules(self.support, self.content == BaseContent.RECORDS)

    @property
    def last_message(self) -> str:
        """What the user asked."""
        return self.user_messages[-1] if self.user_messages else ""

    @property
    def reply_bytes(self) -> bytes:
        """The reply as a provider sends it."""
        return self.reply.encode(errors="surrogatepass")


def verdict_of(case: JudgedCase) -> dict[str, object]:
    """Return the gate's verdict on a reply, with the codes of the checks that it failed and what would be released."""
    last_message = case.last_message
    chunks = [_chunk(place, document) for place, document in enumerate(case.documents)]
    evidence = select_evidence((last_message, case.query), chunks, ())
    is_strict = case.grade == RestrictedGrade.STRICT
    verdict = (_judge_strict if is_strict else _judge_open)(case, chunks, evidence)
    refusal = pre_screen(last_message, case.query)
    if refusal is None and names_record(last_message, chunks, case.rules):
        refusal = PolicyRefusal.KNOWLEDGE_BASE_QUESTION
    name = "blocked" if isinstance(verdict, Blocked) else "released" if isinstance(verdict, Released) else "refused"
    released = verdict.as_object() if isinstance(verdict, Released) else None
    answer: dict[str, object] = {
        "verdict": name,
        "codes": list(verdict.codes) if isinstance(verdict, Blocked) else [],
        "pre_screen": refusal,
        "released": released,
    }
    return answer | {"findings": released["findings"]} if released and "findings" in released else answer


def _judge_strict(case: JudgedCase, chunks: Sequence[ProtectedChunk], evidence: ShownEvidence) -> Verdict:
    areas = choose_areas(case.areas, case.last_message, chunks, evidence.language)
    return judge_codes(case.reply_bytes, TypedCase(read_shipped(), areas, frozenset(), evidence.language))


def _judge_open(case: JudgedCase, chunks: Sequence[ProtectedChunk], evidence: ShownEvidence) -> Verdict:
    """Compare a reply with all that an auditor gives, also with what the room would not show."""
    verdict = judge(
        case.reply_bytes, prepare(chunks, "\n".join(case.user_messages), (), (), evidence.language, case.rules)
    )
    is_translation = isinstance(verdict, Released) and chunks and not evidence.chunks
    return Blocked((GateCode.LANGUAGE,)) if is_translation else verdict


def answers(lines: Iterable[bytes]) -> Iterator[dict[str, object]]:
    """Yield an answer to each line that is not blank."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _answer(number, line)


def main(arguments: Sequence[str]) -> int:
    """Answer standard input; 0 unless a line was not as described above, and 2 where there are arguments."""
    if arguments:
        is_asked = list(arguments) in (["--help"], ["-h"])
        (sys.stdout if is_asked else sys.stderr).write(USAGE)
        return 0 if is_asked else 2
    is_sound = True
    for answer in answers(sys.stdin.buffer):
        is_sound = is_sound and "error" not in answer
        sys.stdout.buffer.write(orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))
        sys.stdout.buffer.flush()
    return 0 if is_sound else 1


def _answer(number: int, line: bytes) -> dict[str, object]:
    try:
        return verdict_of(JudgedCase.model_validate_json(line))
    except ValidationError as error:
        refusal = refusal_of(error)
        return {"error": {"line": number, "message": refusal.message if refusal.param else _NO_CASE}}


def _chunk(place: int, document: JudgedDocument) -> ProtectedChunk:
    def protect(text: str) -> ProtectedText:
        return ProtectedText(text, _NOWHERE, str(place))

    return ProtectedChunk(
        knowledge_base_id=_NOWHERE,
        chunk_id=str(place),
        ordinal=place,
        document=protect(document.title),
        heading_path=tuple(map(protect, document.heading_path)),
        text=protect(document.text),
        canary=protect(""),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
