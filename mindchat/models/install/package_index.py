"""Where packages come from on this machine: the user's pip settings, read without pip, and the search for one file.

Owns: pip's configuration (files, environment, their precedence; uv's variables where pip has none), the HTTP client
with the user's certificates and proxies, and finding the URL of a wheel. Does not own: downloading it (download). No
package is installed or imported.
Source: pip's documented configuration, https://pip.pypa.io/en/stable/topics/configuration/. Index pages are read by
`unearth`, whose default index is used where the user names none; no registry's address stands here.
"""

from __future__ import annotations

import configparser
import logging
import os
import re
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from msgspec import Struct

from mindchat.errors import ConfigError, DownloadError
from mindchat.models.install.download import Remote
from mindchat.text.clean import clean_line

if TYPE_CHECKING:
    from unearth import PackageFinder
    from unearth.fetchers.sync import PyPIClient

_SECTIONS = ("global", "download")
"""Sections of pip.conf that a download obeys, the later one winning."""
_UV = {
    "index-url": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "extra-index-url": ("UV_INDEX", "UV_EXTRA_INDEX_URL"),
    "find-links": ("UV_FIND_LINKS",),
    "no-index": ("UV_NO_INDEX",),
}
"""Where pip is silent, an environment made by uv speaks."""
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


class PipSettings(Struct, frozen=True):
    """What pip would use."""

    index_url: str = ""
    """Empty: the default index."""
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    trusted_hosts: tuple[str, ...] = ()
    cert: str = ""
    """A bundle file or a folder; empty: the system's certificates."""
    client_cert: str = ""
    proxy: str = ""
    """Empty: the proxies of the environment."""
    timeout: float = 15.0
    """Seconds without a byte."""


def config_files(env: Mapping[str, str], *, platform: str = sys.platform, prefix: str = sys.prefix) -> list[Path]:
    """pip's configuration files, weakest first; existing or not."""
    chosen = env.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return []
    home = Path(env.get("USERPROFILE" if platform == "win32" else "HOME") or Path.home())
    name = "pip.ini" if platform == "win32" else "pip.conf"
    if platform == "win32":
        everyone = [Path(env.get("PROGRAMDATA", r"C:\ProgramData")) / "pip" / name]
        own = [home / "pip" / name, Path(env.get("APPDATA", str(home / "AppData" / "Roaming"))) / "pip" / name]
    else:
        folders = [part for part in env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(os.pathsep) if part]
        everyone = [*(Path(part) / "pip" / name for part in folders), Path("/etc") / name]
        mine = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "pip"
        if platform == "darwin":
            everyone = [Path("/Library/Application Support/pip") / name]
            support = home / "Library/Application Support/pip"
            mine = support if support.is_dir() else home / ".config" / "pip"
        own = [home / ".pip" / name, mine / name]
    if chosen and Path(chosen).exists():  # then pip skips the user's own files
        own = []
    return [*everyone, *own, Path(prefix) / name, *([Path(chosen)] if chosen else [])]


def pip_settings(env: Mapping[str, str] = os.environ, *, files: Sequence[Path] | None = None) -> PipSettings:
    """The settings in force. Raises ConfigError naming a configuration file that cannot be read."""
    values: dict[str, str] = {}
    for file in config_files(env) if files is None else files:
        values |= _read(file)
    for key, names in _UV.items():
        if key not in values and f"PIP_{_variable(key)}" not in env:
            # uv allows a name before the address: "internal=https://…"
            words = [re.sub(r"^[\w-]+=(?=\w+:)", "", word) for name in names for word in env.get(name, "").split()]
            values |= {key: " ".join(words)} if words else {}
    # As in pip, an empty variable counts: PIP_EXTRA_INDEX_URL= switches the file's entry off.
    values |= {name[4:].lower().replace("_", "-"): value for name, value in env.items() if name.startswith("PIP_")}
    return PipSettings(
        index_url=values.get("index-url", "").strip(),
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").strip().lower() in ("1", "true", "yes", "on", "y", "t"),
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        cert=values.get("cert", "").strip() or next((env[name] for name in _CERTIFICATES if env.get(name)), ""),
        client_cert=values.get("client-cert", "").strip(),
        proxy=values.get("proxy", "").strip(),
        timeout=_seconds(values.get("default-timeout") or values.get("timeout", "")),
    )


def _variable(key: str) -> str:
    return key.upper().replace("-", "_")


def _seconds(text: str) -> float:
    try:
        return max(1.0, float(text))
    except ValueError:
        return 15.0


