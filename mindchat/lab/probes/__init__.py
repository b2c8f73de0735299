"""Experiments on a model's reading: does the order of documents matter to it, and does repeating them help?

Owns: CoRe's own studies as commands (lists §4.1, order §3.1 and §4.3, noise §4.3, position §5.1), their records,
reports and pictures.
Does not own: prompts (prompts.core), models, question files and scoring (evals), loading a model (wiring).
"""

PROBES: dict[str, str] = {
    "lists": "mindchat.lab.probes.lists:Lists",
    "order": "mindchat.lab.probes.order:Orders",
    "noise": "mindchat.lab.probes.noise:Noise",
    "position": "mindchat.lab.probes.position:Positions",
}
"""Name → "module:Class" of a mindchat.lab.probes.cases.Probe."""
