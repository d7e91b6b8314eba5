"""A turn as callers see it: request, start, run, events, follow, cancel; its routes speak OpenAI's words."""
