"""`ballast`, which is `python -m cli` where it is not installed."""

import os
import signal
import sys
from pathlib import Path

from cli.advice import ExitCode
from cli.app import run_command
from cli.demo import with_demo


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run_command(sys.argv[1:], with_demo(os.environ, Path.cwd()))
    except BrokenPipeError:
        # what is still to be written goes nowhere: the interpreter would complain as it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.PARTLY_FAILED


if __name__ == "__main__":
    sys.exit(main())
