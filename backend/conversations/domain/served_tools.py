"""The tools of tool servers, and the skills, that a conversation has fixed.

What a conversation was offered once stays byte for byte, whatever its servers list later: only another selection, or a
server that is known at last, changes it.
"""

from collections.abc import Mapping

from shared.models.execution import ServedTool
from shared.models.served_tools import OfferedTools, ServerTools, SkillCard
from shared.models.values import Value
from shared.prompts.skills import READ_SKILL, skill_reader


class ServerChoice(Value):
    """A tool server whose tools are wanted, by the names that it gives them; `tools` is None where all are."""

    server: str
    tools: tuple[str, ...] | None = None


class ToolSelection(Value):
    """The tool servers, each once, and the skills that are wanted, sorted by name."""

    servers: tuple[ServerChoice, ...] = ()
    skills: tuple[str, ...] = ()

    def join(self, other: "ToolSelection") -> "ToolSelection":
        """Return what either of the two wants."""
        servers: dict[str, ServerChoice] = {}
        for choice in (*self.servers, *other.servers):
            before = servers.get(choice.server)
            servers[choice.server] = choice if before is None else _either(before, choice)
        names = tuple(sorted({*self.skills, *other.skills}))
        return ToolSelection(servers=tuple(servers[name] for name in sorted(servers)), skills=names)


class ServedTools(Value):
    """What a conversation has fixed: the selection that it was fixed for, the tools, and the skills as listed.

    `own` is the part of the selection that the conversation's requests have made, `missing` names the servers whose
    tools were not known yet.
    """

    own: ToolSelection = ToolSelection()
    selection: ToolSelection = ToolSelection()
    tools: tuple[ServedTool, ...] = ()
    skills: tuple[SkillCard, ...] = ()
    missing: tuple[str, ...] = ()

    def needs_offer(self, selection: ToolSelection) -> bool:
        """Return whether fixing this selection takes a look at what is offered now."""
        return self.selection != selection or bool(self.missing)

    def fix(self, selection: ToolSelection, offered: OfferedTools) -> "ServedTools":
        """Return what is fixed for a selection; what was fixed before for the same server or skills stays as it is."""
        known = {one.server: one for one in offered.servers if one.is_known}
        kept = {choice.server for choice in selection.servers if choice in self.selection.servers} - {*self.missing}
        tools = [tool for tool in self.tools if tool.server in kept and tool.definition.name != READ_SKILL]
        for choice in selection.servers:
            if choice.server not in kept and choice.server in known:
                tools += _choose(choice, known[choice.server])
        is_same = selection.skills == self.selection.skills
        skills = self.skills if is_same else _cards(selection.skills, offered)
        if skills:
            tools.append(skill_reader(skills))
        wanted = {choice.server for choice in selection.servers} - kept
        return self.model_copy(
            update={
                "selection": selection,
                "tools": tuple(sorted(tools, key=lambda tool: tool.definition.name)),
                "skills": skills,
                "missing": tuple(sorted(wanted - known.keys())),
            }
        )


NOTHING_SERVED = ServedTools()


def _either(one: ServerChoice, other: ServerChoice) -> ServerChoice:
    if one.tools is None or other.tools is None:
        return ServerChoice(server=one.server)
    return ServerChoice(server=one.server, tools=tuple(sorted({*one.tools, *other.tools})))


def _choose(choice: ServerChoice, known: ServerTools) -> list[ServedTool]:
    return [tool for tool in known.tools if choice.tools is None or tool.tool in choice.tools]


def _cards(names: tuple[str, ...], offered: OfferedTools) -> tuple[SkillCard, ...]:
    cards: Mapping[str, SkillCard] = {card.name: card for card in offered.skills}
    return tuple(cards[name] for name in names if name in cards)
