"""The auditor's command: what it says of arguments, and of lines that are no case."""

import pytest

from chat_shell.sealed.judge import USAGE, answers, main


@pytest.mark.parametrize("arguments", [["foo.jsonl"], ["--verbose"], ["--help", "foo.jsonl"]])
def test_arguments_that_it_does_not_know_get_the_usage_and_an_exit_code(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
):
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", USAGE)


def test_help_is_given_on_standard_output(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    assert capsys.readouterr() == (USAGE, "")


@pytest.mark.parametrize("line", [b"{", b"[]", b"7"])
def test_a_line_that_is_no_object_is_called_a_line(line: bytes):
    [answer] = answers([line])
    assert answer == {
        "error": {
            "line": 1,
            "message": "The line must be one JSON object with the keys documents, user_messages, query and reply.",
        }
    }
