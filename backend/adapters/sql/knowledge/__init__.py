"""Knowledge bases, their documents, and search over them, in SQLite and PostgreSQL."""
