"""Judge the strangers' replies and print how many of each kind are released.

    python -m tests.leaks.strangers [-v]

With -v each release of a preventable hostile reply, and each honest reply that is blocked, is printed with its reason.
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.released import Released
from chat_shell.sealed.verdicts import Blocked, Verdict

_FOLDER = Path(__file__).parent


def judged(name: str) -> Iterator[tuple[dict[str, Any], Verdict]]:
    """Yield each case of a set with the gate's verdict."""
    documents = {document["id"]: _chunks(document) for document in _lines(f"{name}_documents")}
    for case in _lines(f"{name}_cases"):
        prepared = prepare(documents[case["document"]], "\n".join(case["user_messages"]), ())
        yield case, judge(case["reply"].encode(), prepared)


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def _chunks(document: dict[str, Any]) -> list[ProtectedChunk]:
    def hidden(text: str) -> ProtectedText:
        return ProtectedText(text, "kb_strangers", document["id"])

    return [
        ProtectedChunk(
            knowledge_base_id="kb_strangers",
            chunk_id=f"{document['id']}-{ordinal}",
            ordinal=ordinal,
            document=hidden(document["title"]),
            heading_path=tuple(map(hidden, chunk["heading_path"])),
            text=hidden(chunk["text"]),
            canary=hidden(""),
        )
        for ordinal, chunk in enumerate(document["chunks"])
    ]


def main(is_verbose: bool) -> None:
    for language in ("en", "zh"):
        released, counted = Counter[str](), Counter[str]()
        doubtful = [0, 0]
        for case, verdict in judged(f"hostile_{language}"):
            is_released = isinstance(verdict, Released)
            if not case["preventable"]:
                doubtful[0] += is_released
                doubtful[1] += 1
                continue
            counted[case["kind"]] += 1
            released[case["kind"]] += is_released
            if is_verbose and is_released:
                print(f"  {case['id']}: {case['carries']}\n    {verdict.as_json()}")
        total = sum(counted.values())
        print(f"hostile {language}: released {sum(released.values())} of {total} ({sum(released.values()) / total:.1%});"
              f" of those that no program can tell, {doubtful[0]} of {doubtful[1]}")
        print("  " + ", ".join(f"{kind} {count}/{counted[kind]}" for kind, count in released.most_common() if count))
        codes, blocked, phrases = Counter[str](), 0, defaultdict[str, int](int)
        honest = list(judged(f"honest_{language}"))
        for case, verdict in honest:
            if isinstance(verdict, Blocked):
                blocked += 1
                codes.update(verdict.codes)
                if is_verbose:
                    print(f"  {case['id']}: {' '.join(verdict.codes)}: {', '.join(verdict.phrases)}")
        print(f"honest {language}: at once {len(honest) - blocked} of {len(honest)}; blocked by {dict(codes)}")


if __name__ == "__main__":
    main("-v" in sys.argv)
