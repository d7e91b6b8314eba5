"""The service and its check, of which one is imported behind what prepares the process."""

from collections.abc import Coroutine, Mapping

from chat_shell.settings import Settings
from shared.checked_parts import print_parts


def prepare_serving(settings: Settings, environ: Mapping[str, str]) -> Coroutine[None, None, None]:
    """Return what serves until it is told to stop."""
    from chat_shell.app import serve

    return serve(settings, environ)


def prepare_check(environ: Mapping[str, str]) -> Coroutine[None, None, None]:
    """Return what looks at the settings and ends."""
    from chat_shell.check import check_parts

    return print_parts(check_parts(environ))
