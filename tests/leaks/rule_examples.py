"""Ask the gate about the examples of its rules, and write what it says: `python -m tests.leaks.rule_examples`.

The examples stand beside the rules, in `chat_shell/sealed/gate/rules.toml`; the page is docs/gate-rules.md.
"""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from chat_shell.sealed.gate import judge, prepare
from chat_shell.sealed.verdicts import Blocked, Verdict
from tests.house.sources import ROOT
from tests.unit.chat_shell.sealed.gate.planting import chunk, reply

PAGE = ROOT / "docs" / "gate-rules.md"
LANGUAGES = {"en": ("English", "Where are we weak?"), "zh": ("Chinese", "哪里薄弱？")}
_TABLE = ROOT / "chat_shell" / "sealed" / "gate" / "rules.toml"
_HEAD = """\
# The rules of the gate, by example

```sh
cat > var/case.json <<'END'
{"documents": [{"title": "Night shift", "heading_path": ["Night shift"], "text": "The guard is Ruth Calloway."}],
 "user_messages": ["What is weak in our night shift?"], "query": "weak points of the night shift",
 "reply": "The guard is Ruth Calloway."}
END
jq -c . var/case.json | .venv/bin/python -m chat_shell.sealed.judge | jq -r .verdict   # prints blocked
```

*"The guard is Ruth Calloway"* is held as a name, *"Too much rests on one person"* leaves. Here you see what each rule
of [the gate](how-the-gate-decides.md) holds: a passage, replies over it in English and in Chinese, and what the gate
says of them. A reply of several parts is a summary and its points. Any finding holds a reply, and all rules are asked,
so that some replies have several codes. You can ask about replies of your own:
[`python -m chat_shell.sealed.judge`](how-the-gate-decides.md#for-auditors-asking-the-gate-yourself).

The examples stand beside the rules, in `chat_shell/sealed/gate/rules.toml`. A program asks the gate about each of
them and writes this page; a test does so anew.
"""


def read_rules() -> Mapping[str, dict[str, Any]]:
    """Return the rules by name."""
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def judge_example(said: str | list[str], example: Mapping[str, Any], language: str) -> Verdict:
    """Return the verdict on a reply: a summary, or a summary with points."""
    summary, *points = [said] if isinstance(said, str) else said
    asked = example.get("asked", LANGUAGES[language][1])
    return judge(reply(summary, observations=points), prepare([chunk(example["source"], "a.md")], asked, []))


def write_page() -> str:
    """Return the page, with the verdicts of this gate."""
    return "\n".join((_HEAD, *(line for rule in read_rules().values() for line in _write_rule(rule))))


def _write_rule(rule: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {rule['title']}\n\n{rule['holds']} Code `{rule['code']}`; judged by `{rule['by']}`.\n"
    for language, (name, _) in LANGUAGES.items():
        example = rule[language]
        asked = f" The question: {_quote(example['asked'])}." if "asked" in example else ""
        yield f"{name}; the passage: {_quote(example['source'])}.{asked}\n"
        yield "| reply | verdict | told to a rewrite |\n|---|---|---|"
        yield from (_write_row(said, example, language) for said in (*example["says"], example["passes"]))
        yield ""


def _write_row(said: str | list[str], example: Mapping[str, Any], language: str) -> str:
    verdict = judge_example(said, example, language)
    parts = " · ".join(map(_quote, [said] if isinstance(said, str) else said))
    if not isinstance(verdict, Blocked):
        return f"| {parts} | released | – |"
    phrases = ", ".join(f"*{phrase}*" for phrase in sorted(verdict.phrases) if phrase.strip("_")) or "–"
    return f"| {parts} | {', '.join(f'`{code}`' for code in verdict.codes)} | {phrases} |"


def _quote(text: str) -> str:
    return f"“{text.strip()}”".replace("\n", " ⏎ ").replace("|", "\\|").replace("_", "\\_")


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
