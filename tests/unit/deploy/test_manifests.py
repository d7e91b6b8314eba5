"""The Kubernetes manifests, read as an operator would read what they are about to apply.

Where `kubectl` is installed every overlay is rendered, and the whole of it is looked at; elsewhere the base's own files
are, which are most of it, and the last line of the run says so. CI has `kubectl`.
"""

import os
import re
from collections.abc import Iterator

import kubernetes_validate
import pytest
import yaml

from tests.examples import first_of
from tests.unit.deploy.manifests import (
    BASE,
    BY_NAME,
    KUBECTL,
    KUSTOMIZATION,
    KUSTOMIZATIONS,
    KUSTOMIZE,
    PAIR,
    RENDERED,
    ROOT,
    SERVICES,
    WORKLOADS,
    Manifest,
    of_kind,
)

KUBERNETES_VERSIONS = ("1.35", "1.36", "1.37")
SETTING = re.compile(r"(?:BACKEND|CHAT_SHELL)_[A-Z_]+")
KUSTOMIZATION_FIELDS = {
    "apiVersion", "commonAnnotations", "components", "configMapGenerator", "configurations", "crds", "generators",
    "generatorOptions", "images", "kind", "labels", "metadata", "namePrefix", "nameSuffix", "namespace", "patches",
    "replacements", "replicas", "resources", "secretGenerator", "sortOptions", "transformers", "validators",
}  # fmt: skip
"""What kustomize reads of a Kustomization and has not deprecated; it ignores a misspelt field without a word."""


def test_ci_renders_every_overlay() -> None:
    assert KUBECTL or not os.environ.get("CI"), "install kubectl, 1.27 or later"
    assert set(RENDERED) == ({"dev", "milvus", "production", "restricted-network"} if KUBECTL else {"base"})


def is_known_to_kubernetes(manifest: Manifest) -> bool:
    """Tell whether a manifest is of Kubernetes itself, and not of an operator that extends it."""
    return not manifest["apiVersion"].startswith(("monitoring.coreos.com/", "milvus.io/"))


@pytest.mark.parametrize("version", first_of(*reversed(KUBERNETES_VERSIONS)))
@pytest.mark.parametrize("name", [name for name, one in BY_NAME.items() if is_known_to_kubernetes(one)])
def test_manifest_is_valid_and_has_no_unknown_field(name: str, version: str) -> None:
    kubernetes_validate.validate(BY_NAME[name], version, strict=True)


def test_a_misspelt_field_is_found() -> None:
    manifest: Manifest = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"port": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, KUBERNETES_VERSIONS[0], strict=True)


@pytest.mark.parametrize("folder", KUSTOMIZATIONS)
def test_kustomization_has_no_unknown_field_and_lists_what_lies_beside_it(folder: str) -> None:
    kustomization = KUSTOMIZATIONS[folder]
    assert set(kustomization) <= KUSTOMIZATION_FIELDS
    assert kustomization["apiVersion"].startswith("kustomize.config.k8s.io/")
    here = KUSTOMIZE / folder
    patches = [patch["path"] for patch in kustomization.get("patches", ()) if "path" in patch]
    listed = [(here / name).resolve() for name in (*kustomization.get("resources", ()), *patches)]
    files = [path for path in listed if not path.is_dir()]
    assert all((path / KUSTOMIZATION).is_file() for path in listed if path.is_dir())
    assert sorted(files) == sorted(path for path in here.glob("*.yaml") if path.name != KUSTOMIZATION)


def settings_in_maps() -> Iterator[str]:
    for path in BASE.glob("*.env"):
        yield from (line.partition("=")[0] for line in path.read_text(encoding="utf-8").splitlines() if line)
    for kustomization in KUSTOMIZATIONS.values():
        for generator in kustomization.get("configMapGenerator", ()):
            yield from (literal.partition("=")[0] for literal in generator.get("literals", ()))


def test_every_setting_in_a_manifest_is_one_that_a_service_reads() -> None:
    documented = set(SETTING.findall((ROOT / "docs" / "settings.md").read_text(encoding="utf-8")))
    assert set(settings_in_maps()) <= documented


