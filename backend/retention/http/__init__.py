"""The routes of administrators about one person."""
