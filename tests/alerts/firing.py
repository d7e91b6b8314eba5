"""Alerts over what real processes show: scraped before a fault and after it, and evaluated as Prometheus does."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import yaml

from tests.alerts.promql import NothingScraped, Scrapes
from tests.e2e.pair import ADMIN_KEY, SERVICE_TOKEN
from tests.patience import PATIENCE_SECONDS

RULES = Path(__file__).parents[2] / "deploy" / "observability" / "rules.yaml"
INTERVAL_SECONDS = 15.0
"""Scrapes count as so far apart, however soon one follows another here: that makes no rate higher than it was."""


def expressions() -> dict[str, str]:
    """Return the expression of each alert."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


class Watch:
    """Scrapes some services, as Prometheus does, by the names of their jobs and instances."""

    def __init__(self, **addresses: str) -> None:
        self._addresses: Mapping[str, str] = addresses
        self._scrapes = Scrapes()
        self._at = time.time()

    async def scrape(self) -> None:
        """Scrape all that answer; a process that is away shows nothing."""
        self._at += INTERVAL_SECONDS
        async with httpx2.AsyncClient(timeout=30, trust_env=False, verify=False) as client:
            for name, address in self._addresses.items():
                try:
                    key = SERVICE_TOKEN if name.startswith("shell") else ADMIN_KEY
                    answer = await client.get(f"{address}/metrics", headers={"Authorization": f"Bearer {key}"})
                except httpx2.TransportError:
                    continue
                job = "ballast-chat-shell" if name.startswith("shell") else "ballast-backend"
                self._scrapes.add(self._at, job, name, answer.text)

    def is_quiet(self, *alerts: str) -> bool:
        """Whether none of them fires, be it because nothing was counted yet for which it asks."""
        return not any(self._fires(alert) for alert in alerts)

    async def until_firing(self, *alerts: str) -> None:
        """Scrape until all fire at once; then all that they ask for was scraped."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.scrape()
            while not all(self._fires(alert) for alert in alerts):
                await asyncio.sleep(0.2)
                await self.scrape()

    def _fires(self, alert: str) -> bool:
        try:
            return bool(self._scrapes.evaluate(expressions()[alert]))
        except NothingScraped:
            return False
