"""`python -m mindchat`: the same as the `mindchat` command."""

from __future__ import annotations

import sys

from mindchat.cli import main

if __name__ == "__main__":
    sys.exit(main())
