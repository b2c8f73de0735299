"""A package registry and a model hub on this machine, and a GGUF file small enough to convert in a test."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from mindchat.models.install import catalogue, hub
from mindchat.models.install.catalogue import Entry, Wheels

PAYLOAD = bytes(range(256)) * 4000
"""Stands for a GGUF file where its content does not matter: 1,024,000 bytes."""


class Site:
    """What the server serves, how it misbehaves, and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.types: dict[str, str] = {}
        self.cut: dict[str, int] = {}
        """Path -> break the connection after so many bytes, once."""
        self.status: dict[str, list[int]] = {}
        """Path -> answers to give before the real one."""
        self.ranges = True
        self.pace = 0.0
        """Seconds between two blocks of 16 kB."""
        self.asked: list[tuple[str, str, str]] = []
        """(path, Range, Authorization)"""
        self.url = ""

    def put(self, path: str, body: bytes, type: str = "application/octet-stream") -> str:
        self.files[path], self.types[path] = body, type
        return self.url + path

    def package(
        self, name: str, version: str, payload: dict[str, bytes], *, hashed: bool = True, html: bool = False
    ) -> bytes:
        """Publish a wheel with these members."""
        made = wheel_bytes(payload)
        file = f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
        self.put(f"/files/{file}", made)
        digest = hashlib.sha256(made).hexdigest()
        if html:
            mark = f"#sha256={digest}" if hashed else ""
            self.put(
                f"/simple/{name}/", f'<html><a href="../../files/{file}{mark}">{file}</a></html>'.encode(), "text/html"
            )
        else:
            listed = {"filename": file, "url": f"../../files/{file}", "hashes": {"sha256": digest} if hashed else {}}
            index = {"meta": {"api-version": "1.0"}, "name": name, "files": [listed]}
            self.put(f"/simple/{name}/", json.dumps(index).encode(), "application/vnd.pypi.simple.v1+json")
        return made

    def asked_for(self, path: str) -> list[str]:
        """The Range headers of the requests for a path."""
        return [span for where, span, _ in self.asked if where == path]


def wheel_bytes(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return buffer.getvalue()


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

        def do_GET(self) -> None:
            path, span = self.path.partition("?")[0], self.headers.get("Range", "")
            site.asked.append((path, span, self.headers.get("Authorization", "")))
            if site.status.get(path):
                return self._answer(site.status[path].pop(0), b"", {})
            if path not in site.files:
                return self._answer(404, b"", {})
            body, start = site.files[path], 0
            if span and site.ranges:
                start = int(span.removeprefix("bytes=").rstrip("-"))
                if start >= len(body):
                    return self._answer(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            more = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
            return self._answer(
                206 if start else 200,
                body[start:],
                {"Content-Type": site.types[path], **more},
                site.cut.pop(path, None),
            )

        def _answer(self, status: int, body: bytes, headers: dict[str, str], cut: int | None = None) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            sent = body if cut is None else body[:cut]
            try:
                for at in range(0, len(sent), 16384):
                    self.wfile.write(sent[at : at + 16384])
                    time.sleep(site.pace)
            except OSError:
                self.close_connection = True
            if cut is not None:
                self.close_connection = True

    return Handler


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A server of one's own, to which pip's settings and the hub's endpoint point; nothing else is reachable by name."""
    import os

    for name in list(os.environ):
        if name.upper().startswith(("PIP_", "UV_", "HF_")) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)
    here = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(here))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    here.url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{here.url}/simple")
    hub._user_is_offline.cache_clear()
    yield here
    server.shutdown()
    server.server_close()
    thread.join()
    hub._user_is_offline.cache_clear()


def make_entry(payload: bytes = PAYLOAD, parts: int = 3, **changes: Any) -> Entry:
    """An entry whose GGUF travels in `parts` wheels fake-model-part1 …"""
    values: dict[str, Any] = {
        "id": "fake",
        "title": "Fake",
        "licence": "Apache-2.0",
        "source": Wheels("fake-model-part{n}", "1.0", parts, "fake_model_part{n}/data/part*.bin"),
        "parameters": 1000,
        "window": 64,
        "layers": 1,
        "kv_heads": 1,
        "head_dim": 16,
        "vocabulary": 300,
        "download_bytes": len(payload),
        "file_bytes": len(payload),
        "sha256": hashlib.sha256(payload).hexdigest(),
    }
    return Entry(**{**values, **changes})


