"""Names of settings: those that do not exist but look like ours, and those that Kubernetes injects."""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

SERVICE_LINKS_HINT = (
    "Kubernetes injects it for a Service of that name: set enableServiceLinks: false in the pod's specification"
)

OF_CALLERS = frozenset({"BACKEND_URL"})
"""Where callers find the backend: `make run` prints it to be exported, so it is no typing error of a setting."""

_FILE = "_FILE"
_ALIKE = 0.6
_TYPING_ERROR = 0.85
# https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables
_LINK_NAME = re.compile(r"_SERVICE_HOST|_SERVICE_PORT(_[A-Z0-9_]+)?|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
_LINK_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


def unknown_names(prefix: str, known: Collection[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that are set, begin with the prefix and are neither settings, injected nor for callers."""
    taken = {*OF_CALLERS, *known, *(f"{name}{_FILE}" for name in known)}
    ours = (name for name, value in environ.items() if value and name.startswith(prefix) and name not in taken)
    return tuple(sorted(name for name in ours if not is_injected(name, environ[name])))


def find_injected(prefix: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables with the prefix that Kubernetes injects for a Service whose name begins like ours."""
    ours = (name for name in environ if name.startswith(prefix))
    return tuple(sorted(name for name in ours if is_injected(name, environ[name])))


def is_injected(name: str, value: str) -> bool:
    """Whether a variable is one of those that tell a pod where a Service is."""
    is_address = name.endswith("_PORT") and _LINK_ADDRESS.match(value) is not None
    return is_address or any(match.end() == len(name) for match in _LINK_NAME.finditer(name))


def nearest_name(name: str, prefix: str, known: Iterable[str]) -> str | None:
    """Return the known name that was probably meant; of a name for a file, that for its file."""
    if name.endswith(_FILE):
        found = nearest_name(name.removesuffix(_FILE), prefix, known)
        return f"{found}{_FILE}" if found is not None else None
    # What all names begin with would make all of them alike.
    rests = {each.removeprefix(prefix): each for each in known}
    nearest = get_close_matches(name.removeprefix(prefix), rests, n=1, cutoff=_ALIKE)
    return rests[nearest[0]] if nearest else None


def find_typing_error(name: str, environ: Mapping[str, str], known: Collection[str]) -> str | None:
    """Return a variable that is set and no setting, and whose name is nearly that of a missing setting."""
    others = [other for other, value in environ.items() if value and other not in known]
    return next(iter(get_close_matches(name, others, n=1, cutoff=_TYPING_ERROR)), None)
