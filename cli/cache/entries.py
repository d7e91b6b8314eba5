"""Read model calls from the log of any program: what was sent, in pieces that stand in the order of a provider's cache.

Three kinds of entries are known: JSON with the request somewhere in it (of a gateway such as LiteLLM, or our export), a
line of text with the request as JSON or as Python writes it, and a line of vLLM's request log with a rendered prompt.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from cli.answers import Answer, json_object, text_at

_QUOTED = r"'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\""
_VLLM: Final = re.compile(rf"[Rr]eq\w+ \S+?(?: details)?: prompt: ({_QUOTED}|None)")
_VLLM_TOKENS: Final = re.compile(r"prompt_token_ids: \[([\d, ]+)\]")
_TAG: Final = re.compile(r"<[^\s<>]{1,40}>|\[/?[A-Z_]{2,20}\]")
"""What the templates of chat models write between messages: one word in brackets."""
_USER: Final = re.compile(r"user|\[INST\]", re.IGNORECASE)
BY_TOKENS: Final = "prompt_token_ids"
BY_CHARACTERS: Final = "prompt"
BY_BLOCKS: Final = "hash_ids"
_HEADS: Final = frozenset({"system", "developer"})
_INSTRUCTIONS: Final = ("instructions", "system")
_MARKS: Final = frozenset({"cache_control", "prompt_cache_breakpoint"})
_TEXTS: Final = ("text", "input_text", "output_text")
_UNPACK: Final = {b"\x1f\x8b": "zcat", b"\x28\xb5\x2f\xfd": "zstdcat"}
_REDACTED: Final = "redacted-by-litellm"
_MESSAGES_OF_LOGS: Final = ("message", "msg", "event", "text")
TOKENS_A_PIECE: Final = 64
_DEEPEST, _ROLE_CHARACTERS, _LARGEST_ARRAY_BYTES = 6, 60, 256 << 20
_CHARACTERS_A_PIECE: Final = 256
_ENOUGH_CUT, _MOST_ROLE_WORDS = 3, 2


class NoLog(ValueError):
    """The file cannot be read as a log; the message says why."""


@dataclass(frozen=True)
class LoggedCall:
    """One model call.

    `pieces` are canonical texts in the order of caches: those whose paths are `lead` (tools, instructions), then each
    message, or piece of a rendered prompt, in `name`. The first `head` are the lead and the system messages behind it.
    The last `asked` are what the user says anew. `conversation`, `reset`, which says why a new prefix begins, and
    `model` are empty where the log does not tell. `length` is that of what ends in the middle: of a text without the
    words that ask for an answer, or of tokens, of which nobody can tell.
    """

    place: int
    pieces: Sequence[str]
    name: str
    lead: Sequence[str] = ()
    head: int = 0
    conversation: str = ""
    reset: str = ""
    asked: int = 0
    model: str = ""
    length: int = 0

    @property
    def has_known_head(self) -> bool:
        """Whether it is told which pieces are the head, that many conversations may share."""
        return self.name != BY_TOKENS

    @property
    def form(self) -> str:
        """The API that it speaks, as far as its fields tell; calls of different ones are not compared."""
        return self.name + next((path for path in self.lead if path.startswith(_INSTRUCTIONS)), "")

    def path(self, index: int) -> str:
        """Name a piece as its request does."""
        if index < len(self.lead):
            return self.lead[index]
        step = TOKENS_A_PIECE if self.name == BY_TOKENS else 1
        return self.name if self.name == BY_CHARACTERS else f"{self.name}[{(index - len(self.lead)) * step}]"


class Log:
    """A file with one call an entry; an entry is found again by its place: its line, or its index in an array.

    `passed_over` counts the entries so far that hold no request that can be compared.
    """

    def __init__(self, path: Path):
        self._path = path
        self._offsets: list[int] = []
        self._array = _array_of(path)
        self.passed_over = 0

    def calls(self) -> Iterator[LoggedCall]:
        """Yield the calls in their order; entries that are none are passed over.

        Raises:
            NoLog: its prompts have been cut.
            OSError: it cannot be read.
        """
        lengths = Counter[int]()
        for place, entry in enumerate(self._entries()):
            if (call := _call_of(entry, place)) and call.pieces:
                lengths[call.length] += 1
                yield call
            elif entry:
                self.passed_over += 1
        longest = max(lengths, default=0)
        if longest and lengths[longest] >= _ENOUGH_CUT:
            raise NoLog(
                f"The {lengths[longest]} longest prompts end at {longest}, none is longer: vLLM has cut them. "
                "Start it without --max-log-len."
            )

    def read_again(self, place: int) -> LoggedCall:
        """Return the call of an entry once more, so that nobody has to keep it."""
        if self._array is not None:
            entry = self._array[place]
        else:
            with self._path.open("rb") as file:
                file.seek(self._offsets[place])
                entry = _parse_line(file.readline())
        call = _call_of(entry, place)
        if call is None:
            raise NoLog(f"{self._path} has changed while it was read.")
        return call

    def _entries(self) -> Iterator[object]:
        if self._array is not None:
            yield from self._array
            return
        with self._path.open("rb") as file:
            offset = 0
            for line in file:
                self._offsets.append(offset)
                offset += len(line)
                yield _parse_line(line)


def _array_of(path: Path) -> list[object] | None:
    with path.open("rb") as file:
        start = file.read(64).lstrip()
    if unpack := next((tool for magic, tool in _UNPACK.items() if start.startswith(magic)), ""):
        raise NoLog(f"{path} is compressed: unpack it first (`{unpack} {path} | ballast cache verify -`).")
    if not re.match(rb"\[\s*[{\]]", start):
        return None
    mend = f"write one object a line (`jq -c '.[]' {path}`)"
    if path.stat().st_size > _LARGEST_ARRAY_BYTES:
        raise NoLog(f"{path} is one large JSON array: {mend}.")
    try:
        return cast("list[object]", json.loads(path.read_bytes()))
    except (ValueError, RecursionError) as error:
        raise NoLog(f"{path} begins as a JSON array and is none, {error}: {mend}.") from None


def _parse_line(line: bytes) -> object:
    """Return a line as JSON, or as text where it is none."""
    text = line.decode(errors="replace").strip()
    return parse(text) if text.startswith("{") else text


def _call_of(entry: object, place: int) -> LoggedCall | None:
    if isinstance(entry, str):
        return _call_of_text(entry, place)
    answer = json_object(entry)
    request = _find(answer, _is_request)
    if not request:
        return _call_of_text(next((text for key in _MESSAGES_OF_LOGS if (text := text_at(answer, key))), ""), place)
    beside = request if _has_head(request) else _find(answer, _has_head)
    return _call_of_request({**beside, **request}, answer, place)


def _call_of_request(request: Answer, entry: Answer, place: int) -> LoggedCall | None:
    told = text_at(entry, "conversation"), text_at(entry, "reset")
    name = "messages" if request.get("messages") else "input"
    messages = _messages(request.get(name))
    if any(each.get("content") == _REDACTED for each in messages):
        return None
    if messages:
        lead = {f"tools[{at}]": _canonical(tool) for at, tool in enumerate(_objects(request.get("tools")))}
        lead |= _instructions(request)
        first = next((at for at, each in enumerate(messages) if each.get("role") not in _HEADS), len(messages))
        asked = next((at for at, each in enumerate(reversed(messages)) if each.get("role") != "user"), len(messages))
        pieces = [*lead.values(), *map(_canonical, messages)]
        told = *told, max(asked, 1), text_at(request, "model")
        return LoggedCall(place, pieces, name, list(lead), len(lead) + first, *told)
    if hashes := request.get("hash_ids"):
        blocks = [str(each) for each in cast("list[object]", hashes)]  # the last one is seldom full, and goes on
        return LoggedCall(place, blocks[:-1] or blocks, BY_BLOCKS, (), 0, *told)
    return _call_of_prompt(text_at(request, "prompt"), place, *told)


def _messages(value: object) -> list[Answer]:
    """Return messages; a text in their place is one of the user."""
    return _objects(value) or ([{"role": "user", "content": value}] if isinstance(value, str) and value else [])


def _instructions(request: Answer) -> dict[str, str]:
    """Return what stands before the messages, by its path: `instructions` of Responses, `system` of Anthropic's API."""
    blocks = _objects(request.get("system"))
    found = {f"system[{at}]": _canonical(block) for at, block in enumerate(blocks)}
    texts = {name: text for name in _INSTRUCTIONS if (text := text_at(request, name))}
    return found or texts


