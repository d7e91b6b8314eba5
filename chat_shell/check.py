"""`python -m chat_shell check`: look at the settings and at what they name, and change nothing."""

from collections.abc import AsyncGenerator, Mapping

import aiohttp

from chat_shell.reaching import read_certificates, read_codebook, read_model_entries
from chat_shell.settings import Settings
from shared.checked_parts import CheckedPart
from shared.environment import WrongSetting, read_settings

_BACKEND_SECONDS = 5.0
_SETTINGS = "chat_shell settings"


async def check_parts(environ: Mapping[str, str]) -> AsyncGenerator[CheckedPart]:
    """Yield what is found, part by part; behind wrong settings nothing can be looked at."""
    try:
        settings = read_settings(Settings, environ)
        read_codebook(settings)
        names = ", ".join(entry.name for entry in read_model_entries(settings, environ))
    except WrongSetting as wrong:
        yield CheckedPart(_SETTINGS, False, str(wrong), "correct this variable: docs/settings.md explains each")
        return
    yield CheckedPart(_SETTINGS, True, f"All can be read; the models are {names}.")
    yield await _backend(settings)


async def _backend(settings: Settings) -> CheckedPart:
    part, url = "way to the backend", settings.backend_url
    mend = "start the backend, or correct CHAT_SHELL_BACKEND_URL: without it no knowledge is found"
    try:
        connector = aiohttp.TCPConnector(ssl=read_certificates(settings).for_client())
        timeout = aiohttp.ClientTimeout(total=_BACKEND_SECONDS)
        session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        async with session, session.get(f"{url}/healthz") as answer:
            is_well = answer.status == 200
            return CheckedPart(part, is_well, f"{url} answers {answer.status}.", "" if is_well else mend)
    except (aiohttp.ClientError, TimeoutError) as error:
        return CheckedPart(part, False, f"{url} cannot be reached ({type(error).__name__}).", mend)
