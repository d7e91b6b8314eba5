"""What every test may ask for."""

from hypothesis import HealthCheck, settings

from tests.examples import IS_THOROUGH, of_many

# No example is timed, and no generation of examples either: speed belongs in the benchmark.
# The same examples on every run: a change is to be judged by what it changes. The thorough run looks for new ones.
settings.register_profile(
    "untimed",
    deadline=None,
    derandomize=not IS_THOROUGH,
    max_examples=of_many(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("untimed")

pytest_plugins = ["tests.servers.fixtures"]
