"""What a repository of the model hub holds, and which of its files a model needs.

Owns: listing a repository at one revision, choosing files (safetensors weights, config, tokenizer; never pickles), the
licence its maker states. Does not own: downloading (download) and loading (hf). Endpoint, token and their environment
variables are huggingface_hub's own; its downloader is not used, because a pull must be cancellable and show one
progress for all files.
"""

from __future__ import annotations

import functools
import os
from fnmatch import fnmatch
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from mindchat.errors import DownloadError, UsageError
from mindchat.models.install.download import Remote
from mindchat.models.install.manifest import MARKER, flat, is_plain
from mindchat.text.clean import clean_line
from mindchat.text.foreign_json import decode_json

if TYPE_CHECKING:
    import httpx2

_WANTED = (
    "*.safetensors",
    "*.json",
    "*.model",
    "*.jinja",
    "merges.txt",
    "vocab.txt",
    "LICENSE*",
    "NOTICE*",
    "USE_POLICY*",
)
POOLING = "1_Pooling/config.json"
"""How an encoder makes one vector of many; sentence-transformers keeps it in a folder of its own."""
MOST = 32 << 20
"""Bytes of the hub's answer about a repository."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"}


class _Large(Struct, frozen=True):
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}\\Z")] | None = None
    size: Annotated[int, Meta(ge=0)] | None = None


class _File(Struct, frozen=True):
    rfilename: str
    size: Annotated[int, Meta(ge=0)] | None = None
    lfs: _Large | None = None


class _Told(Struct, frozen=True):
    """What is read of the hub's answer. The revision becomes a folder's name, so it must be a commit and cannot be a
    path.
    """

    sha: Annotated[str, Meta(pattern="^[0-9a-f]{4,64}\\Z")]
    siblings: tuple[_File, ...]
    cardData: dict[str, Any] | None = None


class Listing(Struct, frozen=True):
    """The files of one revision."""

    repo: str
    revision: str
    """Commit."""
    files: tuple[Remote, ...]
    licence: str
    """As the repository's card states it; "unknown" if it does not."""


def stay_offline() -> None:
    """Tell transformers, before it is imported, never to look at the hub: models are read from folders only."""
    _user_is_offline()  # remember the user's wish before it is overlaid
    for name, value in OFFLINE.items():
        os.environ.setdefault(name, value)


@functools.cache
def _user_is_offline() -> bool:
    """Whether HF_HUB_OFFLINE was set from outside; asked once, because stay_offline sets it too."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")


def list_files(client: httpx2.Client, repo: str) -> Listing:
    """Ask the hub. Raises DownloadError (no connection, no access), UsageError (no such repository, nothing usable in
    it).
    """
    import httpx2
    from huggingface_hub import constants, get_token, hf_hub_url

    if _user_is_offline():
        raise DownloadError(
            f"{repo} is not on this machine, and HF_HUB_OFFLINE is set.",
            "Unset it to pull, or name a folder or a .gguf file.",
        )
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        status, body = _ask(client, f"{constants.ENDPOINT}/api/models/{repo}", headers)
    except httpx2.HTTPError as error:
        raise DownloadError(
            f"The model hub cannot be reached: {clean_line(str(error), 160) or type(error).__name__}.",
            "Check the network; models from the package registry (`mindchat models list`), folders and .gguf files work"
            " without the hub.",
        ) from error
    if status != 200:
        raise _refused(repo, status)
    try:
        told = decode_json(body, type=_Told)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DownloadError(
            f"The hub's answer about {repo} makes no sense.", "Check HF_ENDPOINT, or try again later."
        ) from error
    chosen = tuple(
        _remote(item, hf_hub_url(repo, item.rfilename, revision=told.sha), headers) for item in _choose(told.siblings)
    )
    return _usable(Listing(repo, told.sha, chosen, _licence(told.cardData or {})))


def _ask(client: httpx2.Client, url: str, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body. Raises DownloadError for a body without end, and what the client raises."""
    body = bytearray()
    with client.stream(
        "GET", url, params={"blobs": "true"}, headers={**headers, "Accept-Encoding": "identity"}
    ) as response:
        for block in response.iter_bytes():
            body += block
            if len(body) > MOST:
                raise DownloadError("The hub's answer does not end.", "Check HF_ENDPOINT, or try again later.")
        return response.status_code, bytes(body)


def _choose(siblings: tuple[_File, ...]) -> list[_File]:
    """Files of the top folder that a model needs, each name once, and an encoder's pooling."""
    siblings = tuple({item.rfilename.lower(): item for item in siblings}.values())
    names = [item.rfilename for item in siblings]
    whole = any(fnmatch(name, "model*.safetensors") for name in names)
    # Mistral's repositories hold the same weights twice
    return [
        item
        for item, name in zip(siblings, names, strict=True)
        if name == POOLING
        or (
            is_plain(name)
            and name.lower() != MARKER
            and any(fnmatch(name, wish) for wish in _WANTED)
            and not (whole and fnmatch(name, "consolidated*"))
        )
    ]


def _remote(item: _File, url: str, headers: dict[str, str]) -> Remote:
    large = item.lfs or _Large()
    return Remote(flat(item.rfilename), url, large.sha256 or "", item.size or large.size or 0, headers=headers)


def _licence(card: dict[str, Any]) -> str:
    stated = card.get("license_name") if card.get("license") == "other" else card.get("license")
    return clean_line(str(stated or "unknown"), 80)


def _usable(listing: Listing) -> Listing:
    names = {file.name for file in listing.files}
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        raise UsageError(
            f"{listing.repo} holds no model that can be read here (config.json and *.safetensors are needed).",
            "For a repository of GGUF files, download one of them and give its path as the model's name.",
        )
    return listing


def _refused(repo: str, status: int) -> DownloadError | UsageError:
    if status in (401, 403):
        # the hub answers 401 for a private and for a missing repository alike
        return DownloadError(
            f"The hub gives no access to {repo} (it answers {status}).",
            "Check the name; for a gated model accept its licence there, then set HF_TOKEN.",
        )
    if status == 404:
        return UsageError(f"The hub has no repository {repo}.", "Check the spelling: owner/name.")
    return DownloadError(f"The hub answers {status} for {repo}.", "Try again later.")
