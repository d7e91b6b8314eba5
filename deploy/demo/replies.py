"""The replies of the demo model, a deterministic function of the request.

It is not a language model. It searches when a knowledge base is in scope, and quotes the best matching sentences.
Where there is nothing to quote from it says what it is. Arguments of functions, and answers in a form that is asked
for, have the form of their schema; their words are the question's, or the answer's.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from deploy.demo.sentences import Passage, best_quotes, is_chinese
from deploy.demo.shaped import fit
from deploy.demo.summaries import safe_summary

OWN_TOOLS = "knowledge_base_"
SEARCH_TOOL = f"{OWN_TOOLS}search"
CANNOT_ANSWER = "The knowledge base cannot answer this query."
MAX_QUERY_CHARACTERS = 300
MAX_RETURNED_CHARACTERS = 300

Json = dict[str, Any]

_TIME_SUFFIX = re.compile(r"\s*<time>[^<]*</time>\s*$")
_MARKER = re.compile(r"(?<![A-Za-z0-9_])\[\d+\]")
_FILE = re.compile(
    r'<file id="([0-9a-f]+)" name=("(?:[^"\\]|\\.)*")(?: file_id="[^"<>]+")?>\n[^\n]*\n\n(.*?)\n</file id="\1">',
    re.DOTALL,
)
_SHOWN_DOCUMENTS = '\n{"documents": ['
_SEARCHED_FILES = "knowledge_base_search finds their passages"
_REMINDER = "<system-reminder>"
_SCOPE_HEADING = "knowledge bases in scope"
_BASE_ID = re.compile(r"\bkb_[0-9A-Za-z]+")
_SMALL_TALK = re.compile(
    r"(?:say )?(?:hi|hello|hey|good (?:morning|afternoon|evening|day|night)|thanks?|thank you|many thanks|bye|goodbye"
    r"|ok|okay|great|你好|您好|嗨|早上好|晚上好|谢谢|多谢|谢了|再见|好的)"
    r"(?: (?:there|all|everyone|you|so much|very much|a lot|demo model))*[你您了啊吗呀]*",
    re.IGNORECASE,
)

_WORDS = {
    "small_talk": (
        "Hello! I am demo-model, a stand-in for a real model. Ask me about a knowledge base, and I quote what I find.",
        "你好！我是 demo-model，只是真实模型的替身。请就知识库的内容提问，我会引用查到的原文。",
    ),
    "no_base": (
        "I am demo-model, a stand-in for a real model: I can only quote knowledge bases, and none is in scope here.",
        "我是 demo-model，只是真实模型的替身：我只会引用知识库，而这次对话没有绑定知识库。",
    ),
    "restricted": (
        "I cannot answer this: access to the knowledge base is restricted, and it gave no answer to this question.",
        "这个问题我无法回答：该知识库受限，没有给出答案。",
    ),
    "returned": (
        "Your function returned: ",
        "你的函数返回：",
    ),
    "nothing": (
        "The knowledge base has nothing that fits this question.",
        "知识库里没有与这个问题相符的内容。",
    ),
    "other_words": (
        "Nothing of what was found shares words with this question. A real model would read it for its meaning.",
        "查到的内容与这个问题没有相同的词语。真实的模型会按意思来读。",
    ),
    "summarised": (
        "From a summary of the restricted knowledge base, which keeps its text to itself: ",
        "以下来自受限知识库的摘要，原文不在其中：",
    ),
    "found_in_file": ("From the attached file: ", "附件中的相关内容："),
    "nothing_in_file": (
        "The files have nothing that fits this question.",
        "文件里没有与这个问题相符的内容。",
    ),
    "found_in_agent": ("From the agent's files: ", "助手文件中的相关内容："),
    "found": ("From the knowledge base: ", "知识库中的相关内容："),
}


@dataclass(frozen=True)
class DemoReply:
    """Either words or one tool call."""

    text: str = ""
    tool_name: str | None = None
    arguments: str = ""


def reply_to(request: Mapping[str, Any]) -> DemoReply:
    """Answer a chat-completions request."""
    messages = _without_reminders(cast(list[Json], request.get("messages") or []))
    summary = safe_summary([text_of(message) for message in messages])
    if summary is not None:
        return DemoReply(text=summary)
    reply = _reply(request, messages)
    return reply if reply.tool_name is not None else DemoReply(text=_in_form(request, reply.text))


def _reply(request: Mapping[str, Any], messages: Sequence[Json]) -> DemoReply:
    turn_start = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    question = _TIME_SUFFIX.sub("", _FILE.sub("", text_of(messages[turn_start]))).strip() if turn_start >= 0 else ""
    results = [message for message in messages[turn_start + 1 :] if message.get("role") == "tool"]
    if results:
        functions = _functions_called(messages[turn_start + 1 :])
        return DemoReply(text=_from_tools(question, results, functions, _files_of_agent(messages[:turn_start])))
    searches = bool(bases_in_scope(messages[:turn_start])) or _searches_files(messages[:turn_start])
    forced = _find_forced_tool(request, searches=searches)
    if forced is not None:
        return _call(request, forced, question)
    files = _files_in(messages[: turn_start + 1])
    if is_small_talk(question) and not files:
        return DemoReply(text=_say("small_talk", question))
    if _may_search(request) and searches:
        return _call(request, SEARCH_TOOL, question)
    shown = _files_of_agent(messages[:turn_start])
    return DemoReply(text=_from_files(question, files, shown) if files or shown else _say("no_base", question))


def _without_reminders(messages: list[Json]) -> list[Json]:
    """Leave out the messages that are the application's: they are no questions."""
    return [message for message in messages if not text_of(message).startswith(_REMINDER)]


