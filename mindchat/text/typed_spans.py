"""Finding names, dates and numbers in a text, and normalising them, without any model.

Owns: typed spans, type checks, ISO dates. Does not own: what a span means (grounding.py). Heuristics for Latin scripts
and CJK: runs of capitalised words joined by particles, quoted titles, dates and numbers by pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mindchat.text.folding import STOP, fold, norm
from mindchat.values import Span

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = r"(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH},? \d{{3,4}}"
    rf"|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{3,4}}|{_MONTH},? \d{{4}}|\d{{4}}-\d\d-\d\d|[12]\d{{3}})\b"
)
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?: (?:million|billion|thousand))?\b")
_WORD = re.compile(r"[^\W_]+(?:[.'’\-–&][^\W_]+)*\.?")
_JOIN = frozenset(  # particles inside names
    """
    of the de da di do du des del della der den van von al el la le les bin ibn y e i and & zu zur af av
    ter ten d'
    """.split()  # noqa: SIM905
)
_QUOTED = re.compile(r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|«([^»\n]{2,80})»|《([^》\n]{2,80})》|「([^」\n]{2,80})」")
_CJK = re.compile(r"[\u30a0-\u30ff]{2,}(?:・[\u30a0-\u30ff]{2,})*|[\u3400-\u9fff]{2,12}")
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Sr|Jr|Prof|Gen|Col|Lt|vs|No|Vol|Inc|Ltd|Co|Corp|ca|c|b|d|e\.g|i\.e|[A-Z])\.)$"
)
_DEMONYMS = frozenset(
    norm(word)
    for word in [
        "American",
        "British",
        "English",
        "Scottish",
        "Welsh",
        "Irish",
        "French",
        "German",
        "Italian",
        "Spanish",
        "Portuguese",
        "Dutch",
        "Belgian",
        "Swiss",
        "Austrian",
        "Polish",
        "Czech",
        "Slovak",
        "Hungarian",
        "Romanian",
        "Bulgarian",
        "Greek",
        "Turkish",
        "Russian",
        "Soviet",
        "Ukrainian",
        "Belarusian",
        "Lithuanian",
        "Latvian",
        "Estonian",
        "Finnish",
        "Swedish",
        "Norwegian",
        "Danish",
        "Icelandic",
        "Serbian",
        "Croatian",
        "Slovene",
        "Bosnian",
        "Albanian",
        "Macedonian",
        "Indian",
        "Pakistani",
        "Bangladeshi",
        "Chinese",
        "Japanese",
        "Korean",
        "Taiwanese",
        "Vietnamese",
        "Thai",
        "Filipino",
        "Indonesian",
        "Malaysian",
        "Malayalam",
        "Tamil",
        "Telugu",
        "Hindi",
        "Kannada",
        "Bengali",
        "Iranian",
        "Persian",
        "Iraqi",
        "Israeli",
        "Jewish",
        "Arab",
        "Egyptian",
        "Moroccan",
        "Algerian",
        "Tunisian",
        "Nigerian",
        "Kenyan",
        "African",
        "Australian",
        "Canadian",
        "Mexican",
        "Cuban",
        "Brazilian",
        "Argentine",
        "Chilean",
        "Peruvian",
        "Colombian",
        "Venezuelan",
        "European",
        "Asian",
        "Latin",
        "Catholic",
        "Christian",
        "Muslim",
    ]
)
_ROLES = (
    "actor|actress|director|filmmaker|singer|writer|author|king|queen|president|prime"
    " minister|producer|composer|politician"
)


def dates(text: str) -> list[Span]:
    """Dates and years."""
    return [Span(match.start(), match.end()) for match in _DATE.finditer(text)]


def numbers(text: str) -> list[Span]:
    """Numbers."""
    return [Span(match.start(), match.end()) for match in _NUMBER.finditer(text)]


def _runs(text: str) -> Iterator[list[re.Match[str]]]:
    run: list[re.Match[str]] = []
    last = 0
    for match in _WORD.finditer(text):
        word, gap = match[0], text[last : match.start()]
        closed = bool(run) and run[-1][0].endswith(".") and not _ABBREVIATION.search(run[-1][0])
        joined = gap in (" ", " & ", "") and not closed
        if run and not joined:
            yield run
            run = []
        if word[0].isupper() or (run and (word.casefold() in _JOIN or word[0].isdigit())):
            run.append(match)
        elif run:
            yield run
            run = []
        last = match.end()
    if run:
        yield run


def names(text: str) -> list[Span]:
    """Runs of capitalised words (with particles inside), quoted titles, and CJK names; no single function word."""
    found = [Span(m.start(i), m.end(i)) for m in _QUOTED.finditer(text) for i in range(1, 6) if m[i]]
    for run in _runs(text):
        while run and (run[-1][0].casefold() in _JOIN or run[-1][0].casefold().rstrip(".") in STOP):
            run = run[:-1]
        while run and run[0][0].casefold() in STOP:
            run = run[1:]
        if not run:
            continue
        start, end = run[0].start(), run[-1].end()
        if text[end - 1] == "." and not _ABBREVIATION.search(text[start:end]):
            end -= 1
        found += [Span(start, end), *_split(text, start, end)]
    found += [Span(match.start(), match.end()) for match in _CJK.finditer(text)]
    return sorted(set_of(found), key=lambda span: (span.start, -span.end))


def _split(text: str, start: int, end: int) -> list[Span]:
    """ "Anna and Bob", "Anna's Bob": the parts as well as the whole."""
    parts, at = [], start
    for match in re.finditer(r" (?:and|&) |['’]s ", text[start:end]):
        parts.append(Span(at, start + match.start()))
        at = start + match.end()
    return [*parts, Span(at, end)] if parts else []


def set_of(spans: list[Span]) -> list[Span]:
    """Without repeats."""
    return [Span(*pair) for pair in dict.fromkeys((span.start, span.end) for span in spans)]


def typed(text: str, kind: str) -> list[Span]:
    """Spans that may be of this range type, in order of place."""
    if kind == "date":
        return dates(text)
    if kind == "number":
        return numbers(text)
    found = names(text)
    if kind == "person":
        found = [span for span in found if not re.search(r"\d", text[span.start : span.end])]
    return found


def iso_date(text: str) -> str | None:
    """YYYY, YYYY-MM or YYYY-MM-DD; None if it is no date."""
    folded = fold(text).replace(",", " ")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", folded):
        return folded
    year = re.search(r"\b(\d{3,4})\s*$", folded)
    if not year:
        return None
    month = next((i for i, name in enumerate(_MONTHS, 1) if re.search(rf"\b{name}\b", folded)), 0)
    day = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", folded[: year.start()])
    parts = (
        [f"{int(year[1]):04d}"]
        + ([f"{month:02d}"] if month else [])
        + ([f"{int(day[1]):02d}"] if month and day else [])
    )
    return "-".join(parts)


def value_norm(text: str, kind: str) -> str:
    """Normal form by which two values are equal."""
    if kind == "date" and (iso := iso_date(text)):
        return iso
    if kind == "number":
        return re.sub(r"(?<=\d),(?=\d{3})", "", fold(text))
    return norm(text)


def type_ok(text: str, kind: str) -> bool:
    """Whether a value looks like its range type. Long values, function words and relative times never do."""
    folded = fold(text)
    if not norm(text) or len(text) > 80 or len(text.split()) > 12 or folded in STOP:
        return False
    if re.search(
        r"\b(?:today|yesterday|tomorrow|now|currently|recently|(?:last|next|this) (?:day|week|month|year|night))\b",
        folded,
    ):
        return False
    if kind == "date":
        return iso_date(text) is not None
    if kind == "number":
        return bool(_NUMBER.fullmatch(text.strip()))
    if kind == "any":
        return True
    if _DATE.search(text) and kind in ("person", "place", "org"):
        return False
    first = text.lstrip("\"'“«《「")[:1]
    name = first.isupper() or first.isdigit() or (first > "\u2e80" and first.isalpha())
    if kind == "person":
        plain = [word for word in text.split() if word[0].islower() and word.casefold().strip(",.") not in _JOIN]
        return (
            name
            and not plain
            and norm(text) not in _DEMONYMS
            and not re.search(r"\d", text)
            and not re.fullmatch(rf"(?:the )?(?:{_ROLES})", folded)
        )
    return name and not (kind == "place" and re.fullmatch(r"[\d,. ]+", text) is not None)
