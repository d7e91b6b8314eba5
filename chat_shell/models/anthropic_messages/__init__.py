"""The adapter for Anthropic's Messages ANTHROPIC_MESSAGES, with cache marks and thinking blocks."""