def test_what_an_overlay_merges_is_in_the_base() -> None:
    """A name that is misspelt makes a ConfigMap that nobody reads."""
    of_base = {generator["name"] for generator in KUSTOMIZATIONS["base"]["configMapGenerator"]}
    merged = [
        one for each in KUSTOMIZATIONS.values() for one in each.get("configMapGenerator", ()) if "behavior" in one
    ]
    assert {generator["name"] for generator in merged} <= of_base == PAIR


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_pod_has_a_privilege(name: str) -> None:
    pod, container = WORKLOADS[name].pod, WORKLOADS[name].container
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    own = container["securityContext"]
    assert own["allowPrivilegeEscalation"] is False
    assert own["privileged"] is False
    assert own["readOnlyRootFilesystem"] is True
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_pod_is_bounded_and_writes_to_named_places_only(name: str) -> None:
    pod, container = WORKLOADS[name].pod, WORKLOADS[name].container
    assert {"cpu", "memory"} <= set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]
    assert "cpu" not in container["resources"]["limits"], "a bound on the CPU delays every stream"
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes[mounted["/tmp"]]["emptyDir"]["sizeLimit"]


@pytest.mark.parametrize("name", SERVICES)
def test_probes_ask_what_they_are_for(name: str) -> None:
    container = SERVICES[name].container
    startup, liveness, readiness = (container[f"{kind}Probe"] for kind in ("startup", "liveness", "readiness"))
    assert startup["httpGet"]["path"] == liveness["httpGet"]["path"] == "/healthz"
    assert readiness["httpGet"]["path"] == "/readyz"
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 60
    assert [readiness[field] for field in ("periodSeconds", "timeoutSeconds", "failureThreshold")] == [5, 3, 3]


@pytest.mark.parametrize("name", SERVICES)
def test_a_rollout_takes_no_capacity(name: str) -> None:
    workload = SERVICES[name]
    assert workload.manifest["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    sleep_seconds = workload.container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert sleep_seconds >= 5


@pytest.mark.parametrize("name", SERVICES)
def test_pods_are_spread_over_nodes_and_zones(name: str) -> None:
    spread = SERVICES[name].pod["topologySpreadConstraints"]
    assert [one["topologyKey"] for one in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert all(one["labelSelector"]["matchLabels"] == {"app.kubernetes.io/name": SERVICES[name].name} for one in spread)


@pytest.mark.parametrize("overlay", RENDERED)
def test_each_service_has_an_account_a_budget_a_scaler_and_a_policy(overlay: str) -> None:
    accounts = of_kind(overlay, "ServiceAccount")
    assert set(accounts) == PAIR
    assert not any(account["automountServiceAccountToken"] for account in accounts.values())
    budgets = of_kind(overlay, "PodDisruptionBudget")
    assert {name: one["spec"]["maxUnavailable"] for name, one in budgets.items()} == dict.fromkeys(PAIR, 1)
    scalers = of_kind(overlay, "HorizontalPodAutoscaler")
    assert {one["spec"]["scaleTargetRef"]["name"] for one in scalers.values()} == PAIR
    for scaler in scalers.values():
        turns, cpu = scaler["spec"]["metrics"]
        assert turns["pods"]["metric"]["name"] == "ballast_streams_active"
        assert cpu["resource"]["name"] == "cpu"
        assert scaler["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 300
    assert set(of_kind(overlay, "NetworkPolicy")) >= PAIR


@pytest.mark.parametrize("overlay", RENDERED)
def test_chat_shell_is_reached_by_the_backend_and_its_metrics_by_monitoring(overlay: str) -> None:
    policy = of_kind(overlay, "NetworkPolicy")["ballast-chat-shell"]["spec"]
    from_backend, from_monitoring = policy["ingress"]
    (backend,), (monitoring,) = from_backend["from"], from_monitoring["from"]
    assert backend == {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "ballast-backend"}}}
    assert monitoring == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}


