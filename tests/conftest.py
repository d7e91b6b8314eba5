"""What every test may ask for."""

from hypothesis import HealthCheck, settings

from tests.examples import of_many

# No example is timed, and no generation of examples either: speed belongs in the benchmark.
settings.register_profile(
    "untimed", deadline=None, max_examples=of_many(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")

pytest_plugins = ["tests.servers.fixtures"]
