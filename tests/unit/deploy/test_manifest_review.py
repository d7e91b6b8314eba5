"""What a platform engineer asks of the manifests beyond single objects: whether they fit each other and the code."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from backend.extraction.formats.children import ChildLimits
from backend.extraction.formats.reader import MAX_CHILDREN
from backend.settings import Settings as BackendSettings
from backend.turns.services.turn_registry import INTERRUPTION_SECONDS
from chat_shell.app import GRPC_GRACE_SECONDS
from chat_shell.settings import Settings as ChatShellSettings
from shared.environment import read_settings
from shared.shutdown_bound import CLOSING_SECONDS
from tests.unit.deploy.manifests import (
    BASE,
    KUBECTL,
    KUSTOMIZE,
    PAIR,
    RENDERED,
    ROOT,
    SERVICES,
    WORKLOADS,
    Manifest,
    Workload,
    of_kind,
    render,
)

SECRET_VALUES = {
    "BACKEND_DATABASE_URL": "postgresql+asyncpg://ballast:password-of-tests@postgres:5432/ballast",
    "BACKEND_REDIS_URL": "redis://valkey:6379/0",
    "BACKEND_ADMIN_KEY": "admin-key-of-the-tests",
    "BACKEND_SECRET": "secret-of-the-tests",
    "SERVICE_TOKEN": "token-of-the-tests",
    "CHAT_SHELL_MODEL_API_KEY": "key-of-the-tests",
}
"""What the Secrets of the guide hold."""

MAPS = {"ballast-backend": "backend.env", "ballast-chat-shell": "chat-shell.env"}
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|DATABASE_URL|REDIS_URL")
ALLOWED_VOLUMES = {"emptyDir", "secret", "configMap", "projected", "persistentVolumeClaim"}
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
ROOM_BESIDE_THAT_BYTES = 192 * 2**20


def in_bytes(quantity: str) -> int:
    return int(quantity[:-2]) * UNITS[quantity[-2:]]


def environment(workload: Workload) -> dict[str, str]:
    """Return what the ConfigMap of a pod sets: as rendered, or as the base has it."""
    if KUBECTL is None:
        lines = (BASE / MAPS[workload.name]).read_text(encoding="utf-8").split()
        return dict(line.split("=", 1) for line in lines)
    name = workload.container["envFrom"][0]["configMapRef"]["name"]
    return dict(of_kind(workload.overlay, "ConfigMap")[name]["data"])


def settings_of(workload: Workload) -> BackendSettings | ChatShellSettings:
    """Start nothing, but read the settings as the service would in this pod."""
    model = BackendSettings if workload.name == "ballast-backend" else ChatShellSettings
    names = {*model.variables(), "SERVICE_TOKEN"}
    secrets = {name: value for name, value in SECRET_VALUES.items() if name in names}
    return read_settings(model, {**environment(workload), **secrets})


def ports_of(workload: Workload) -> Mapping[str, int]:
    return {port["name"]: port["containerPort"] for port in workload.container["ports"]}


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_starts_with_its_settings_and_listens_where_its_ports_say(name: str) -> None:
    settings, ports = settings_of(SERVICES[name]), ports_of(SERVICES[name])
    if isinstance(settings, BackendSettings):
        assert ports == {"http": settings.port, "admin": settings.admin_port}
    else:
        assert ports == {"grpc": settings.grpc_port, "http": settings.http_port, "admin": settings.admin_port}


@pytest.mark.parametrize("overlay", RENDERED)
def test_services_find_each_other_by_names_and_ports_that_are_there(overlay: str) -> None:
    for name, other, setting in (
        ("ballast-backend", "ballast-chat-shell", "BACKEND_CHAT_SHELL_URL"),
        ("ballast-chat-shell", "ballast-backend", "CHAT_SHELL_BACKEND_URL"),
    ):
        (workload,) = [one for one in SERVICES.values() if (one.overlay, one.name) == (overlay, name)]
        host, port = environment(workload)[setting].split("//")[1].split(":")
        assert host == other
        assert int(port) in {each["port"] for each in of_kind(overlay, "Service")[other]["spec"]["ports"]}


@pytest.mark.parametrize("overlay", RENDERED)
def test_what_selects_pods_selects_those_of_its_own_service(overlay: str) -> None:
    labels = {name: {"app.kubernetes.io/name": name} for name in PAIR}
    for kind in ("Service", "PodDisruptionBudget", "Deployment"):
        found = {name: one["spec"]["selector"] for name, one in of_kind(overlay, kind).items() if name in PAIR}
        selected = {name: selector.get("matchLabels", selector) for name, selector in found.items()}
        assert selected == labels, kind
    for workload in (one for one in SERVICES.values() if one.overlay == overlay):
        assert labels[workload.name].items() <= workload.manifest["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("name", SERVICES)
def test_the_times_of_a_drain_fit_each_other(name: str) -> None:
    """No process is killed while it may still work: see `ShutdownBound`, whose own end comes first."""
    workload = SERVICES[name]
    environments = [environment(one) for one in SERVICES.values() if one.overlay == workload.overlay]
    backend = next(one for one in environments if "BACKEND_PORT" in one)
    turn_seconds = read_settings(BackendSettings, {**backend, **backend_secrets()}).turn_timeout_seconds
    closing = INTERRUPTION_SECONDS if workload.name == "ballast-backend" else GRPC_GRACE_SECONDS
    sleep_seconds = workload.container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace_seconds = workload.pod["terminationGracePeriodSeconds"]
    assert grace_seconds > sleep_seconds + turn_seconds + closing + CLOSING_SECONDS
    assert grace_seconds > turn_seconds, "a turn ends by its deadline, so that this is more than any turn takes"


def backend_secrets() -> dict[str, str]:
    return {name: value for name, value in SECRET_VALUES.items() if not name.startswith("CHAT_SHELL")}


def test_compose_waits_for_turns_as_well() -> None:
    services = compose()["services"]
    longest = BackendSettings.model_fields["turn_timeout_seconds"].default + INTERRUPTION_SECONDS + CLOSING_SECONDS
    for name in ("backend", "chat_shell"):
        assert int(services[name]["stop_grace_period"].removesuffix("s")) > longest


@pytest.mark.parametrize("name", SERVICES)
def test_autoscalers_add_at_once_and_take_away_slowly(name: str) -> None:
    workload = SERVICES[name]
    scaler = of_kind(workload.overlay, "HorizontalPodAutoscaler")[workload.name]["spec"]
    up, down = scaler["behavior"]["scaleUp"], scaler["behavior"]["scaleDown"]
    assert up["stabilizationWindowSeconds"] == 0
    assert down["stabilizationWindowSeconds"] >= 300
    assert [(one["type"], one["value"]) for one in down["policies"]] == [("Pods", 1)]
    assert down["policies"][0]["periodSeconds"] >= 60
    assert "replicas" not in workload.manifest["spec"], "a number of replicas would reset the autoscaler's"
    assert workload.container["resources"]["requests"]["cpu"], "the autoscaler counts CPU"


@pytest.mark.parametrize("name", SERVICES)
def test_probes_of_life_ask_for_less_than_those_of_readiness_and_restart_nobody_at_once(name: str) -> None:
    container = SERVICES[name].container
    liveness, startup = container["livenessProbe"], container["startupProbe"]
    assert liveness["periodSeconds"] * liveness["failureThreshold"] >= 30
    assert startup["periodSeconds"] <= 2, "a pod that is ready serves soon"
    assert "initialDelaySeconds" not in liveness


@pytest.mark.parametrize("name", WORKLOADS)
def test_pods_fit_the_profile_that_their_namespace_enforces(name: str) -> None:
    """`restricted`: what the API server would refuse is refused here."""
    workload = WORKLOADS[name]
    volumes = [set(volume) - {"name"} for volume in workload.pod.get("volumes", ())]
    assert all(kind <= ALLOWED_VOLUMES for kind in volumes)
    assert not any("hostPort" in port for port in workload.container.get("ports", ()))
    assert not {"initContainers", "shareProcessNamespace"} & set(workload.pod)
    for namespace in of_kind(workload.overlay, "Namespace").values():
        assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("overlay", RENDERED)
def test_no_secret_stands_in_a_manifest(overlay: str) -> None:
    assert not of_kind(overlay, "Secret")
    for one in of_kind(overlay, "ConfigMap").values():
        assert [key for key in one["data"] if SECRET_NAME.search(key)] == []


@pytest.mark.parametrize("name", SERVICES)
def test_memory_is_enough_for_what_the_settings_allow(name: str) -> None:
    settings, limit = settings_of(SERVICES[name]), SERVICES[name].container["resources"]["limits"]["memory"]
    taken = ROOM_BESIDE_THAT_BYTES
    if isinstance(settings, BackendSettings):
        taken += settings.max_bodies_bytes + MAX_CHILDREN * ChildLimits().memory_bytes
    assert in_bytes(limit) >= taken


def test_pods_run_as_the_user_of_their_images() -> None:
    dockerfile = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    (user,) = set(re.findall(r"^USER (\d+):\1$", dockerfile, re.MULTILINE))
    pods = [one.pod for one in WORKLOADS.values() if one.container["image"].split(":")[0] in PAIR]
    assert {pod["securityContext"]["runAsUser"] for pod in pods} == {int(user)}


def named_ports(overlay: str) -> Iterator[tuple[str, str]]:
    """Yield the pods and the names of ports that policies let somebody reach."""
    for policy in of_kind(overlay, "NetworkPolicy").values():
        spec = policy["spec"]
        for rule in spec.get("ingress", ()):
            yield from (
                (spec["podSelector"]["matchLabels"]["app.kubernetes.io/name"], p["port"]) for p in rule["ports"]
            )
        for rule in spec.get("egress", ()):
            reached = [one["podSelector"]["matchLabels"] for one in rule["to"] if set(one) == {"podSelector"}]
            yield from (
                (labels["app.kubernetes.io/name"], port["port"]) for labels in reached for port in rule["ports"]
            )


@pytest.mark.parametrize("overlay", RENDERED)
def test_policies_name_ports_that_pods_have(overlay: str) -> None:
    """A port by a name that no pod has opens nothing, and nothing says so."""
    have = {(one.name, port) for one in SERVICES.values() if one.overlay == overlay for port in ports_of(one)}
    found = set(named_ports(overlay))
    assert found
    assert found <= have


@pytest.mark.parametrize("overlay", RENDERED)
def test_the_selector_of_the_guide_applies_the_migration_alone(overlay: str) -> None:
    guide = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    assert "--selector app.kubernetes.io/name=ballast-migrate\n" in guide
    chosen = [
        one["kind"]
        for one in RENDERED[overlay]
        if one["metadata"].get("labels", {}).get("app.kubernetes.io/name") == "ballast-migrate"
    ]
    assert chosen == ["Job"]
    (job,) = of_kind(overlay, "Job").values()
    annotations = job["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/hook-delete-policy"] == "BeforeHookCreation"
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert job["spec"]["backoffLimit"] > 0
    assert job["spec"]["activeDeadlineSeconds"] > 0


if KUBECTL is not None:  # what only rendering can tell

    @pytest.mark.parametrize("overlay", ["production", "restricted-network"])
    def test_monitors_select_the_services_and_a_port_that_is_there(overlay: str) -> None:
        services = of_kind(overlay, "Service")
        for name, monitor in of_kind(overlay, "ServiceMonitor").items():
            (endpoint,) = monitor["spec"]["endpoints"]
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            selected = [one for one in services.values() if wanted <= one["metadata"]["labels"].items()]
            assert [one["metadata"]["name"] for one in selected] == [name]
            assert endpoint["port"] in {port["name"] for port in selected[0]["spec"]["ports"]}
            assert endpoint["path"] == "/metrics"

    def test_production_spreads_over_nodes_whatever_it_costs() -> None:
        for one in of_kind("production", "Deployment").values():
            spread = one["spec"]["template"]["spec"]["topologySpreadConstraints"]
            assert [each["whenUnsatisfiable"] for each in spread] == ["DoNotSchedule", "ScheduleAnyway"]

    def test_every_overlay_puts_everything_into_its_namespace() -> None:
        for overlay, manifests in RENDERED.items():
            (namespace,) = of_kind(overlay, "Namespace") or {"ballast": {}}
            assert {one["metadata"].get("namespace", namespace) for one in manifests} == {namespace}

    def test_a_changed_setting_changes_a_name_and_an_equal_one_does_not(tmp_path: Path) -> None:
        first, again = (maps_of(production_with(tmp_path, level)) for level in ("info", "info"))
        changed = maps_of(production_with(tmp_path, "warning"))
        assert first == again
        assert first - changed == {name for name in first if name.startswith("ballast-backend-")}

    @pytest.mark.parametrize("component", [path.name for path in sorted((KUSTOMIZE / "components").iterdir())])
    def test_each_component_goes_with_production(component: str, tmp_path: Path) -> None:
        """A component that no overlay uses is rendered all the same."""
        rendered = render(with_component(tmp_path, component))
        for one in rendered:
            if one["apiVersion"].split("/")[0] not in ("monitoring.coreos.com", "cert-manager.io"):
                kubernetes_validate.validate(one, "1.37", strict=True)
        deployments = [one for one in rendered if one["kind"] == "Deployment"]
        own = {"ballast-router"} if component == "router" else set[str]()
        assert {one["metadata"]["name"] for one in deployments} == PAIR | own
        mounts = {
            mount["mountPath"]: set(mount)
            for one in deployments
            if one["metadata"]["name"] in PAIR
            for mount in one["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        }
        assert set(mounts) == ({"/tmp", "/tls"} if component == "tls" else {"/tmp"})


def written(folder: Path, kustomization: Mapping[str, Any]) -> Path:
    header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(header | dict(kustomization)), encoding="utf-8")
    return folder


def from_here(folder: Path, *parts: str) -> str:
    """Return the path of a part of the manifests: Kustomize takes no absolute ones."""
    return os.path.relpath(KUSTOMIZE.joinpath(*parts), folder.resolve())


def production_with(folder: Path, level: str) -> Path:
    changed = {"name": "ballast-backend", "behavior": "merge", "literals": [f"LOG_LEVEL={level}"]}
    resources = [from_here(folder, "overlays", "production")]
    return written(folder, {"resources": resources, "namespace": "ballast", "configMapGenerator": [changed]})


def with_component(folder: Path, component: str) -> Path:
    base = "base" if component == "monitoring" else "overlays/production"
    return written(
        folder,
        {"resources": [from_here(folder, base)], "components": [from_here(folder, "components", component)]},
    )


def maps_of(folder: Path) -> set[str]:
    return {one["metadata"]["name"] for one in render(folder) if one["kind"] == "ConfigMap"}


def compose() -> Manifest:
    return yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
