"""What the backend measures of a model call is what chat_shell sends."""

from hypothesis import given

from backend.conversations.domain.prompt_record import measure_message
from backend.prompt.domain.prompt_tail import tail_of
from backend.prompt.domain.turn_calls import CallRecorder, FirstPrompt
from shared.models.events import ModelCallStarted
from shared.models.execution import ExecutionRequest
from shared.models.messages import UserMessage
from shared.prompts.message_order import context_of_request, messages_of_request
from tests.strategies import execution_requests


@given(execution_requests())
def test_what_the_backend_measures_is_what_is_sent(request: ExecutionRequest):
    request = request.model_copy(update={"time_zone": "Asia/Kathmandu", "tools": ()})
    tail = tail_of(request, (), keeps_context=False)
    calls = CallRecorder(FirstPrompt(request, len(request.history), epoch_reason=None, last=None, tail=tail))
    calls.feed(ModelCallStarted(call=1, reminder="Mind the gap."))
    made = calls.list_changed_calls()
    assert made.sent is not None
    sent = (*messages_of_request(request), *request.added, UserMessage(content="Mind the gap."))
    assert made.sent.messages == tuple(measure_message(message).digest for message in sent)
    context = context_of_request(request)
    (call,) = made.calls
    assert [tail.text for tail in call.tail] == [*([context] if context else []), "Mind the gap."]
    assert all(sent[tail.index] == UserMessage(content=tail.text) for tail in call.tail)
