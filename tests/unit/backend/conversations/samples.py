"""Bases, blocks and what the plans of one epoch say of them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from backend.conversations.domain.conversation_log import ContextState
from backend.conversations.domain.input_items import InputItem, InputItems
from backend.knowledge.domain.context_texts import BaseText
from backend.knowledge.domain.kb_meta import render_bases
from backend.knowledge.domain.knowledge import Binding, KnowledgeBase, MemberRole
from backend.prompt.domain.context_policy import ContextPlan, plan_context
from shared.models.execution import DynamicBlock
from shared.models.invalid_fields import refusal_of

T0 = datetime(2026, 11, 22, tzinfo=UTC)
SUMMARY = "How trips are planned, booked, paid for and accounted for, at home and abroad, by whom and when."


def binding(base_id: str = "kb_1", role: MemberRole = MemberRole.READER, **changes: object) -> Binding:
    """Bind a base; its summary is long enough for a delta to be worth while."""
    fields: dict[str, object] = {
        "id": base_id,
        "tenant": "acme",
        "name": f"Manual {base_id}",
        "summary": SUMMARY,
        "topics": ("trains", "flights"),
        "routing_hint": "Ask about trips",
        "routing_keywords": ("visa", "hotel"),
        "version": 1,
        "created_at": T0,
    }
    return Binding(base=KnowledgeBase.model_validate({**fields, **changes}), role=role)


def bases(*bindings: Binding) -> tuple[BaseText, ...]:
    """Render bindings."""
    return render_bases(bindings)


def numbered(count: int, summary: str = SUMMARY) -> tuple[BaseText, ...]:
    """Render so many bases, kb_0 first."""
    return bases(*(binding(f"kb_{number}", summary=summary) for number in range(count)))


def block(name: str, text: str) -> DynamicBlock:
    """Make a block."""
    return DynamicBlock(name=name, text=text)


class Epoch:
    """Plans turn after turn and keeps what would be logged."""

    def __init__(self, budget_tokens: int = 400) -> None:
        self.budget_tokens = budget_tokens
        self.state: ContextState | None = None
        self.logged = 0

    def turn(self, bases: Sequence[BaseText] = (), *blocks: DynamicBlock) -> ContextPlan:
        """Plan a turn and remember its state."""
        plan = plan_context(self.state, bases, blocks, self.budget_tokens)
        if plan.state is not None:
            self.state = plan.state
            self.logged += 1
        return plan


def texts(plan: ContextPlan) -> list[str]:
    """Return the texts of a plan's blocks."""
    return [one.text for one in plan.dynamic_blocks]


_ITEMS: TypeAdapter[list[InputItem]] = TypeAdapter(InputItems)


def parse_items(raw: object, where: str) -> list[InputItem]:
    """Check a list of items that stood in the body under the name `where`.

    Raises:
        InvalidRequest: `param` names the field, such as `items[2].content[0].image_url`.
    """
    try:
        return _ITEMS.validate_python(raw)
    except ValidationError as error:
        raise refusal_of(error, where, raw) from None
