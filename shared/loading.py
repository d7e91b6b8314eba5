"""Loading an adapter only when a setting chooses it: an unused library costs neither memory nor start-up."""

import pkgutil
from typing import Any


def load(reference: str) -> Any:
    """Return the object behind `package.module:name`; the caller says which port it fills."""
    return pkgutil.resolve_name(reference)
