"""Random conversations: a seed makes one."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

from backend.conversations.domain.placed_blocks import ANCHORED, CLASSIC, NO_BLOCKS, AgentRef, PlacedBlocks, Placement
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole
from shared.models.execution import DynamicBlock, ToolDefinition
from shared.models.messages import ToolCall
from shared.models.values import JsonObject
from tests.bench.cache.conversations import Conversation, Ending, Settings, Step, Turn

_START = datetime(2026, 11, 20, 7, 30, tzinfo=UTC)
_WORDS = (
    "anchor ballast cargo draught ebb flood gale hull inlet jetty keel lee mast north oar pier quay reef sail tide "
    "upwind vessel wake yaw zenith Größe Höhe 港 船 océan"
)
_TEXT_CHARACTERS = 120_000
_LARGE_WINDOW_TOKENS = 10_000_000
_MODELS = ("model-a", "model-b")
_FUNCTIONS = ("weather", "calendar", "ledger")
_CALLABLE = ("knowledge_base_search", "knowledge_base_read_document")


@dataclass(frozen=True)
class Scale:
    """Sizes in characters and counts, each the most there can be."""

    turns: int = 20
    steps: int = 4
    side_by_side: int = 4
    instructions: int = 8_000
    words: int = 2_000
    result: int = 8_000
    summary: int = 900
    file: int = 16_000
    bases: int = 8
    small_window_tokens: int = 40_000


FULL = Scale()
SMALL = Scale(
    turns=5,
    steps=3,
    side_by_side=3,
    instructions=200,
    words=60,
    result=120,
    summary=80,
    file=200,
    bases=4,
    small_window_tokens=2_500,
)


def conversation(seed: int, scale: Scale = FULL, placement: Placement = ANCHORED) -> Conversation:
    """Make the conversation of a seed; one with the placement `classic` has an agent from its beginning."""
    rng = random.Random(seed)
    window_tokens = scale.small_window_tokens if rng.random() < 0.1 else _LARGE_WINDOW_TOKENS
    return Conversation(seed, window_tokens, tuple(_Author(rng, scale, placement).turns()))


class _Author:
    """Writes one conversation: a world of knowledge that changes, and turns in it."""

    def __init__(self, rng: random.Random, scale: Scale, placement: Placement):
        self._rng = rng
        self._placement: Placement = placement
        self._scale = scale
        self._edit_rate = rng.choice((0.0, 0.1, 0.3, 0.8))
        self._fault_rate = rng.choice((0.0, 0.0, 0.15, 0.3))
        self._branch_rate = rng.choice((0.0, 0.0, 0.15))
        self._reset_rate = rng.choice((0.0, 0.0, 0.0, 0.15))
        self._serial = 0
        self._now = _START
        self._bases = {base.id: base for base in (self._base() for _ in range(rng.randint(0, scale.bases)))}
        self._order = list(self._bases)
        self._blocks = self._first_blocks()
        self._upload_rate = self._rng.choice((0.0, 0.0, 0.2))
        self._agent = self._agents_words(NO_BLOCKS) if self._happens(0.4) or placement == CLASSIC else NO_BLOCKS
        self._turns: list[Turn] = []

    def turns(self) -> Sequence[Turn]:
        """Write the turns."""
        for _ in range(self._rng.randint(2, self._scale.turns)):
            self._now += timedelta(seconds=self._rng.randint(20, 7_200))
            self._change_knowledge()
            if self._agent is not NO_BLOCKS and self._happens(self._edit_rate):
                self._agent = self._agents_words(self._agent)
            self._turns.append(self._turn())
        return self._turns

    def _turn(self) -> Turn:
        parent = self._parent()
        settings = self._changed(parent.settings) if parent is not None else self._first_settings()
        turn = Turn(
            id=self._name("turn"),
            after=parent.id if parent is not None else None,
            settings=settings,
            bindings=self._bindings(settings),
            blocks=self._blocks,
            user=self._text(self._scale.words // 4),
            sent_at=self._now,
            steps=self._steps(),
            placed=self._with_uploads(),
            is_reloaded=self._happens(0.2),
        )
        return self._with_fault(turn)

    def _parent(self) -> Turn | None:
        """Return the turn to go on behind: the newest, or in a branch an older one that was answered."""
        answered = [turn for turn in self._turns if turn.ending is Ending.ANSWERED]
        if answered and self._happens(self._branch_rate):
            return self._rng.choice(answered)
        return self._turns[-1] if self._turns else None

    def _changed(self, settings: Settings) -> Settings:
        """Change what an epoch ends with, sometimes; access is narrowed for good."""
        if not self._happens(self._reset_rate):
            return settings
        match self._rng.randrange(4):
            case 0:
                return replace(settings, model=_MODELS[settings.model == _MODELS[0]])
            case 1:
                return replace(settings, functions=self._some_functions())
            case 2:
                return replace(settings, instructions=self._text(self._scale.instructions))
            case _:
                return replace(settings, is_restricted=True)

    def _some_functions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool for tool in _functions() if self._happens(0.4))

    def _with_fault(self, turn: Turn) -> Turn:
        if not self._happens(self._fault_rate):
            return turn
        ending = self._rng.choice(tuple(Ending))
        return replace(turn, ending=ending, attempts=self._rng.randint(1, 3), is_reloaded=True)

    def _change_knowledge(self) -> None:
        """Add, edit, remove: or only reorder and touch up, which no model should notice."""
        if self._happens(0.3):
            self._rng.shuffle(self._order)
            self._touch_up()
        if not self._happens(self._edit_rate):
            return
        kind = self._rng.randrange(4)
        if kind == 0 and len(self._bases) < self._scale.bases:
            base = self._base()
            self._bases[base.id] = base
            self._order.append(base.id)
        elif kind == 1 and self._order:
            del self._bases[self._order.pop()]
        elif kind == 2:
            self._blocks = self._edited_blocks()
        elif self._order:
            edited = self._rng.choice(self._order)
            self._bases[edited] = self._bases[edited].model_copy(update={"summary": self._text(self._scale.summary)})

    def _touch_up(self) -> None:
        for base in list(self._bases.values()):
            changes = {"version": base.version + 1, "topics": base.topics[::-1], "summary": f"{base.summary}  "}
            self._bases[base.id] = base.model_copy(update=changes)

    def _first_settings(self) -> Settings:
        return Settings(
            model=_MODELS[0],
            instructions=self._text(self._scale.instructions) if self._happens(0.9) else "",
            functions=self._some_functions(),
            is_restricted=False,
        )

    def _first_blocks(self) -> tuple[DynamicBlock, ...]:
        blocks = (
            DynamicBlock(name="identity", text=self._text(self._scale.words // 8)),
            DynamicBlock(name="project_files", text=self._text(self._scale.file)),
        )
        return tuple(block for block in blocks if self._happens(0.5))

    def _edited_blocks(self) -> tuple[DynamicBlock, ...]:
        if not self._blocks or self._happens(0.2):
            return self._first_blocks()
        edited = self._rng.choice(self._blocks)
        text = self._text(len(edited.text))
        return tuple(block.model_copy(update={"text": text}) if block is edited else block for block in self._blocks)

    def _agents_words(self, before: PlacedBlocks) -> PlacedBlocks:
        """Write what an agent says and its files; each may be the one it was, or gone."""
        return PlacedBlocks(
            agent=AgentRef(name="helper", id="agent_1"),
            instructions=self._rng.choice(("", before.instructions, self._text(self._scale.instructions // 4))),
            project_files=self._rng.choice(("", before.project_files, self._text(self._scale.file))),
            placement=self._placement,
        )

    def _with_uploads(self) -> PlacedBlocks:
        count = self._rng.randint(1, 2) if self._happens(self._upload_rate) else 0
        return self._agent.model_copy(update={"files": tuple(self._text(self._scale.file) for _ in range(count))})

    def _bindings(self, settings: Settings) -> tuple[Binding, ...]:
        role = MemberRole.RESTRICTED_ANALYST if settings.is_restricted else MemberRole.READER
        return tuple(Binding(base=self._bases[base_id], role=role) for base_id in self._order)

    def _base(self) -> KnowledgeBase:
        return KnowledgeBase(
            id=self._name("kb"),
            tenant="default",
            name=self._text(20),
            summary=self._text(self._scale.summary),
            topics=tuple(self._text(12) for _ in range(self._rng.randint(0, 3))),
            routing_hint=self._text(self._scale.summary // 4),
            routing_keywords=tuple(self._text(15) for _ in range(self._rng.randint(0, 3))),
            version=1,
            created_at=_START,
        )

    def _steps(self) -> tuple[Step, ...]:
        rounds = self._rng.choice((0, 0, 1, 1, self._rng.randint(0, self._scale.steps)))
        answer = Step(text=self._text(self._scale.words))
        return (*(self._round() for _ in range(rounds)), answer)

    def _round(self) -> Step:
        count = self._rng.choice((1, 1, self._rng.randint(1, self._scale.side_by_side)))
        calls = tuple(
            ToolCall(call_id=self._name("call"), name=self._rng.choice(_CALLABLE), arguments='{"query": "tide"}')
            for _ in range(count)
        )
        text = self._text(120) if self._happens(0.3) else ""
        return Step(text=text, calls=calls, results=tuple(self._text(self._scale.result) for _ in calls))

    def _text(self, most_characters: int) -> str:
        """Cut some words out of a long text, with a number in front that makes them the only ones."""
        length = self._rng.randint(1, max(1, most_characters))
        start = self._rng.randrange(_TEXT_CHARACTERS - length)
        return f"{self._name('n')} {_long_text()[start : start + length].strip()}"

    def _name(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}_{self._serial}"

    def _happens(self, rate: float) -> bool:
        return self._rng.random() < rate


@cache
def _long_text() -> str:
    rng = random.Random(0)
    return " ".join(rng.choices(_WORDS.split(), k=_TEXT_CHARACTERS // 3))[:_TEXT_CHARACTERS]


@cache
def _functions() -> tuple[ToolDefinition, ...]:
    schema: JsonObject = {"type": "object", "properties": {"when": {"type": "string"}}}
    return tuple(
        ToolDefinition(name=name, description=f"Ask the {name}.", parameters=schema, strict=None) for name in _FUNCTIONS
    )
