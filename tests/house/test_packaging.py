"""What runs has its lists of words and patterns with it: in a wheel and in an image."""

import re
import tomllib
from hashlib import sha256

from shared.version import VERSION
from tests.house.sources import ROOT, tracked_files

_LISTS = ROOT / "shared" / "disclosure" / "lists"


def test_the_lists_and_their_licences_are_tracked():
    tracked = {path.name for path in tracked_files() if path.parent == _LISTS}
    assert {path.name for path in _LISTS.iterdir()} == tracked
    assert "NOTICE" in tracked


def test_every_list_has_its_source_stated():
    notice = (_LISTS / "NOTICE").read_text(encoding="utf-8")
    assert [path.name for path in sorted(_LISTS.glob("*.txt")) if path.name not in notice] == []


def test_a_wheel_takes_whole_packages():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert set(wheel["targets"]) == {"wheel"}
    assert wheel["targets"]["wheel"] == {
        "only-include": ["shared", "backend", "chat_shell", "cli", "protos", "deploy/demo"]
    }


def test_manifests_and_images_name_the_version_of_the_release():
    of_images = "deploy/kustomize/base/kustomization.yaml"
    places = {"deploy/Dockerfile": r"^ARG VERSION=(\S+)$", of_images: r"newTag: ([^}]+)"}
    for name, version in places.items():
        found = re.findall(version, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert found
        assert set(found) == {VERSION}


def test_an_image_takes_whole_packages():
    copied = [line.split() for line in (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()]
    assert copied.count(["COPY", "shared/", "shared/"]) == sum(line[:1] == ["ENTRYPOINT"] for line in copied)
    context = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert "!shared" in context
    assert [line for line in context if line.endswith(("txt", "NOTICE", "lists"))] == []


def test_the_lists_are_what_their_script_makes_of_its_sources():
    stated = [line.split("  ") for line in (ROOT / "requirements" / "word_lists.sha256").read_text().splitlines()]
    changed = [name for digest, name in stated if sha256((ROOT / name).read_bytes()).hexdigest() != digest]
    assert stated
    assert changed == [], "run the script in requirements, which says what it needs"
