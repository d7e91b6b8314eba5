"""Names of models as a caller may use them: a model of chat_shell, or a preset over one."""

from collections.abc import Collection, Sequence

from backend.conversations.domain.placed_blocks import AgentRef
from backend.identity.domain import Caller
from backend.openai_api.domain.presets import ResolvedModel
from backend.turns.ports.presets import OfferedPreset, PresetSource
from backend.turns.services.request.model_catalogue import ModelCatalogue
from shared.errors import UnknownModel
from shared.models.events import ModelCard

MAX_NAMED = 30
"""How many names an error lists."""


class ModelNames:
    """Finds what a name means. A model wins over a preset of the same name."""

    def __init__(self, models: ModelCatalogue, presets: PresetSource) -> None:
        self._models = models
        self._presets = presets

    async def resolve(self, caller: Caller, name: str) -> ResolvedModel:
        """Return what a name means; an empty one is the default model.

        Raises:
            UnknownModel: there is no such name for this caller, or the model of a preset is not offered.
            Unavailable: chat_shell or the database cannot be reached. Retryable.
        """
        cards = await self._models.all()
        card = _card_in(cards, name)
        if card is not None:
            return ResolvedModel(card=card)
        if not name:
            raise UnknownModel("No model is offered; the operator has to configure one.", param="model")
        preset = await self._presets.find(caller, name)
        if preset is None:
            names = [*_names(cards), *(each.name for each in await self._presets.list_offered(caller))]
            raise UnknownModel(f"The model '{name}' does not exist; use one of {list_names(names)}.", param="model")
        card = _card_in(cards, preset.model)
        if card is None:
            gone = f"The agent '{name}' uses the model '{preset.model}', which is not offered any more"
            raise UnknownModel(f"{gone}; give the agent one of {list_names(_names(cards))}.", param="model")
        return ResolvedModel(card=card, preset=preset)

    async def has_lost(self, caller: Caller, refs: Collection[AgentRef]) -> bool:
        """Return whether the caller may no longer use one of these agents.

        Raises:
            Unavailable: the database is away. Retryable.
        """
        return bool(refs) and len(await self._presets.usable(caller, refs)) < len(frozenset(refs))

    async def cards(self) -> tuple[ModelCard, ...]:
        """Return the models themselves; the first is the default.

        Raises:
            ChatShellUnavailable: chat_shell cannot be reached. Retryable.
        """
        return await self._models.all()

    async def presets(self, caller: Caller) -> tuple[OfferedPreset, ...]:
        """Return the presets that the caller may use, without those whose name means a model.

        Raises:
            Unavailable: chat_shell or the database cannot be reached. Retryable.
        """
        taken = set(_names(await self._models.all()))
        return tuple(each for each in await self._presets.list_offered(caller) if each.name not in taken)


def list_names(names: Sequence[str]) -> str:
    """Write names for an error, the first ones where there are many."""
    shown = ", ".join(f"'{name}'" for name in names[:MAX_NAMED])
    return shown if len(names) <= MAX_NAMED else f"{shown} and {len(names) - MAX_NAMED} more"


def _card_in(cards: Sequence[ModelCard], name: str) -> ModelCard | None:
    if not name:
        return cards[0] if cards else None
    return next((card for card in cards if card.name == name), None)


def _names(cards: Sequence[ModelCard]) -> list[str]:
    return [card.name for card in cards]
