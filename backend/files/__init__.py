"""Files that users upload, as OpenAI's API has them: stored as they came, and read by nobody but their owners."""
