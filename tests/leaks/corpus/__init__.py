"""The project's own synthetic base, with what is secret in it, and what is asked about it; see README.md."""
