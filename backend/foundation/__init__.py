"""SQL, HTTP middleware, readiness and admission, for every package; it knows nothing of the product."""
