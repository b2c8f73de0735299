"""The placeholders of the pattern files: what a name, a place, a date looks like in running text.

Owns: Expander. Does not own: the patterns (languages/stating).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mindchat.text.countries import names as countries

_UPPER = "".join(
    chr(code) for code in [*range(0x41, 0x590), *range(0x1E00, 0x1F00)] if chr(code).isupper() and chr(code).isalpha()
)
_SMALL = (
    r"(?:of|de|da|do|dos|du|des|del|della|di|la|le|les|el|al|van|von|vom|der|den|ter|ten|zu|zur|af|av|y|e|i|ibn|bin|ben|bint|the|"
    r"and the|of the|d'|l')"
)
W = rf"(?:(?:d'|l'|al-|el-|O'|[dl]’)?[{_UPPER}][\w'’.&-]*)"
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December|Jan\.?|Feb\.?|Mar\.?|Apr\.?|"
    r"Jun\.?|Jul\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?)"
)
_DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? (?:AD )?\d{{2,4}}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{3,4}}|{_MONTH},? \d{{4}}|"
    r"\d{4}-\d\d-\d\d|(?<![\d,.])\d{3,4}(?![\d]|,\d|\.\d|s\b))"
)
_NOT_A_ROLE = (
    r"(?!(?:starring|with|in|from|for|to|on|at|by|of|who|whom|which|that|as|was|is|were|are|has|had|where|when|while|but|after|"
    r"before|during|until|about|than|then|not|von|van|del|della|des|dos|den|der|ibn|bin|bint|his|her|their|son|daughter)\b)"
)


class Expander:
    """From a pattern of the file to a compiled one; the value is the group "v"."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        titles = "|".join(data["titles"].split())
        country = "|".join(sorted(map(re.escape, countries()), key=len, reverse=True))
        more = rf"(?:(?: {_SMALL})* {W})"
        suffix = rf"(?:, (?:\d+(?:st|nd|rd|th) )?(?:{titles})\b{more}{{0,6}})?"
        name = rf'{W}(?: ["“][^"”]{{1,20}}["”])?{more}{{0,7}}'
        # "Quebec film director Denys": a name that a description follows describes too
        adjective = rf"(?:{W}(?: {W})? (?!and\b){_NOT_A_ROLE}(?=[a-z]{{3}}))"
        self.parts = {
            "person": rf"(?P<v>{name}{suffix}(?:, (?:Jr|Sr)\.)?)",
            "name": rf"(?P<v>{name})",
            "org": rf"(?P<v>{name}(?:,? (?:at )?{W})?)",
            "place": rf"(?P<v>{W}{more}{{0,5}})",
            "date": rf"(?P<v>{_DATE})",
            "country": rf"(?<![\w-])(?<!New )(?<!New South )(?P<v>{country})(?![\w])",
            "role": rf"(?:(?:the|an?|his|her|their|fellow) )?{adjective}?(?!and\b)(?:{_NOT_A_ROLE}[a-z][\w'’/-]*,? ){{0,7}}",
            "rank": r"(?:first|second|third|fourth|fifth|sixth|eldest|oldest|younger|youngest|elder|only|older|late|twin|own|former|\d+\w\w)",
            "gap": r"[^.;()]{0,45}?",
            "skip": r"(?:[^.;()]|\([^()]*\)){2,90}?",
            "W": W,
        }

    def __call__(self, pattern: str) -> re.Pattern[str]:
        """The compiled pattern. Raises re.error for one that is none."""
        for name, part in self.parts.items():
            pattern = pattern.replace(f"{{{name}}}", part)
        start = r"(?<![\w-])" if pattern[:1].isalpha() or pattern.startswith("(?:") else ""
        return re.compile(start + pattern)
