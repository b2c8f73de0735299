"""`python -m mindchat`: the same as the `mindchat` command."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from mindchat.child_process import leave_current_folder

    leave_current_folder()  # before anything else is imported
    from mindchat.cli import main

    sys.exit(main())
