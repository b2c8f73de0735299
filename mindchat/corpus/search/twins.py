"""Passages that say the same: which of them is indexed once for all.

Owns: the key under which two passages are one. Does not own: where the further ones stand (builder: places; registry:
places).
"""

from __future__ import annotations

import hashlib
from pathlib import PurePath

from mindchat.corpus.reading.readers import title_of
from mindchat.values import Passage


def content_key(passage: Passage) -> bytes:
    """Equal for the same text under the same heading and title; a title that only repeats the file's name tells no two
    copies apart.
    """
    file = PurePath(passage.document)
    # readers fall back on the stem, or on the whole name where the suffix belongs to it (code, tables)
    title = "" if passage.title in (title_of(file), file.name) else passage.title
    whole = "\0".join((title, passage.heading, passage.text))
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()
