"""What serves every room and knows nothing of the product: SQL, HTTP middleware, readiness, admission."""
