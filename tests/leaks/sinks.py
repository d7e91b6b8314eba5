"""Where protected text may end up: logs, tables and metrics of a running pair, read from where one stopped."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, cast

import httpx2
import orjson

from tests.leaks.databases import Database
from tests.leaks.pair import ADMIN_KEY, SERVICE_TOKEN, LeakPair

EXCLUDED_TABLES = frozenset({"document", "chunk"})
EXCLUDED_PREFIX = "search_"
"""The index. Every table but these is scanned, new ones too."""

_BODIES_BEGIN = ("{", "[", '"')
_COUNT_OF_SECONDS = re.compile("_seconds(?=_(?:count|bucket))")


class SinkText(NamedTuple):
    """A text and where it was found."""

    sink: str
    text: str


def leaves(sink: str, body: str | bytes) -> Iterator[SinkText]:
    """Yield the texts in a JSON body, or the lines of what is no JSON."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else body
    parsed = _parsed(text)
    if parsed is None:
        yield SinkText(sink, text)
    else:
        yield from (SinkText(sink, leaf) for leaf in _strings(parsed))


class LogSink:
    """The logs of both services since they were read last."""

    def __init__(self, pair: LeakPair) -> None:
        self._offsets = dict.fromkeys(pair.logs, 0)

    def new_texts(self) -> Iterator[SinkText]:
        """Yield what was logged since; a line still being written waits for the next call."""
        for path, offset in self._offsets.items():
            with path.open("rb") as file:
                file.seek(offset)
                content = file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self._offsets[path] = offset + len(whole)
            for line in whole.split(b"\n"):
                yield from leaves(f"log of {path.parent.name}", line)


class TableSink:
    """The tables, without what stood in them when `skip` was called."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._seen: dict[str, set[int]] = {}

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that are scanned."""
        return tuple(self._seen)

    async def skip(self) -> None:
        """Leave out what is there now."""
        await self.new_texts()

    async def new_texts(self) -> list[SinkText]:
        """Return the values that a table did not have; of a changed row, those that are as before are left out."""
        texts: list[SinkText] = []
        for table in _scanned_tables(await self._database.tables()):
            seen = self._seen.setdefault(table, set())
            for row in await self._database.rows(f'SELECT * FROM "{table}"'):
                new = [value for value in row if isinstance(value, str | bytes) and hash(value) not in seen]
                seen.update(map(hash, new))
                texts.extend(text for value in new for text in leaves(f"table {table}", value))
        return texts


async def metric_texts(pair: LeakPair) -> Iterator[SinkText]:
    """Return the metrics of both services."""
    asked = ((pair.backend_url, ADMIN_KEY), (pair.chat_shell_url, SERVICE_TOKEN))
    async with httpx2.AsyncClient(timeout=30, trust_env=False, verify=False) as client:
        answers = [await client.get(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"}) for url, key in asked]
    return (SinkText("metrics", _without_unit(line)) for answer in answers for line in answer.text.splitlines())


def _without_unit(line: str) -> str:
    """Take the unit out of the name of a count: "…_seconds_count 140" counts 140 observations, and no seconds."""
    return _COUNT_OF_SECONDS.sub("", line)


def _scanned_tables(names: Iterable[str]) -> list[str]:
    return [name for name in sorted(names) if name not in EXCLUDED_TABLES and not name.startswith(EXCLUDED_PREFIX)]


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(_BODIES_BEGIN):
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings, keys too, and what stands in those that are JSON themselves beside the string as it is."""
    if isinstance(value, str):
        yield value
        inner = _parsed(value)
        if inner is not None and not isinstance(inner, str):
            yield from _strings(inner)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _strings(item)
