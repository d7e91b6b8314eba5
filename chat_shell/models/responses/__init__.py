"""The adapter for OpenAI's Responses API, without anything stored at the provider."""
