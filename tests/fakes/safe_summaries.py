"""The sealed room as the search sees it: gives what it was told to, and remembers what it was asked."""

from chat_shell.sealed.codes import AnswerReason, Confidence
from chat_shell.sealed.outcome import SealedSearch
from chat_shell.sealed.verdicts import Released


def released(summary: str = "Ownership is unclear.") -> Released:
    """A small summary."""
    return Released(
        reason=AnswerReason.GAP,
        summary=summary,
        observations=("Checks come late.",),
        risks=(),
        recommended_actions=("Agree on an owner.",),
        confidence=Confidence.MEDIUM,
    )


class ScriptedSummaries:
    """Answers every ask with the same, by default with nothing."""

    def __init__(self, answer: Released | None = None):
        self.answer = answer
        self.asked: list[SealedSearch] = []

    async def summarise(self, search: SealedSearch) -> Released | None:
        self.asked.append(search)
        return self.answer
