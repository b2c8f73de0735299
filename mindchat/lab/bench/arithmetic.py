"""Fast arithmetic beside fp32 over one text.

Owns: the report. Does not own: the comparison (models.reference); answers under both (evals.pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mindchat.lab.bench.timing import versions

if TYPE_CHECKING:
    from mindchat.models.local import LocalModel


def bench_arithmetic(model: LocalModel, text: str, *, tokens: int = 320) -> dict[str, Any]:
    """Steps in fp32, fp16 and int8 beside transformers' own, and whole passes in fp32, bfloat16 and as those steps
    compute, over one text.

    Each with its speed against its reference, KL from full precision, change of entropy (means over the text) and share
    of equal top tokens.
    """
    import msgspec

    from mindchat.lab.bench import reference
    from mindchat.models.network.backbone import Backbone
    from mindchat.models.network.projections import FORMS

    sample = model.vocabulary.continuation(text)[:16]
    made = [Backbone(model.backbone.model, sample, step=step) for step in FORMS]
    ways = {backbone.arithmetic: backbone for backbone in made}
    found = reference.compare(ways, model.vocabulary.continuation(text)[:tokens])
    own = found["transformers"].milliseconds
    rows = {name: {**msgspec.to_builtins(each), "speed": own / each.milliseconds} for name, each in found.items()}
    if model.backbone.stepped:
        steps = [backbone.fast for name, backbone in ways.items() if backbone.fast is not None and name != "fp32"]
        passes = reference.compare_prefill(model.backbone, model.vocabulary.continuation(text)[:tokens], steps)
        own = passes["prefill fp32"].milliseconds
        rows |= {name: {**msgspec.to_builtins(each), "speed": own / each.milliseconds} for name, each in passes.items()}
    return {"model": model.id, "rows": rows, "versions": versions()}
