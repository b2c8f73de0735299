"""One Milvus collection of passages: its schema, its calls, its errors in our words.

Owns: everything that touches pymilvus. Does not own: which passages belong in it (milvus), their texts (registry). The
terms are ours (analyze), joined by blanks, so that every language is stemmed, folded and cut as in the index on this
machine, whatever analyzers the server has; the server's BM25 function weighs them. A title counts `title_boost` times,
the weighted term frequency of simple BM25F (Robertson, Zaragoza and Taylor 2004).
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from mindchat.config import IndexSection
from mindchat.errors import ConfigError, ResourceError
from mindchat.paths import private
from mindchat.text.addresses import MASK, secrets_of, shown_address
from mindchat.text.clean import clean_line

_KEY_BYTES, _TEXT_BYTES = 64, 65_535
"""Longest texts of a Milvus VARCHAR field."""
_PAGE = 1000
_READS = frozenset({"query", "query_iterator", "search"})
"""Calls that Milvus answers from a loaded collection only."""


class Row(Struct, frozen=True):
    """A passage as Milvus keeps it."""

    key: str
    id: str
    uri: str
    print: str
    terms: str


class Collection:
    """A named collection on a server, or in a file of Milvus Lite."""

    def __init__(self, section: IndexSection, name: str) -> None:
        self.section, self.name = section, name
        self._client: Any = None
        self._loaded = False

    @property
    def client(self) -> Any:
        """The connection, made on first use. Raises ConfigError (no token), ResourceError (no pymilvus, no answer,
        refused).
        """
        if self._client is None:
            self._client = connect(self.section)
        return self._client

    def close(self) -> None:
        """Drop the connection."""
        client, self._client, self._loaded = self._client, None, False
        if client is not None:
            client.close()

    def _ask(self, verb: str, *args: Any, **options: Any) -> Any:
        if verb in _READS and not self._loaded:  # a server that was started anew has it on disk only
            asked(self.section, lambda: self.client.load_collection(self.name, timeout=self.section.milvus_timeout))
            self._loaded = True
        return asked(
            self.section, lambda: getattr(self.client, verb)(*args, timeout=self.section.milvus_timeout, **options)
        )

    # ── the collection
    # ───────────────────────────────────────────────────────────────────────────────────────────────────

    def exists(self) -> bool:
        """Whether the server has it."""
        return bool(self._ask("has_collection", self.name))

    def create(self) -> None:
        """Make it, empty and ready to be searched; reads see every finished write."""
        from pymilvus import DataType, Function, FunctionType

        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", DataType.VARCHAR, is_primary=True, max_length=_KEY_BYTES)
        for name in ("id", "uri"):
            schema.add_field(name, DataType.VARCHAR, max_length=_TEXT_BYTES)
        schema.add_field("print", DataType.VARCHAR, max_length=_KEY_BYTES)
        schema.add_field(
            "terms",
            DataType.VARCHAR,
            max_length=_TEXT_BYTES,
            enable_analyzer=True,
            analyzer_params={"tokenizer": "standard"},
        )
        schema.add_field("weights", DataType.SPARSE_FLOAT_VECTOR)
        schema.add_function(
            Function(
                name="bm25",
                function_type=FunctionType.BM25,
                input_field_names=["terms"],
                output_field_names=["weights"],
            )
        )
        index = self.client.prepare_index_params()
        params = {"bm25_k1": self.section.k1, "bm25_b": self.section.b}
        index.add_index(field_name="weights", index_type="SPARSE_INVERTED_INDEX", metric_type="BM25", params=params)
        self._ask("create_collection", self.name, schema=schema, index_params=index, consistency_level="Strong")

    def drop(self) -> None:
        """Remove it from the server."""
        self._ask("drop_collection", self.name)

    # ── rows
    # ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(self, rows: Sequence[Row]) -> None:
        """Insert or replace, by key."""
        self._ask("upsert", self.name, [{name: getattr(row, name) for name in Row.__struct_fields__} for row in rows])

    def delete(self, keys: Sequence[str]) -> None:
        """Remove, by key."""
        for start in range(0, len(keys), _PAGE):
            self._ask("delete", self.name, ids=list(keys[start : start + _PAGE]))

    def settle(self) -> None:
        """Ask the server to seal what was written, so that it is indexed and outlives a restart."""
        self._ask("flush", self.name)

    def prints(self) -> Iterator[tuple[str, str]]:
        """(key, fingerprint) of every row."""
        pages = self._ask(
            "query_iterator", self.name, batch_size=_PAGE, filter='key != ""', output_fields=["key", "print"]
        )
        try:
            while rows := asked(self.section, pages.next):
                yield from ((row["key"], row["print"]) for row in rows)
        finally:
            pages.close()

    def count(self) -> int:
        """Rows."""
        return int(self._ask("query", self.name, filter="", output_fields=["count(*)"])[0]["count(*)"])

    def search(self, terms: str, limit: int, within: Sequence[str]) -> list[tuple[str, str, float]]:
        """(passage id, uri of its document, score) of at most `limit` rows, best first."""
        found = self._ask(
            "search", self.name, data=[terms], anns_field="weights", limit=limit, filter=places(within), output_fields=["id", "uri"],
            search_params={"metric_type": "BM25", "params": {}},
        )  # fmt: skip
        # Milvus Lite gives BM25 as a distance, below 0; a server as a score
        return [(hit["entity"]["id"], hit["entity"]["uri"], abs(float(hit["distance"]))) for hit in found[0]]


class VectorRow(Struct, frozen=True):
    """A passage's vector as Milvus keeps it."""

    key: str
    id: str
    uri: str
    print: str
    vector: NDArray[np.float16]