def text_of(message: Json) -> str:
    """Return a message's text, whether it is plain or in parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = cast(list[Json], content) if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _files_in(messages: Sequence[Json]) -> list[Passage]:
    """Return the files that the user has attached, with the texts that the messages hold of them."""
    blocks = [block for each in messages if each.get("role") == "user" for block in _FILE.finditer(text_of(each))]
    return [Passage(place, json.loads(block[2]), block[3]) for place, block in enumerate(blocks, start=1)]


def _files_of_agent(messages: Sequence[Json]) -> list[Passage]:
    """Return the files of an agent that the newest message about them shows whole."""
    for message in reversed(messages):
        _, found, documents = text_of(message).partition(_SHOWN_DOCUMENTS)
        if found and message.get("role") == "user":
            return _passages(found + documents)
    return []


def _searches_files(messages: Sequence[Json]) -> bool:
    """Tell whether an agent has files that are searched like a knowledge base."""
    return any(_SEARCHED_FILES in text_of(message) for message in messages if message.get("role") == "user")


def _from_files(question: str, files: Sequence[Passage], shown: Sequence[Passage]) -> str:
    """Quote the attached files, or those of an agent, with their numbers, where the attached ones hold nothing."""
    quotes = best_quotes(question, files)
    if not quotes and best_quotes(question, shown):
        return _say("found_in_agent", question) + _cite(question, shown)
    if not quotes:
        return _say("nothing_in_file", question)
    gap = "" if is_chinese(question) else " "
    return _say("found_in_file", question) + gap.join(quote.text for quote in quotes)


def bases_in_scope(messages: Sequence[Json]) -> list[str]:
    """Return the ids of the newest message that lists knowledge bases."""
    for message in reversed(messages):
        text = text_of(message)
        if message.get("role") == "user" and _SCOPE_HEADING in text.lower():
            return _BASE_ID.findall(text)
    return []


def is_small_talk(text: str) -> bool:
    """Tell greetings and thanks from questions."""
    bare = " ".join(re.sub(r"[\s,.!?~，。！？、-]+", " ", text).split())
    return not bare or _SMALL_TALK.fullmatch(bare) is not None


def _may_search(request: Mapping[str, Any]) -> bool:
    return request.get("tool_choice") != "none" and SEARCH_TOOL in _tool_names(request)


def _find_forced_tool(request: Mapping[str, Any], *, searches: bool) -> str | None:
    """Return the tool that must be called; one with nothing to search is called where there is no other."""
    choice, names = request.get("tool_choice"), _tool_names(request)
    if isinstance(choice, dict):
        return str(cast(Json, choice).get("function", {}).get("name", "")) or None
    if choice == "required" and names:
        return next((name for name in names if (name == SEARCH_TOOL) == searches), names[0])
    return None


def _tool_names(request: Mapping[str, Any]) -> list[str]:
    tools = cast(list[Json], request.get("tools") or [])
    return [str(tool.get("function", {}).get("name")) for tool in tools]


def _call(request: Mapping[str, Any], tool: str, question: str) -> DemoReply:
    offered = [cast(Json, each.get("function") or {}) for each in cast(list[Json], request.get("tools") or [])]
    schemas = [cast(Json, each.get("parameters") or {}) for each in offered if each.get("name") == tool]
    words = question[:MAX_QUERY_CHARACTERS]
    arguments = {"query": words} if tool == SEARCH_TOOL else fit({"type": "object", **(schemas or [{}])[0]}, words)
    return DemoReply(tool_name=tool, arguments=json.dumps(arguments, ensure_ascii=False))


def _in_form(request: Mapping[str, Any], text: str) -> str:
    """Return an answer in the form that the request asks for."""
    wanted = cast(Json, request.get("response_format") or {})
    if wanted.get("type") == "json_schema":
        schema = cast(Json, cast(Json, wanted.get("json_schema") or {}).get("schema") or {})
        return json.dumps(fit({"type": "object", **schema}, text), ensure_ascii=False)
    return json.dumps({"text": text}, ensure_ascii=False) if wanted.get("type") == "json_object" else text


def _functions_called(messages: Sequence[Json]) -> set[str]:
    """Return the ids of the calls of the caller's own functions."""
    calls = [call for message in messages for call in cast(list[Json], message.get("tool_calls") or [])]
    return {str(call.get("id")) for call in calls if not _is_ours(str(call.get("function", {}).get("name")))}


