"""The last release beside this one: upgrades and rollbacks under load, with real processes."""