@pytest.fixture
def publish(site: Site) -> Callable[..., Entry]:
    """Publish a payload as the wheels of an entry, and return the entry."""

    def make(payload: bytes = PAYLOAD, parts: int = 3, **changes: Any) -> Entry:
        size = -(-len(payload) // parts)
        for n in range(1, parts + 1):
            member = {
                f"fake_model_part{n}/data/part{n}.bin": payload[(n - 1) * size : n * size],
                f"fake_model_part{n}/__init__.py": b"raise SystemExit(1)",
            }
            site.package(f"fake-model-part{n}", "1.0", member, html=n == 2)
        return make_entry(payload, parts, **changes)

    return make


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[Entry], None]]:
    """Make an entry the whole catalogue."""

    def only(entry: Entry) -> None:
        import msgspec

        table = msgspec.to_builtins(entry)
        inline = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.pop("source").items())
        lines = [
            "[[model]]",
            *(f"{key} = {json.dumps(value)}" for key, value in table.items()),
            f"source = {{ {inline} }}",
        ]
        file = tmp_path / "catalogue.toml"
        file.write_text("\n".join(lines))
        monkeypatch.setattr(catalogue, "FILE", file)
        catalogue.catalogue.cache_clear()

    yield only
    catalogue.catalogue.cache_clear()


# ── a GGUF file
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{%"
    " endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_alphabet() -> list[str]:
    """The 256 characters by which byte-level vocabularies write bytes (GPT-2's table), in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(spare)) for byte in range(256)]


def write_gguf(path: Path, *, separate_head: bool) -> dict[str, Any]:
    """A Llama of one layer, partly in Q4_1; returns tensor name -> the exact fp32 values that the file stands for."""
    import gguf
    import numpy as np

    width, inner, heads = 32, 64, 2
    words = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *byte_alphabet(), "Ġt", "he"]
    words += [f"<|spare{n}|>" for n in range(-len(words) % 32)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(width)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_merges(["Ġ t", "h e"])
    writer.add_token_types([3, 3, 3, *[1] * (len(words) - 3)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHATML)
    random = np.random.default_rng(0)
    shapes = {
        "token_embd": (len(words), width),
        "blk.0.ffn_gate": (inner, width),
        "blk.0.ffn_up": (inner, width),
        "blk.0.ffn_down": (width, inner),
    }
    shapes |= {f"blk.0.attn_{part}": (width, width) for part in ("q", "k", "v", "output")}
    shapes |= {name: (width,) for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")}
    if separate_head:
        shapes["output"] = (len(words), width)
    exact: dict[str, Any] = {}
    for name, shape in shapes.items():
        values = random.normal(size=shape).astype(np.float32)
        if len(shape) == 2:
            packed = gguf.quantize(values, gguf.GGMLQuantizationType.Q4_1)
            writer.add_tensor(f"{name}.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
            values = gguf.dequantize(packed, gguf.GGMLQuantizationType.Q4_1)
        else:
            writer.add_tensor(f"{name}.weight", values)
        exact[name] = values
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return exact


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A GGUF file without a separate output matrix, and its exact values. Copy it before changing it."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return path, write_gguf(path, separate_head=False)


@pytest.fixture(scope="session")
def converted(tiny_gguf: tuple[Path, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny GGUF, converted once for all tests. Copy it before changing it."""
    from mindchat.models.install.convert import convert

    folder = tmp_path_factory.mktemp("models") / "tiny"
    for _ in convert(tiny_gguf[0], folder, name="tiny", sha256="ab" * 32):
        pass
    return folder


@pytest.fixture
def quick_convert(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the conversion itself is not the matter: copies the converted folder instead of starting a child."""
    import msgspec

    from mindchat.models.install import model_store
    from mindchat.models.install.convert import STEPS, ConvertProgress
    from mindchat.models.install.manifest import read_manifest, write_manifest

    def copy(gguf: Path, target: Path, *, name: str, sha256: str) -> Iterator[ConvertProgress]:
        yield ConvertProgress(STEPS[0], 0, 3, 0.0)
        shutil.copytree(converted, target)
        manifest = read_manifest(target)
        assert manifest is not None
        stat = gguf.stat()
        write_manifest(
            target,
            msgspec.structs.replace(
                manifest, sha256=sha256, source_size=stat.st_size, source_mtime_ns=stat.st_mtime_ns
            ),
        )

    monkeypatch.setattr(model_store, "convert", copy)