def _is_ours(tool: str) -> bool:
    return tool.startswith(OWN_TOOLS)


def _from_tools(question: str, results: Sequence[Json], functions: Collection[str], shown: Sequence[Passage]) -> str:
    """Repeat what the caller's functions returned, or quote what was found and shown where none was called."""
    returned = [text_of(result) for result in results if result.get("tool_call_id") in functions]
    if returned:
        said = " ".join(returned)[:MAX_RETURNED_CHARACTERS]
        return _say("returned", question) + said
    return _from_results(question, [text_of(result) for result in results], shown)


def _from_results(question: str, results: Sequence[str], shown: Sequence[Passage]) -> str:
    """Quote what searches found; the files of an agent only where that has no words of the question."""
    passages = [passage for result in results for passage in _passages(result)]
    if not best_quotes(question, passages) and best_quotes(question, shown):
        return _say("found_in_agent", question) + _cite(question, shown)
    summaries = [summary for result in results if (summary := _read_released(result))]
    if not passages and summaries:
        return _say("summarised", question) + ("" if is_chinese(question) else " ").join(summaries)
    if not passages:
        refused = any(result.startswith(CANNOT_ANSWER) for result in results)
        return _say("restricted" if refused else "nothing", question)
    quoted = _cite(question, passages)
    if not quoted:
        return _say("other_words", question)
    return _say("found", question) + quoted


def _cite(question: str, passages: Sequence[Passage]) -> str:
    """Return the best sentences with the numbers of their documents; "" where none fits."""
    gap = "" if is_chinese(question) else " "
    return gap.join(f"{_MARKER.sub('', quote.text)}{gap}[{quote.number}]" for quote in best_quotes(question, passages))


def _object_in(result: str) -> Json:
    """Read the JSON object that a tool result begins with; words of the application may stand behind it."""
    try:
        decoded, _ = json.JSONDecoder().raw_decode(result.lstrip())
    except ValueError:
        return {}
    return cast(Json, decoded) if isinstance(decoded, dict) else {}


def _read_released(result: str) -> str:
    """Return the sentences of a released summary; none where the result is something else."""
    given = _object_in(result)
    if given.get("decision") != "answer":
        return ""
    lists = cast(list[list[Any]], [given.get(name, []) for name in ("observations", "risks", "recommended_actions")])
    sentences = [str(given.get("summary", "")), *(str(item) for items in lists for item in items)]
    return ("" if is_chinese(sentences[0]) else " ").join(sentences)


def _passages(result: str) -> list[Passage]:
    documents = _object_in(result).get("documents")
    found = cast(list[Json], documents) if isinstance(documents, list) else []
    return [
        Passage(one["document"], str(one.get("title", "")), str(one.get("content", "")), rank)
        for rank, one in enumerate(found)
        if isinstance(one.get("document"), int)
    ]


def _say(what: str, question: str) -> str:
    english, chinese = _WORDS[what]
    return chinese if is_chinese(question) else english