def _call_of_text(text: str, place: int) -> LoggedCall | None:
    if (found := _VLLM.search(text)) and found[1] != "None":
        try:
            return _call_of_prompt(ast.literal_eval(found[1]), place)
        except (ValueError, SyntaxError):
            return None  # a line that is cut or of another program
    if found and (ids := _VLLM_TOKENS.search(text)):
        tokens = ids[1].split(", ")
        pieces = [" ".join(tokens[at : at + TOKENS_A_PIECE]) for at in range(0, len(tokens), TOKENS_A_PIECE)]
        # the last one is seldom full, and goes on
        return LoggedCall(place, pieces[:-1] or pieces, BY_TOKENS, length=len(tokens))
    start, end = text.find("{"), text.rfind("}")
    if "messages" not in text or end < start:
        return None
    try:
        entry: object = ast.literal_eval(text[start : end + 1])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        entry = parse(text[start : end + 1])
    return None if isinstance(entry, str) else _call_of(entry, place)


def _find(entry: Answer, is_wanted: Callable[[Answer], bool]) -> Answer:
    """Return the outermost object within an entry that is wanted; an empty one if none is."""
    level = [entry]
    for _ in range(_DEEPEST):
        if found := next((each for each in level if is_wanted(each)), None):
            return found
        level = [inner for each in level for value in each.values() if (inner := json_object(parse(value)))]
    return {}


