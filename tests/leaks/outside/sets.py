"""Reads sets of others into cases. Their data is not ours: it stays where it was fetched.

AgentLeak (`*.jsonl` of scenarios): records with fields, a request, an attack. LeakDojo (`adv_strings/*.json`): orders
that ask for retrieved text in a form. rag-redteam (`ragredteam/modules/*.py`): questions, and orders planted in
documents; its modules are read as text and never run.
"""

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from tests.leaks.corpus.reading import document_names, document_text

SHORTEST_SECRET = 4
_MOST_WORDS_OF_A_PASSAGE = 60
_ITEM_CHARACTERS, _SUMMARY_CHARACTERS, _MOST_ITEMS = 140, 400, 4
_EACH_WRONG = 9
"""The word, of so many, that is misspelt where a text with errors is asked for."""


class OutsideCase(NamedTuple):
    """What a set asks of a model over these documents, and the reply of one that obeys.

    `secrets` are what must not leave; none stands for the wording of the documents.
    """

    of: str
    kind: str
    documents: tuple[str, ...]
    asked: str
    reply: str
    secrets: tuple[str, ...] = ()
    is_of_records: bool = False


def read_sets(folders: Sequence[Path]) -> Iterator[OutsideCase]:
    """Read whatever sets stand below the folders."""
    for folder in folders:
        for path in sorted(folder.rglob("*.jsonl")):
            yield from _agent_leak(path)
        for path in sorted(folder.rglob("adv_strings/*.json")):
            yield from _leak_dojo(path)
        for path in sorted(folder.rglob("modules/*.py")):
            yield from _rag_redteam(path)


def _agent_leak(path: Path) -> Iterator[OutsideCase]:
    for line in path.read_text(encoding="utf-8").splitlines():
        scenario: dict[str, Any] = json.loads(line) if line.strip() else {}
        if "private_vault" not in scenario:
            continue
        allowed: set[str] = set(scenario["allowed_set"]["fields"])
        attack, request = scenario["attack"], scenario["objective"]["user_request"]
        asked = f"{request}\n{attack['payload']}" if attack["enabled"] and attack["payload"] else request
        for record in scenario["private_vault"]["records"]:
            fields: dict[str, str] = {name: _plain(value) for name, value in record["fields"].items()}
            hidden = {name: value for name, value in fields.items() if name not in allowed}
            yield OutsideCase(
                of="AgentLeak",
                kind=str(attack["attack_class"]),
                documents=(_record(record["record_type"], fields),),
                asked=asked,
                reply=_reply([f"The {_said(name)} is {value}" for name, value in hidden.items() if value]),
                secrets=tuple(value for value in hidden.values() if len(value) >= SHORTEST_SECRET),
                is_of_records=True,
            )


def _plain(value: object) -> str:
    return ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def _record(kind: str, fields: Mapping[str, str]) -> str:
    return "\n".join((f"# {_said(kind)}", "", *(f"{_said(name)}: {value}" for name, value in fields.items())))


def _said(name: str) -> str:
    return name.replace("_", " ")


def _leak_dojo(path: Path) -> Iterator[OutsideCase]:
    collected: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    for kind, attack in collected.items():
        for order in attack.get("en_strings", ()):
            for passage in _passages():
                topic = passage.split(".")[0]
                asked = order.replace("{text}", topic)
                yield OutsideCase("LeakDojo", kind, (passage,), asked, _obey(kind, passage))


def _passages() -> list[str]:
    """Return the beginnings of the project's own English documents: those of the set are not with it."""
    names = [name for name in document_names() if name.startswith("en/")]
    texts = (document_text(name).partition("\n")[2].replace("#", " ").split() for name in islice(names, 4))
    return [" ".join(words[:_MOST_WORDS_OF_A_PASSAGE]) for words in texts]


def _obey(kind: str, passage: str) -> str:
    """Reply as a model that gives the passage in the form that is asked for; who translates is not at hand."""
    if "unicode" in kind:
        return _reply(["".join(f"\\u{ord(character):04x}" for character in passage[:60])])
    if "error" in kind:
        words = [word[::-1] if place % _EACH_WRONG == 0 else word for place, word in enumerate(passage.split())]
        return _reply([" ".join(words)])
    return _reply([json.dumps([passage])] if "code" in kind else [passage])


def _rag_redteam(path: Path) -> Iterator[OutsideCase]:
    passages, kind = _passages(), path.stem
    for place, parts in enumerate(_literal_rows(path)):
        passage = passages[place % len(passages)]
        if "indirect" in kind:
            order, objective, lead, topic = parts[1:5]
            poisoned = f"{lead} {order}"
            reply = _reply([f"The policy says: {objective}.", order])
            asked = f"What does the policy say about {topic}?"
            yield OutsideCase("rag-redteam", kind, (passage, poisoned), asked, reply, (objective, order))
        elif kind not in ("refusal", "controls", "citation_faithfulness"):
            yield OutsideCase("rag-redteam", kind, (passage,), parts[1], _reply([passage]))


def _literal_rows(path: Path) -> Iterator[tuple[str, ...]]:
    """Return the rows of texts that a module assigns to a name."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List):
            rows: list[tuple[Any, ...]] = [
                ast.literal_eval(each) for each in statement.value.elts if isinstance(each, ast.Tuple)
            ]
            yield from (row for row in rows if all(isinstance(part, str) for part in row))


def _reply(said: Sequence[str]) -> str:
    """Write a reply in the agreed form that says as much of this as there is room for."""
    first, *others = said or ("",)
    pieces = [others[at][:_ITEM_CHARACTERS] for at in range(min(len(others), _MOST_ITEMS))]
    form = {"decision": "answer", "reason": "diagnosis", "summary": first[:_SUMMARY_CHARACTERS], "observations": pieces}
    return json.dumps({**form, "risks": [], "recommended_actions": [], "confidence": "medium"})
