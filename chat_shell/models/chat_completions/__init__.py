"""Providers of models, one module a step: encode the request, decode frames, assemble fragments, tell errors apart."""
