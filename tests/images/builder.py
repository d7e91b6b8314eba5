"""Builds the images with Docker, Podman or Buildah, and unpacks them, so that their programs run from a folder."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILDER = shlex.split(os.environ.get("IMAGE_BUILDER", "docker"))
"""The program that builds, with its own options: `docker`, `podman` or `buildah`."""

OPTIONS = shlex.split(os.environ.get("IMAGE_OPTIONS", ""))
"""More options of `build`, such as `--build-arg PYTHON_IMAGE=…`."""

UNPRIVILEGED = "10001:10001"


def run(*command: str) -> str:
    """Run a command and return what it prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build(target: str) -> str:
    """Build an image as docs/kubernetes.md says, and return its name."""
    name = f"localhost/ballast-{target}"
    run(*BUILDER, "build", "-f", "deploy/Dockerfile", "--target", target, "-t", name, *OPTIONS, ".")
    return name


def unpacked(image: str, folder: Path) -> Path:
    """Return a folder with all that an image holds."""
    if Path(BUILDER[0]).name == "buildah":
        return Path(run(*BUILDER, "mount", run(*BUILDER, "from", "--pull-never", image)))
    container = run(*BUILDER, "create", image)
    try:
        run("sh", "-c", f"{shlex.join(BUILDER)} export {container} | tar -x -C {shlex.quote(str(folder))}")
    finally:
        run(*BUILDER, "rm", container)
    return folder


def inside(image: Path, program: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command that runs a program in an unpacked image as its pod does: no rights, a root to read only.

    It needs root. `/tmp` is the one place that can be written to.
    """
    given = [f"{name}={value}" for name, value in environment.items()]
    path = "PATH=/opt/ballast/bin:/usr/local/bin:/usr/bin:/bin"
    mounts = (
        'mount --bind "$0" "$0"; mount --rbind /dev "$0/dev"; mount -o remount,ro,bind "$0"; '
        f'mount -t tmpfs tmpfs "$0/tmp"; exec chroot --userspec={UNPRIVILEGED} "$0" env -i -C /app "$@"'
    )
    return ["unshare", "--mount", "sh", "-euc", mounts, str(image), path, *given, *program]
