"""Whether files are read right through the API of the real pair: `make eval-documents CASES="folder"`.

    python -m tests.bench.eval_cases FOLDER [--wanted FILE]

Each file that `wanted.toml` of the folder names is put into a base, its chunks are listed, and it is searched for. The
table of a file says what is wanted of it, each key may be left out:

    ["contract.docx"]
    found = ["ninety days"]                    # stands in a chunk, or in a heading above one
    absent = ["thirty days"]                   # stands in none
    once = ["Terms of delivery"]               # stands in the text one time
    together = [["V-097", "Opens at bar: 33"]] # stand in one chunk
    ordered = ["first", "second"]              # follow each other
    headings = ["Terms"]                       # are headings
    notes = ["page 3"]                         # are told by the notes of the document
    refused = "no text"                        # is told by the error; nothing else is asked of such a file

Spaces and letters of both cases are alike. Files that are wanted and are not there count as wrong.
"""

import argparse
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict, TypeAdapter

from tests.bench.pair import bench_pair

_PAGE = 100
Texts = Annotated[tuple[str, ...], "compared without regard to spaces and case"]


class Wanted(BaseModel):
    """What is wanted of a file."""

    model_config = ConfigDict(extra="forbid")

    found: Texts = ()
    absent: Texts = ()
    once: Texts = ()
    together: tuple[Texts, ...] = ()
    ordered: Texts = ()
    headings: Texts = ()
    notes: Texts = ()
    refused: str | None = None


CASES = TypeAdapter(dict[str, Wanted])


def main(arguments: Sequence[str]) -> int:
    """Print what is wrong of each file, and how many of each kind are right; return 1 where one is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.eval_cases")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wanted", type=Path, help="the table, where it is not `wanted.toml` of the folder")
    asked = parser.parse_args(arguments)
    cases = CASES.validate_python(tomllib.loads((asked.wanted or asked.folder / "wanted.toml").read_text("utf-8")))
    with tempfile.TemporaryDirectory() as place, bench_pair(Path(place), backend={}) as pair, pair.client() as client:
        wrong = read_cases(client, asked.folder, cases)
    files, faulty = (Counter(Path(name).suffix for name in names) for names in (cases, wrong))
    for name, faults in wrong.items():
        print(f"{name}: {'; '.join(faults)}")
    for kind, count in sorted(files.items()):
        print(f"{kind:8}{count - faulty[kind]:4} of {count}")
    print(f"{'all':8}{len(cases) - len(wrong):4} of {len(cases)}")
    return 1 if wrong else 0


def read_cases(client: httpx2.Client, folder: Path, cases: Mapping[str, Wanted]) -> dict[str, list[str]]:
    """Put the files into a base of their own, and return by name what is wrong of them."""
    base = client.post("/v1/knowledge_bases", json={"name": "Cases"}).raise_for_status().json()["id"]
    path = f"/v1/knowledge_bases/{base}"
    faults = {name: list(_faults(client, path, folder / name, wanted)) for name, wanted in cases.items()}
    return {name: found for name, found in faults.items() if found}


def _faults(client: httpx2.Client, base: str, file: Path, wanted: Wanted) -> Iterator[str]:
    if not file.is_file():
        yield "is not there"
        return
    answer = client.put(f"{base}/documents/{quote(file.name)}", content=file.read_bytes())
    if wanted.refused is not None or answer.status_code >= 300:
        told = answer.json()["error"]["message"] if answer.status_code >= 300 else "taken"
        if wanted.refused is None or _plain(wanted.refused) not in _plain(told):
            yield f"{answer.status_code} {told[:200]}"
        return
    chunks = list(_chunks(client, base, file.name))
    yield from _faults_of_text(chunks, wanted)
    notes = _plain(" ".join(answer.json()["notes"]))
    yield from (f"no note of {note!r}" for note in wanted.notes if _plain(note) not in notes)
    for text in (*wanted.found, *wanted.once)[:1]:
        hits = client.post(f"{base}/search", json={"query": text, "max_results": 50}).raise_for_status().json()["data"]
        if file.name not in [hit["document"] for hit in hits]:
            yield f"not found by a search for {text!r}"


def _chunks(client: httpx2.Client, base: str, name: str) -> Iterator[dict[str, Any]]:
    asked: dict[str, str | int] = {"document": name, "limit": _PAGE}
    while True:
        page = client.get(f"{base}/chunks", params=asked).raise_for_status().json()
        yield from page["data"]
        if not page["has_more"]:
            return
        asked["after"] = page["last_id"]


def _faults_of_text(chunks: Sequence[Mapping[str, Any]], wanted: Wanted) -> Iterator[str]:
    texts = [_plain(chunk["text"]) for chunk in chunks]
    above = list(dict.fromkeys(_plain(one) for chunk in chunks for one in chunk["heading_path"]))
    whole = "\n".join(_in_order(chunks))
    yield from (f"{text!r} is missing" for text in wanted.found if _plain(text) not in whole)
    yield from (f"{text!r} is there" for text in wanted.absent if _plain(text) in whole)
    for text in wanted.once:
        if (count := whole.count(_plain(text))) != 1:
            yield f"{text!r} is there {count} times"
    for parts in wanted.together:
        if not any(all(_plain(part) in text for part in parts) for text in texts):
            yield f"{parts} do not stand together"
    places = [whole.find(_plain(text)) for text in wanted.ordered]
    if -1 in places or places != sorted(places):
        yield f"{wanted.ordered} stand at {places}"
    yield from (f"{text!r} is no heading" for text in wanted.headings if _plain(text) not in above)


def _in_order(chunks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts of chunks, each behind the headings that are new with it."""
    before: Sequence[str] = ()
    for chunk in chunks:
        path = chunk["heading_path"]
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, path, strict=False)))
        yield from map(_plain, (*path[same:], chunk["text"]))
        before = path


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
