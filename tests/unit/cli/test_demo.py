"""A demo of this folder is found without a word, and only one that is ours and on this machine."""

import shlex
import subprocess
from pathlib import Path

import pytest

from cli.demo import FILE, read_demo, with_demo
from deploy.demo.announcement import export_variables
from deploy.demo.environment_file import write_environment
from deploy.demo.loading import Demo
from tests.unit.cli.conftest import Command

WRITTEN = export_variables("http://127.0.0.1:9000", "http://127.0.0.1:9/metrics", Demo("key", "other", "kb_1", "", ""))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_environment(tmp_path / FILE, WRITTEN)
    return tmp_path


def test_a_command_uses_the_demo_of_its_folder(folder: Path) -> None:
    found = with_demo({"PATH": "/bin"}, folder)
    assert dict(found) == {"PATH": "/bin", **WRITTEN}


@pytest.mark.parametrize("name", ["BALLAST_URL", "BALLAST_URL_FILE"])
def test_another_backend_is_not_mixed_with_a_demo(name: str, folder: Path) -> None:
    assert with_demo({name: "of the user"}, folder) == {name: "of the user"}


@pytest.mark.parametrize("name", ["BALLAST_KEY", "BALLAST_KEY_FILE", "BALLAST_BASE"])
def test_what_the_user_names_stands_beside_the_address_of_a_demo(name: str, folder: Path) -> None:
    found = with_demo({name: "of the user"}, folder)
    assert (found["BALLAST_URL"], found[name]) == (WRITTEN["BALLAST_URL"], "of the user")
    assert found.get(name.removesuffix("_FILE")) in (None, "of the user")


def test_an_empty_key_is_no_leave_to_act_as_the_owner_of_the_demo(folder: Path, command: Command) -> None:
    found = with_demo({"BALLAST_KEY": ""}, folder)
    assert found["BALLAST_KEY"] == ""
    assert command("env", **dict(found)).exit_code == 2


def test_a_file_that_others_can_read_is_passed_over(folder: Path) -> None:
    (folder / FILE).chmod(0o644)
    assert read_demo(folder) == {}


@pytest.mark.parametrize(
    "url",
    [
        "http://elsewhere.example",
        "http://127.0.0.1.elsewhere.example",
        "http://127.0.0.2",
        "http://[::1",
        "file:///",
        "",
    ],
)
def test_a_file_that_leads_to_another_machine_is_passed_over(url: str, folder: Path) -> None:
    write_environment(folder / FILE, {**WRITTEN, "BALLAST_URL": url})
    assert read_demo(folder) == {}


def test_a_folder_without_a_demo_has_none(tmp_path: Path) -> None:
    assert read_demo(tmp_path) == {}


def test_nobody_else_can_read_the_file_and_a_shell_can(folder: Path) -> None:
    write_environment(folder / FILE, {"NAME": "two words; $HOME"})
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (folder / FILE.parent).iterdir()] == ["env"]
    said = subprocess.check_output(["sh", "-c", f'. ./{FILE}; echo "$NAME"'], cwd=folder, text=True)
    assert said == "two words; $HOME\n"


def test_other_programs_are_told_what_they_need(folder: Path, command: Command) -> None:
    ran = command("env", **dict(with_demo({}, folder)))
    told = dict(word.split("=", 1) for word in shlex.split(ran.out) if word != "export")
    assert told == {**WRITTEN, "OPENAI_BASE_URL": "http://127.0.0.1:9000/v1", "OPENAI_API_KEY": "key"}


def test_another_backend_is_told_without_what_a_demo_has(command: Command) -> None:
    ran = command("env", BALLAST_URL="https://ballast.example", BALLAST_KEY="mine")
    assert [line.removeprefix("export ") for line in ran.out.splitlines()] == [
        "BALLAST_URL=https://ballast.example",
        "BALLAST_KEY=mine",
        "OPENAI_BASE_URL=https://ballast.example/v1",
        "OPENAI_API_KEY=mine",
    ]


def test_where_nothing_is_known_it_is_said_what_to_do(command: Command) -> None:
    ran = command("env", BALLAST_KEY="")
    assert ran.exit_code == 2
    assert "There is no demo in this folder (var/demo/env), and no BALLAST_KEY is set." in ran.err
    assert "`ballast up`" in ran.err
