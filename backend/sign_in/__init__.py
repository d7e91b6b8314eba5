"""Sign-in of people to the page by an identity provider (OpenID Connect)."""
