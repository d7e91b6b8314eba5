"""Services for all packages that know nothing of the content of turns: admission."""
