"""llama.cpp on the same GGUF file, as a reference: the same prompt ids, tokens and threads, in a process of its own.

Owns: finding llama-cpp-python, the child process and its few lines of protocol. Does not own: what is compared
(bench_decode). It is no dependency: an interpreter that has it is named, or the one at hand has it, or the report says
why the reference is absent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from mindchat.errors import ResourceError, UsageError
from mindchat.text.clean import clean_line

T = TypeVar("T")
PYTHON, GGUF = "MINDCHAT_LLAMA_PYTHON", "MINDCHAT_LLAMA_GGUF"
"""Environment variables that stand for the arguments of find()."""
_CHILD = """
import json, sys, time
out, sys.stdout = sys.stdout, sys.stderr
from llama_cpp import Llama, __version__
about = json.loads(sys.stdin.readline())
model = Llama(about["file"], n_ctx=about["window"], n_threads=about["threads"], n_threads_batch=about["threads"], verbose=False)
print(json.dumps({"version": __version__}), file=out, flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    model.reset()
    ids, marks, began = [], [], time.perf_counter()
    for token in model.generate(asked["ids"], temp=0.0, repeat_penalty=1.0):
        marks.append(time.perf_counter() - began)
        ids.append(int(token))
        if len(ids) == asked["tokens"]:
            break
    print(json.dumps({"ids": ids, "first": marks[0], "seconds": marks[-1]}), file=out, flush=True)
"""


class Ran(Struct, frozen=True):
    """One generation: ids, seconds to the first and to the last of them."""

    ids: tuple[int, ...]
    first: float
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens a second after the first."""
        return (len(self.ids) - 1) / (self.seconds - self.first) if self.seconds > self.first else 0.0


class Absent(Struct, frozen=True):
    """Why there is no such reference, in a sentence."""

    why: str


class Found(Struct, frozen=True):
    """What can be run."""

    python: str
    file: Path


def find(python: str = "", gguf: Path | None = None) -> Found | Absent:
    """The interpreter and the file to use: as given, else by the environment, else this interpreter. Raises UsageError
    for a missing file.
    """
    file = gguf or (Path(os.environ[GGUF]).expanduser() if os.environ.get(GGUF) else None)
    if file is None:
        return Absent(f"no GGUF file is named (--gguf or {GGUF})")
    if not file.is_file():
        raise UsageError(f"There is no file {file}.", "Give the GGUF file that the model was made from.")
    chosen = python or os.environ.get(PYTHON, "") or sys.executable
    try:
        probe = subprocess.run([chosen, "-c", "import llama_cpp"], capture_output=True, check=False, **_apart())
    except OSError as error:
        raise UsageError(
            f"{chosen} cannot be started: {error.strerror}.", "Name a Python interpreter that has llama-cpp-python."
        ) from error
    if probe.returncode:
        return Absent(f"{chosen} has no llama-cpp-python (--llama-python or {PYTHON} names another interpreter)")
    return Found(chosen, file)


def _apart() -> dict[str, Any]:
    """The interpreter may be an older one, without -P: it is started in a folder where nobody keeps documents."""
    return {"cwd": sys.prefix, "env": {**os.environ, "PYTHONSAFEPATH": "1"}}


class Llama:
    """A running llama.cpp with the file loaded. A context manager; raises ResourceError when the process ends."""

    def __init__(self, found: Found, *, threads: int, window: int) -> None:
        self.file = found.file
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process; a pipe that nobody reads would fill and block it
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            [found.python, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, **_apart()
        )
        try:
            said = self._say({"file": str(found.file.resolve()), "threads": threads, "window": window}, dict[str, str])
        except BaseException:
            self.close()
            raise
        self.version = said["version"]

    def __enter__(self) -> Llama:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def generate(self, ids: Sequence[int], tokens: int) -> Ran:
        """Greedy, from an empty cache, exactly `tokens` tokens."""
        return self._say({"ids": list(ids), "tokens": tokens}, Ran)

    def _say(self, what: object, answer: type[T]) -> T:
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None
        assert pipe_out is not None
        try:
            pipe_in.write(msgspec.json.encode(what) + b"\n")
            pipe_in.flush()
            line = pipe_out.readline()
        except OSError:
            line = b""
        if not line:
            self._errors.seek(0)
            last = clean_line((self._errors.read().decode("utf-8", "replace").strip().splitlines() or [""])[-1], 200)
            raise ResourceError(
                f"llama.cpp ended while it worked on {self.file.name}: {last or 'it said nothing'}.",
                "Check the file and its version.",
            )
        return msgspec.json.decode(line, type=answer)
