"""The API reference: everything is described, every word of it is used, and the examples are right."""

from pathlib import Path
from typing import Any, cast

import jsonschema
import pytest

from backend.foundation.http.reference import (
    EVERYWHERE,
    FILE_NAME,
    PARAMETERS,
    FieldWords,
    OperationWords,
    Reference,
    describe_operations,
    example_of,
    fields_of,
    objects_with_fields,
    operations_in,
    read_reference,
)
from shared.models.values import JsonObject, JsonValue
from tests.fakes.http_api import FakeHouse

PACKAGES = Path(__file__).parents[4] / "backend"
JSON = "application/json"


@pytest.fixture(scope="module")
def document() -> JsonObject:
    return FakeHouse().app().openapi()


@pytest.fixture(scope="module")
def reference() -> Reference:
    return read_reference(sorted(PACKAGES.glob(f"*/http/{FILE_NAME}")))


def bodies(document: JsonObject) -> list[tuple[str, JsonObject]]:
    """Return the JSON bodies that operations take and give, errors left out, with where they stand."""
    found: list[tuple[str, Any]] = []
    for address, operation in operations_in(document):
        given: dict[str, Any] = dict(operation)
        answers = {f"{address} {code}": said for code, said in given["responses"].items() if code.startswith("2")}
        for place, body in {address: given.get("requestBody", {}), **answers}.items():
            content = body.get("content", {}).get(JSON)
            if content is not None and content["schema"].get("format") != "binary":
                found.append((place, content))
    return found


def test_every_operation_parameter_and_field_is_described(document: JsonObject) -> None:
    silent = [
        f"{schema['title']}.{name}"
        for schema in objects_with_fields(document)
        for name, field in fields_of(schema).items()
        if not field.get("description")
    ]
    for address, operation in operations_in(document):
        said: dict[str, Any] = dict(operation)
        silent += [address for key in ("summary", "description") if not said.get(key)]
        silent += [f"{address} {one['name']}" for one in said.get("parameters", ()) if not one.get("description")]
        silent += [f"{address} {code}" for code, answer in said["responses"].items() if not answer["description"]]
    assert not silent
    assert "Successful Response" not in str(document)


def test_every_json_body_has_an_example_that_fits(document: JsonObject) -> None:
    found = bodies(document)
    assert len(found) > 80
    for place, content in found:
        schema = {**cast(JsonObject, content["schema"]), "components": document["components"]}
        assert "example" in content, place
        jsonschema.validate(content["example"], schema)


def test_every_example_of_a_field_fits(document: JsonObject) -> None:
    for schema in objects_with_fields(document):
        for name, field in fields_of(schema).items():
            for example in cast("list[JsonValue]", field.get("examples", [])):
                try:
                    jsonschema.validate(example, {**field, "components": document["components"]})
                except jsonschema.ValidationError as error:
                    raise AssertionError(f"{schema['title']}.{name}: {error.message}") from None


def test_every_entry_is_used(document: JsonObject, reference: Reference) -> None:
    objects: dict[str, set[str]] = {}
    for schema in objects_with_fields(document):
        objects.setdefault(str(schema["title"]), set()).update(fields_of(schema))
    known = set[str]().union(*objects.values())
    unused = [
        f"{owner}.{name}"
        for owner, fields in reference.fields.items()
        for name in fields
        if name not in (known if owner == EVERYWHERE else objects.get(owner, ()))
    ]
    operations = dict(operations_in(document))
    parameters = {
        str(one["name"]) for each in operations.values() for one in cast("list[JsonObject]", each.get("parameters", []))
    }
    unused += [name for name in reference.parameters if name not in parameters]
    unused += [address for address in reference.operations if address not in operations]
    assert not unused


def test_nothing_is_described_in_two_places() -> None:
    field: JsonObject = {"type": "string", "description": "The code's own words."}
    document: JsonObject = {
        "paths": {},
        "components": {"schemas": {"Tea": {"title": "Tea", "properties": {"kind": field, "name": {"type": "string"}}}}},
    }
    words = {"Tea": {"kind": FieldWords("Other words.", ("green",))}, EVERYWHERE: {"name": FieldWords("The name.")}}
    with pytest.raises(ValueError, match=r"Tea\.kind is described in the code"):
        describe_operations(document, Reference(words, {}, {}))
    del field["description"]
    describe_operations(document, Reference(words, {}, {}))
    tea = next(objects_with_fields(document))
    assert fields_of(tea)["kind"] == {"type": "string", "description": "Other words.", "examples": ["green"]}
    assert fields_of(tea)["name"]["description"] == "The name."


def test_an_answer_is_described_by_what_the_code_says_of_its_object() -> None:
    answer: JsonObject = {
        "description": "Successful Response",
        "content": {JSON: {"schema": {"$ref": "#/components/schemas/Tea"}}},
    }
    tea: JsonObject = {
        "title": "Tea",
        "type": "object",
        "description": "A cup of tea.",
        "properties": {"kind": {"type": "string"}, "milk": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["kind", "milk"],
    }
    document: JsonObject = {
        "paths": {"/tea": {"get": {"responses": {"200": answer}}}},
        "components": {"schemas": {"Tea": tea}},
    }
    describe_operations(
        document, Reference({"Tea": {"kind": FieldWords("The kind.", ("green",))}}, {}, {"GET /x": OperationWords()})
    )
    assert answer["description"] == "A cup of tea."
    assert example_of(tea, document) == {"kind": "green", "milk": None}


@pytest.mark.parametrize("section", ["Tea", EVERYWHERE, PARAMETERS])
def test_one_thing_is_described_in_one_file(tmp_path: Path, section: str) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f'[{section}]\nkind = "The kind."\n{name} = "Another."\n', encoding="utf-8")
    with pytest.raises(ValueError, match=f"another file has these of {section} too: kind$"):
        read_reference([tmp_path / "one", tmp_path / "two"])


def test_the_description_covers_every_router() -> None:
    """Requests are made from the description, so a hidden route is not tried: only the API for chat_shell is hidden."""
    app = FakeHouse().app()
    described = set(app.openapi()["paths"])
    served = {str(getattr(route, "path", "")) for route in app.routes if getattr(route, "methods", None)}
    hidden = {path.replace(":path", "") for path in served} - described
    assert all(path.startswith(("/internal/", "/docs", "/redoc", "/openapi.json")) for path in hidden), hidden
