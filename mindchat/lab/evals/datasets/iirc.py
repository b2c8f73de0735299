"""Official IIRC files (Ferguson et al. 2020): an array of articles {title, text, links, questions: [{question, answer,
…}]}.

Owns: their reading. Answers are spans (a set), yes/no, or a value (its unit is not scored); questions whose answer is
"none" are left out, as in DRAGIN and MIND. Linked articles stand in context_articles.json beside the file; without it a
question's context is its main article alone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from mindchat.errors import UsageError
from mindchat.lab.evals.datasets import require_label
from mindchat.lab.evals.examples import Example, Gold, Item, Source, Support, passage_id
from mindchat.text.clean import clean, clean_line
from mindchat.text.foreign_json import decode_json

DATASET = "iirc"
ARTICLES = "context_articles.json"
_TAG = re.compile(r"<[^>]{0,2000}>")


def load(rows: Sequence[Mapping[str, Any]], path: Path) -> Iterator[Item]:
    """Every answerable question of every article; raises UsageError for the test file, which has no answers."""
    articles = _articles(path)
    for article in rows:
        main = _source(str(article["title"]), str(article["text"]))
        for number, row in enumerate(article["questions"]):
            answers, kind = _answers(require_label(row, "answer", path))
            if kind == "none":
                continue
            sources = [main]
            for link in dict.fromkeys(map(str, row.get("question_links") or ())):
                if text := articles.get(link.lower()):
                    sources.append(_source(link, text))
            supporting = _supporting(row.get("context") or (), main, sources)
            gold = Gold(answers, kind, supporting=supporting, entities=tuple(s.title for s in supporting))
            id_ = str(row.get("qid") or f"{passage_id(main.title, main.text)}-{number}")
            yield Item(Example(id_, DATASET, clean_line(row["question"]), tuple(sources)), gold)


def _answers(answer: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    kind = str(answer["type"])
    if kind == "span":
        return tuple(clean_line(span["text"]) for span in answer["answer_spans"]), kind
    if kind in ("value", "binary"):
        return (clean_line(str(answer["answer_value"])),), "numeric" if kind == "value" else kind
    return (), "none"


def _supporting(context: Sequence[Mapping[str, Any]], main: Source, sources: Sequence[Source]) -> tuple[Support, ...]:
    pids = {source.title.lower(): source.pid for source in sources}
    titles = dict.fromkeys(
        main.title if piece["passage"] == "main" else clean_line(str(piece["passage"])) for piece in context
    )
    return tuple(Support(title, pids.get(title.lower())) for title in titles)


def _articles(path: Path) -> dict[str, str]:
    file = path.parent / ARTICLES
    if not file.is_file():
        return {}
    try:
        return {title.lower(): text for title, text in decode_json(file.read_bytes(), type=dict[str, str]).items()}
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(
            f"{file} is not the article file of IIRC: {error}.", "Remove it, or restore the official one."
        ) from error


def _source(title: str, text: str) -> Source:
    name, plain = clean_line(title), clean(" ".join(html.unescape(_TAG.sub(" ", text)).split()))
    return Source(name, plain, passage_id(name, plain))
