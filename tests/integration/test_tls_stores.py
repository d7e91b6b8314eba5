"""PostgreSQL and Redis over TLS, with an authority that the address names: a wrong certificate stops the start."""

from pathlib import Path

import pytest

from backend.foundation.redis.client import check_redis_reachable, connect
from backend.foundation.sql.chosen import check_database_reachable, open_database
from tests.servers.certificates import DAY, Authority, MountedSecret
from tests.servers.tls_front import tls_before

WRONG = {
    "another authority": "unable to get local issuer certificate|self-signed certificate",
    "expired": "certificate has expired",
    "another name": "IP address mismatch|not valid for",
}


def shown_by(case: str, authority: Authority, folder: Path) -> MountedSecret:
    issued = {
        "right": authority.issue,
        "another authority": Authority("a stranger").issue,
        "expired": lambda: authority.issue(until=-DAY / 2),
        "another name": lambda: authority.issue("elsewhere.example.com"),
    }[case]()
    return MountedSecret(folder / "shown", issued, authority.certificate)


async def use_database(url: str) -> None:
    database = open_database(url)
    try:
        await check_database_reachable(database, url)
    finally:
        await database.close()


async def use_redis(url: str) -> None:
    client = connect(url)
    try:
        await check_redis_reachable(client, url)
    finally:
        await client.aclose()


@pytest.mark.parametrize("case", ["right", *WRONG])
async def test_postgresql(empty_postgres_url: str, tmp_path: Path, case: str) -> None:
    shown = shown_by(case, Authority(), tmp_path)
    host, _, name = empty_postgres_url.rpartition("/")
    front, _, port = host.rpartition(":")
    with tls_before(int(port), shown, asks_first=True) as tls_port:
        url = f"{front}:{tls_port}/{name}?sslmode=verify-full&sslrootcert={shown.authority}"
        if case == "right":
            await use_database(url)
            return
        with pytest.raises(ValueError, match=WRONG[case]):
            await use_database(url)


async def test_postgresql_without_tls_is_refused_where_tls_is_asked_for(empty_postgres_url: str) -> None:
    with pytest.raises(ValueError, match="cannot use"):
        await use_database(f"{empty_postgres_url}?sslmode=require")


@pytest.mark.parametrize("case", ["right", *WRONG])
async def test_redis(valkey_url: str, tmp_path: Path, case: str) -> None:
    shown = shown_by(case, Authority(), tmp_path)
    port = int(valkey_url.rpartition(":")[2].partition("/")[0])
    with tls_before(port, shown, asks_first=False) as tls_port:
        url = f"rediss://127.0.0.1:{tls_port}/0?ssl_ca_certs={shown.authority}"
        if case == "right":
            await use_redis(url)
            return
        with pytest.raises(ValueError, match=WRONG[case]):
            await use_redis(url)
