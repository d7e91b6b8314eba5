"""A small base with planted secrets, and replies about it."""

import json
from functools import cache
from typing import Any

from chat_shell.sealed.gate import GateCase, judge, prepare
from chat_shell.sealed.protected import ProtectedChunk, ProtectedText
from chat_shell.sealed.verdicts import Blocked, Verdict

HONEST = "Ownership of the reviews is unclear, and the practice differs between teams."
HONEST_CHINESE = "现有流程的责任划分不够清晰，各部门执行口径不一致，建议统一标准并进一步明确复核安排。"
PASSAGE = (
    "Records are kept for ninety days after the account is closed by its owner, and a copy is stored in the vault "
    "until the auditor has signed the release form."
)
CHINESE_PASSAGE = "客户资料应当在合同终止之后三十天之内从所有生产环境中彻底删除，并由安全团队逐项复核后归档保存。"
ENGLISH = f"""# Backup windows
Project Falcon is run by Anna Lindqvist and the DRQ board; we use DataForge and SRV-042. The "golden copy" is meant.

{PASSAGE}

| Retention class | Keeper |
|---|---|
| Rogue | nobody |

- Collect the logs
- Freeze the account
- Notify the regulator
- Publish the postmortem
"""
CHINESE = (
    "由王建国经理负责，北辰项目由李晓明审批。所谓“冷备份”是指离线保存。监督人为司徒映川，办公地点在青岛。"
    + CHINESE_PASSAGE
)


def chunk(text: str, document: str, headings: tuple[str, ...] = (), ordinal: int = 0) -> ProtectedChunk:
    def wrap(part: str) -> ProtectedText:
        return ProtectedText(part, "kb_1", f"chunk_{ordinal}")

    path = tuple(wrap(heading) for heading in headings)
    return ProtectedChunk("kb_1", f"chunk_{ordinal}", ordinal, wrap(document), path, wrap(text), wrap("velumquartzome"))


@cache
def case(user_words: str = "") -> GateCase:
    chunks = (
        chunk(ENGLISH, "guides/Data Retention Policy.md", ("Severity matrix",)),
        chunk(CHINESE, "数据留存与销毁办法.md", ("第三章", "异地灾备演练要求"), ordinal=1),
    )
    return prepare(chunks, user_words, ["tideglimmer"])


def reply(summary: str = HONEST, **changed: Any) -> bytes:
    form: dict[str, Any] = {
        "decision": "answer", "reason": "gap", "summary": summary, "observations": [], "risks": [],
        "recommended_actions": [], "confidence": "medium",
    }  # fmt: skip
    return json.dumps(form | changed, ensure_ascii=False).encode()


def verdict(summary: str = HONEST, user_words: str = "", **changed: Any) -> Verdict:
    return judge(reply(summary, **changed), case(user_words))


def codes(summary: str = HONEST, user_words: str = "", **changed: Any) -> set[str]:
    """Return the codes that a reply fails; none when it is released or refused."""
    judged = verdict(summary, user_words, **changed)
    return {code.value for code in judged.codes} if isinstance(judged, Blocked) else set()
