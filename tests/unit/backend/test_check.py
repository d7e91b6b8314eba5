"""`python -m backend check` names a setting or a database that cannot be used, and makes nothing."""

import sqlite3
from pathlib import Path

import pytest

from backend.check import check_parts
from backend.foundation.sql.chosen import open_database
from backend.migrations.migrate import migrate
from shared.checked_parts import print_parts, read_checked_part
from shared.environment import WrongSetting
from tests.unit.backend.checks import NEEDED, parts_of


def environ_of(file: Path, **changes: str) -> dict[str, str]:
    return {**NEEDED, "BACKEND_DATABASE_URL": f"sqlite+aiosqlite:///{file}", **changes}


async def made(file: Path) -> None:
    database = open_database(f"sqlite+aiosqlite:///{file}")
    await migrate(database)
    await database.close()


async def test_a_first_start_is_looked_at_without_making_a_file(tmp_path: Path) -> None:
    parts = await parts_of(environ_of(tmp_path / "var" / "new.db"))
    assert parts["database"].is_well
    assert list(tmp_path.iterdir()) == []


async def test_a_database_tells_its_schema(tmp_path: Path) -> None:
    await made(tmp_path / "b.db")
    parts = await parts_of(environ_of(tmp_path / "b.db"))
    assert all(part.is_well for part in parts.values())
    assert "has schema 0" in parts["database"].found


async def test_a_newer_schema_is_named(tmp_path: Path) -> None:
    await made(tmp_path / "b.db")
    with sqlite3.connect(tmp_path / "b.db") as connection:
        for table in ("alembic_version", "schema_revision"):
            connection.execute(f"UPDATE {table} SET version_num = '9999'")
    connection.close()
    part = (await parts_of(environ_of(tmp_path / "b.db")))["database"]
    assert not part.is_well
    assert "schema 9999" in part.found
    assert "start the release that made this schema" in part.mend


async def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "var").write_text("no folder")
    part = (await parts_of(environ_of(tmp_path / "var" / "b.db")))["database"]
    assert not part.is_well
    assert f"{tmp_path / 'var'} is no folder that can be written" in part.found


async def test_a_misspelt_setting_ends_the_check_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WrongSetting, match="1 of the parts"):
        await print_parts(check_parts(environ_of(tmp_path / "b.db", BACKEND_REDIS_ULR="redis://x")))
    (line,) = capsys.readouterr().out.splitlines()
    part = read_checked_part(line)
    assert part is not None
    assert "BACKEND_REDIS_ULR: there is no such setting; did you mean BACKEND_REDIS_URL?" in part.found


def test_lines_of_a_log_are_no_parts() -> None:
    assert read_checked_part("2026-11-25 [info] Ready") is None
    assert read_checked_part('{"event": "Ready"}') is None
