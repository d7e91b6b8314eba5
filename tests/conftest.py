"""What every test may ask for."""

from hypothesis import settings

from tests.examples import of_many

# No example is timed: speed belongs in the benchmark.
settings.register_profile("untimed", deadline=None, max_examples=of_many(100))
settings.load_profile("untimed")

pytest_plugins = ["tests.servers.fixtures"]
