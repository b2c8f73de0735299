"""Sessions, memory, documents and models from the command line, over real stores in an empty home."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindchat.paths import find_paths
from mindchat.storage.chats import ChatStore

from .board import Run

pytestmark = pytest.mark.usefixtures("board")


@pytest.fixture
def chat() -> str:
    """A stored conversation of one turn."""
    chats = ChatStore(find_paths().chats_db)
    uid = chats.create(title="Films")
    chats.finish_turn(chats.begin_turn(uid, "Who directed Metropolis?"), "Fritz Lang")
    chats.close()
    return uid


def test_sessions_are_listed_searched_shown_and_exported(run: Run, chat: str, tmp_path: Path) -> None:
    assert [found["id"] for found in run("sessions", "list", "--json").json["sessions"]] == [chat]
    assert run("sessions", "list").out.startswith(chat)
    assert [hit["chat"] for hit in run("sessions", "search", "metropolis", "--json").json["hits"]] == [chat]
    assert "Fritz Lang" in run("sessions", "show", chat[:4]).out
    assert run("sessions", "show", chat, "--json").json["turns"][0]["answer"] == "Fritz Lang"
    assert run("sessions", "rename", chat, "Silent", "films", "--json").json == {"id": chat, "title": "Silent films"}
    assert run("sessions", "export", chat).out.startswith("# Silent films")
    assert run("sessions", "export", chat, "chat.json").code == 0
    assert json.loads((tmp_path / "chat.json").read_text())["chat"]["id"] == chat


def test_sessions_search_without_a_hit_is_one(run: Run, chat: str) -> None:
    assert run("sessions", "search", "zeppelin").code == 1
    result = run("sessions", "search", "zeppelin", "--json")
    assert (result.code, result.json["hits"]) == (1, [])


def test_sessions_are_erased_only_on_a_word(run: Run, chat: str) -> None:
    refused = run("sessions", "delete", chat)
    assert refused.code == 1
    assert "--yes" in refused.err
    assert run("sessions", "delete", chat, "--yes", "--json").json == {"deleted": [chat]}
    assert run("sessions", "list", "--json").json == {"sessions": []}
    assert run("sessions", "purge", "--older-than", "30d", "-y", "--json").json == {"deleted": 0}
    assert run("sessions", "purge", "--older-than", "soon", "-y").code == 2


def test_memory_from_saving_to_forgetting(run: Run, tmp_path: Path) -> None:
    saved = run("memory", "add", "Metropolis | director | Fritz Lang", "--json")
    assert saved.code == 0
    uid = saved.json["saved"]["id"]
    assert [fact["id"] for fact in run("memory", "list", "--json").json["facts"]] == [uid]
    assert uid in run("memory", "search", "metropolis").out
    assert "Fritz Lang" in run("memory", "show", uid[:4]).out
    assert run("memory", "pin", uid).code == 0
    assert run("memory", "unpin", uid).code == 0
    assert run("memory", "export", "facts.jsonl").code == 0
    assert (tmp_path / "facts.jsonl").stat().st_mode & 0o077 == 0
    assert run("memory", "import", "facts.jsonl", "--dry-run").code == 0
    assert uid in run("memory", "forget", uid, "--dry-run").out
    assert run("memory", "forget", uid).code == 0
    empty = run("memory", "list", "--json")
    assert (empty.code, empty.json["facts"]) == (1, [])


def test_memory_contradiction_needs_a_decision(run: Run) -> None:
    run("memory", "add", "Metropolis | director | Fritz Lang")
    asked = run("memory", "add", "Metropolis | director | Erich Pommer", "--json")
    assert asked.code == 1
    assert asked.json["saved"] is None
    assert run("memory", "add", "Metropolis | director | Erich Pommer", "--resolve", "keep").code == 0


def test_memory_refuses_secrets(run: Run) -> None:
    result = run("memory", "add", "the db password is hunter2", "--json")
    assert (result.code, result.json["error"]["code"]) == (1, "refused")


@pytest.mark.parametrize("arguments", [["forget", "--all"], ["forget", "--hard", "--match", "Metropolis"]])
def test_memory_erases_much_only_on_a_word(run: Run, arguments: list[str]) -> None:
    run("memory", "add", "Metropolis | director | x")
    assert run("memory", *arguments).code == 1
    assert len(run("memory", "list", "--json").json["facts"]) == 1
    assert run("memory", *arguments, "--yes").code == 0
    assert run("memory", "list", "--json").json["facts"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["edit", "f7k", "object"],
        ["alias", "Fritz"],
        ["merge", "a", "b"],
        ["add", "x", "--resolve", "maybe"],
        ["forget", "--chats"],
        ["shw"],
    ],
)
def test_memory_wrong_usage_is_two(run: Run, arguments: list[str]) -> None:
    assert run("memory", *arguments).code == 2


def test_memory_modes_status_path_doctor_and_stats(run: Run) -> None:
    assert run("memory", "off").code == 0
    assert run("memory", "--json").json["mode"] == "off"
    assert run("memory", "on").code == 0
    assert run("memory", "path").out.strip().endswith("memory.db")
    assert run("memory", "doctor").code == 0
    assert run("memory", "stats", "--json").code == 0
    assert run("memory", "undo").code in (0, 1)
    assert run("memory", "why").code == 1


def test_documents_are_added_found_refreshed_and_removed(run: Run, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "films.txt").write_text("Metropolis is a silent film that was directed by Fritz Lang.")
    (docs / "rivers.md").write_text("# Elbe\n\nThe Elbe is a river that ends in the North Sea.")
    (docs / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    added = run("index", "add", "docs", "--json")
    assert added.code == 0
    assert (len(added.json["added"]), len(added.json["skipped"]), added.json["failed"]) == (2, 1, [])
    assert set(added.json) >= {"added", "updated", "removed", "unchanged", "failed", "skipped", "passages", "timing"}
    found = run("index", "search", "Who", "directed", "Metropolis?", "-k", "1", "--json").json
    assert set(found) == {"query", "timing", "hits", "absent"}
    assert found["absent"] == []
    missing = run("index", "search", "Who directed Metropoliss?", "--json").json
    assert missing["absent"] == [{"name": "Metropoliss", "near": []}]
    assert "No document names “Metropoliss”." in run("index", "search", "Who directed Metropoliss?").err
    hit = found["hits"][0]
    assert (docs / "films.txt").read_text()[hit["start"] : hit["end"]] == hit["text"]
    assert {"rank", "score", "document", "passage", "title", "start", "end", "text"} <= set(hit)
    for arguments in (
        ["film type:txt"],
        ["film", "type:txt"],
        ["film", "--in", "docs/films.txt"],
        ["film", "directed by Fritz"],
        ['"a silent film"'],
    ):
        assert [Path(hit["document"]).name for hit in run("index", "search", *arguments, "--json").json["hits"]] == [
            "films.txt"
        ]
    lost = run("index", "search", '"film silent"', "--json")
    assert (lost.code, lost.json["hits"], lost.json["absent"]) == (0, [], [{"name": "film silent", "near": []}])
    assert "No passage has “film silent” word for word." in run("index", "search", '"film silent"').err
    assert "Nothing found with type md · before 2001-01-01." in run("index", "search", "film type:md before:2001").err
    assert run("index", "search", "type:md").code == 2
    (docs / "films.txt").unlink()
    (docs / "new.txt").write_text("The Danube ends in the Black Sea.")
    synced = run("index", "sync", "--json").json
    assert (len(synced["added"]), len(synced["removed"]), synced["unchanged"]) == (1, 1, 1)
    assert run("index", "status", "--json").json["documents"] == 2
    assert run("index", "verify").code == 0
    assert run("index", "rebuild", "--json").json["passages"] == 2
    assert run("index", "remove", "docs").code == 1
    assert len(run("index", "remove", "docs", "--yes", "--json").json["removed"]) == 2
    assert "1 added" in run("index", "add", "docs/new.txt").out


def test_search_says_pages_headings_and_all_paths(run: Run, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("river.md", "copy.md"):
        (docs / name).write_text("# Elbe\n\nA river.\n\n## Mouth\n\nIt ends in the North Sea.", encoding="utf-8")
    (docs / "talk.pptx").write_bytes(slides(["The Danube", "The Black Sea is its end."]))
    assert run("index", "add", "docs", "--json").json["failed"] == []
    (hit,) = run("index", "search", "North", "--json").json["hits"]
    assert (hit["title"], hit["heading"]) == ("Elbe", "Mouth")
    assert sorted(hit["paths"]) == [str(docs / "copy.md"), str(docs / "river.md")]
    assert hit["paths"][0] == hit["document"]
    shown = run("index", "search", "North").out
    assert "1. Elbe › Mouth  (" in shown
    assert "   also in " in shown
    (hit,) = run("index", "search", "Black", "--json").json["hits"]
    assert (hit["page"], hit["paths"]) == (2, [str(docs / "talk.pptx")])
    assert "], page 2\n" in run("index", "search", "Black").out


def slides(titles: list[str]) -> bytes:
    import io

    import pptx

    show, buffer = pptx.Presentation(), io.BytesIO()
    for title in titles:
        show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = title
    show.save(buffer)
    return buffer.getvalue()


def test_adding_what_is_not_there_is_two(run: Run) -> None:
    result = run("index", "add", "nowhere", "--json")
    assert (result.code, result.json["error"]["code"]) == (2, "usage")


def test_models_are_listed_and_explained(run: Run) -> None:
    listed = run("models", "list", "--json").json
    assert listed["chosen"] == "qwen2.5-coder-0.5b"
    assert {"qwen2.5-coder-0.5b", "smollm2-135m", "qwen2.5-coder-1.5b"} <= {model["id"] for model in listed["models"]}
    assert "smollm2-135m" in run("models", "list").out
    about = run("models", "info", "qwen2.5-coder-0.5b").out
    assert "Apache" in about
    assert "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32" in about
    assert run("models", "info", "qwen2.5-coder-0.5c").code == 2
    missing = run("models", "path", "smollm2-135m", "--json")
    assert (missing.code, missing.json["error"]["code"]) == (3, "model_missing")
    assert run("models", "remove", "smollm2-135m", "--yes").code == 3
