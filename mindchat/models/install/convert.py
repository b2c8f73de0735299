"""GGUF to a safetensors folder, once: what takes a minute to unpack is then read in a second.

Owns: the conversion. Does not own: its marker file (manifest), where folders stand (store), fetching (download),
loading (hf). The work runs in a child process: it can be stopped at any moment, its memory goes back to the system, and
torch's imports and progress bars stay out of the caller. A folder appears under its final name only when every byte is
written. Weights are stored in fp32: dequantised values do not survive bf16 or fp16 unchanged (largest change measured
on the 4-bit files: 0.031 and 0.002), and fp32 is the default arithmetic. `save_pretrained` refuses a model that came
from a GGUF, so the model is rebuilt from its config and takes over the very tensors.
"""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from mindchat import child_process
from mindchat.errors import MindChatError, ModelMissingError, ModelTooLargeError
from mindchat.models.install import damage
from mindchat.models.install.download import TICK
from mindchat.models.install.hub import OFFLINE
from mindchat.models.install.manifest import CONVERTER, Manifest, read_manifest, settle, write_manifest
from mindchat.paths import private
from mindchat.text.clean import clean

STEPS = ("reading weights", "reading tokenizer", "writing", "done")


class ConvertProgress(Struct, frozen=True):
    """One step of a conversion under way."""

    step: str
    done: int
    total: int
    seconds: float


def convert(gguf: Path, target: Path, *, name: str, sha256: str) -> Iterator[ConvertProgress]:
    """Convert `gguf` into the folder `target` (replaced if it exists); an item every TICK seconds, the last one has
    step "done".

    Closing the iterator stops the child and leaves nothing behind. The caller holds the model's lock. Raises
    ModelMissingError (no such file), ModelTooLargeError (the child ran out of memory), MindChatError (unreadable GGUF).
    """
    if not gguf.is_file():
        raise ModelMissingError(f"There is no file {gguf}.", "Check the path.")
    private(target.parent)
    scratch = target.parent / f".{target.name}.converting"
    for folder in (scratch, _alone(scratch)):
        shutil.rmtree(folder, ignore_errors=True)
    started = time.monotonic()
    try:
        for step in _run_child(gguf, scratch, name, sha256):
            yield ConvertProgress(step, STEPS.index(step), len(STEPS) - 1, time.monotonic() - started)
        if read_manifest(scratch) is None:
            raise MindChatError(
                f"Converting {gguf.name} left an incomplete folder.", "Try again; if it repeats, the disk may be full."
            )
        _swap(scratch, target)
    finally:
        for folder in (scratch, _alone(scratch)):
            shutil.rmtree(folder, ignore_errors=True)
    yield ConvertProgress(STEPS[-1], len(STEPS) - 1, len(STEPS) - 1, time.monotonic() - started)


def _alone(scratch: Path) -> Path:
    """A folder in which the GGUF file stands alone: transformers takes configuration, tokenizer and template from
    whatever lies beside it.
    """
    return scratch.with_name(f"{scratch.name}.source")


def _run_child(gguf: Path, scratch: Path, name: str, sha256: str) -> Iterator[str]:
    """Run this module as a program; yields the step it is at, again and again."""
    arguments = ["-m", "mindchat.models.install.convert", str(gguf.resolve()), str(scratch.resolve()), name, sha256]
    with tempfile.TemporaryFile() as complaints:
        pipe = subprocess.PIPE
        child = child_process.start(arguments, environ=OFFLINE, stdin=pipe, stdout=pipe, stderr=complaints)
        said: queue.SimpleQueue[str] = queue.SimpleQueue()
        # a thread, because a pipe cannot be waited for with a time limit on every system
        listener = threading.Thread(target=_listen, args=(child, said), daemon=True)
        listener.start()
        step = STEPS[0]
        try:
            while child.poll() is None or listener.is_alive():
                yield step
                with contextlib.suppress(queue.Empty):
                    word = said.get(timeout=TICK)
                    step = word if word in STEPS[:-1] else step
            if child.returncode != 0:
                complaints.seek(0)
                raise _explain(child.returncode, complaints.read().decode(errors="replace"), gguf)
        finally:
            child.kill()
            child.wait()
            listener.join()
            for end in (child.stdin, child.stdout):
                if end is not None:
                    end.close()


