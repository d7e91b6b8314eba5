"""What providers say about a miss of their cache, and the answers with which they are asked to compare a request.

Sources: the types of anthropic 2.14 and openai 3.54; https://platform.claude.com/docs/en/build-with-claude/cache-diagnostics
and https://developers.openai.com/api/docs/guides/prompt-caching/diagnostics.
"""

import re
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

from chat_shell.models.ports import ModelAnswerEnd, ModelCall
from chat_shell.models.transport.observing import CallHooks
from shared.models.events import CACHE_DIAGNOSES
from shared.models.execution import Purpose
from shared.models.values import JsonObject, JsonValue

UNCHANGED = "unchanged"
PENDING = "pending"
OTHER = "other"
MOST_CONVERSATIONS = 10_000
_ID = re.compile(r"[A-Za-z0-9_-]{1,256}")


class LastAnswers:
    """The provider's id of the newest answer of each conversation that this process has asked for lately.

    Where another process has asked since, the comparison is with an older answer, whose request is a prefix, too.
    """

    def __init__(self, most: int = MOST_CONVERSATIONS) -> None:
        self._most = most
        self._ids: OrderedDict[str, str] = OrderedDict()

    def before(self, call: ModelCall) -> str:
        """Return the id of the answer to the call before; "" where it is not known."""
        return self._ids.get(call.conversation_id, "") if call.purpose is Purpose.ANSWER else ""

    @contextmanager
    def observe(self, call: ModelCall) -> Generator[CallHooks]:
        """Remember the answer to a call; without one to compare with, what the provider says tells nothing."""
        is_compared = bool(self.before(call))

        def on_end(end: ModelAnswerEnd) -> ModelAnswerEnd:
            if end.answer_id and call.purpose is Purpose.ANSWER:
                self._ids[call.conversation_id] = end.answer_id
                self._ids.move_to_end(call.conversation_id)
                if len(self._ids) > self._most:
                    self._ids.popitem(last=False)
            return end if is_compared else end.model_copy(update={"cache_diagnosis": ""})

        yield CallHooks(on_end=on_end)


def answer_id_of(answer: JsonObject) -> str:
    """Return the provider's id of an answer; "" where it has none that could be sent again."""
    given = answer.get("id")
    return given if isinstance(given, str) and _ID.fullmatch(given) else ""


def diagnosis_of_message(message: JsonObject) -> str:
    """Return what a message of Anthropic's API says; null is that nothing has changed."""
    if "diagnostics" not in message:
        return ""
    match message["diagnostics"]:
        case None:
            return UNCHANGED
        case {"cache_miss_reason": None}:
            return PENDING
        case {"cache_miss_reason": {"type": reason}}:
            return _name(reason)
        case _:
            return OTHER


def diagnosis_of_response(response: JsonObject) -> str:
    """Return what a response of OpenAI's API says."""
    match response.get("prompt_cache_diagnostics"):
        case None:
            return ""
        case {"type": "cache_miss", "reason": reason}:
            return _name(reason)
        case {"type": kind}:
            return _name(kind)
        case _:
            return OTHER


def _name(word: JsonValue) -> str:
    return word if isinstance(word, str) and word in CACHE_DIAGNOSES else OTHER
