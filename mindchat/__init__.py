"""MindChat: multi-hop answers over your own documents, with uncertainty, sources and memory in plain sight.

Owns: the public names, loaded lazily (PEP 562), so that `import mindchat` costs nothing. Does not own: anything else.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # type checkers take it as true under this name; importing typing for it would double the cost of --version
)
if TYPE_CHECKING:
    from typing import Any

    from mindchat.config import Config, load_config
    from mindchat.errors import MindChatError
    from mindchat.events import Event
    from mindchat.session import Session
    from mindchat.trace import Trace, fold
    from mindchat.wiring import open_session

__version__ = "0.1.0"

_HOMES = {
    "Config": "mindchat.config",
    "Event": "mindchat.events",
    "MindChatError": "mindchat.errors",
    "Session": "mindchat.session",
    "Trace": "mindchat.trace",
    "fold": "mindchat.trace",
    "load_config": "mindchat.config",
    "open_session": "mindchat.wiring",
}

__all__ = ["Config", "Event", "MindChatError", "Session", "Trace", "fold", "load_config", "open_session"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mindchat' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
