"""Memory under kill -9, several processes and large stores (the letters are those of the design note)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mindchat
from mindchat.memory.facts import FactMemory
from mindchat.memory.learning.slots import predicates
from mindchat.storage.migrations import MEMORY, open_store
from mindchat.values import Query

from .conftest import World, check, run_together

Taught = tuple[World, FactMemory]
PACKAGE = Path(mindchat.__file__).parent

# ── crashes
# ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

WRITER = """
import sys
from pathlib import Path
from mindchat.config import MemorySection
from mindchat.memory import verbs
from mindchat.storage.chats import ChatStore
from mindchat.storage.document_registry import DocumentRegistry
from mindchat.memory.facts import FactMemory
from mindchat.values import Chunk, Document
folder = Path(sys.argv[1])
memory = FactMemory(folder / "memory.db", MemorySection(), project="p", session="s")
registry, chats = DocumentRegistry(memory.store), ChatStore(folder / "chats.db")
chat = chats.create("p")
print("ready", flush=True)
for i in range(100000):
    turn = chats.begin_turn(chat, f"question {i}")
    verbs.add(memory, f"Person {i} | father | Parent {i}")
    registry.put([(Document(f"/d{i}", "T", f"text {i} of a document"), [Chunk(0, 6), Chunk(6, 15)])])
    if i % 3 == 2:
        registry.remove([f"/d{i - 1}"])
        verbs.forget(memory, match=f"Person {i - 1}")
    chats.save_partial(turn, "half")
    chats.finish_turn(turn, f"answer {i}")
    print(i, flush=True)
"""


def kill_loop(folder: Path, times: int) -> None:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    generator = random.Random(3)
    for _ in range(times):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, env=environment, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(generator.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        acknowledged = process.stdout.read().count("\n")
        process.wait()
        process.stdout.close()
        _whole(folder, acknowledged)


def _whole(folder: Path, acknowledged: int) -> None:
    from mindchat.storage.chats import ChatStore

    store = open_store(folder / "memory.db", MEMORY)
    check(store)
    assert store.value("SELECT count(*) FROM fact WHERE NOT EXISTS(SELECT 1 FROM evidence WHERE fact_id=fact.id)") == 0
    assert (
        store.value(
            "SELECT count(*) FROM document d WHERE status='active' AND 2<>(SELECT count(*) FROM chunk WHERE"
            " document_id=d.id)"
        )
        == 0
    )
    store.close()
    chats = ChatStore(folder / "chats.db")
    turns = chats.show(chats.latest() or "").turns
    assert len([turn for turn in turns if turn.status == "done"]) >= acknowledged
    assert len([turn for turn in turns if turn.status == "running"]) <= 1
    chats.close()


def test_kill_9_tears_nothing(tmp_path: Path) -> None:
    kill_loop(tmp_path, 3)


@pytest.mark.soak
def test_kill_9_two_hundred_times(tmp_path: Path) -> None:
    kill_loop(tmp_path, 200)


TEACHER = """
import sys
from pathlib import Path
from mindchat.config import MemorySection
from mindchat.memory import verbs
from mindchat.memory.facts import FactMemory
memory = FactMemory(Path(sys.argv[1]), MemorySection(), project="p", session=sys.argv[1])
for i in range(int(sys.argv[2])):
    verbs.add(memory, f"Person {i} | sibling | Brother {i}")
memory.close()
"""


def test_f1_three_processes_that_say_the_same_make_one_fact_each(world: World) -> None:
    world.memory()
    assert run_together(TEACHER, str(world.db), "12") == [0, 0, 0]
    assert world.registry.store.value("SELECT count(*) FROM fact") == 12
    assert world.registry.store.value("SELECT count(*) FROM evidence") == 12


# ── size
# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * len(values))]


def person(n: int) -> str:
    """Names as spread as people's: 200 given names."""
    return f"Given{n % 200} Number{n}"


@pytest.mark.bench
def test_fifty_thousand_facts(tmp_path: Path) -> None:
    world = World(tmp_path)
    memory = world.memory(project="p")
    big_memory(world, memory, 50_000)
    reader, generator = memory.reader, random.Random(1)
    from mindchat.memory.learning.slots import parse

    # Processor time: what others do on the machine is not memory's.
    scopes, slots, fts, whole = reader.scopes(), [], [], []
    for _ in range(300):
        n = generator.randrange(50_000)
        question = f"Who is the father of {person(n)}?"
        slot = parse(question)
        assert slot is not None
        began = time.thread_time()
        (entity,) = reader.entities(slot, question)
        found = reader.in_slot(scopes, entity["id"], "father")
        slots.append(time.thread_time() - began)
        assert found
        began = time.thread_time()
        reader._named(scopes, question)
        fts.append(time.thread_time() - began)
        began = time.thread_time()
        assert memory.recall(Query(question)).facts
        whole.append(time.thread_time() - began)
    began = time.thread_time()
    assert world.registry.remove(["/d7"]) == 1
    forget = time.thread_time() - began
    took = {"slot": p95(slots), "fts": p95(fts), "recall": p95(whole), "forget": forget}
    print({name: f"{1000 * value:.2f} ms" for name, value in took.items()}, world.registry.store.bytes())  # noqa: T201
    world.close()
    assert took["slot"] < 0.001
    assert took["fts"] < 0.015
    assert took["forget"] < 0.1


def big_memory(world: World, memory: FactMemory, count: int) -> None:
    from mindchat.memory.tables import ledger
    from mindchat.memory.tables.ledger import Claim, Evidence
    from mindchat.values import Chunk, Document

    per = 100
    texts = [
        "".join(f"{person(n)} is the son of Parent{n % 200} Number{n}.\n" for n in range(i, i + per))
        for i in range(0, count, per)
    ]
    world.registry.put([(Document(f"/d{i}", f"D{i}", text), [Chunk(0, len(text))]) for i, text in enumerate(texts)])
    predicate = predicates()["father"]
    for i, text in enumerate(texts):
        with memory.store.write() as connection:
            scope = ledger.scope_id(connection, "project", "p")
            chunk = connection.execute(
                "SELECT c.* FROM chunk c JOIN document d ON d.id=c.document_id WHERE d.uri=?", (f"/d{i}",)
            ).fetchone()
            at = 0
            for n, line in enumerate(text.splitlines(keepends=True), i * per):
                evidence = Evidence(
                    "chunk",
                    "bench",
                    2,
                    chunk["document_id"],
                    chunk["id"],
                    chunk["sha256"],
                    line[:-1],
                    at,
                    at + len(line) - 1,
                )
                at += len(line)
                claim = Claim(
                    person(n),
                    predicate,
                    f"Parent{n % 200} Number{n}",
                    f"parent{n % 200} number{n}",
                    0.95,
                    "active",
                    evidence,
                    calibrated=True,
                )
                ledger.write(connection, scope, "p", claim)


@pytest.mark.soak
def test_d7_removing_85_documents_from_a_large_memory(tmp_path: Path) -> None:
    world = World(tmp_path)
    memory = world.memory(project="p")
    big_memory(world, memory, 20_000)
    began = time.perf_counter()
    assert world.registry.remove([f"/d{i}" for i in range(85)]) == 85
    assert time.perf_counter() - began < 10
    assert memory.store.value("SELECT count(*) FROM servable") == 20_000 - 8_500
    world.close()
