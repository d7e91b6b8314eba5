"""The services of this machine, asked to look at their own settings where the environment holds any."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping
from importlib.util import find_spec
from pathlib import Path

from shared.checked_parts import CheckedPart, checked_part_of
from shared.setting_names import OF_CALLERS

_PREFIXES: Mapping[str, str] = {"backend": "BACKEND_", "chat_shell": "CHAT_SHELL_"}
_SECONDS = 60.0
_ROOT = str(Path(__file__).resolve().parents[1])


def services_beside(environ: Mapping[str, str]) -> list[str]:
    """Return the services that are installed here and for which there are settings."""
    return [
        service
        for service, prefix in _PREFIXES.items()
        if any(name.startswith(prefix) for name in environ.keys() - OF_CALLERS) and find_spec(service) is not None
    ]


async def parts_beside(service: str, environ: Mapping[str, str]) -> AsyncGenerator[CheckedPart]:
    """Yield what a service finds out about itself, in a child that ends with this."""
    paths = ":".join(path for path in (_ROOT, environ.get("PYTHONPATH", "")) if path)
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", service, "check",
        env={**environ, "PYTHONPATH": paths},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await child.communicate()
    except TimeoutError:
        yield CheckedPart(service, False, f"Its check takes longer than {_SECONDS:.0f} s.", "see its addresses")
        return
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    found = [part for line in out.decode(errors="replace").splitlines() if (part := checked_part_of(line))]
    for part in found:
        yield part
    if not found:
        last = (err.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        yield CheckedPart(service, False, f"Its check ended: {last}", "install it anew")
