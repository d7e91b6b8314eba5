"""Load the demo's users and knowledge into a running backend; existing data is kept."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from deploy.demo.bases import BASES, CONTRACTS, HANDBOOK, HANDBOOK_ZH, DemoBase
from deploy.demo.local_secrets import read_or_create
from deploy.demo.public_api import Answer, quote

USER_ID = "demo-user"
ANALYST_ID = "demo-analyst"


class Caller(Protocol):
    """The public API with one key (`PublicApi`)."""

    def call(self, method: str, path: str, body: Answer | bytes | None = None) -> Answer:
        """Call it and return its answer."""
        ...

    def accepts_the_key(self) -> bool:
        """Whether the key is valid."""
        ...


Connect = Callable[[str], Caller]


@dataclass(frozen=True)
class Demo:
    """What a visitor needs to try it."""

    user_key: str
    restricted_key: str
    handbook_id: str
    contracts_id: str
    handbook_zh_id: str


def load(connect: Connect, admin_key: str, directory: Path) -> Demo:
    """Make keys, bases, documents and members; `connect` turns a key into a caller, keys are kept in `directory`."""
    admin = connect(admin_key)
    user_key = _key(connect, admin, directory / "user_key", USER_ID)
    restricted_key = _key(connect, admin, directory / "restricted_key", ANALYST_ID)
    owner = connect(user_key)
    known = _bases_by_name(owner)
    ids = {base.directory: _base(owner, known, base) for base in BASES}
    shown = (ids[base.directory] for base in (HANDBOOK, CONTRACTS, HANDBOOK_ZH))
    return Demo(user_key, restricted_key, *shown)


@dataclass(frozen=True)
class Embedded:
    """How many passages are found by meaning, of how many, and how long the others take; None while unknown."""

    passages: int
    of: int
    seconds_left: int | None


def passages_with_vectors(owner: Caller) -> Embedded:
    """Return how far the owner's bases are embedded."""
    listed = cast(list[dict[str, int | None]], owner.call("GET", "/v1/knowledge_bases?limit=100")["data"])
    left = [base.get("embedding_seconds_left") for base in listed if base.get("chunks") is not None]
    return Embedded(
        sum(base.get("embedded_chunks") or 0 for base in listed),
        sum(base.get("chunks") or 0 for base in listed),
        None if None in left else sum(seconds or 0 for seconds in left),
    )


def _key(connect: Connect, admin: Caller, file: Path, user_id: str) -> str:
    """Return the stored key, or create a key where none is stored or the database no longer knows it."""
    if file.exists():
        key = file.read_text(encoding="ascii").strip()
        if connect(key).accepts_the_key():
            return key
        file.unlink()
    made = admin.call("POST", "/v1/api_keys", {"user_id": user_id, "role": "user", "tenant": "default"})
    return read_or_create(file, lambda: str(made["key"]))


def _bases_by_name(owner: Caller) -> dict[str, str]:
    listed = cast(list[dict[str, str]], owner.call("GET", "/v1/knowledge_bases?limit=100")["data"])
    return {base["name"]: base["id"] for base in listed}


def _base(owner: Caller, known: dict[str, str], base: DemoBase) -> str:
    base_id = known.get(base.name) or str(owner.call("POST", "/v1/knowledge_bases", base.description())["id"])
    for document in base.documents:
        path = f"/v1/knowledge_bases/{base_id}/documents/{quote(document.name)}"
        owner.call("PUT", path, document.read_bytes())
    owner.call("PUT", f"/v1/knowledge_bases/{base_id}/members/{ANALYST_ID}", {"role": base.analyst_role})
    return base_id