class VectorCollection(Collection):
    """The vectors of the same passages, in a collection of its own: they come later than the words, one encoder's are
    no other's, and Milvus has no empty vector. In fp32, since Milvus Lite knows no fp16.
    """

    def make(self, dimension: int) -> None:
        """Make it, empty and ready to be searched."""
        from pymilvus import DataType

        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", DataType.VARCHAR, is_primary=True, max_length=_KEY_BYTES)
        for name in ("id", "uri"):
            schema.add_field(name, DataType.VARCHAR, max_length=_TEXT_BYTES)
        schema.add_field("print", DataType.VARCHAR, max_length=_KEY_BYTES)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=dimension)
        index = self.client.prepare_index_params()
        index.add_index(field_name="vector", index_type="AUTOINDEX", metric_type="COSINE")
        self._ask("create_collection", self.name, schema=schema, index_params=index, consistency_level="Strong")

    def put_vectors(self, rows: Sequence[VectorRow]) -> None:
        """Insert or replace, by key."""
        plain = [{name: getattr(row, name) for name in row.__struct_fields__} for row in rows]
        self._ask("upsert", self.name, [{**row, "vector": row["vector"].astype(np.float32).tolist()} for row in plain])

    def nearest(self, vector: NDArray[np.float32], limit: int, within: Sequence[str]) -> list[tuple[str, float]]:
        """(passage id, cosine) of at most `limit` rows, nearest first."""
        found = self._ask(
            "search", self.name, data=[vector.tolist()], anns_field="vector", limit=limit, filter=places(within),
            output_fields=["id"], search_params={"metric_type": "COSINE", "params": {}},
        )  # fmt: skip
        return [(hit["entity"]["id"], float(hit["distance"])) for hit in found[0]]


def places(within: Sequence[str]) -> str:
    """A filter for documents at or under the paths. As ranges: LIKE would need its own escaping."""
    parts = []
    for root in within:
        parts.append(f"uri == {_quoted(root)}")
        for end in ("/", "#"):
            start = root.rstrip("/") + end
            parts.append(f"(uri >= {_quoted(start)} and uri < {_quoted(start[:-1] + chr(ord(end) + 1))})")
    return " or ".join(parts)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def clipped(terms: Sequence[bytes]) -> str:
    """Terms joined by blanks, cut after the last one that a VARCHAR still holds."""
    size, kept = 0, []
    for term in terms:
        size += len(term) + 1
        if size > _TEXT_BYTES:
            break
        kept.append(term)
    return b" ".join(kept).decode("utf-8")


# ── the connection
# ───────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(section: IndexSection) -> str:
    """The address for messages, without a password that someone wrote into it."""
    return shown_address(section.milvus)


def connect(section: IndexSection) -> Any:
    """A pymilvus client. Raises ConfigError, ResourceError."""
    try:
        import pymilvus
    except ImportError as error:
        raise ResourceError(
            "index.milvus is set, but pymilvus is not installed.", 'pip install "mindchat[milvus]"'
        ) from error
    logging.getLogger("pymilvus").setLevel(
        logging.CRITICAL
    )  # it prints a traceback of every refused call beside raising it
    token = ""
    if section.milvus_token_env:
        token = os.environ.get(section.milvus_token_env, "")
        if not token:
            name = section.milvus_token_env
            raise ConfigError(
                f"index.milvus_token_env names {name}, which is not set.",
                f"export {name}=user:password (or the server's API key)",
            )
    uri = section.milvus
    if "://" not in uri:
        if not uri.endswith(".db"):
            raise ConfigError(
                f"index.milvus is neither an address nor a file ending in .db: {shown(section)}",
                "For example http://localhost:19530",
            )
        path = Path(uri).expanduser().resolve()
        private(path.parent)
        uri = str(path)
    return asked(section, lambda: pymilvus.MilvusClient(uri=uri, token=token, timeout=section.milvus_timeout))


def asked(section: IndexSection, call: Callable[[], Any]) -> Any:
    """What the call gives; its failures as ResourceError with the server's address and what to do."""
    import grpc
    from pymilvus.exceptions import MilvusException

    try:
        return call()
    except (MilvusException, grpc.RpcError, OSError, ImportError) as error:
        reason = str(getattr(error, "message", "") or error)
        for secret in secrets_of(section.milvus):
            reason = reason.replace(secret, MASK)
        reason = clean_line(reason, 300)
        raise ResourceError(
            f"Milvus at {shown(section)}: {reason}", _hint(section, f"{reason} {type(error).__name__}".lower())
        ) from error


def _hint(section: IndexSection, reason: str) -> str:
    if "auth" in reason or "permission" in reason or "unauthenticated" in reason:
        return (
            f"Check the token in ${section.milvus_token_env}."
            if section.milvus_token_env
            else "Set index.milvus_token_env."
        )
    if "milvus-lite" in reason or "milvus_lite" in reason:
        return "pip install milvus-lite, or set index.milvus to a server's address."
    if "deadline" in reason or "timeout" in reason or "timed out" in reason:
        return f"It did not answer within index.milvus_timeout ({section.milvus_timeout:g} s)."
    return "Check index.milvus and that the server runs; an empty index.milvus searches on this machine."
