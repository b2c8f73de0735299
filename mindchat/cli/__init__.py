"""The command line's door: `mindchat` and `python -m mindchat` come in here.

Owns: main, and the answer to --version, which needs nothing else to be loaded. Does not own: commands (app.py), errors
(command_runner.py).
"""

from __future__ import annotations

import sys

VERSION_FLAGS = (["--version"], ["-V"])


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code (errors.py)."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in VERSION_FLAGS:
        from mindchat import __version__

        sys.stdout.write(f"mindchat {__version__}\n")
        return 0
    from mindchat.cli.command_runner import leave, run

    return leave(run(arguments))
