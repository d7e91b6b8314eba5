"""The adapter for Anthropic's Messages API, with cache marks and thinking blocks."""
