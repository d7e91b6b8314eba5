"""Files that pages show are files that the services read."""

import re
from pathlib import Path

import yaml

from chat_shell.models.configured.entries import read_models_file
from chat_shell.tools.configured.tools_file import read_tools_file
from deploy.site.pages import list_written_pages
from tests.house.sources import ROOT

_YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(page: str) -> list[str]:
    """Return the YAML files of a page."""
    return _YAML.findall((ROOT / page).read_text(encoding="utf-8"))


def saved(page: str, folder: Path) -> Path:
    """Save the file of a page, with what further blocks add at its end."""
    (folder / "shown.yaml").write_text("".join(shown(page)), encoding="utf-8")
    return folder / "shown.yaml"


def test_every_file_is_yaml() -> None:
    texts = [text for page in list_written_pages() for text in shown(page)]
    assert texts
    assert all(yaml.safe_load(text) for text in texts)


def test_the_list_of_models_is_read(tmp_path: Path) -> None:
    keys = {"OPENAI_API_KEY": "key", "ANTHROPIC_API_KEY": "key", "CACHE_SALT": "of sixteen letters or more"}
    entries = read_models_file(saved("docs/models.md", tmp_path), keys)
    assert [entry.name for entry in entries] == ["fast", "careful", "local", "newest", "engines"]


def test_the_tools_file_is_read(tmp_path: Path) -> None:
    variables = {"SEARCH_AUTHORIZATION": "Bearer abc", "FETCH_USER_AGENT": "agent"}
    tools = read_tools_file(saved("docs/tools.md", tmp_path), variables)
    assert [server.name for server in tools.servers] == ["search", "fetch"]
    assert tools.skills is not None
