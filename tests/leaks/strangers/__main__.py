"""Judge the strangers' replies and print how many of each kind are released.

    python -m tests.leaks.strangers [-v]

With -v each release of a preventable hostile reply, and each honest reply that is blocked, is printed with its reason.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.protected import ProtectedChunk
from chat_shell.sealed.verdicts import Blocked, Released, Verdict
from tests.leaks.chunks import sealed_chunk

_DOUBTFUL = "doubtful"
_REMOVED = {
    "invisible-characters", "double-blanks", "odd-capitals", "key-order", "raw-spacing", "zero-width-bits",
    "punct-bits", "spelling-variants",
}  # fmt: skip
"""Kinds whose channel is no word: the canonical form has none of it, so that a release carries nothing."""

_ASKED = {"en": "Where are we weak?", "zh": "我们哪里薄弱？"}
"""What advice without a document of its own is an answer to."""

_FOLDER = Path(__file__).parent


def judged(of: str, name: str, field: str = "reply") -> Iterator[tuple[dict[str, Any], Verdict]]:
    """Yield each case of a kind in a set that has the field, with the gate's verdict on the reply in it."""
    documents = {document["id"]: _chunks(document) for document in _lines(of, f"{name}_documents")}
    for case in _lines(of, f"{name}_cases"):
        if field in case:
            prepared = prepare(documents[case["document"]], "\n".join(case["user_messages"]), ())
            yield case, judge(case[field].encode(), prepared)


def _lines(of: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_FOLDER / of / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _chunks(document: dict[str, Any]) -> list[ProtectedChunk]:
    return [
        sealed_chunk(document["id"], document["title"], ordinal, chunk["heading_path"], chunk["text"])
        for ordinal, chunk in enumerate(document["chunks"])
    ]


def main(*, is_verbose: bool) -> None:
    """Print the tables of all sets in both languages."""
    for of, language in product(("first", "second", "third", "fourth"), ("en", "zh")):
        lines = (f"{of} set", *_hostile(of, language, is_verbose), *_honest(of, language, is_verbose))
        sys.stdout.writelines(f"{line}\n" for line in lines)
    told = ("fifth set", *(line for language in _ASKED for line in _advice(language, is_verbose)))
    sys.stdout.writelines(f"{line}\n" for line in told)


def advice(language: str, expected: str) -> Iterator[tuple[dict[str, Any], Verdict]]:
    """Yield each sentence of the fifth set that has to pass, or to be held, with the verdict on it as a summary."""
    form: dict[str, Any] = {"observations": [], "risks": [], "recommended_actions": [], "confidence": "medium"}
    # No document belongs to a sentence: what is asked is what the gate's own words hold, whatever the source.
    no_source = prepare((), _ASKED[language], ())
    for case in _lines("fifth", f"advice_{language}"):
        if case["expect"] == expected:
            reply: dict[str, Any] = {"decision": "answer", "reason": "advice", "summary": case["text"], **form}
            yield case, judge(json.dumps(reply).encode(), no_source)


def _advice(language: str, is_verbose: bool) -> Iterator[str]:
    for expected in ("pass", "hold"):
        verdicts = [*advice(language, expected)]
        released = sum(isinstance(verdict, Released) for _, verdict in verdicts)
        yield f"advice {language}, to {expected}: released {released} of {len(verdicts)}"
        if is_verbose:
            wrong = (case for case, verdict in verdicts if isinstance(verdict, Released) != (expected == "pass"))
            yield from (f"  {case['id']}: {case['text']}" for case in wrong)


def _hostile(of: str, language: str, is_verbose: bool) -> Iterator[str]:
    released, counted = Counter[str](), Counter[str]()
    for case, verdict in judged(of, f"hostile_{language}"):
        kind = case["kind"] if case["preventable"] else _DOUBTFUL
        counted[kind] += 1
        if isinstance(verdict, Released) and kind not in _REMOVED:
            released[kind] += 1
            if is_verbose:
                yield f"  {case['id']}: {case['carries']}\n    {verdict.as_json()}"
    doubtful = f"{released.pop(_DOUBTFUL, 0)} of {counted.pop(_DOUBTFUL, 0)}"
    out, total = sum(released.values()), sum(counted.values())
    yield f"hostile {language}: released {out} of {total} ({out / total:.1%}); where no program can tell, {doubtful}"
    yield "  " + ", ".join(f"{kind} {count}/{counted[kind]}" for kind, count in released.most_common())


def _honest(of: str, language: str, is_verbose: bool) -> Iterator[str]:
    verdicts = [(case["id"], verdict) for case, verdict in judged(of, f"honest_{language}")]
    blocked = {case: verdict for case, verdict in verdicts if isinstance(verdict, Blocked)}
    if is_verbose:
        for case, verdict in blocked.items():
            yield f"  {case}: {' '.join(verdict.codes)}: {', '.join(verdict.phrases)}"
    codes, total = Counter(code for verdict in blocked.values() for code in verdict.codes), len(verdicts)
    passed = total - len(blocked)
    yield f"honest {language}: at once {passed} of {total} ({passed / total:.1%}); blocked by {dict(codes)}"
    rewritten = {case["id"]: verdict for case, verdict in judged(of, f"honest_{language}", "rewrite")}
    if rewritten:
        held = [case for case in blocked if isinstance(rewritten[case], Blocked)]
        yield f"  after one rewrite {total - len(held)} of {total} ({1 - len(held) / total:.1%})"


if __name__ == "__main__":
    main(is_verbose="-v" in sys.argv)
