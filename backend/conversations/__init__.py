"""Conversations: the log, epochs, compaction, the order of what is said, items, and the prompts that are shown."""
