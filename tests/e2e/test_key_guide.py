"""The commands of docs/keys.md, run as an operator would, one after another."""

import os
import re
import subprocess
from pathlib import Path

import orjson

from tests.e2e.pair import ADMIN_KEY, Pair

GUIDE = Path(__file__).parents[2] / "docs" / "keys.md"


def run(commands: str, **environment: str) -> str:
    """Run commands of the guide; what they set of the place is set by the test instead."""
    commands = re.sub(r"^BACKEND=.*\n", "", commands)
    environ = {"PATH": os.environ["PATH"], "ADMIN": ADMIN_KEY, **environment}
    done = subprocess.run(["sh", "-euc", commands], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_key_is_made_exchanged_watched_and_deleted(small_pair: Pair) -> None:
    create, rotate, show, delete = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    url = small_pair.backend_url
    old = orjson.loads(run(create, BACKEND=url))
    new = orjson.loads(run(rotate, BACKEND=url, ID=old["id"]))
    for key in (old["key"], new["key"]):
        with small_pair.http(key) as caller:
            assert caller.get("/v1/models").status_code == 200
    rows = [line.split("\t") for line in run(show, BACKEND=url).splitlines()]
    (row,) = [row for row in rows if row[0] == old["id"]]
    assert (row[1], row[4]) == ("ann", new["id"])
    run(delete, BACKEND=url, ID=old["id"])
    with small_pair.http(old["key"]) as caller:
        assert caller.get("/v1/models").status_code == 401
