"""Conversations: the log, epochs, compaction, dynamic context, items, and the prompts of model calls."""
