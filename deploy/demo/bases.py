"""The demo's knowledge bases: their names, descriptions and members."""

from dataclasses import dataclass
from pathlib import Path

_TEXTS = Path(__file__).with_name("knowledge")


@dataclass(frozen=True)
class DemoBase:
    """A base, the directory of its documents, and the role of the second user in it."""

    name: str
    directory: str
    summary: str
    topics: tuple[str, ...]
    routing_hint: str
    routing_keywords: tuple[str, ...]
    analyst_role: str

    @property
    def documents(self) -> tuple[Path, ...]:
        """Its files, ordered by name."""
        return tuple(sorted((_TEXTS / self.directory).glob("*.md")))

    def description(self) -> dict[str, object]:
        """Return the fields of the request that creates it."""
        return {
            "name": self.name,
            "summary": self.summary,
            "topics": list(self.topics),
            "routing_hint": self.routing_hint,
            "routing_keywords": list(self.routing_keywords),
        }


HANDBOOK = DemoBase(
    name="Operations handbook",
    directory="handbook",
    summary="How Northquay, an operator of parcel lockers, runs its platform.",
    topics=("on-call", "incidents", "deployments", "backups", "locker maintenance"),
    routing_hint="Questions about running the lockers: who is on call, how bad an incident is, releases, repairs.",
    routing_keywords=("on-call", "incident", "release", "backup", "locker"),
    analyst_role="reader",
)
HANDBOOK_ZH = DemoBase(
    name="北码头运维手册",
    directory="handbook-zh",
    summary="快递柜运营商北码头的平台运维规定。",
    topics=("值班", "故障分级", "备份与恢复", "快递柜维护"),
    routing_hint="关于怎样管理快递柜的问题：谁来值班，故障有多严重，怎样备份，怎样维护。",
    routing_keywords=("值班", "故障", "备份", "快递柜"),
    analyst_role="reader",
)
CONTRACTS = DemoBase(
    name="Partner contracts",
    directory="contracts",
    summary="Prices and penalties of partner contracts, and rules of compensation. Restricted.",
    topics=("partner prices", "penalties", "compensation"),
    routing_hint="Questions about partner contracts and compensation for lost parcels.",
    routing_keywords=("partner", "contract", "penalty", "compensation", "赔付"),
    analyst_role="restricted_analyst",
)
BASES = (HANDBOOK, HANDBOOK_ZH, CONTRACTS)
