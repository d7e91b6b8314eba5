"""Metrics and log lines about the event loop of a service, from the thread that watches it."""

import structlog
from prometheus_client import Counter, Gauge

from shared.loop_watchdog import HELD_SECONDS, Held, LoopWatchdog
from shared.telemetry import LogEvent

log = structlog.get_logger("loop")

LAG = Gauge("ballast_loop_lag_seconds", "The longest wait of a ready callback within the last 15 seconds")
HELD = Counter("ballast_loop_held_total", "Times that the event loop was held for 100 ms or longer")


class LoopMeter(LoopWatchdog):
    """Measures the loop in which it is entered; a line names the code that held it, and no value of it."""

    def __init__(self, held_seconds: float = HELD_SECONDS) -> None:
        super().__init__(_report, held_seconds)
        LAG.set_function(lambda: self.lag_seconds)


def _report(held: Held) -> None:
    HELD.inc()
    lag_seconds, cpu_seconds = round(held.lag_seconds, 3), round(held.cpu_seconds, 3)
    log.warning(LogEvent.LOOP_HELD, lag_seconds=lag_seconds, cpu_seconds=cpu_seconds, places=held.places)
