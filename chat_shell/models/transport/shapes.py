"""Parsed JSON, narrowed: what a provider sends has the shape it should have, or is a violation."""

from typing import Any, TypeGuard

from shared.errors import ModelProtocolViolated

Json = dict[str, Any]


def is_object(value: Any) -> TypeGuard[Json]:
    """Tell a JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Tell a JSON array."""
    return isinstance(value, list)


def as_object(value: Any) -> Json:
    """Return a JSON object, or raise ModelProtocolViolated."""
    if isinstance(value, dict):
        return value  # pyright: ignore[reportUnknownVariableType] - on the token path
    raise ModelProtocolViolated("the model's provider sent a frame of an unknown shape")


def as_list(value: Any) -> list[Any]:
    """Return a JSON array, or raise ModelProtocolViolated."""
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType] - on the token path
    raise ModelProtocolViolated("the model's provider sent a frame of an unknown shape")