def _read(file: Path) -> dict[str, str]:
    """The file's settings that concern a download; a missing file has none."""
    parser = configparser.RawConfigParser()
    try:
        parser.read(file, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError) as error:
        raise ConfigError(
            f"pip's configuration {file} cannot be read: {clean_line(str(error), 200)}.",
            "`pip config debug` shows it too.",
        ) from error
    found: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            found |= {key.lower().replace("_", "-"): value for key, value in parser.items(section)}
    return found


# ── client and search
# ────────────────────────────────────────────────────────────────────────────────────────────────────


def open_client(settings: PipSettings, *, registry: bool = True) -> PyPIClient:
    """An HTTP client with the user's certificates and proxies; reads file: URLs too. Close it after use.

    `registry`: with the credentials of the package indexes (address, netrc, keyring), which no other server shall see.
    """
    from unearth.auth import MultiDomainBasicAuth
    from unearth.fetchers.sync import PyPIClient

    logging.getLogger("unearth").addHandler(
        logging.NullHandler()
    )  # its warnings would reach the screen; what matters is raised here
    urls = [url for url in (settings.index_url, *settings.extra_index_urls) if url]
    more: dict[str, Any] = {"proxy": settings.proxy} if settings.proxy else {}
    client = PyPIClient(
        trusted_hosts=settings.trusted_hosts,
        verify=_verify(settings),
        follow_redirects=True,
        timeout=settings.timeout,
        **more,
    )
    if registry:
        # prompting would wait on standard input for a password that nobody is asked for
        client.auth = MultiDomainBasicAuth(prompting=False, index_urls=urls)
    return client


def _verify(settings: PipSettings) -> ssl.SSLContext | bool:
    if not settings.cert and not settings.client_cert:
        return True
    try:
        where = Path(settings.cert) if settings.cert else None
        context = ssl.create_default_context(
            cafile=str(where) if where and not where.is_dir() else None,
            capath=str(where) if where and where.is_dir() else None,
        )
        if settings.client_cert:
            context.load_cert_chain(settings.client_cert)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"The certificates in {settings.cert or settings.client_cert} cannot be read: {error}.",
            "pip's settings cert and client-cert name them.",
        ) from error
    return context


def find_wheel(client: PyPIClient, settings: PipSettings, package: str, version: str) -> Remote:
    """The wheel of exactly this version: local folders first, then the index, then the extra ones.

    One source that does not answer does not hide the others. Raises DownloadError if none has the wheel.
    """
    import httpx2
    from unearth import PackageFinder

    silent: list[str] = []
    for source in _sources(settings):
        # cast: the library's own client does not fit its own protocol
        finder = PackageFinder(
            session=cast("Any", client),
            ignore_compatibility=True,
            only_binary=[":all:"],
            trusted_hosts=settings.trusted_hosts,
            **source,
        )
        try:
            if found := _first(finder, package, version):
                return found
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            silent.append(f"{_host(finder.sources[0]['url'])}: {clean_line(str(error), 120) or type(error).__name__}")
    if silent:
        where = "; ".join(silent)
        raise DownloadError(
            f"The package registry cannot be reached ({where}).",
            "Check the network and pip's settings (index-url, proxy, cert).",
        )
    raise DownloadError(
        f"No package source offers {package} {version} as a wheel.",
        "The sources are those of pip: `pip config list` shows them.",
    )


def _sources(settings: PipSettings) -> Iterator[dict[str, Any]]:
    """One set of finder arguments a source; an empty one means the finder's default index."""
    for link in settings.find_links:
        if "://" in link:
            yield {"find_links": [link]}
        elif Path(link).expanduser().exists():
            yield {"find_links": [str(Path(link).expanduser())]}
    if not settings.no_index:
        yield {"index_urls": [settings.index_url]} if settings.index_url else {}
        yield from ({"index_urls": [url]} for url in settings.extra_index_urls)


def _first(finder: PackageFinder, package: str, version: str) -> Remote | None:
    for match in finder.find_matches(f"{package}=={version}"):
        link = match.link
        if link.is_wheel:
            hashes = link.hash_option or {}
            name = re.sub(r"[^\w.+-]", "_", link.filename)
            return Remote(name, link.url_without_fragment, (hashes.get("sha256") or [""])[0])
    return None


def _host(url: str) -> str:
    """The address without user name and password."""
    parts = urlsplit(url)
    return parts.hostname or clean_line(url, 80)
