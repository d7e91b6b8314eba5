"""Rollouts rehearsed with real processes behind a proxy that learns late, as that of Kubernetes does."""
