"""What may never be written: secrets, personal numbers, instructions.

Owns: the patterns and their names. Does not own: where they are applied (every write path of facts.py, verbs.py,
transfer.py). A hit drops the whole write: redaction would leave the shape.
"""

from __future__ import annotations

import math
import re
from collections import Counter

_SECRETS = (
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    ("AWS key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,})"),
    ("GitLab token", r"\bglpat-[\w-]{16,}"),
    ("Slack token", r"\bxox[abeoprs]-[\w-]{8,}|hooks\.slack\.com/services/\w+"),
    ("API key", r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or)?[-_]?[A-Za-z0-9_-]{16,}"),
    ("Google key", r"\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("PyPI token", r"\bpypi-[A-Za-z0-9_-]{16,}"),
    ("Hugging Face token", r"\bhf_[A-Za-z0-9]{20,}"),
    ("SendGrid key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    ("Twilio key", r"\b(?:AC|SK)[0-9a-f]{32}\b"),
    ("token", r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}"),
    ("connection string", r"\b[a-z][a-z0-9+.-]*://[^\s:/@]+:[^\s@]+@"),
    ("connection string", r"(?i)\bAccountKey\s*=\s*\S{10,}|\bServer=[^;]+;.*\b(?:Pwd|Password)="),
    ("bearer token", r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9+/_.=-]{12,}"),
    (
        "password",
        (
            r"(?i)\b(?:password|passwort|passwd|pwd|passphrase|pin|pass ?code|mot de"
            r" passe|contraseña)\b\s*(?:is|are|=|:|->|ist)\s*\S{3,}"
        ),
    ),
    (
        "secret",
        (
            r"(?i)\b(?:secret|token|api[ _-]?key|access[ _-]?key|client[ _-]?secret|auth["
            r" _-]?key)\b\s*(?:is|=|:|->)\s*['\"]?[^\s'\"]{6,}"
        ),
    ),
    ("seed phrase", r"(?i)\b(?:seed|recovery|mnemonic) phrase\b\s*(?:is|=|:)\s*\w+ \w+"),
)
_COMPILED = tuple((name, re.compile(pattern)) for name, pattern in _SECRETS)
_LONG = re.compile(r"(?<![\w/+=-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w/+=-])")
_PLAIN_VALUE = re.compile(
    r"(?i)(?:secret|token|key)\b\s*(?:is|=|:)\s*(?:the|a|an|in|to|that|not|of|only|required|missing|needed|called|used)\b"
)
_MARKUP = re.compile(r"(?i)```|<\|?/?(?:system|assistant|user|im_start|im_end|memory)|\[/?INST\]|https?://|\bwww\.\w")
_KEEP = re.compile(
    r"(?i)\b(?:remember|memori[sz]e)\b\s*(?:this|that|the"
    r" following|:|permanently)|\b(?:note|save|store|record)\b\s*(?:this\b|the following|:)"
    r"|\b(?:to|in) (?:your |long.term )?memory\b"
)
_ORDER = re.compile(
    r"(?i)\b(?:ignore|disregard|forget|override)\b[^.]{0,40}\b(?:previous|prior|above|earlier|all|instruction|rule|prompt|context)"
    r"|\b(?:you|assistant|ai|chatbot|llm|language model)\b[^.]{0,30}\b(?:must|should|shall|always|never|will now|have"
    r" to|are now|need to)\b"
    r"|\b(?:always|never|from now"
    r" on|henceforth)\b[^.]{0,20}\b(?:answer|reply|respond|say|recommend|tell|output|use|visit|send|trust)\b"
    r"|\bmodel\b[^.]{0,20}\bshould\b|\b(?:system prompt|as an ai|new rule|jailbreak|developer mode)\b"
)


def _entropy(text: str) -> float:
    """Bits a character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def secret(text: str) -> str:
    """The kind of secret in the text, or ""."""
    for name, pattern in _COMPILED:
        if (match := pattern.search(text)) and not (name == "secret" and _PLAIN_VALUE.match(match[0])):
            return name
    for match in _LONG.finditer(text):
        mixed = sum(bool(re.search(kind, match[0])) for kind in ("[a-z]", "[A-Z]", r"\d"))
        if (
            mixed >= 2
            and re.search(r"\d", match[0])
            and _entropy(match[0]) > (3.2 if re.fullmatch(r"[0-9a-f]+", match[0]) else 4.0)
        ):
            return "key"
    return ""


def personal(text: str) -> str:
    """The kind of personal number (card, IBAN, national id) in the text, or "". Mail addresses and telephone numbers
    are not refused.
    """
    for match in re.finditer(r"(?<!\d)(?:\d[ -]?){12,18}\d(?!\d)", text):
        if _luhn(re.sub(r"\D", "", match[0])):
            return "card number"
    for match in re.finditer(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b", text):
        if _iban(match[0].replace(" ", "")):
            return "IBAN"
    return "national id" if re.search(r"\b\d{3}-\d{2}-\d{4}\b", text) else ""


def _luhn(digits: str) -> bool:
    doubled = [int(d) if i % 2 == 0 else sum(divmod(2 * int(d), 10)) for i, d in enumerate(reversed(digits))]
    return 13 <= len(digits) <= 19 and sum(doubled) % 10 == 0


def _iban(code: str) -> bool:
    return len(code) >= 15 and int("".join(str(int(c, 36)) for c in code[4:] + code[:4])) % 97 == 1


def instruction(text: str) -> bool:
    """Whether a statement addresses a model or carries a link or markup, which no fact does."""
    return bool(_MARKUP.search(text) or _KEEP.search(text) or _ORDER.search(text))


def orders(text: str) -> bool:
    """Whether a longer text gives orders to a model. Nothing is learned from such a passage; links and notes in it are
    no orders.
    """
    return bool(_ORDER.search(text))
