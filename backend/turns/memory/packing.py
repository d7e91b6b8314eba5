"""Events of an ended response, packed.

What differs from answer to answer is their text and their ids; the rest stands in a dictionary that both sides of
the compression know (RFC 1950, section 2.2), so that a short answer takes some hundred bytes.
"""

import zlib
from collections.abc import Sequence
from itertools import chain

from backend.turns.ports.events import LoggedEvent

_SEPARATOR = b"\n"
"""Never inside an event: JSON text escapes line ends."""

_FASTEST = 1

# Text as it stands in most logs, the most frequent last. What is not in it is packed all the same, if less tightly.
_USUAL_TEXT = b"""\
{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"
{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}
response.function_call_arguments.delta
response.function_call_arguments.done
{"type":"response.function_call_arguments.done","item_id":"fc_","output_index":1,"arguments":"{","name":"
{"type":"function_call","status":"completed","call_id":"call_"
response.reasoning_text.delta
response.reasoning_text.done
{"type":"response.reasoning_text.delta","item_id":"rs_","output_index":0,"content_index":0,"delta":"
response.file_search_call.in_progress
response.file_search_call.searching
response.file_search_call.completed
{"type":"response.output_item.added","output_index":0,"item":{"id":"fs_","type":"file_search_call",\
"status":"in_progress","queries":["","results":null},"sequence_number":
{"type":"response.output_text.annotation.added","annotation_index":0,"annotation":{"type":"file_citation",\
"file_id":"doc_","filename":"","index":
response.output_text.annotation.added
response.created
{"type":"response.created","response":{"id":"resp_","object":"response","created_at":1,"completed_at":null,\
"status":"in_progress","background":false,"conversation":{"id":"conv_"},"error":null,"frequency_penalty":0.0,\
"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"metadata":{},"model":"",\
"output":[],"parallel_tool_calls":true,"presence_penalty":0.0,"previous_response_id":null,"prompt_cache_key":null,\
"reasoning":{"effort":null,"summary":null},"safety_identifier":null,"service_tier":"default","store":true,\
"temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,\
"truncation":"disabled","usage":null},"sequence_number":0}
response.in_progress
{"type":"response.in_progress","response":{"id":"resp_
response.completed
{"type":"response.completed","response":{"completed_at":1,"status":"completed","output":[{"id":"msg_",\
"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":1,\
"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1}},"sequence_number":
response.output_item.added
{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_","type":"message","status":"in_progress",\
"role":"assistant","content":[]},"sequence_number":2}
response.content_part.added
{"type":"response.content_part.added","item_id":"msg_","output_index":0,"content_index":0,"part":\
{"type":"output_text","text":"","annotations":[],"logprobs":[]},"sequence_number":3}
response.output_text.done
{"type":"response.output_text.done","item_id":"msg_","output_index":0,"content_index":0,"text":"","logprobs":[]
response.content_part.done
{"type":"response.content_part.done","item_id":"msg_","output_index":0,"content_index":0,"part":
response.output_item.done
{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_","type":"message","status":"completed",\
"role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]},"sequence_number":
response.output_text.delta
{"type":"response.output_text.delta","item_id":"msg_","output_index":0,"content_index":0,"delta":"","logprobs":[],\
"sequence_number":
"""


def pack(events: Sequence[LoggedEvent]) -> bytes:
    """Pack events that are numbered from 0."""
    lines = _SEPARATOR.join(chain.from_iterable((event.type.encode(), event.body) for event in events))
    packer = zlib.compressobj(_FASTEST, zdict=_USUAL_TEXT)
    return packer.compress(lines) + packer.flush()


def unpack(packed: bytes, first_number: int) -> tuple[LoggedEvent, ...]:
    """Return the events from that number on."""
    lines = zlib.decompressobj(zdict=_USUAL_TEXT).decompress(packed).split(_SEPARATOR)
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return tuple(
        LoggedEvent(sequence_number=number, type=kind.decode(), body=body)
        for number, (kind, body) in enumerate(pairs)
        if number >= first_number
    )
