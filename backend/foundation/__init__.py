"""What serves every package and knows nothing of the product: SQL, HTTP middleware, readiness, admission."""
