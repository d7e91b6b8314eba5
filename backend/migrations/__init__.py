"""Upgrades of the database schema, over the tables of all packages."""
