"""What every test may ask for."""

from hypothesis import settings

# No example is timed: speed belongs in the benchmark.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

pytest_plugins = ["tests.servers.fixtures"]
