"""Addresses of servers as they may be shown: without the credentials that someone wrote into them.

Owns: shown_address(), holds_secret(), without_secrets(). Does not own: where a key belongs (server.key_env,
index.milvus_token_env). Works on text, not on a parsed URL: an address that cannot be parsed must not be shown in full
for that reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from mindchat.text.clean import clean_line

ADDRESSES = {"server.url": "server.key_env", "index.milvus": "index.milvus_token_env"}
"""Settings whose value is an address → the setting that names the variable with its key."""
MASK = "…"
_USER = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*:)?//|)(.*)@", re.DOTALL)
# up to the last @: a password may hold / ? and # although it should not, and then too much is masked rather than too
# little
_QUERY = re.compile(r"[?#].*$", re.DOTALL)


def shown_address(address: str) -> str:
    """The address on one line; user, password, query and fragment (where keys are put) are replaced by a mark."""
    masked = _USER.sub(rf"\1{MASK}@", address.strip())
    return clean_line(_QUERY.sub(lambda found: found[0][0] + MASK, masked))


def holds_secret(address: str) -> bool:
    """Whether the address carries something that must not be shown or stored."""
    return shown_address(address) != clean_line(address.strip())


def without_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by dotted key, as they may be printed and stored."""
    return {
        key: shown_address(value) if key in ADDRESSES and isinstance(value, str) else value
        for key, value in settings.items()
    }


def secrets_of(address: str) -> tuple[str, ...]:
    """The parts that are masked, longest first: a server or a library may repeat them in its own words."""
    parts = {part for found in _USER.finditer(address.strip()) for part in (found[2], found[2].partition(":")[2])}
    parts |= {
        value
        for found in _QUERY.finditer(address.strip())
        for value in (found[0][1:], *re.findall(r"=([^&#]+)", found[0]))
    }
    parts |= {unquote(part) for part in parts}
    return tuple(sorted((part for part in parts if len(part) > 2), key=len, reverse=True))