@pytest.mark.parametrize("overlay", RENDERED)
def test_metrics_have_a_port_that_monitoring_alone_reaches(overlay: str) -> None:
    for name in PAIR:
        spec = of_kind(overlay, "NetworkPolicy")[name]["spec"]
        opened = [rule for rule in spec["ingress"] if "admin" in [port["port"] for port in rule["ports"]]]
        (from_monitoring,) = opened
        assert [port["port"] for port in from_monitoring["ports"]] == ["admin"]
        assert list(from_monitoring["from"][0]) == ["namespaceSelector"]


@pytest.mark.parametrize("name", SERVICES)
def test_probes_ask_the_admin_port(name: str) -> None:
    container = SERVICES[name].container
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} == {"admin"}
    (port,) = [each["containerPort"] for each in container["ports"] if each["name"] == "admin"]
    service = "chat-shell" if "chat-shell" in name else "backend"
    environment = (BASE / f"{service}.env").read_text().splitlines()
    assert f"{service.upper().replace('-', '_')}_ADMIN_PORT={port}" in environment


@pytest.mark.parametrize("overlay", RENDERED)
def test_the_backend_sees_every_replica_of_chat_shell(overlay: str) -> None:
    service = of_kind(overlay, "Service")["ballast-chat-shell"]
    assert service["spec"]["clusterIP"] == "None"
    assert {port["port"] for port in service["spec"]["ports"]} >= {50051, 8001}


@pytest.mark.parametrize("overlay", RENDERED)
def test_the_migration_is_a_hook_that_no_setting_changes(overlay: str) -> None:
    (job,) = of_kind(overlay, "Job").values()
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["migrate"]
    assert job["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync"
    # A Job's template cannot be changed, so nothing in it may carry a generated name.
    assert "envFrom" not in container
    release = job["metadata"]["name"].removeprefix("ballast-migrate-")
    assert re.fullmatch(r"\d+-\d+-\d+", release)
    image = KUSTOMIZATIONS["base"]["images"][0]
    assert (image["name"], image["newTag"].replace(".", "-")) == ("ballast-backend", release)


if KUBECTL is not None:  # what only a rendered overlay can tell

    @pytest.mark.parametrize("name", SERVICES)
    def test_a_changed_setting_rolls_the_pods(name: str) -> None:
        config, _ = SERVICES[name].container["envFrom"]
        map_name = config["configMapRef"]["name"]
        assert re.fullmatch(rf"{SERVICES[name].name}-[a-z0-9]{{10}}", map_name)
        assert map_name in of_kind(SERVICES[name].overlay, "ConfigMap")

    def test_in_a_restricted_network_each_pod_reaches_what_is_named() -> None:
        policies = of_kind("restricted-network", "NetworkPolicy")
        egress = {name: one["spec"] for name, one in policies.items() if one["spec"]["policyTypes"] == ["Egress"]}
        assert len(egress) == 4
        for spec in egress.values():
            assert all(rule["to"] and rule["ports"] for rule in spec["egress"])
        (names,) = egress["ballast-egress-names"]["podSelector"]["matchExpressions"]
        workloads = {one.name for key, one in WORKLOADS.items() if key.startswith("restricted-network:")}
        named = set(names["values"])
        assert all(any(workload.startswith(each) for each in named) for workload in workloads)

    def test_only_the_overlay_to_try_it_with_brings_stores() -> None:
        assert set(of_kind("dev", "StatefulSet")) == {"postgres", "valkey"}
        assert not of_kind("production", "StatefulSet")

    def test_production_is_watched_and_has_no_pod_to_spare() -> None:
        assert set(of_kind("production", "ServiceMonitor")) == PAIR
        assert all(one["spec"]["minReplicas"] >= 3 for one in of_kind("production", "HorizontalPodAutoscaler").values())


def test_compose_runs_the_pair_with_postgresql_and_valkey() -> None:
    services = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"postgres", "valkey", "migrate", "backend", "chat_shell"}
    stages = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    for service in ("migrate", "chat_shell"):
        assert f"AS {services[service]['build']['target']}\n" in stages
