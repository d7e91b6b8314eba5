"""Tokens of the operator's identity provider, which are JSON Web Tokens (RFC 7519)."""
