"""Skills: what is listed, what is read, and that no path leads out of a skill's folder."""

from pathlib import Path

import pytest

from chat_shell.tools.domain.tool_calls import ArgumentsRejected
from chat_shell.tools.ports.tools import ToolContext
from chat_shell.tools.services.skills import ReadSkill
from chat_shell.tools.skill_folders.skill_folder import MAX_FILE_BYTES, SkillFolder, SkillsError
from shared.models.events import ModelCard
from shared.models.served_tools import SkillCard
from shared.prompts.skills import skill_reader, skills_section
from tests.fakes.model_requests import execution_request

MATTER = "name: letters\ndescription: |\n  Write letters\n  to customers.\n"
CARD = ModelCard(name="m", context_window_tokens=1000, max_output_tokens=100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    skill = tmp_path / "skills" / "letters"
    (skill / "forms").mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: letters\ndescription: |\n  Write letters\n  to customers.\n---\nBe kind."
    )
    (skill / "forms" / "a.md").write_text("Form A.")
    (tmp_path / "secret.md").write_text("secret")
    (skill / "link.md").symlink_to(tmp_path / "secret.md")
    (skill / "large.md").write_text("x" * (MAX_FILE_BYTES + 1))
    (skill / "binary.md").write_bytes(b"\xff\xfe")
    return tmp_path / "skills"


def test_skills_are_listed_in_one_line_each(folder: Path):
    skills = SkillFolder(folder, accepts_restricted=False)

    assert skills.cards == (
        SkillCard(name="letters", description="Write letters to customers.", accepts_restricted=False),
    )
    assert skills_section(skills.cards).endswith("\n- letters: Write letters to customers.")
    assert skills_section(()) == ""


@pytest.mark.parametrize(("file", "text"), [("SKILL.md", "Be kind."), ("forms/a.md", "A."), ("./forms/a.md", "A.")])
async def test_files_of_a_skill_are_read(folder: Path, file: str, text: str):
    read = await SkillFolder(folder, accepts_restricted=False).read("letters", file)

    assert read is not None
    assert read.endswith(text)


@pytest.mark.parametrize(
    "file", ["../../secret.md", "/etc/passwd", "link.md", "large.md", "binary.md", "forms", "none.md", "a\0b", ""]
)
async def test_nothing_else_is_read(folder: Path, file: str):
    assert await SkillFolder(folder, accepts_restricted=False).read("letters", file) is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("Be kind.", "does not begin with front matter"),
        ("---\nname: [\n---\n", "is not YAML"),
        ("---\nname: Letters!\ndescription: d\n---\n", "name: "),
        ("---\nname: letters\n---\n", "description: "),
        ("---\nname: letters\ndescription: " + "d" * 9000 + "\n---\n", "front matter has more than"),
        ("x" * (MAX_FILE_BYTES + 1), "is no text"),
    ],
)
def test_a_wrong_skill_stops_the_start_with_its_place(tmp_path: Path, text: str, complaint: str):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "SKILL.md").write_text(text)

    with pytest.raises(SkillsError) as raised:
        SkillFolder(tmp_path, accepts_restricted=False)

    assert str(tmp_path / "one" / "SKILL.md") in str(raised.value)
    assert complaint in str(raised.value)


def test_a_folder_that_is_not_there_stops_the_start(tmp_path: Path):
    with pytest.raises(SkillsError, match="cannot be read"):
        SkillFolder(tmp_path / "none", accepts_restricted=False)


async def test_a_conversation_reads_the_skills_that_it_has_fixed_and_no_others(folder: Path):
    skills = SkillFolder(folder, accepts_restricted=False)
    reader = ReadSkill(skills.read, accepts_restricted=False)
    context = ToolContext(request=execution_request(), card=CARD)
    other = SkillCard(name="other", description="d", accepts_restricted=False)

    answer = await reader.run(skill_reader(skills.cards), {"name": "letters"}, context)
    assert answer.text.startswith("The file SKILL.md of the skill letters:\n\n---\n")
    assert answer.text.endswith("Be kind.")
    assert (await reader.run(skill_reader((other,)), {"name": "letters"}, context)).failed
    assert (await reader.run(skill_reader((other,)), {"name": "other"}, context)).failed
    with pytest.raises(ArgumentsRejected):
        await reader.run(skill_reader(skills.cards), {"file": "a"}, context)
