"""The fixed words around skills: texts of the operator that a model reads when it needs them."""

from collections.abc import Sequence

from shared.models.execution import ServedTool, ToolDefinition
from shared.models.served_tools import SKILLS_SERVER, SkillCard
from shared.models.values import JsonObject

READ_SKILL = "read_skill"

NO_SUCH_SKILL = "There is no skill of this name here. There are: "
NO_SUCH_FILE = "The skill has no such file that can be read. Its paths are relative to the skill, such as forms/a.md."
SKILL_TEXT = "The file {file} of the skill {name}:\n\n{text}"

_HEADING = (
    "Skills: instructions for particular tasks. Before a task that one of them is about, read it with read_skill and "
    "follow it."
)
_DESCRIPTION = "Read the instructions of a skill, or a further file that they name."


def skills_section(skills: Sequence[SkillCard]) -> str:
    """Return the part of an agent's instructions that lists its skills; "" where it has none."""
    if not skills:
        return ""
    return "\n".join([_HEADING, *(f"- {skill.name}: {skill.description}" for skill in skills)])


def skill_reader(skills: Sequence[SkillCard]) -> ServedTool:
    """Return the tool that reads these skills and no others."""
    parameters: JsonObject = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": [skill.name for skill in skills], "description": "The skill."},
            "file": {
                "type": "string",
                "description": "The path of a further file of the skill, such as reference/forms.md. Leave it out for "
                "the instructions themselves.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    return ServedTool(
        definition=ToolDefinition(name=READ_SKILL, description=_DESCRIPTION, parameters=parameters, strict=None),
        server=SKILLS_SERVER,
        tool=READ_SKILL,
        accepts_restricted=all(skill.accepts_restricted for skill in skills),
    )
