"""A function decides little: ruff counts its statements, and here the decisions inside its expressions count, too.

A comprehension says in one line what a loop with a condition says in three; a reader has to follow both.
"""

import ast

from tests.house.sources import PRODUCT, Function, Source, parse, sources

COMPLEXITY = 8
DENSE, DENSE_GOAL = 175, 0
"""Functions of the product above it, with room for work that is under way; the goal is that there are none."""

GATE = ("shared/disclosure", "chat_shell/sealed")
"""What an auditor has to read: no function above it."""

_DECISIONS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)


def complexity(function: Function) -> int:
    """Count one, and one a branch, a loop, a `for` and `if` of a comprehension, a further operand of `and` and `or`."""
    return 1 + sum(map(_decisions, ast.walk(function)))


def _decisions(node: ast.AST) -> int:
    match node:
        case ast.comprehension(ifs=conditions):
            return 1 + len(conditions)
        case ast.BoolOp(values=operands):
            return len(operands) - 1
        case _:
            return int(isinstance(node, _DECISIONS))


def dense_functions(files: tuple[Source, ...]) -> list[str]:
    return [
        f"{file.at(function)} {function.name}: {counted}"
        for file in files
        for function in file.functions()
        if (counted := complexity(function)) > COMPLEXITY
    ]


def test_what_judges_restricted_knowledge_is_not_dense():
    assert dense_functions(sources(*GATE)) == []


def test_dense_functions_become_fewer():
    assert len(dense_functions(sources(*PRODUCT))) <= max(DENSE, DENSE_GOAL)


def test_the_count_sees_what_stands_in_expressions():
    rows = "def f(rows):\n    return [a for row in rows for a in row if a and not a.b or a.c]\n"
    assert next(map(complexity, parse("a.py", rows).functions())) == 6
    plain = "def f(a):\n    if a:\n        return 1\n    for b in a:\n        print(b)\n"
    assert next(map(complexity, parse("a.py", plain).functions())) == 3
    assert dense_functions((parse("a.py", "def f(a):\n    return " + " or ".join(["a"] * 9)),))
    assert not dense_functions((parse("a.py", "def f(a):\n    return " + " or ".join(["a"] * 8)),))
