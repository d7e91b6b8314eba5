"""The sinks of the leak test: what they read of a table."""

from collections.abc import Sequence

from tests.leaks.databases import Row
from tests.leaks.sinks import SinkText, TableSink


class _OneTable:
    """Implements `Database`, with one table whose rows a test sets."""

    url = ""

    def __init__(self, *rows: Row) -> None:
        self.rows_now: Sequence[Row] = rows

    async def tables(self) -> list[str]:
        return ["knowledge_base"]

    async def rows(self, query: str) -> Sequence[Row]:
        assert "knowledge_base" in query
        return self.rows_now


async def test_of_a_row_that_changes_only_what_is_new_is_read() -> None:
    database = _OneTable(("kb_1", "what the owner says of it", "monday"))
    sink = TableSink(database)
    await sink.skip()
    database.rows_now = [("kb_1", "what the owner says of it", "tuesday"), ("kb_2", "something else", "tuesday")]
    found = await sink.new_texts()
    assert found == [SinkText("table knowledge_base", text) for text in ("tuesday", "kb_2", "something else")]
    assert await sink.new_texts() == []
