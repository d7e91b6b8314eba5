"""What a database can look for of a filter, so that only what may match is read."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from scim2_models import ScimFilter
from scim2_models.path import CompareOperator, Comparison, FilterNode, LogicalExpr, LogicalOperator, ValuePath

from backend.scim.domain import fold_name

COLUMNS = {"id": "id", "username": "key", "externalid": "external_id", "active": "active", "members": "member_id"}
"""The columns that hold an attribute, by its name in small letters."""


class Narrowed(NamedTuple):
    """What rows must equal, by column; where `is_whole` all such rows match, otherwise they must be looked at."""

    equal: Mapping[str, object]
    is_whole: bool


def narrow(sought: "ScimFilter[Any] | None", columns: frozenset[str]) -> Narrowed:
    """Return what the database looks for of a filter, over the columns that it has."""
    return _narrow(sought.ast, columns) if sought is not None else Narrowed({}, is_whole=True)


def _narrow(node: FilterNode, columns: frozenset[str]) -> Narrowed:
    if isinstance(node, Comparison):
        return _equality(node, columns)
    if isinstance(node, ValuePath) and isinstance(node.val_filter, Comparison):
        inner = node.val_filter
        if node.sub_attr is None and inner.attr_path.sub_attr is None:
            return _of_value(node.attr_path.attr, inner.attr_path.attr, inner, columns)
    if isinstance(node, LogicalExpr) and node.op is LogicalOperator.and_:
        return _both(node, columns)
    return Narrowed({}, is_whole=False)


def _equality(node: Comparison, columns: frozenset[str]) -> Narrowed:
    path = node.attr_path
    if path.uri is not None:
        return Narrowed({}, is_whole=False)
    return _of_value(path.attr, path.sub_attr, node, columns)


def _of_value(name: str, sub_attribute: str | None, node: Comparison, columns: frozenset[str]) -> Narrowed:
    column, value = COLUMNS.get(name.lower()), node.value
    fits = isinstance(value, bool if column == "active" else str)
    needs = "value" if column == "member_id" else None
    is_same = (sub_attribute.lower() if sub_attribute is not None else None) == needs
    if column not in columns or node.op is not CompareOperator.eq or not fits or not is_same:
        return Narrowed({}, is_whole=False)
    return Narrowed({str(column): fold_name(str(value)) if column == "key" else value}, is_whole=True)


def _both(node: LogicalExpr, columns: frozenset[str]) -> Narrowed:
    equal: dict[str, object] = {}
    is_whole = True
    for term in node.terms:
        found = _narrow(term, columns)
        is_whole = is_whole and found.is_whole and equal.keys().isdisjoint(found.equal)
        equal |= found.equal
    return Narrowed(equal, is_whole)
