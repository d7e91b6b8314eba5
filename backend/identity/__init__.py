"""API keys, and the callers whom they name."""
