"""Where metrics are kept that tell how restricted searches end: who may ask one could read their own outcome there."""

from prometheus_client import CollectorRegistry

OUTCOMES = CollectorRegistry()
"""Shown to administrators and at a port of operators, beside the metrics that everybody may read."""
