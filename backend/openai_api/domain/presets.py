"""Presets: names that a request may give in the place of a model, and what they stand for."""

from collections.abc import Collection
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from backend.conversations.domain.placed_blocks import ANCHORED, NO_BLOCKS, AgentRef, PlacedBlocks, Placement
from backend.conversations.domain.responses import ConversationSettings
from backend.conversations.domain.served_tools import ServedTools, ToolSelection
from backend.knowledge.domain.tickets import SearchOptions, strictest
from backend.openai_api.domain.turn_request import (
    OutputTokens,
    ReasoningOptions,
    Sampling,
    TextOptions,
    ToolCalls,
    TurnRequest,
)
from shared.models.events import ModelCard
from shared.models.execution import AccessMode, ToolDefinition
from shared.models.values import Value
from shared.prompts.message_order import join_blocks
from shared.prompts.skills import skills_section

Options = TypeVar("Options", bound=BaseModel)


class TurnDefaults(Sampling):
    """Parameters of turns whose requests do not set them, under the names of Responses."""

    max_output_tokens: OutputTokens | None = None
    max_tool_calls: ToolCalls | None = None
    reasoning: ReasoningOptions | None = None
    text: TextOptions | None = None


class Preset(Value):
    """A model with settings under a name of its own; `model` is empty where it is the default one.

    Its bases are bound with the rights of the caller of each turn. `defaults` holds for what a request leaves out.
    `system_prompt`, where it is not None, replaces the operator's default, and `instructions` then follow it in the
    system message; otherwise they stand where `placement` says. Requests remind of `reminder` at their end.
    `file_ids` are the files that every turn with it shows or searches, `selection` names its tools of tool servers and
    its skills.
    """

    id: str
    name: str
    model: str
    instructions: str
    functions: tuple[ToolDefinition, ...]
    knowledge_base_ids: tuple[str, ...]
    search: SearchOptions
    defaults: TurnDefaults
    selection: ToolSelection = ToolSelection()
    file_ids: tuple[str, ...] = ()
    system_prompt: str | None = None
    reminder: str = ""
    placement: Placement = ANCHORED

    @property
    def ref(self) -> AgentRef:
        """What the log names it by."""
        return AgentRef(name=self.name, id=self.id)


class ResolvedModel(NamedTuple):
    """What the name of a model means for a caller: the model that runs, and the preset through which it was named."""

    card: ModelCard
    preset: Preset | None = None

    @property
    def name(self) -> str:
        """The name under which responses show the model."""
        return self.card.name if self.preset is None else self.preset.name


def with_skills(preset: Preset | None, served: ServedTools, mode: AccessMode = AccessMode.FULL) -> Preset | None:
    """List the skills of a preset behind its instructions, in restricted turns only those that may be read there."""
    if preset is None:
        return None
    skills = [skill for skill in served.skills if mode is AccessMode.FULL or skill.accepts_restricted]
    return preset.model_copy(update={"instructions": join_blocks((preset.instructions, skills_section(skills)))})


def with_preset(own: ConversationSettings, preset: Preset | None, served: ServedTools) -> ConversationSettings:
    """Join the settings of a conversation to those of a preset, and to what it has fixed of tool servers and skills.

    Instructions of a preset that has a system prompt come first, then the conversation's own, as a gateway sends the
    system prompt that is configured for a model before that of its user; those of any other preset are no part of the
    settings (`blocks_of`). A function of the conversation replaces one of the same name.
    """
    if preset is None:
        return own.model_copy(update={"served": served})
    leading = preset.instructions if preset.system_prompt is not None else ""
    functions = {each.name: each for each in (*preset.functions, *own.functions)}
    return ConversationSettings(
        model=own.model,
        instructions=join_blocks((leading, own.instructions)),
        functions=tuple(functions[name] for name in sorted(functions)),
        knowledge_base_ids=tuple(sorted({*preset.knowledge_base_ids, *own.knowledge_base_ids})),
        search=strictest((preset.search, own.search)),
        served=served,
    )


def blocks_of(preset: Preset | None) -> PlacedBlocks:
    """Return what a preset says in the prompts of its turns, without the texts of files."""
    if preset is None:
        return NO_BLOCKS
    return PlacedBlocks(
        instructions=preset.instructions if preset.system_prompt is None else "",
        placement=preset.placement,
        agent=preset.ref,
        system_prompt=preset.system_prompt,
        reminder=preset.reminder,
    )


def only_usable(
    settings: ConversationSettings, own: ConversationSettings, usable_ids: Collection[str]
) -> ConversationSettings:
    """Leave out the bases of a preset that the caller may not use: nothing that they see may name them."""
    kept = {*own.knowledge_base_ids, *usable_ids}
    ids = tuple(base_id for base_id in settings.knowledge_base_ids if base_id in kept)
    return settings if ids == settings.knowledge_base_ids else settings.model_copy(update={"knowledge_base_ids": ids})


def with_defaults(request: TurnRequest, preset: Preset | None) -> TurnRequest:
    """Return a request that has the parameters of a preset where it gives none of its own."""
    return request if preset is None else _fill(request, preset.defaults)


def _fill(given: Options, defaults: BaseModel) -> Options:
    changes: dict[str, object] = {}
    for name, default in defaults:
        value: object = getattr(given, name)
        if value is None and default is not None:
            changes[name] = default
        elif isinstance(value, TextOptions | ReasoningOptions) and isinstance(default, BaseModel):
            changes[name] = _fill(value, default)
    return given.model_copy(update=changes)
