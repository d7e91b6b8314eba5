"""A real pgbouncer in transaction mode, Debian's program, before a PostgreSQL of the tests."""

import os
import shutil
from pathlib import Path

from deploy.demo.children import Child, ChildSpec
from tests.servers.places import new_directory
from tests.servers.ports import free_port

PROGRAM = "/usr/sbin/pgbouncer"
_USER = "nobody"
_SETTINGS = """[databases]
* = host=127.0.0.1 port={target} user=ballast

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
"""


class PgBouncer:
    """Lends each transaction one of twenty sessions."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._root = new_directory("pgbouncer")
        settings = Path(self._root) / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(target=target, port=self.port))
        settings.chmod(0o644)
        as_user = ("-u", _USER) if os.geteuid() == 0 else ()  # it refuses to run as root
        self.child = Child(
            ChildSpec(
                name="pgbouncer",
                command=[PROGRAM, *as_user, str(settings)],
                environment={"PATH": os.defpath},
                directory=self._root,
                log_path=self._root / "pgbouncer.log",
            )
        )

    def close(self) -> None:
        """Stop it and delete its settings."""
        self.child.stop()
        shutil.rmtree(self._root, ignore_errors=True)
