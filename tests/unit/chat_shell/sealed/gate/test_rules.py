"""docs/gate-rules.md shows each rule by three examples in each language, and says of them what the gate does."""

import ast
import inspect

import pytest

from chat_shell.sealed.gate import judging
from chat_shell.sealed.verdicts import Blocked, Released
from tests.leaks.rule_examples import LANGUAGES, PAGE, judge_example, read_rules, write_page

RULES = read_rules()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", RULES)
def test_a_rule_holds_its_examples_and_lets_their_like_pass(name: str, language: str):
    rule, example = RULES[name], RULES[name][language]
    assert len(example["says"]) == 3
    for said in example["says"]:
        verdict = judge_example(said, example, language)
        assert isinstance(verdict, Blocked), said
        assert rule["code"] in verdict.codes, (said, verdict)
    assert isinstance(judge_example(example["passes"], example, language), Released)


def test_the_page_says_what_the_gate_says():
    assert PAGE.read_text(encoding="utf-8") == write_page(), "run: python -m tests.leaks.rule_examples"


def test_every_check_that_the_gate_asks_is_on_the_page():
    tree = ast.parse(inspect.getsource(judging))
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name.endswith("_findings") or alias.name.startswith(("find_", "is_", "has_", "shares_", "follows_"))
    }
    assert imported - {rule["by"] for rule in RULES.values()} == {"has_other_words"}
