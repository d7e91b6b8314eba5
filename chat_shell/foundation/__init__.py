"""Services for all rooms that know nothing of the content of turns: admission."""
