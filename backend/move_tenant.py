"""`python -m backend move-tenant T --to CELL`: move a tenant to another cell while it is used.

Whatever ends it, the same command goes on: before the switch a stop of writes ends by itself, behind it nothing of the
tenant is written in the old cell any more.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import orjson

from backend.cells.domain import MoveOrder, Phase, addresses_of, with_routes
from backend.cells.sql import moves
from backend.cells.sql.copying import TenantCopy
from backend.cells.sql.fence import raise_fence, take_fence_down
from backend.embeddings.services.question_vectors import NO_MEANING
from backend.foundation.sql.database import Database
from backend.identity.domain import key_beginning
from backend.reaching import naming_setting, reach_database
from backend.search.wiring import build_search
from backend.settings import DatabaseSettings
from shared.clock import SystemClock
from shared.environment import WrongSetting, cause_of
from shared.errors import Unavailable
from shared.ids import cell_of

_COPIES = 4
_FEW_ROWS = 500
"""So few are copied within a part of a second."""

_ATTEMPTS = 20
_PAUSE_SECONDS = 0.5
_LOOK_SECONDS = 0.1
_ROWS_OF_DROP = 500


async def move_tenant(settings: DatabaseSettings, order: MoveOrder) -> None:
    """Move a tenant, or drop what it has left behind, or go back; print each step.

    Raises:
        WrongSetting: a cell cannot be reached or went away, or the order does not fit what has been done.
    """
    with naming_setting("BACKEND_CELLS"):
        address = addresses_of(settings.cells.get_secret_value() if settings.cells else "").get(order.cell)
    if address is None:
        raise WrongSetting(f"BACKEND_CELLS: names no database of cell {order.cell}")
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(reach_database(settings))
        there = settings.model_copy(update={"database_url": address})
        target = await stack.enter_async_context(reach_database(there))
        if {source.dialect, target.dialect} != {"postgresql"}:
            raise WrongSetting("BACKEND_DATABASE_URL: tenants move between databases of PostgreSQL alone")
        try:
            await TenantMove(source, target, order).run(settings.cell)
        except Unavailable as error:
            raise WrongSetting(f"move-tenant: {error.message} ({cause_of(error)}); say it again to go on") from None


class TenantMove:
    """The steps of a move, each of which may be the last one of this process."""

    def __init__(self, source: Database, target: Database, order: MoveOrder) -> None:
        self._source = source
        self._target = target
        self._order = order
        self._tenant = order.tenant
        self.copy = TenantCopy(source, target, order.tenant)
        self._index = build_search(target, SystemClock(), NO_MEANING, None).index

    async def run(self, own_cell: str) -> None:
        """Do what was ordered."""
        here = await self._source.read(partial(moves.find_move, tenant=self._tenant))
        there = await self._target.read(partial(moves.find_move, tenant=self._tenant))
        if here is not None and here.cell != self._order.cell:
            raise WrongSetting(f"--to: {self._tenant} is on its way to cell {here.cell}")
        if self._order.is_back:
            await self._go_back(here, there)
        elif self._order.is_drop:
            await self._drop(here)
        else:
            await self._go(here, there, own_cell)

    async def _go(self, here: moves.Move | None, there: moves.Move | None, own_cell: str) -> None:
        if here is not None and here.phase in (Phase.ARRIVED, Phase.DROPPING):
            raise WrongSetting(f"--to: an earlier move of {self._tenant} has left a copy behind: --drop it there first")
        if here is None:
            await self.begin()
        if there is None:
            seen, is_switching = here.seen if here is not None else None, _is_switching(here)
            seen = seen if is_switching else await self._follow_changes(seen)
            await self._switch(seen, own_cell or "first", is_stopped=is_switching)
        await self._source.write(partial(moves.leave, tenant=self._tenant))
        _tell("switched")
        await self._write_routes()
        await self._bring_running()
        _tell(f"moved: {self._tenant} is in cell {self._order.cell}; the old copy is there to read until --drop")

    async def begin(self) -> None:
        """Write down that the tenant moves, and make the fence, which lets everything pass."""
        if await self._target.read(partial(moves.is_there, tenant=self._tenant)):
            raise WrongSetting(f"--to: cell {self._order.cell} has something of tenant {self._tenant} already")
        await _persist(partial(raise_fence, self._source))
        note = partial(moves.note_move, tenant=self._tenant, cell=self._order.cell, phase=Phase.COPYING)
        await self._source.write(note)
        _tell("begun")

    async def _follow_changes(self, seen: str | None) -> str | None:
        for number in range(1, _COPIES + 1):
            copied = await self.copy.bring(seen)
            seen = copied.seen
            await self._note(seen)
            _tell(f"copy {number}: {copied.rows} rows, {copied.deleted} deleted")
            await self._index.tidy()
            _tell(f"copy {number} indexed")
            if copied.rows < _FEW_ROWS:
                break
        return seen

    async def _note(self, seen: str) -> None:
        await self._source.write(partial(moves.change_move, tenant=self._tenant, phase=Phase.COPYING, seen=seen))

    async def _switch(self, seen: str | None, own_cell: str, *, is_stopped: bool) -> None:
        for _ in range(_ATTEMPTS):
            began = time.monotonic()
            held = 0
            if not is_stopped:
                held = await self._source.write(partial(moves.stop_writes, tenant=self._tenant))
                _tell(f"stopped, {held} turns run on")
            copied = await self.copy.bring(seen)
            seen = copied.seen
            await self._index.tidy()
            _tell(f"last copy: {copied.rows} rows, {copied.deleted} deleted")
            if is_stopped or await self._hold():
                _tell("held")
                late, running = await self._source.read(partial(moves.take_late, tenant=self._tenant))
                arrive = partial(moves.arrive, tenant=self._tenant, cell=own_cell, late=late, held=running)
                await self._target.write(arrive)
                _tell(f"arrived, writes stopped for {time.monotonic() - began:.2f} s")
                return
            await self._note(seen)
            await asyncio.sleep(_PAUSE_SECONDS)
        raise WrongSetting("move-tenant: the last copy takes longer than writes may be stopped; say it again later")

    async def _hold(self) -> bool:
        """Keep the stop, unless restricted searches have no outcome yet; then writes go on at once."""
        if await self._source.read(partial(moves.has_unsettled_searches, tenant=self._tenant)):
            await self._source.write(partial(moves.change_move, tenant=self._tenant, phase=Phase.COPYING))
            return False
        return await self._source.write(partial(moves.keep_stopped, tenant=self._tenant))

    async def _write_routes(self) -> None:
        ids = await self._target.read(partial(moves.find_key_ids, tenant=self._tenant))
        beginnings = [key_beginning(each) for each in ids if cell_of(each)]
        if without := len(ids) - len(beginnings):
            _tell(f"{without} keys were made before their cell had a name: no route finds them, so rotate them")
        if self._order.routes:
            await asyncio.to_thread(_replace_routes, Path(self._order.routes), beginnings, self._order.cell)
            _tell(f"routes of {len(beginnings)} keys written")

    async def _bring_running(self) -> None:
        while arriving := await self._target.read(partial(moves.find_arriving, tenant=self._tenant)):
            release = partial(moves.release_ended, tenant=self._tenant, arriving=arriving)
            for each in await self._source.write(release):
                read = partial(moves.read_conversation, tenant=self._tenant, conversation_id=each)
                found = await self._source.snapshot(read)
                follow = partial(moves.follow, tenant=self._tenant, conversation_id=each, found=found)
                await self._target.write(follow)
                _tell(f"followed: {each}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _go_back(self, here: moves.Move | None, there: moves.Move | None) -> None:
        if there is not None or _is_switching(here):
            raise WrongSetting("--back: the tenant has left already; move it back with a move of its own")
        if here is None:
            raise WrongSetting(f"--back: {self._tenant} does not move")
        while await self._target.write(partial(moves.drop_rows, tenant=self._tenant, most=_ROWS_OF_DROP)):
            pass
        await self._end()
        _tell("back")

    async def _drop(self, here: moves.Move | None) -> None:
        arriving = await self._target.read(partial(moves.find_arriving, tenant=self._tenant))
        if here is None or here.phase not in (Phase.MOVED, Phase.DROPPING) or arriving:
            raise WrongSetting(f"--drop: {self._tenant} has not moved from here to cell {self._order.cell}")
        await self._source.write(partial(moves.change_move, tenant=self._tenant, phase=Phase.DROPPING))
        _tell("dropping")
        while await self._source.write(partial(moves.drop_rows, tenant=self._tenant, most=_ROWS_OF_DROP)):
            pass
        await self._target.write(partial(moves.forget_move, tenant=self._tenant))
        await self._end()
        _tell("dropped")

    async def _end(self) -> None:
        await self._source.write(partial(moves.forget_move, tenant=self._tenant))
        if not await self._source.read(moves.is_anyone_moving):
            await _persist(partial(take_fence_down, self._source))


def _is_switching(here: moves.Move | None) -> bool:
    return here is not None and here.phase is Phase.SWITCHING


async def _persist(work: Callable[[], Awaitable[None]]) -> None:
    """Try again what waits for a lock of a table: whoever uses the table comes first."""
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            await work()
        except Unavailable:
            if not attempts_left:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return


def _replace_routes(path: Path, beginnings: Sequence[str], cell: str) -> None:
    """Write the router's table anew beside the old one, and then in its place: the router reads what replaces it."""
    document = with_routes(orjson.loads(path.read_bytes()), beginnings, cell)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    fresh.replace(path)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
