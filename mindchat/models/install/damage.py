"""A model folder that cannot be loaded, in one sentence; and libraries that say nothing meanwhile.

Owns: what the exceptions of transformers, tokenizers, safetensors and torch mean to a user; keeping their reports off
the terminal.
Does not own: loading (hf), converting (convert), whether a fetched file is the expected one (manifest, download). A
folder is data of a stranger, and a library may raise anything over it: here, and nowhere else in models, everything is
caught.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mindchat.errors import MindChatError, ModelMissingError, ModelTooLargeError
from mindchat.models.install.manifest import MARKER
from mindchat.text.clean import clean_line

MEMORY = ("can't allocate memory", "out of memory", "MemoryError", "bad_alloc")
_MEANINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("weights are missing",), "a part of its weights is missing"),
    (("ImportError", "ModuleNotFoundError"), "it needs a package that is not installed"),
    (("trust_remote_code", "contains custom code"), "it needs code of its own, which is never run"),
    (
        ("does not recognize this architecture", "Unrecognized configuration class"),
        "its architecture is no text model that is known here",
    ),
    (
        ("ignore_mismatched_sizes", "size mismatch", "shape mismatch"),
        "its weights have other shapes than its config.json says",
    ),
    (("RecursionError",), "one of its files is nested too deeply"),
    (("JSONDecodeError", "UnicodeDecodeError"), "one of its JSON files is damaged"),
    (("instantiate the backend tokenizer",), "its tokenizer's files are missing or damaged"),
    (("SafetensorError",), "its weights are damaged"),
    (("Error no file named model.safetensors",), "it has no weights in the form of safetensors"),
    (("TemplateSyntaxError", "TemplateError", "SecurityError"), "its chat template is broken"),
)
"""What stands in a library's exception → what that means; the first that fits."""


def reason_of(error: BaseException, otherwise: str = "") -> str:
    """What went wrong, as the end of a sentence: no line break, no control character, at most 120 characters of a
    library's own words.

    otherwise: the meaning of what is not in the table.
    """
    said = f"{type(error).__name__}: {error}"
    meaning = next((meaning for marks, meaning in _MEANINGS if any(mark in said for mark in marks)), otherwise)
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    own = clean_line(f"{type(error).__name__}: {first}" if first else type(error).__name__, 120).rstrip(".:")
    return f"{meaning} ({own})" if meaning else own


def require_all(loading: Mapping[str, Any]) -> None:
    """Refuse a network of which a part has no weights: a library fills it with random numbers. `loading`: transformers'
    account of a load.

    Raises ValueError naming a missing part.
    """
    missing = sorted(map(str, loading.get("missing_keys") or ()))
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise ValueError(f"weights are missing: {missing[0]}{more}")


@contextlib.contextmanager
def explained(name: str, folder: Path) -> Iterator[None]:
    """Whatever is raised inside over this folder becomes a sentence: ModelMissingError, or ModelTooLargeError where
    memory ended.
    """
    try:
        yield
    except MindChatError:
        raise
    except Exception as error:  # see the module's docstring
        if any(mark in f"{type(error).__name__}: {error}" for mark in MEMORY):
            raise ModelTooLargeError(
                f"The model {clean_line(name)} does not fit into memory.",
                "Close other programs, or choose a smaller one.",
            ) from error
        ours = (folder / MARKER).is_file()
        shown = clean_line(name)
        again = f"Fetch it anew: mindchat models remove {shown}, then mindchat models pull {shown}."
        own = "Its config.json, *.safetensors and tokenizer files must be complete and belong together."
        raise ModelMissingError(
            f"The model {shown} cannot be loaded: {reason_of(error, 'its files make no sense together')}.",
            again if ours else own,
        ) from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Inside, transformers writes nothing to the terminal: no report with colours, no progress bar. What is wrong is
    raised.
    """
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL + 1)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
