"""The projections of a network in other number formats, made once and kept.

Owns: the forms a projection can take, which form which arithmetic uses, rounding weights, the pack that keeps what was
made, the thread that arranges it for the kernels after a load.
Does not own: the kernels (half, digits), the network around the projections (fast), the pack's file (packed), other
ways to prefill (prefill).
"""

from __future__ import annotations

import atexit
import functools
import logging
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any, Literal

import torch
from msgspec import Struct
from torch import Tensor, nn

from mindchat.models.network import fp16_weights, int8_weights

WIDEST = 8
"""Most rows that torch's own int8 kernel is given: its work grows with each, while full weights are read once for all.
"""
HEAD = "head"
"""The name of the projection to logits; the others are the layers'."""
_BLOCK = 1 << 18
log = logging.getLogger(__name__)
Projection = Callable[[Tensor], Tensor]
"""Rows (R, K) fp32 to rows (R, N) fp32."""
Step = Literal["fp32", "fp16", "int8"]
"""What a step computes with: fp32 throughout, or weights of fewer bytes and fp32 around them."""


class Arranged:
    """A kernel's own arrangement of a weight, made once, by whoever comes first: a thread beside, or the pass that
    needs it.
    """

    def __init__(self, arrange: Callable[[], Any]) -> None:
        self._arrange: Callable[[], Any] | None = arrange
        self._lock = threading.Lock()
        self._done: Any = None

    def __call__(self) -> Any:
        """The arrangement. Raises what arranging raises."""
        with self._lock:
            if self._arrange is not None:
                self._done, self._arrange = self._arrange(), None  # lets go of the weight, too
        return self._done


