"""`ballast`, which is `python -m cli` where it is not installed."""

import os
import sys

from cli.app import run_command


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    return run_command(sys.argv[1:], os.environ)


if __name__ == "__main__":
    sys.exit(main())
