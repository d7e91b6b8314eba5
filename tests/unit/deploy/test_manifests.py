"""The Kubernetes manifests hold to the schemas of Kubernetes itself, field for field."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).parents[3]
BASE = ROOT / "deploy" / "kustomize" / "base"
KUBERNETES_VERSION = "1.37"

MANIFESTS: list[dict[str, Any]] = [
    document
    for path in sorted(BASE.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]


def named(manifest: dict[str, Any]) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


@pytest.mark.parametrize("manifest", MANIFESTS, ids=[named(one) for one in MANIFESTS])
def test_manifest_is_valid_and_has_no_unknown_field(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)


def test_a_misspelt_field_is_found() -> None:
    manifest: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, KUBERNETES_VERSION, strict=True)


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [manifest for manifest in MANIFESTS if manifest["kind"] == kind]


def test_every_manifest_is_listed_in_the_kustomization() -> None:
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    assert sorted(listed) == sorted(path.name for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml")


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