def _listen(child: subprocess.Popen[bytes], said: queue.SimpleQueue[str]) -> None:
    for line in child.stdout or ():
        said.put(line.decode(errors="replace").strip())


def _explain(code: int, complaints: str, gguf: Path) -> MindChatError:
    lines = [line for line in clean(complaints).splitlines() if line.strip()]
    reason = lines[-1].strip()[:300] if lines else f"exit status {code}"
    if code in (-9, 137) or any(mark in complaints for mark in damage.MEMORY):
        return ModelTooLargeError(
            f"{gguf.name} does not fit into memory while it is unpacked.",
            "Close other programs, or choose a smaller model.",
        )
    if "No space left" in complaints or "os error 28" in complaints:
        return MindChatError(f"The disk is full: {reason}.", "Free some space, then try again.")
    hint = "The file may be damaged, or of an architecture that transformers does not read."
    return MindChatError(f"{gguf.name} cannot be converted: {reason}.", hint)


def _swap(scratch: Path, target: Path) -> None:
    """Give the finished folder its name; an older one stays until the very rename."""
    old = target.parent / f".{target.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(scratch, target)
    shutil.rmtree(old, ignore_errors=True)


# ── the child
# ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _say(step: str) -> None:
    sys.stdout.write(step + "\n")
    sys.stdout.flush()


def _set_apart(gguf: Path, target: Path) -> Path:
    """The folder in which the file stands alone; the parent removes it."""
    place = _alone(target)
    place.mkdir()
    # Windows lets few users make symbolic links, and no hard link leads to another disk
    for way in (os.symlink, os.link, shutil.copyfile):
        with contextlib.suppress(OSError):
            way(gguf.resolve(), place / gguf.name)
            return place
    raise OSError(f"{gguf.name} can neither be linked nor copied into {place.parent}")


def _work(gguf: Path, target: Path, name: str, sha256: str) -> None:
    """In the child: read, rebuild, write, then the marker as the last file."""
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    stat = gguf.stat()
    source = {
        "pretrained_model_name_or_path": str(_set_apart(gguf, target)),
        "gguf_file": gguf.name,
        "local_files_only": True,
        "trust_remote_code": False,
    }
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(
        **source, dtype=torch.float32, output_loading_info=True
    )
    damage.require_all(loading)
    _say(STEPS[1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(**source)
    _say(STEPS[2])
    twin = _rebuild(model, name)
    twin.save_pretrained(target)
    tokenizer.save_pretrained(target)
    marker = Manifest(
        converter=CONVERTER,
        source=gguf.name,
        sha256=sha256,
        dtype="float32",
        parameters=sum(weight.numel() for weight in twin.parameters()),
        window=int(twin.config.max_position_embeddings),
        transformers=transformers.__version__,
        files={file.name: settle(file) for file in sorted(target.iterdir())},
        source_size=stat.st_size,
        source_mtime_ns=stat.st_mtime_ns,
    )
    write_manifest(target, marker)


def _rebuild(model: Any, name: str) -> Any:
    """The same model without its memory of having been a GGUF, sharing its tensors."""
    import torch

    config = model.config
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    config._name_or_path = name
    with torch.device("meta"):
        twin = type(model)(config)
    twin.load_state_dict(model.state_dict(), assign=True)
    # assign=True gives embedding and head one tensor each; where the file has only one matrix they are one parameter
    # again.
    twin.tie_weights()
    twin.generation_config = model.generation_config
    return twin


def _leave_with_parent() -> None:
    """End when the parent does, however it ends: an orphan would go on writing into a folder that the next pull makes
    anew.
    """
    # the descriptor, not sys.stdin: a thread that waits inside a buffered reader makes the interpreter abort at its end
    while os.read(0, 1):  # returns nothing when the parent's end of the pipe is closed
        pass
    os._exit(1)


def main() -> None:
    """Entry of the child process."""
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    gguf, target, name, sha256 = sys.argv[1:5]
    try:
        _work(Path(gguf), Path(target), name, sha256)
    except Exception as error:  # noqa: BLE001 - a library may raise anything over a stranger's file; the parent reads the last line
        traceback.print_exc()
        sys.stderr.write(damage.reason_of(error) + "\n")
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
