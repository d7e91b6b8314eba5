"""The contract of search indexes over Milvus Lite, and what only an engine of its own can show; `make test-milvus`.

Milvus Lite is one process that scans its rows: it shows that answers are right, and nothing of speed, of replicas, of
partitions, or of how long a change stays unseen.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from backend.search.domain.chunks import Range
from backend.search.milvus.chosen import load_milvus
from backend.search.milvus.engine import MilvusEngine
from backend.search.sql.index import SqlSearchIndex
from shared.errors import Unavailable
from tests.contract.index_rooms import BesideEngine
from tests.contract.store_cases import database_url, migrated
from tests.contract.test_search_index import (  # noqa: F401 -- the contract, over another room
    test_a_document_that_breaks_off_is_in_no_search,
    test_a_filter_leaves_out_hits_and_moves_no_score,
    test_it_finds_after_the_end_of_a_process_what_was_stored_before,
    test_it_finds_what_documents_have_and_nothing_else,
    test_scores_depend_on_the_named_bases_alone,
    test_searches_and_changes_go_on_while_all_is_indexed_anew,
    test_to_remove_or_to_drop_again_changes_nothing,
    test_what_an_ended_process_has_not_indexed_anew_is_found_and_goes_on,
    test_what_is_damaged_is_indexed_anew_from_the_documents,
    test_what_was_made_ready_and_never_put_is_not_found,
)
from tests.house.sources import ROOT
from tests.servers.ports import free_port

PROGRAM = ROOT / "var" / "milvus-lite-environment" / "bin" / "milvus-lite"


class Server:
    """Milvus Lite in a process of its own, which can be killed and started again over what it has stored."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"milvus://127.0.0.1:{self.port}"

    async def start(self) -> None:
        arguments = ("server", "--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self._folder))
        self._process = await asyncio.create_subprocess_exec(str(PROGRAM), *arguments, stderr=sys.stderr)
        engine = MilvusEngine(self.url, load_milvus())
        while True:
            try:
                await engine.count([])
                break
            except Unavailable:
                assert self._process.returncode is None
        await engine.close()

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
