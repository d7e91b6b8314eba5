"""Resolving what a turn runs with: its model, its settings, and the knowledge bases in scope."""

from backend.conversations.domain.conversation_log import newest_epoch_state, summary_of
from backend.conversations.domain.placed_blocks import AgentRef
from backend.conversations.domain.responses import SettingsDigest
from backend.identity.domain import Caller
from backend.knowledge.domain.knowledge import strictest_mode
from backend.openai_api.domain.presets import blocks_of, only_usable, with_defaults, with_preset, with_skills
from backend.openai_api.domain.requested_settings import (
    find_asked_model,
    forbid_filters,
    forbid_logprobs,
    name_untaken,
    own_settings,
)
from backend.prompt.domain.block_policy import agents_stated
from backend.prompt.domain.epochs import CallerAccess
from backend.prompt.domain.settings_digest import settings_digest
from backend.turns.domain.turn_origin import TurnStart
from backend.turns.services.context_sources import ContextSources
from backend.turns.services.request.model_names import ModelNames
from backend.turns.services.request.tool_catalogue import ToolCatalogue, check_function_names
from backend.turns.services.turn_draft import TurnSettings
from shared.models.execution import AccessMode


class SettingsReader:
    """Resolves settings with the rights that callers have today."""

    def __init__(self, context: ContextSources, models: ModelNames, tools: ToolCatalogue) -> None:
        self._context = context
        self._models = models
        self._tools = tools

    async def read(self, caller: Caller, start: TurnStart) -> TurnSettings:
        """Resolve and check what a turn runs with, apart from its messages.

        Raises:
            NotFound: a model or base does not exist for this caller.
            InvalidRequest: the request names what is not there; `param` names the place.
            Unavailable: a service that the turn depends on is unavailable. Retryable.
        """
        asked = await self._resolve(caller, start)
        own, joined = asked.own, asked.settings
        request = name_untaken(asked.request, asked.meaning.card)
        bindings = await self._context.bindings(caller, request, joined.knowledge_base_ids)
        mode = strictest_mode(bindings)
        preset = with_skills(asked.meaning.preset, joined.served, mode)
        if mode is not AccessMode.FULL:
            forbid_filters(request, own, joined)
            forbid_logprobs(request)
            joined = with_preset(own, preset, joined.served)
        settings = only_usable(joined, own, [binding.base.id for binding in bindings])
        return asked._replace(preset=preset, request=request, settings=settings, bindings=bindings)

    async def _resolve(self, caller: Caller, start: TurnStart) -> TurnSettings:
        """Resolve what a turn asks for, without looking at the bases that it names."""
        meaning = await self._models.resolve(caller, find_asked_model(start.request, start.before))
        request = with_defaults(start.request, meaning.preset)
        own = own_settings(request, start.before, start.read.instructions, meaning.card.name)
        fixed_before = start.origin.conversation.served
        served = await self._tools.fix(request, own.served.own, meaning.preset, fixed_before)
        preset = with_skills(meaning.preset, served)
        joined = with_preset(own, preset, served)
        check_function_names(joined.functions, served)
        return TurnSettings(meaning, preset, request, own, joined)

    async def digest(self, caller: Caller, start: TurnStart) -> SettingsDigest:
        """Return the digest of what a turn asks for."""
        asked = await self._resolve(caller, start)
        return settings_digest(asked.settings, blocks_of(asked.preset))

    async def access(self, caller: Caller, start: TurnStart, chosen: TurnSettings) -> CallerAccess:
        """Return what the caller may read today of the log behind which a turn begins."""
        meaning, bindings = chosen.meaning, chosen.bindings
        log = start.origin.log
        known = frozenset([meaning.preset.ref] if meaning.preset is not None else list[AgentRef]())
        reset = newest_epoch_state(log)
        others = agents_stated(log, reset) - known
        withheld = await self._context.find_withheld(caller, log)
        for summary in summary_of(log, reset):
            if await self._models.has_lost(caller, summary.agents - known):
                withheld |= {summary.turn_id}
        return CallerAccess(
            mode=strictest_mode(bindings),
            withheld=tuple(sorted(withheld)),
            withholds_users=bool(withheld) and start.origin.conversation.people.is_shared,
            modes={binding.base.id: binding.role.access_mode for binding in bindings},
            has_lost_agent=await self._models.has_lost(caller, others),
        )
