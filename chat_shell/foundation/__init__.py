"""What serves every room and knows nothing of a turn: admission."""
