"""Attacks that others have collected, put to the gate where their data is given."""
