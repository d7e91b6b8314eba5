"""The images hold what runs and nothing else, and say what is in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
STAGES = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.DOTALL | re.MULTILINE))
BUILT_ON = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
TARGETS = ("backend", "chat_shell")


def test_the_only_image_from_outside_is_pinned_by_its_digest() -> None:
    outside = [image for image in BUILT_ON if image not in STAGES]
    assert outside == ["${PYTHON_IMAGE}"]
    assert re.search(r"^ARG PYTHON_IMAGE=\S+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)


def test_images_install_nothing_and_run_without_privileges() -> None:
    for target in TARGETS:
        assert "pip" not in STAGES[target]
        assert "USER 10001:10001\n" in STAGES[target]
        assert f"org.opencontainers.image.title=ballast-{target.replace('_', '-')}" in STAGES[target]


def test_each_image_holds_its_own_service_and_the_list_of_its_parts() -> None:
    for target, other in (TARGETS, TARGETS[::-1]):
        stage = STAGES[f"{target.replace('_', '-')}-build"]
        lock = f"requirements/{target.replace('_', '-')}.txt"
        assert f"--require-hashes --no-deps -r {lock}" in stage
        assert "cyclonedx-py environment --output-file /opt/ballast/sbom.cdx.json" in stage
        copied = set(re.findall(r"^COPY (\w+)/ ", stage, re.MULTILINE))
        assert copied == {"shared", "protos", target}
        assert other not in copied


def test_what_is_installed_is_locked_with_hashes() -> None:
    for lock in re.findall(r"requirements/\S+\.txt", DOCKERFILE):
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert text.count("--hash=sha256:") >= len(re.findall(r"^\S+==", text, re.MULTILINE)) > 0
