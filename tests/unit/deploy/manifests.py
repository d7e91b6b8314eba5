"""The manifests as they are applied: rendered where `kubectl` is installed, else the base's own files."""

import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[3]
KUSTOMIZE = ROOT / "deploy" / "kustomize"
BASE = KUSTOMIZE / "base"
KUSTOMIZATION = "kustomization.yaml"
KUBECTL = shutil.which("kubectl")
PAIR = {"ballast-backend", "ballast-chat-shell"}
Manifest = dict[str, Any]


class Workload(NamedTuple):
    """What makes pods, and the pods' specification."""

    overlay: str
    manifest: Manifest

    @property
    def name(self) -> str:
        return self.manifest["metadata"]["name"]

    @property
    def pod(self) -> Manifest:
        return self.manifest["spec"]["template"]["spec"]

    @property
    def container(self) -> Manifest:
        (container,) = self.pod["containers"]
        return container


def documents(text: str) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(text) if document]


def read(path: Path) -> list[Manifest]:
    return documents(path.read_text(encoding="utf-8"))


def render(folder: Path) -> list[Manifest]:
    assert KUBECTL
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def looked_at() -> dict[str, list[Manifest]]:
    """Return what is looked at, by overlay."""
    if KUBECTL is None:
        written = (path for path in sorted(BASE.glob("*.yaml")) if path.name != KUSTOMIZATION)
        return {"base": [manifest for path in written for manifest in read(path)]}
    return {path.parent.name: render(path.parent) for path in sorted(KUSTOMIZE.glob("overlays/*/" + KUSTOMIZATION))}


RENDERED = looked_at()
KUSTOMIZATIONS = {str(path.parent.relative_to(KUSTOMIZE)): read(path)[0] for path in KUSTOMIZE.rglob(KUSTOMIZATION)}
BY_NAME = {
    f"{overlay}:{one['kind']}/{one['metadata']['name']}": one for overlay, found in RENDERED.items() for one in found
}
WORKLOADS = {
    name: Workload(name.partition(":")[0], one)
    for name, one in BY_NAME.items()
    if one["kind"] in ("Deployment", "Job", "StatefulSet")
}
SERVICES = {name: one for name, one in WORKLOADS.items() if one.name in PAIR}


def of_kind(overlay: str, kind: str) -> dict[str, Manifest]:
    return {one["metadata"]["name"]: one for one in RENDERED[overlay] if one["kind"] == kind}
