"""Agents, what they are made of, and the roles of their members."""

from datetime import datetime
from enum import StrEnum
from operator import not_
from typing import Annotated, Literal

from pydantic import Field

from backend.conversations.domain.input_items import Given
from backend.conversations.domain.placed_blocks import ANCHORED, Placement
from backend.openai_api.domain.client_tools import FunctionTool, function_definitions
from backend.openai_api.domain.mcp_tool import McpTool
from backend.openai_api.domain.presets import Preset, TurnDefaults
from backend.openai_api.domain.tool_selection import selection_of
from backend.openai_api.domain.turn_request import (
    MAX_BASES,
    MAX_TOOLS,
    BaseId,
    FileSearchTool,
    file_searches_in,
    search_options,
)
from shared.models.values import Value
from shared.prompts.agents import KNOWLEDGE_MODES, KnowledgeMode
from shared.prompts.message_order import join_blocks

MAX_TEXT_CHARACTERS = 100_000
MAX_REMINDER_CHARACTERS = 4_000
MAX_FILES = 100
MAX_SKILLS = 100
NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""Names of agents stand in addresses and beside names of models; a slash would part an address."""

PLACEMENT = (
    "Where the instructions stand: `anchored` writes them into the conversation once, and again where they change; "
    "`classic` sends them right before the newest message in each turn and leaves the results of earlier turns' tools "
    "out, which costs most of the provider's cache."
)
REMINDER = "A text that the model is reminded of at the end of its requests."
SYSTEM_PROMPT = (
    "Replaces the operator's default system prompt; the instructions then follow it in the system message, and do not "
    "move. `{{user.name}}`, `{{user.id}}`, `{{user.tenant}}`, `{{agent.name}}` and `{{model}}` are filled in."
)

LongText = Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)]
BaseIds = Annotated[list[BaseId], Field(max_length=MAX_BASES, fail_fast=True)]
FileIds = Annotated[list[Annotated[str, Field(min_length=1, max_length=128)]], Field(max_length=MAX_FILES)]
SkillNames = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=64)]], Field(max_length=MAX_SKILLS, fail_fast=True)
]
AgentTool = Annotated[FunctionTool | FileSearchTool | McpTool, Field(discriminator="type")]
Visibility = Literal["private", "tenant"]


class AgentRole(StrEnum):
    """What a member may do with an agent: a reader uses it, an editor also replaces it, an owner does everything."""

    OWNER = "owner"
    EDITOR = "editor"
    READER = "reader"

    @property
    def rights(self) -> int:
        """How far the role goes: what a role with more may do, one with fewer may not."""
        return (AgentRole.READER, AgentRole.EDITOR, AgentRole.OWNER).index(self)

    @property
    def may_edit(self) -> bool:
        """Whether the agent may be replaced."""
        return self is not AgentRole.READER


class AgentDefinition(Given):
    """What an agent consists of, as its editors write it; what is left out has its default.

    `model` is the default model where it is null. `parameters` hold for what a request leaves out.
    """

    model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    instructions: LongText = ""
    knowledge_base_ids: BaseIds = Field(default=[])
    knowledge_mode: KnowledgeMode = "relaxed"
    tools: Annotated[list[AgentTool], Field(max_length=MAX_TOOLS, fail_fast=True)] = Field(default=[])
    skills: SkillNames = Field(default=[], exclude_if=not_)
    parameters: TurnDefaults = TurnDefaults()
    visibility: Visibility = "private"
    placement: Placement = Field(default=ANCHORED, description=PLACEMENT)
    reminder: Annotated[str, Field(max_length=MAX_REMINDER_CHARACTERS)] | None = Field(None, description=REMINDER)
    system_prompt: LongText | None = Field(None, description=SYSTEM_PROMPT)
    file_ids: FileIds = Field(default=[])

    @property
    def base_ids(self) -> tuple[str, ...]:
        """The bases that it names, each once, in order."""
        return tuple(sorted(set(self.base_paths)))

    @property
    def base_paths(self) -> dict[str, str]:
        """Where each of its bases is named first, such as `tools[0].vector_store_ids[1]`."""
        named = [(base_id, f"knowledge_base_ids[{place}]") for place, base_id in enumerate(self.knowledge_base_ids)]
        for number, tool in enumerate(self.tools):
            if isinstance(tool, FileSearchTool):
                ids = enumerate(tool.vector_store_ids)
                named += [(base_id, f"tools[{number}].vector_store_ids[{place}]") for place, base_id in ids]
        return dict(reversed(named))

    def among(self, base_ids: frozenset[str]) -> "AgentDefinition":
        """Return it without the bases that are not among these."""
        tools = [
            self._narrow_search(tool, base_ids) if isinstance(tool, FileSearchTool) else tool for tool in self.tools
        ]
        return self.model_copy(
            update={
                "knowledge_base_ids": [base_id for base_id in self.knowledge_base_ids if base_id in base_ids],
                "tools": [tool for tool in tools if tool is not None],
            }
        )

    @staticmethod
    def _narrow_search(tool: FileSearchTool, base_ids: frozenset[str]) -> FileSearchTool | None:
        kept = [base_id for base_id in tool.vector_store_ids if base_id in base_ids]
        return tool.model_copy(update={"vector_store_ids": kept}) if kept else None


class Agent(Value):
    """An agent; names are unique within a tenant."""

    id: str
    tenant: str
    name: str
    created_at: datetime
    definition: AgentDefinition


class KnownAgent(Value):
    """An agent and the caller's role in it; None for a user who is no member."""

    agent: Agent
    role: AgentRole | None

    @property
    def is_usable(self) -> bool:
        """Whether the caller may use it: as a member, or because everyone of the tenant may."""
        return self.role is not None or self.agent.definition.visibility == "tenant"

    @property
    def may_edit(self) -> bool:
        """Whether the caller may replace it."""
        return self.role is not None and self.role.may_edit


def preset_of(agent: Agent) -> Preset:
    """Return what a turn takes of an agent."""
    definition = agent.definition
    return Preset(
        id=agent.id,
        name=agent.name,
        model=definition.model or "",
        instructions=join_blocks((definition.instructions, KNOWLEDGE_MODES[definition.knowledge_mode])),
        functions=function_definitions(definition.tools),
        knowledge_base_ids=definition.base_ids,
        search=search_options(file_searches_in(definition.tools)),
        defaults=definition.parameters,
        file_ids=tuple(definition.file_ids),
        system_prompt=definition.system_prompt,
        reminder=definition.reminder or "",
        placement=definition.placement,
        selection=selection_of(definition.tools, definition.skills),
    )
