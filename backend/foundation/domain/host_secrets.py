"""Secrets that are good at one host alone."""


def bind_to_host(secret: str, host: str) -> str:
    """Return what stands for a browser's secret at a host, by which it is stored and looked up."""
    return f"{secret}@{host.lower()}"
