"""The library of Milvus, loaded where a setting chooses it: an extra, which most deployments do not install."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class MilvusLibrary(NamedTuple):
    """What is used of pymilvus: its client, the kinds of fields, and what its calls raise."""

    connect: Callable[..., Any]
    kinds: Any
    errors: tuple[type[Exception], ...]


def load_milvus() -> MilvusLibrary:
    """Import pymilvus.

    Raises:
        ValueError: it is not installed.
    """
    try:
        # By name, since type checkers and most environments do not have it.
        library = import_module("pymilvus")
        grpc = import_module("grpc")
    except ImportError:
        raise ValueError("Milvus needs pymilvus: install requirements/milvus.txt, or ballast[milvus]") from None
    errors = (library.MilvusException, grpc.RpcError, OSError, TimeoutError)
    return MilvusLibrary(library.AsyncMilvusClient, library.DataType, errors)
