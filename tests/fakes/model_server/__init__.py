"""A recording fake of an OpenAI-compatible model server, in-process or as a child process.

In-process, on a free port of the loopback:

    async with FakeModelServer() as server:
        server.script(Reply(tool_calls=(ScriptedCall(name="look", arguments='{"at": 1}'),)))
        server.script(Reply(text=("Hel", "lo"), pause_seconds=0.01))
        ...                                   # use server.base_url, which ends in /v1
        assert server.requests[0].body == b"..."

A `Reply` is what one POST /v1/chat/completions gets, or, in the words of these APIs, one POST /v1/responses or
/v1/messages; there, reasoning comes with what the model wants back (`sealed(text)`, `signature(text)`). Scripted
replies are used up in order; `script(..., when=b)` keeps them for requests whose raw body holds the text `b` (they
come first). A reply with `repeat=True` is never used up. With nothing scripted, `answer` (a callable on the recorded
request, given to the constructor) is asked, or else the text is `ok`. A request without `"stream": true` gets the same
reply as one JSON body.

Faults are fields of `Reply`: `status` (with `body`, `headers`), `raw` (the exact bytes of the body), `fault` with
`fault_after` (how many deltas go out before it): see `Fault`. `hold_after=n` waits after n deltas until `release()`;
`await wait_held()` returns once a reply waits there, so that no test needs to sleep.

Recorded: `requests` (raw body bytes, lower-case headers, connection number, monotonic time) and `connections`.
`await wait_requests(n)` returns once n requests have come; `await wait_closed(request)` returns the monotonic time at
which the client closed the connection of that request (an index into `requests`, negative ones count from the end).

As a child process: `python -m tests.fakes.model_server --port 0 [--record FILE] [--model NAME ...]` prints
`MODEL_SERVER_URL=http://127.0.0.1:<port>/v1` when it listens, appends each request as a JSON line to FILE, ends at
SIGTERM. `FakeModelControl(base_url)` has the same methods, all awaitable, over HTTP:

    POST /_script {"replies": [<Reply>], "when": null | str}     POST /_release {"count": 1}     POST /_reset
    GET /_requests    GET /_connections    GET /_wait?requests=n    GET /_wait_held?count=n
    GET /_wait_closed?request=i            (the waits answer when it has happened; times are CLOCK_MONOTONIC)

In JSON, `bytes` fields (`raw` of a reply, `body` of a request) are base64. `GET /v1/models` lists the models.
"""

from tests.fakes.model_server.control import FakeModelControl
from tests.fakes.model_server.script import ConnectionRecord, Fault, RecordedRequest, Reply, ScriptedCall
from tests.fakes.model_server.server import FakeModelServer

__all__ = [
    "ConnectionRecord",
    "FakeModelControl",
    "FakeModelServer",
    "Fault",
    "RecordedRequest",
    "Reply",
    "ScriptedCall",
]
