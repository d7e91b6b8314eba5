"""The component for TLS names what the base has, and settings with which both services start."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from backend.settings import Settings as BackendSettings
from chat_shell.settings import Settings as ChatShellSettings
from shared.environment import read_settings

KUSTOMIZE = Path(__file__).parents[3] / "deploy" / "kustomize"
COMPONENT = KUSTOMIZE / "components" / "tls"
SERVICES = ("backend", "chat-shell")
Manifest = dict[str, Any]


def read(path: Path) -> list[Manifest]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def named(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    (found,) = [each for each in manifests if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def settings_of(service: str) -> dict[str, str]:
    """Return the settings of the base as the component changes them."""
    (kustomization,) = read(COMPONENT / "kustomization.yaml")
    (own,) = [each for each in kustomization["configMapGenerator"] if each["name"] == f"ballast-{service}"]
    base = (KUSTOMIZE / "base" / f"{service}.env").read_text(encoding="utf-8").split()
    assert own["behavior"] == "merge"
    return dict(line.split("=", 1) for line in (*base, *own["literals"]))


SECRETS = {"SERVICE_TOKEN": "token-of-the-tests", "BACKEND_SECRET": "secret-of-the-tests"}


def test_both_services_take_the_settings_and_speak_to_each_other_in_tls():
    backend = read_settings(BackendSettings, {**SECRETS, **settings_of("backend")})
    chat_shell = read_settings(ChatShellSettings, {**SECRETS, **settings_of("chat-shell")})
    assert backend.certificate_files.are_mutual
    assert chat_shell.certificate_files.are_mutual
    assert urlsplit(backend.chat_shell_url).port == chat_shell.grpc_port
    assert urlsplit(chat_shell.backend_url).port == backend.port


@pytest.mark.parametrize("service", SERVICES)
def test_the_files_are_those_of_a_certificate_for_the_name_in_the_address(service: str):
    name, folder = f"ballast-{service}", "/tls"
    deployment = named(read(COMPONENT / f"{service}.yaml"), "Deployment", name)
    pod = deployment["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": folder, "readOnly": True}]
    files = [value for setting, value in settings_of(service).items() if "_TLS_" in setting]
    assert files == [f"{folder}/tls.crt", f"{folder}/tls.key", f"{folder}/ca.crt"]
    certificate = named(read(COMPONENT / "certificates.yaml"), "Certificate", name)["spec"]
    assert certificate["secretName"] == volume["secret"]["secretName"]
    assert {"server auth", "client auth"} <= set(certificate["usages"])
    (other,) = set(SERVICES) - {service}
    addresses = [value for setting, value in settings_of(other).items() if setting.endswith("_URL")]
    assert [urlsplit(each).hostname in certificate["dnsNames"] for each in addresses].count(True) == 1


@pytest.mark.parametrize("service", SERVICES)
def test_what_is_patched_is_in_the_base(service: str):
    name = f"ballast-{service}"
    base, patches = read(KUSTOMIZE / "base" / f"{service}.yaml"), read(COMPONENT / f"{service}.yaml")
    for patch in patches:
        named(base, patch["kind"], name)
    (container,) = named(base, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    assert container["name"] == name
    ports = {port["port"]: port for port in named(base, "Service", name)["spec"]["ports"]}
    for port in named(patches, "Service", name)["spec"]["ports"]:
        assert port["port"] in ports
        ports[port["port"]] |= port
    assert {port["name"] for port in ports.values() if port["appProtocol"] != "https"} == {"admin"}
    kubernetes_validate.validate({**named(base, "Service", name)}, "1.37", strict=True)