class Pack:
    """Copied weights by name: those kept from an earlier load (`held`), and those made now (`made`), for a later one."""

    def __init__(self, held: Mapping[str, Tensor] | None = None) -> None:
        self.held: dict[str, Tensor] = dict(held or {})
        self.made: dict[str, Tensor] = {}
        self._arranged: dict[str, Arranged] = {}

    def get(self, names: Sequence[str], make: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
        """The tensors of these names; made if one of them is missing."""
        known = {**self.held, **self.made}
        if all(name in known for name in names):
            return [known[name] for name in names]
        found = list(make())
        self.made |= dict(zip(names, found, strict=True))
        return found

    def drop(self, prefix: str) -> None:
        """Forget everything whose name begins so."""
        for place in (self.held, self.made):
            for name in [name for name in place if name.startswith(prefix)]:
                del place[name]

    def arranged(self, name: str, arrange: Callable[[], Any]) -> Arranged:
        """The arrangement of this name, one for all steps that are built from it; `arrange` makes it if none is known."""
        return self._arranged.setdefault(name, Arranged(arrange))

    def finish(self, check: Callable[[], None]) -> None:
        """Arrange what is left, from the first one on; `check` may raise between two of them, and what was done stays
        done.
        """
        for arranged in self._arranged.values():
            check()
            arranged()

    def release(self) -> None:
        """Forget everything: networks hold what they compute with, and a mapped file counts as resident as long as a
        tensor of it is held.
        """
        for place in (self.held, self.made, self._arranged):
            place.clear()

    def begin(self, step: Step) -> None:
        """Arrange what is held for this step in a thread of its own (the work holds no interpreter lock), from the last
        one back: whoever needs them meanwhile begins with the first.
        """
        for key in self.held:
            name, _, kind = key.rpartition(".")
            form = form_of(step, name)
            parts = [self.held.get(f"{name}.{part}") for part in form.parts]
            if (
                form.kernel is not None
                and kind == form.parts[0]
                and form.uniform
                and all(part is not None for part in parts)
            ):
                self.arranged(key, functools.partial(form.kernel.arrange, *parts))
        # Weakly: of a model that was given up nothing is arranged any more.
        thread = threading.Thread(
            target=_arrange,
            args=([weakref.ref(each) for each in self._arranged.values()],),
            name="arrange",
            daemon=True,
        )
        thread.start()
        atexit.register(_end, thread)


_ENDING = threading.Event()


def _arrange(waiting: list[weakref.ref[Arranged]]) -> None:
    try:
        while waiting and not _ENDING.is_set():
            if (arranged := waiting.pop()()) is not None:
                arranged()
            del arranged
    except RuntimeError as error:  # whoever needs it comes to the same, and says so
        log.debug("weights could not be arranged ahead: %s", error)


def _end(thread: threading.Thread) -> None:
    """The interpreter must not be taken down around a thread that computes."""
    _ENDING.set()
    thread.join()


class Waiting:
    """A kernel over a weight whose arrangement is waited for, or made, with the first pass."""

    def __init__(self, kernel: Callable[[Any], Projection], arranged: Arranged) -> None:
        self._kernel, self._arranged = kernel, arranged
        self._project: Projection | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """The kernel's pass."""
        if self._project is None:
            self._project = self._kernel(self._arranged())
        return self._project(x)


def quantize(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Int8 weights and bfloat16 scales per output channel of (N, K); the scale is rounded first, so only the weights
    carry an error.
    """
    packed = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight), dtype=torch.bfloat16)
    block = max(_BLOCK // weight.shape[1], 1)  # a block's intermediate results stay in the processor's cache
    for at in range(0, len(weight), block):
        rows = weight[at : at + block]
        largest = rows.abs().amax(dim=1).clamp_(min=1e-12)
        scale = (largest / 127).bfloat16()
        scale = torch.where(
            scale.float() * 127 < largest, torch.nextafter(scale, torch.full_like(scale, torch.inf)), scale
        )
        scales[at : at + block] = scale
        packed[at : at + block] = (rows / scale.float()[:, None]).round_()
    return packed, scales


def full(parts: list[nn.Linear], name: str, pack: Pack, *, finer: bool = False) -> Projection:
    """Full-precision projections of one input, outputs side by side."""
    if len(parts) == 1:
        return parts[0]
    return lambda x: torch.cat([part(x) for part in parts], dim=-1)


def halved(parts: list[nn.Linear], name: str, pack: Pack, *, finer: bool = False) -> Projection:
    """The same with fp16 weights, in one call."""

    def made() -> tuple[Tensor]:
        whole = torch.cat([part.weight.detach() for part in parts])
        return (whole.clamp(-fp16_weights.LARGEST, fp16_weights.LARGEST).half(),)

    (weight,) = pack.get((f"{name}.half",), made)
    return _finished(
        Waiting(fp16_weights.Half, pack.arranged(f"{name}.half", lambda: fp16_weights.arrange(weight))), 0, _bias(parts)
    )


def rounded(parts: list[nn.Linear], name: str, pack: Pack, *, finer: bool = False) -> Projection:
    """The same with int8 weights, in one call.

    `finer`: what rounding the last part leaves is rounded again and stands below it, which makes that part as good as
    exact.
    """
    weights = [part.weight.detach() for part in parts]
    twice = len(weights[-1]) if finer else 0

    def made() -> tuple[Tensor, Tensor]:
        found = [quantize(weight) for weight in weights]
        if finer:
            whole, scale = found[-1]
            found.append(quantize(weights[-1] - whole.float() * scale.float()[:, None]))
        return torch.cat([w for w, _ in found]), torch.cat([s for _, s in found])

    weight, scale = pack.get((f"{name}.weight", f"{name}.scale"), made)
    bias = _bias(parts)
    if int8_weights.available():
        return _finished(
            Waiting(int8_weights.Digits, pack.arranged(f"{name}.weight", lambda: int8_weights.arrange(weight, scale))),
            twice,
            bias,
        )
    coarse, exact = (
        _finished(lambda x: torch._weight_int8pack_mm(x.bfloat16(), weight, scale).float(), twice, bias),
        full(parts, name, pack),
    )
    return lambda x: (exact if len(x) > WIDEST else coarse)(x)


def _bias(parts: list[nn.Linear]) -> Tensor | None:
    return None if parts[0].bias is None else torch.cat([part.bias.detach() for part in parts])


def _finished(project: Projection, twice: int, bias: Tensor | None) -> Projection:
    """With what stands below the last `twice` outputs added to them, and the bias."""

    def finish(x: Tensor) -> Tensor:
        y = project(x)
        if twice:
            rest = y[:, -twice:]
            y = y[:, :-twice]
            y[:, -twice:] += rest
        return y if bias is None else y.add_(bias)

    return finish


class Form(Struct, frozen=True):
    """One way to hold a projection."""

    make: Callable[..., Projection]
    parts: tuple[str, ...]
    """What a pack keeps of it: the last parts of the names."""
    kernel: ModuleType | None
    """What computes it over one row and over many: available() says whether this machine can, arrange() takes the
    parts. None: torch.
    """

    @property
    def uniform(self) -> bool:
        """Whether one kernel serves one row and many."""
        return self.kernel is None or bool(self.kernel.available())


FULL = Form(full, (), None)
HALF = Form(halved, ("half",), fp16_weights)
INT8 = Form(rounded, ("weight", "scale"), int8_weights)
FORMS: dict[Step, tuple[Form, Form]] = {"fp32": (FULL, FULL), "fp16": (HALF, INT8), "int8": (INT8, INT8)}
"""The layers' form and the head's. With fp16 the head is int8 all the same: it only has to find the likely tokens,
which are computed again.
"""


def form_of(step: Step, name: str) -> Form:
    """The form of the projection of this name."""
    layers, head = FORMS[step]
    return head if name == HEAD else layers


def possible(step: Step) -> bool:
    """Whether this machine can take such steps at all: int8 has torch's own kernel to fall back on, fp16 has none."""
    return step != "fp16" or fp16_weights.available()


def uniform(step: Step) -> bool:
    """Whether many tokens are computed as one is, so that what a step computed may stand for what a prefill would."""
    return all(form.uniform for form in FORMS[step])
