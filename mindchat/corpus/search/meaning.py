"""How near the passages of an index are to a question in meaning, where there are vectors; where not, why.

Owns: bringing vectors and encoder together, what is said about missing ones. Does not own: either of them (vectors,
ports), mixing (dense).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mindchat.corpus.search.vectors import Vectors
from mindchat.ports import FindsEncoder

if TYPE_CHECKING:
    from mindchat.corpus.search.generations import Manifest

INSTEAD = "searching by words and names"


class Meaning:
    """The last question's vector is kept: one search may ask for it twice, and a question may be searched again."""

    def __init__(self, vectors: Vectors, encoder: FindsEncoder) -> None:
        self._vectors, self._encoder = vectors, encoder
        self._wide: Vectors | None = None
        self._last: tuple[str, NDArray[np.float32]] | None = None

    def likeness(self, question: str) -> NDArray[np.float32]:
        """Vectors.likeness to a question in words. Raises what the encoder raises when it is loaded."""
        if self._wide is None:
            self._wide = self._vectors.widened()
        return self._wide.likeness(self.vector(question))

    def vector(self, question: str) -> NDArray[np.float32]:
        """The question's vector."""
        if self._last is None or self._last[0] != question:
            self._last = question, self._encoder.load().question(question)
        return self._last[1]


def open_meaning(
    generation: Path, manifest: Manifest, damaged: bool, encoder: FindsEncoder | None, notify: Callable[[str], None]
) -> Meaning | None:
    """The vectors of a generation; None, told, if they cannot be used; told too if some are missing."""
    usable = encoder is not None and can_encode(encoder, notify)
    if encoder is None or not usable:
        return None
    if damaged:
        notify(f"The vectors are damaged; {INSTEAD}. mindchat index rebuild mends them.")
        return None
    held = manifest.vectors if manifest.encoder == encoder.id() else 0
    tell_missing(held, manifest.passages, notify)
    return Meaning(Vectors.load(generation / "vectors"), encoder) if held else None


def can_encode(encoder: FindsEncoder, notify: Callable[[str], None]) -> bool:
    """Whether the encoder is here; told if not."""
    here = encoder.id() is not None
    if not here:
        notify(
            f"retrieve.dense is on, but the encoder {encoder.name} is not on this machine; {INSTEAD}. mindchat index"
            " encode fetches it."
        )
    return here


def tell_missing(held: int, passages: int, notify: Callable[[str], None]) -> None:
    """Say how many passages have no vector of this encoder."""
    if not held:
        notify(f"retrieve.dense is on, but no passage has a vector yet; {INSTEAD}. mindchat index encode makes them.")
    elif held < passages:
        notify(
            f"{held:,} of {passages:,} passages have a vector; the others are found by words and names only. mindchat"
            " index encode makes the rest."
        )
