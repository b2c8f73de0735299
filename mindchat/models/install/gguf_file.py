"""What a GGUF file says about itself, read without torch.

Owns: the count of parameters and the refusal to unpack what memory cannot hold. Does not own: the conversion (convert).
"""

from __future__ import annotations

from pathlib import Path

from mindchat.errors import MindChatError, ModelTooLargeError
from mindchat.models.install.download import megabytes
from mindchat.models.install.memory_estimate import available_memory, unpack_need
from mindchat.text.clean import clean_line


def parameters_of(gguf: Path) -> int:
    """How many numbers the file's tensors hold. Raises MindChatError if it is not a readable GGUF file."""
    import gguf as library

    try:
        return sum(int(tensor.n_elements) for tensor in library.GGUFReader(gguf).tensors)
    except (ValueError, KeyError, IndexError, OSError, OverflowError, MemoryError) as error:
        raise MindChatError(
            f"{gguf.name} is not a readable GGUF file ({clean_line(str(error), 120)}).",
            "It may be damaged or unfinished: fetch it again.",
        ) from error


def require_memory(gguf: Path, parameters: int) -> None:
    """Raise ModelTooLargeError if unpacking to fp32 would need more memory than is free."""
    needed, free = unpack_need(parameters), available_memory()
    if needed > free:
        raise ModelTooLargeError(
            f"Unpacking {gguf.name} needs about {megabytes(needed)} of memory; {megabytes(free)} are free.",
            "Close other programs, or choose a smaller model; the copy of a larger machine can be used as a folder.",
        )
