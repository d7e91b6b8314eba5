"""Finding knowledge bases by their names, which are no ids and may stand twice."""

import re
from typing import cast

from cli.advice import ExitCode
from cli.answers import Answer, number_at, objects_at, text_at
from cli.api import Api, segment
from cli.failures import CommandFailed

GRADES = ("open", "strict")
BASES = "/v1/knowledge_bases"
_CHINESE = re.compile("[\u4e00-\u9fff]")


async def find_bases(api: Api, name: str) -> list[Answer]:
    """Return the caller's bases of this name or id."""
    return [base async for base in api.items(BASES) if name in (text_at(base, "id"), text_at(base, "name"))]


async def base_id_of(api: Api, name: str) -> str:
    """Return the id of the one base of this name or id.

    Raises:
        CommandFailed: there is none, or there are several.
    """
    return text_at(await resolve_base(api, name), "id")


async def resolve_base(api: Api, name: str) -> Answer:
    """Return the one base of this name or id, as a list shows it.

    Raises:
        CommandFailed: there is none, or there are several.
    """
    found = await find_bases(api, name)
    if not found:
        mend = "`ballast bases list` shows those that this key may use"
        raise CommandFailed(f'There is no base "{name}" for this key.', ExitCode.NOT_FOUND, mend)
    return _the_one(name, found)


async def find_or_make(api: Api, name: str) -> tuple[str, bool]:
    """Return the id of the base of this name, which is made where there is none, and whether it was made."""
    if found := await find_bases(api, name):
        return text_at(_the_one(name, found), "id"), False
    if name.startswith("kb_"):
        raise CommandFailed(f"There is no base with the id {name} for this key.", ExitCode.NOT_FOUND)
    return text_at(await api.call("POST", BASES, {"name": name}), "id"), True


def _the_one(name: str, found: list[Answer]) -> Answer:
    if len(found) > 1:
        ids = ", ".join(text_at(base, "id") for base in found)
        raise CommandFailed(f'Several bases are named "{name}".', ExitCode.WRONG_USE, f"name one by its id: {ids}")
    return found[0]


async def progress_of(api: Api, base_id: str) -> str:
    """Say how much of a base can be found, and how."""
    base = await api.call("GET", f"{BASES}/{segment(base_id)}")
    chunks, embedded = base.get("chunks"), base.get("embedded_chunks")
    if chunks is None or embedded is None:
        return "Its documents are found by their words."
    if number_at(base, "embedded_chunks") >= number_at(base, "chunks"):
        return f"Passages: {chunks}, found by their words and by their meaning."
    return (
        f"Passages: {chunks}, found by their words; {embedded} of them by meaning too,"
        f" the others {soon_or_in(base.get('embedding_seconds_left'))}."
    )


def soon_or_in(seconds: object) -> str:
    """Say when something is, in minutes where that is known."""
    if not isinstance(seconds, int):
        return "soon"
    minutes = -(-seconds // 60)
    return f"in about {minutes} minutes" if minutes > 1 else "within a minute"


async def question_about(api: Api, base_id: str, document: str) -> str:
    """Return a question that a document answers: about a heading of it, or else about its name."""
    stem = re.sub(r"[-_]+", " ", document.rpartition("/")[2].partition(".")[0]).strip() or document
    found = await api.call("POST", f"{BASES}/{segment(base_id)}/search", {"query": stem, "max_results": 5})
    hits = [hit for hit in objects_at(found, "data") if hit.get("document") == document]
    headings = cast("list[str]", hits[0].get("heading_path") or []) if hits else []
    subject = " ".join((headings[-1] if headings else stem).split())
    return question_on(subject)


def question_on(subject: str) -> str:
    """Return a question about a subject, in Chinese where that is."""
    return f"关于{subject}，文件里怎么说？" if _CHINESE.search(subject) else f"What do my files say about {subject}?"
