"""The sealed room: the one place where the text of restricted knowledge can be read."""
