"""The operator's tools file: what is read of it, and the line that stops the start where it is wrong."""

from pathlib import Path

import pytest

from chat_shell.settings import Settings
from chat_shell.tools.configured.tools_file import ToolsFileError, read_tools_file
from chat_shell.tools.domain.server_entry import LocalServer, WebServer
from shared.environment import WrongSetting, read_settings

WHOLE = """
servers:
  - name: jira
    address: https://jira.example.org/mcp
    headers: {Authorization: JIRA_AUTHORIZATION}
    tools: [search, read]
    accepts_restricted: true
    timeout_seconds: 12
    max_result_bytes: 5000
  - name: files
    command: mcp-files
    arguments: [--root, /srv]
    environment: [FILES_KEY]
skills:
  folder: /srv/skills
"""
VARIABLES = {"JIRA_AUTHORIZATION": "Bearer abc", "FILES_KEY": "k"}


def read(tmp_path: Path, text: str, **variables: str):
    path = tmp_path / "tools.yaml"
    path.write_text(text)
    return read_tools_file(path, variables)


def test_a_whole_file_is_read(tmp_path: Path):
    whole = read(tmp_path, WHOLE, **VARIABLES)
    jira, files = whole.servers

    assert isinstance(jira.link, WebServer)
    assert jira.link.address == "https://jira.example.org/mcp"
    assert jira.link.headers["Authorization"].get_secret_value() == "Bearer abc"
    assert (jira.tools, jira.accepts_restricted) == (("search", "read"), True)
    assert (jira.timeout_seconds, jira.max_result_bytes) == (12, 5000)
    assert isinstance(files.link, LocalServer)
    assert (files.link.command, files.link.arguments) == ("mcp-files", ("--root", "/srv"))
    assert files.link.environment["FILES_KEY"].get_secret_value() == "k"
    assert (files.tools, files.accepts_restricted) == (None, False)
    assert whole.skills is not None
    assert (whole.skills.folder, whole.skills.accepts_restricted) == (Path("/srv/skills"), False)
    assert "abc" not in repr(whole)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("servers: [", "line 1: is not YAML"),
        ("servers: [{name: a}]", "servers[0]: must have either an address or a command"),
        ("servers: [{name: a, address: 'ftp://x'}]", "servers[0].address: must be an http or https address"),
        ("servers: [{name: a, command: x, address: 'http://x'}]", "servers[0]: must have either"),
        ("servers: [{name: a, command: x, headers: {K: V}}]", "servers[0].headers: only"),
        ("servers: [{name: a__b, command: x}]", "servers[0].name: "),
        ("servers: [{name: skills, command: x}]", "servers[0].name: 'skills' is taken"),
        ("servers: [{name: a, command: x}, {name: a, command: y}]", "servers[1].name: 'a' stands twice"),
        ("servers: [{name: a, command: x, tools: [b c, b.c]}]", "servers[0].tools[1]: 'a__b_c' stands for two tools"),
        (f"servers: [{{name: a, command: x, tools: [{'t' * 62}]}}]", "has more than 64 characters"),
        ("servers: [{name: a, command: x, environment: [NOT_SET]}]", "servers[0].environment[0]: NOT_SET is not set"),
        ("servers: [{name: a, address: 'http://x', headers: {K: NOT_SET}}]", "servers[0].headers.K: NOT_SET"),
        ("servers: [{name: a, command: x, timeout_seconds: 0}]", "servers[0].timeout_seconds: must be greater than 0."),
        (
            "servers: [{name: a, command: x, colour: red}]",
            "servers[0].colour: there is no such field here; leave it out.",
        ),
        ("skills: {}", "skills.folder: this field is required; add it."),
        ("[1]", "tools.yaml: file: must be an object."),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, complaint: str):
    with pytest.raises(ToolsFileError) as raised:
        read(tmp_path, text)

    assert str(raised.value).startswith(str(tmp_path / "tools.yaml"))
    assert complaint in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_value_that_no_header_can_carry_is_not_repeated(tmp_path: Path):
    with pytest.raises(ToolsFileError) as raised:
        read(tmp_path, "servers: [{name: a, address: 'http://x', headers: {K: KEY}}]", KEY="se\ncret")

    assert "cret" not in str(raised.value)


def test_variables_that_the_file_names_are_no_typing_errors(tmp_path: Path):
    path = tmp_path / "tools.yaml"
    path.write_text("servers: [{name: a, command: x, environment: [CHAT_SHELL_JIRA_KEY]}]")
    given = {"CHAT_SHELL_TOOLS_FILE": str(path), "SERVICE_TOKEN": "t" * 32, "CHAT_SHELL_JIRA_KEY": "k"}

    assert read_settings(Settings, given).tools_file == path
    with pytest.raises(WrongSetting, match="CHAT_SHELL_JIRA_KEYS"):
        read_settings(Settings, {**given, "CHAT_SHELL_JIRA_KEYS": "k"})
