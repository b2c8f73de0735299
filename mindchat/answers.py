"""From a model's words to the short form of its answer.

Owns: extract_short (what is shown as the short answer and scored), find_stated (only a stated answer), says_unknown
(refusals in words).
Does not own: scoring (evals.metrics), abstention by confidence (engine). Pure; the text is data and is never evaluated.
Source: the rule follows the phrase that IRCoT and DRAGIN prompt for, "So the answer is …" (last occurrence, to the end
of the line), but keeps commas and abbreviations, which their extractions cut ("Washington, D.C.", "May 4, 1970").
"""

from __future__ import annotations

import re

from mindchat.text.clean import clean

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_SPECIAL = re.compile(r"<\|[^<>|]{1,40}\|>|</?s>|<(?:eos|bos|pad|end_of_turn|start_of_turn)>|\[/?INST\]", re.IGNORECASE)
_STATED = re.compile(
    r"\b(?:the|my)\s+(?:final\s+|correct\s+|short\s+)?answer\s+(?:to\s+(?:the|this|your)\s+question\s+)?(?:is|was|would\s+be)\b[\s*_]*:?"
    r"|^[\s*_#>-]*(?:final\s+|short\s+)?answer[\s*_]*:",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_TURN = re.compile(r"(?:\bQuestion|\bNote|\bExplanation|\bReasoning|\bDocuments?(?: \[\d+\])?)\s*:|#1\d{7}")
_POLAR = re.compile(
    r"(yes|no)(?=\s*[,;:!–—…]|\s+-|\s*\.(?:\s+[A-Z]|\s*\Z)|\s+(?:because|since|as|both|they|it|he|she|there|neither|the)\b)",
)
_SENTENCE_END = re.compile(r"\.[\"”’')\]]*(?=\s+[\"“‘'(\[]?[A-Z])")
_ABBREVIATED = re.compile(
    r"(?:\b(?:[A-Za-z]\.){1,}[A-Za-z]|\b(?:Jr|Sr|Inc|Ltd|Co|Corp|Bros|St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|Rev|Gen|Col|Lt|Sgt|Capt|Gov|Sen|Hon|Vol|Op|vs|etc|Ph\.D|Esq|approx))\Z"
)
_MAY_END_A_SENTENCE = re.compile(r"(?:\b(?:[A-Za-z]\.)*[A-Z]|\b(?:Jr|Sr|Inc|Ltd|Co|Corp|Bros|etc))\Z")
_NEW_SENTENCE = re.compile(
    r"\s+(?:It|The|He|She|They|This|That|These|Those|His|Her|Its|Their|In|So|Therefore|Thus|However|Both|Because)\s"
)
_INITIAL = re.compile(r"(?:^|[\s.(])[A-Z]\Z")
_UNSURE_INITIAL = re.compile(
    r"\b(?:Vitamin|Malcolm|Channel|Grade|Group|Class|Type|Plan|Hepatitis|Generation|Appendix)\s+[A-Z]\Z"
)
_PAIRS = [(mark, mark) for mark in ("**", "__", '"', "'", "`", "*", "_")] + [
    ("“", "”"),
    ("‘", "’"),
    ("(", ")"),
    ("\\boxed{", "}"),
]
_MARKS = re.compile(r"(?:\s*\[\d{1,2}\])+(?=[.\s]*\Z)")
_UNKNOWN = re.compile(
    r"^(?:(?:it|that|this|the answer)(?:'s|’s| is)\s+)?(?:not"
    r" (?:known|stated|mentioned|given|specified|provided|available|clear|enough information)"
    r"|unknown|undetermined|unanswerable|insufficient (?:information|evidence|context)"
    r"|no (?:answer|information)\b.{0,60}|none of the (?:documents|passages)\b.*"
    r"|i (?:do not|don['’]t|cannot|can['’]t|could not|couldn['’]t) (?:know|tell|say|answer|determine|find).*"
    r"|(?:it |this |that |the answer )?(?:cannot|can['’]t|can not|could not) be"
    r" (?:determined|answered|found|known|inferred).*"
    r"|the (?:documents?|passages?|context|text|information) (?:do|does|did) ?(?:not|n['’]t).*)"
    r"(?:\s+(?:in|from|by|for) (?:the|these|any|this)\b.*)?[.!]*$",
    re.IGNORECASE,
)


def find_stated(text: str) -> str | None:
    """The short answer after the last "the answer is" (or "Answer:" at a line's start); None if the text states none.

    A thought between <think> tags is not part of the reply; one that never closes hides all that follows it.
    """
    text = _visible(text)
    ends = [match.end() for match in _STATED.finditer(text)]
    return _tidy(text[ends[-1] :]) if ends else None


def extract_short(text: str) -> str:
    """The short form of a reply: the stated answer if there is one, else the reply's first line as it would stand after
    "Answer:".

    One line, without quotes, bold, special tokens, citation marks and one final period (an abbreviation keeps its own:
    "D.C."). "yes, because …" gives "yes"; "" only if nothing is said.
    """
    stated = find_stated(text)
    return stated if stated else _tidy(_visible(text))


def says_unknown(short: str) -> bool:
    """Whether a short answer says that it has none ("not known", "cannot be determined from the documents")."""
    line = " ".join(clean(short).split())
    return not line or _UNKNOWN.match(line) is not None


def _visible(text: str) -> str:
    text = clean(text)
    _, _, text = text.rpartition("</think>")
    return _SPECIAL.sub("", _THOUGHT.sub("", text))


def _tidy(rest: str) -> str:
    """First line of what follows, without what belongs to no answer."""
    line = next((line.strip() for line in rest.splitlines() if line.strip(" \t*_:#>-")), "")
    if cut := _NEXT_TURN.search(line):
        line = line[: cut.start()] if cut.start() else line[cut.end() :]
    line = _unwrap(line.strip().strip(":").strip())
    if polar := _POLAR.match(line[:1].lower() + line[1:]):
        return line[: polar.end()]
    return _drop_period(_unwrap(_MARKS.sub("", _first_sentence(line)).strip())).strip()


def _first_sentence(line: str) -> str:
    for end in _SENTENCE_END.finditer(line):
        before = line[: end.start()]
        opens = _NEW_SENTENCE.match(line, end.end()) is not None and _MAY_END_A_SENTENCE.search(before) is not None
        if opens or not _closes_abbreviation(before, inside=True):
            return line[: end.end()]
    return line


def _closes_abbreviation(before: str, *, inside: bool) -> bool:
    """Whether a period after `before` belongs to the word. A lone capital is an initial inside a line ("J. Smith"), not
    at its end ("Malcolm X.").
    """
    if _ABBREVIATED.search(before):
        return True
    return inside and _INITIAL.search(before) is not None and _UNSURE_INITIAL.search(before) is None


def _drop_period(line: str) -> str:
    if not line.endswith(".") or line.endswith("..."):
        return line
    return line if _closes_abbreviation(line[:-1], inside=False) else line[:-1]


def _unwrap(line: str) -> str:
    """Without quotes, bold or brackets that enclose the whole, and without a period that stands outside them."""
    for _ in range(4):
        bare = line[:-1] if line.endswith(".") and line[-2:-1] in set("\"”’'*_`)}") else line
        pair = next(
            (p for p in _PAIRS if len(bare) > len(p[0]) + len(p[1]) and bare.startswith(p[0]) and bare.endswith(p[1])),
            None,
        )
        if pair is None or pair[0] in bare[len(pair[0]) : -len(pair[1])]:
            break
        line = bare[len(pair[0]) : -len(pair[1])].strip()
    return line.replace("**", "").replace("__", "").strip()
