"""The Kubernetes manifests hold to the schemas of Kubernetes itself, field for field, overlays' own ones too.

What only kubectl can tell, whether everything renders, `make check` asks it where it is installed.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[3]
KUSTOMIZE = ROOT / "deploy" / "kustomize"
BASE = KUSTOMIZE / "base"
KUSTOMIZATION = "kustomization.yaml"
KUSTOMIZATION_FIELDS = {
    "apiVersion", "commonAnnotations", "components", "configMapGenerator", "configurations", "crds", "generators",
    "generatorOptions", "images", "kind", "labels", "metadata", "namePrefix", "nameSuffix", "namespace", "patches",
    "replacements", "replicas", "resources", "secretGenerator", "sortOptions", "transformers", "validators",
}  # fmt: skip
"""What kustomize reads of a Kustomization and has not deprecated; it ignores a misspelt field without a word."""

KUBERNETES_VERSION = "1.37"
SETTING = re.compile(r"(?:BACKEND|CHAT_SHELL)_[A-Z_]+")


def read(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def manifest_files(folder: Path) -> list[Path]:
    """Find what is written out below a folder; of a Kustomization Kubernetes knows nothing."""
    found = [*folder.rglob("*.yaml"), *folder.rglob("*.yml"), *folder.rglob("*.json")]
    return sorted(path for path in found if path.name != KUSTOMIZATION)


def generated(kustomization: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Write out the ConfigMaps that literals make."""
    for generator in kustomization.get("configMapGenerator", ()):
        pairs = (literal.partition("=") for literal in generator.get("literals", ()))
        content = {key: value for key, _, value in pairs}
        yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": generator["name"]}, "data": content}


FILES = manifest_files(KUSTOMIZE)
KUSTOMIZATIONS = {str(path.parent.relative_to(KUSTOMIZE)): read(path)[0] for path in KUSTOMIZE.rglob(KUSTOMIZATION)}
GENERATED = [manifest for kustomization in KUSTOMIZATIONS.values() for manifest in generated(kustomization)]
MANIFESTS = [manifest for path in manifest_files(BASE) for manifest in read(path)]
EVERY_MANIFEST = {
    **{f"{path.relative_to(KUSTOMIZE)}:{place}": one for path in FILES for place, one in enumerate(read(path))},
    **{f"generated:{place}": manifest for place, manifest in enumerate(GENERATED)},
}


@pytest.mark.parametrize("name", EVERY_MANIFEST)
def test_manifest_is_valid_and_has_no_unknown_field(name: str) -> None:
    kubernetes_validate.validate(EVERY_MANIFEST[name], KUBERNETES_VERSION, strict=True)


@pytest.mark.parametrize("folder", KUSTOMIZATIONS)
def test_kustomization_has_no_unknown_field_and_lists_what_lies_beside_it(folder: str) -> None:
    kustomization = KUSTOMIZATIONS[folder]
    assert set(kustomization) <= KUSTOMIZATION_FIELDS
    assert (kustomization["apiVersion"], kustomization["kind"]) == ("kustomize.config.k8s.io/v1beta1", "Kustomization")
    here = KUSTOMIZE / folder
    patches = [patch["path"] for patch in kustomization.get("patches", ()) if "path" in patch]
    listed = [(here / name).resolve() for name in (*kustomization.get("resources", ()), *patches)]
    bases = [path for path in listed if path.is_dir()]
    assert all((base / KUSTOMIZATION).is_file() for base in bases)
    assert sorted(path for path in listed if path not in bases) == [path for path in FILES if path.parent == here]


@pytest.mark.parametrize("folder", KUSTOMIZATIONS)
def test_what_an_overlay_changes_is_in_the_base(folder: str) -> None:
    """A name that is misspelt changes nothing, or makes a ConfigMap that nobody reads."""
    known = {manifest["metadata"]["name"] for manifest in of_kind("ConfigMap")}
    merged = [one for one in KUSTOMIZATIONS[folder].get("configMapGenerator", ()) if one.get("behavior") == "merge"]
    assert {generator["name"] for generator in merged} <= known
    containers = [
        container
        for manifest in (*of_kind("Deployment"), *of_kind("Job"))
        for container in manifest["spec"]["template"]["spec"]["containers"]
    ]
    images = {image["name"] for image in KUSTOMIZATIONS[folder].get("images", ())}
    assert images <= {container["image"] for container in containers}


def test_every_setting_in_a_manifest_is_one_that_a_service_reads() -> None:
    documented = set(SETTING.findall((ROOT / "docs" / "settings.md").read_text(encoding="utf-8")))
    maps = [manifest for manifest in EVERY_MANIFEST.values() if manifest["kind"] == "ConfigMap"]
    assert {key for manifest in maps for key in manifest["data"]} <= documented


def test_an_overlays_own_files_are_looked_at(tmp_path: Path) -> None:
    overlay = tmp_path / "overlays" / "mine"
    overlay.mkdir(parents=True)
    (overlay / KUSTOMIZATION).write_text("resources: [x.yaml]\nconfigMapGenerator: [{name: c, literals: [A=b=c]}]")
    (overlay / "x.yaml").write_text("kind: Service\n---\n---\nkind: Job\n")
    assert manifest_files(tmp_path) == [overlay / "x.yaml"]
    assert [manifest["kind"] for manifest in read(overlay / "x.yaml")] == ["Service", "Job"]
    (made,) = generated(read(overlay / KUSTOMIZATION)[0])
    assert (made["metadata"]["name"], made["data"]) == ("c", {"A": "b=c"})


def test_a_misspelt_field_is_found() -> None:
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in MANIFESTS if manifest["kind"] == kind]


def test_both_services_have_what_a_rollout_needs() -> None:
    names = {"ballast-backend", "ballast-chat-shell"}
    for kind in ("Deployment", "Service", "PodDisruptionBudget"):
        assert {manifest["metadata"]["name"] for manifest in of_kind(kind)} == names
    for deployment in of_kind("Deployment"):
        pod = deployment["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        # A turn may last 600 s by default; what runs must be able to finish.
        assert pod["terminationGracePeriodSeconds"] > 600
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_the_migration_runs_as_a_job_of_the_backend() -> None:
    (job,) = of_kind("Job")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert (container["image"], container["args"]) == ("ballast-backend", ["migrate"])


def test_compose_runs_the_pair_with_postgresql_and_valkey() -> None:
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"postgres", "valkey", "migrate", "backend", "chat_shell"}
    stages = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    for service in ("migrate", "chat_shell"):
        assert f"AS {services[service]['build']['target']}\n" in stages