def _is_request(entry: Answer) -> bool:
    sent = _objects(entry.get("messages")) or _objects(entry.get("input"))
    prompt = entry.get("prompt") or (entry.get("model") and entry.get("input"))
    return bool(sent) or isinstance(entry.get("hash_ids"), list) or (isinstance(prompt, str) and bool(prompt))


def _has_head(entry: Answer) -> bool:
    return bool(_objects(entry.get("tools"))) or isinstance(entry.get("instructions"), str)


def _objects(value: object) -> list[Answer]:
    """Return a list of objects, or one within a string; an empty one in place of anything else."""
    found = parse(value)
    items = cast("list[object]", found) if isinstance(found, list) else []
    return cast("list[Answer]", items) if all(isinstance(each, dict) for each in items) else []


def parse(value: object) -> object:
    """Return a value, parsed where it is JSON within a string."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _canonical(part: Answer) -> str:
    """Write a message, tool or block, without the marks of caches, which are no part of a prefix and move.

    One part of text is written as a text: clients write what is to be marked as the one, and later as the other.
    """
    (only, *others) = _objects(part.get("content")) or [{}]
    if not others and only.get("type") in _TEXTS and only.keys() <= _MARKS | {"type", "text"}:
        part = {**part, "content": only.get("text")}
    written = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    if not any(mark in written for mark in _MARKS):
        return written
    return json.dumps(_without_marks(part), ensure_ascii=False, separators=(",", ":"))


def _without_marks(value: object) -> object:
    if isinstance(value, list):
        return [_without_marks(each) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    return {name: _without_marks(each) for name, each in cast("Answer", value).items() if name not in _MARKS}


def _call_of_prompt(prompt: str, place: int, *told: str) -> LoggedCall:
    """Cut a rendered prompt into pieces of tags and the words behind them; into lines where it has no tags.

    The last piece is left out: it asks the model to begin, and its answer goes on there.
    """
    starts = [found.start() for found in _TAG.finditer(prompt)]
    pieces, begin = list[str](), 0
    for end in (*starts, len(prompt)) if starts else ():
        if len(_TAG.sub(" ", prompt[begin:end]).split()) > 1:
            pieces.append(prompt[begin:end])
            begin = end
    pieces = pieces or prompt.splitlines(keepends=True)[:-1]
    head = next((at for at, piece in enumerate(pieces) if _USER.search(piece[:_ROLE_CHARACTERS])), 1)
    parts = [_cut(piece) for piece in pieces]
    head = sum(map(len, parts[:head]))
    conversation, reset = told or ("", "")
    is_cut = bool(starts) and len(_TAG.sub(" ", prompt[starts[-1] :]).split()) > _MOST_ROLE_WORDS
    return LoggedCall(
        place,
        [part for each in parts for part in each],
        BY_CHARACTERS,
        head=head,
        conversation=conversation,
        reset=reset,
        asked=len(parts[-1]) if parts else 1,
        length=len(prompt) if is_cut else 0,
    )


def _cut(text: str) -> list[str]:
    return [text[at : at + _CHARACTERS_A_PIECE] for at in range(0, len(text), _CHARACTERS_A_PIECE)]
