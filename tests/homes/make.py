"""Makes the small home of an earlier version that tests/homes/test_earlier_home.py opens.

    git archive 431b4b6 | tar -x -C OLD
    python tests/homes/make.py OLD tests/homes/431b4b6.tar.gz

OLD is a folder with that version; the Python that runs this file must have the dependencies. The home is made with the
old program itself, in a neutral folder (`PLACE`), since documents, sessions and traces keep absolute paths. The archive
holds the home alone: no documents, no logs. Its members stand in order, without owners and with one date; ids and
clocks inside are those of the day on which it was made.
"""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

PLACE = Path("/tmp/mindchat-home")
HOME = PLACE / "home"
DOCUMENTS = {
    "films.md": (
        "# Films\n\n## Polish-Russian War\n\nPolish-Russian War is a 2009 Polish film directed by Xawery Żuławski.\n\n"
        "## Metropolis\n\nMetropolis is a 1927 German film directed by Fritz Lang.\n"
    ),
    "places.md": "# Places\n\nŁódź is a city in central Poland.\n",
    "people.jsonl": (
        '{"title": "Xawery Żuławski", "text": "Xawery Żuławski is a Polish film director born in Warsaw."}\n'
        '{"title": "Fritz Lang", "text": "Fritz Lang was born in Vienna in 1890."}\n'
    ),
}
SETTINGS = "[retrieve]\nk = 3 # fewer passages\n\n[memory]\naudit = 0\n"
TAPE = '[[reply]]\ntext = " Xawery Żuławski"\n[[reply]]\nscores = {" Xawery Żuławski" = -0.01}\n'
COMMANDS = (
    ("config", "validate"),
    ("index", "add", "documents"),
    ("memory", "add", "Metropolis | director | Fritz Lang"),
    ("memory", "add", "Fritz Lang | place of birth | Vienna"),
    ("memory", "add", "Łódź | country | Poland"),
    ("ask", "Who directed Polish-Russian War?", "-m", "scripted:tape.toml", "--policy", "once"),
)


def make(program: Path) -> None:
    """Runs the old program in an empty `PLACE`; any command that fails stops this with its own words."""
    shutil.rmtree(PLACE, ignore_errors=True)
    (PLACE / "documents").mkdir(parents=True)
    HOME.mkdir()
    for name, text in DOCUMENTS.items():
        (PLACE / "documents" / name).write_text(text, encoding="utf-8")
    (PLACE / "tape.toml").write_text(TAPE, encoding="utf-8")
    (HOME / "config.toml").write_text(SETTINGS, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MINDCHAT_")}
    environment = kept | {"PYTHONPATH": str(program.resolve()), "MINDCHAT_HOME": str(HOME), "PYTHONIOENCODING": "utf-8"}
    for words in COMMANDS:
        subprocess.run([sys.executable, "-m", "mindchat", *words], cwd=PLACE, env=environment, check=True)


def pack(target: Path) -> None:
    """Writes the home to `target`, members in order of their names."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path in sorted(HOME.rglob("*")):
            name = path.relative_to(HOME)
            if name.parts[0] == "logs" or path.suffix == ".lock" or not path.is_file():
                continue
            member = tarfile.TarInfo(name.as_posix())
            member.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(member, content)
    target.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
    pack(Path(sys.argv[2]))
