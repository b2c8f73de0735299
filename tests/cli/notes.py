"""A folder of 300 Markdown notes that link to one another, as people keep them; the same for the same seed."""

from __future__ import annotations

import random
from pathlib import Path

from msgspec import Struct

FIRST = ["Ines", "Tomas", "Greta", "Pavel", "Noor", "Luca", "Edda", "Imre", "Sanna", "Bruno"]
LAST = ["Varga", "Holm", "Brandt", "Okoye", "Petrov", "Silva", "Keller", "Moreau", "Lindt", "Haas"]
BIRDS = ["Kestrel", "Heron", "Plover", "Merlin", "Osprey", "Avocet", "Bittern", "Curlew", "Dunlin", "Egret"]
STAGES = ["Alpha", "Ridge", "Harbor", "North", "Dawn", "Anchor", "Summit", "Meadow", "Lantern", "Quarry"]
WORK = ("bridge", "archive", "greenhouse", "signal box", "ferry", "bakery", "museum", "tunnel")
STREETS = ("Lime", "Cooper", "Station", "Mill", "Orchard", "Castle", "Market", "Brewer")


class Asked(Struct, frozen=True):
    """A question whose answer stands in a note that the first note links to."""

    question: str
    project: str
    """The note that the question names; it does not hold the answer."""
    person: str
    """The note that does."""
    answer: str


def write_notes(folder: Path, seed: int = 7) -> list[Asked]:
    """100 projects, 100 people, 100 days; a question for each project."""
    chance = random.Random(seed)
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    projects = [f"{bird} {stage}" for bird in BIRDS for stage in STAGES]
    chance.shuffle(people)
    asked = []
    for number, (project, person) in enumerate(zip(projects, people, strict=True)):
        work, street = chance.choice(WORK), f"{chance.randint(1, 99)} {chance.choice(STREETS)} Street"
        plain = number % 3
        link = (f"[[{person}]]", f"[[people/{_file(person)}|the lead]]", f"[{person}](../people/{_file(person)}.md)")[
            plain
        ]
        _write(
            folder / "projects" / f"{_file(project)}.md",
            f"# {project}\n\nA {work} is repaired here since {2000 + number % 24}. The work is led by {link}.\n\n"
            f"## Budget\n\n{chance.randint(2, 90)} thousand were spent.\n",
        )
        _write(
            folder / "people" / f"{_file(person)}.md",
            f"---\naliases: [{person.split()[0][0]}. {person.split()[1]}]\n---\n# {person}\n\n"
            f"The office is at {street}. Phone {chance.randint(1000, 9999)}.\n",
        )
        seen = chance.sample(projects, 2)
        _write(
            folder / "days" / f"2024-{number // 28 + 1:02}-{number % 28 + 1:02}.md",
            f"Met about the office and the work. Next: [[{seen[0]}]], then a walk.\n",
        )
        asked.append(Asked(f"Where is the office of whoever leads {project}?", project, person, street))
    return asked


def _file(name: str) -> str:
    return name.lower().replace(" ", "-")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
