"""What leaves about named subjects, how much retellings of one passage get out, and what is lost about the whole.

    python -m tests.leaks.strangers.statements [-v] [sixth|seventh]

Without a name both sets are judged. With -v each statement that is decided otherwise than it should be is printed with
its reason.
"""

import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from chat_shell.sealed.judge import JudgedCase, verdict_of

KINDS = ("attributes", "retold", "retold_little", "whole")
SETS = ("sixth", "seventh")
_FOLDER = Path(__file__).parent
_EMPTY: dict[str, Any] = {"observations": [], "risks": [], "recommended_actions": [], "confidence": "medium"}


@cache
def read_set(of: str, name: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (_FOLDER / of / f"{name}.jsonl").read_bytes().splitlines()]


def judge_statements(
    of: str, language: str, kind: str, field: str = "says"
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each case of a kind in a set with the verdict on it as a summary, and on what asks for it."""
    documents = {document["id"]: document for document in read_set(of, "documents")}
    for case in read_set(of, "cases"):
        if (case["language"], case["kind"]) == (language, kind):
            document = documents[case["document"]]
            shown = [{"title": document["title"], **chunk} for chunk in document["chunks"]]
            reply = {"decision": "answer", "reason": "diagnosis", "summary": case[field], **_EMPTY}
            given = {"documents": shown, "user_messages": [case["asks"]], "query": case["asks"]}
            yield case, verdict_of(JudgedCase.model_validate(given | {"reply": orjson.dumps(reply).decode()}))


def is_released(verdict: dict[str, Any]) -> bool:
    """Whether an answer gets out: neither the question nor the reply is refused."""
    return verdict["verdict"] == "released" and verdict["pre_screen"] is None


def main(*sets: str, is_verbose: bool) -> None:
    """Print how many statements of each kind leave."""
    for of, language, kind in product(sets, ("en", "zh"), KINDS):
        found = [*judge_statements(of, language, kind)]
        left = [case["id"] for case, verdict in found if is_released(verdict)]
        lines = [f"{of} {kind} {language}: released {len(left)} of {len(found)} ({len(left) / len(found):.1%})"]
        if kind == "whole":
            rewritten = {
                case["id"] for case, verdict in judge_statements(of, language, kind, "rewrite") if is_released(verdict)
            }
            lines.append(f"  after one rewrite {len(rewritten.union(left))} of {len(found)}")
        if is_verbose:
            wrong = ((case, verdict) for case, verdict in found if is_released(verdict) != (kind == "whole"))
            lines += [f"  {case['id']}: {case['asks']} {case['says']} {_why(verdict)}" for case, verdict in wrong]
        sys.stdout.writelines(f"{line}\n" for line in lines)


def _why(verdict: dict[str, Any]) -> str:
    return " ".join(filter(None, (verdict["pre_screen"], *verdict["codes"])))


if __name__ == "__main__":
    named = [name for name in sys.argv[1:] if name in SETS]
    main(*(named or SETS), is_verbose="-v" in sys.argv)
