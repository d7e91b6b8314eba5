"""The adapter for OpenAI-compatible chat completions: it encodes requests and assembles the frames of answers."""
