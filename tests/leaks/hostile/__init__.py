"""Secondary and main models that try to give away what they are shown."""
