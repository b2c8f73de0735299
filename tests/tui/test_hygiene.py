"""What the room may not do: parse dynamic text as markup, import torch, or need Textual in the line mode."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mindchat.tui

ROOT = Path(mindchat.tui.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NEEDS_MARKUP_OFF = {
    "Static",
    "Label",
    "OptionList",
    "Button",
    "Checkbox",
    "RadioButton",
    "Link",
    "Digits",
    "RichLog",
    "SelectionList",
}
"""Widgets whose text is parsed unless they are told not to."""
BANNED = {"from_markup", "to_content"}
TEXT_SINKS = {"border_title", "border_subtitle", "tooltip", "placeholder"}


def calls(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else node.func.id
                if isinstance(node.func, ast.Name)
                else ""
            )
            found.append((name, node))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_text_is_parsed_as_markup(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bad = []
    for name, node in calls(tree):
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in NEEDS_MARKUP_OFF:
            off = keywords.get("markup")
            if not (isinstance(off, ast.Constant) and off.value is False):
                bad.append(f"{path.name}:{node.lineno} {name} without markup=False")
        if name in BANNED:
            bad.append(f"{path.name}:{node.lineno} {name}")
        markup = keywords.get("markup")
        if isinstance(markup, ast.Constant) and markup.value is True:
            bad.append(f"{path.name}:{node.lineno} markup=True")
        if (
            name in ("Option", "add_column", "add_columns", "add_row", "Tab", "TabPane")
            and node.args
            and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
        ):
            bad.append(f"{path.name}:{node.lineno} a bare string in {name}")
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                sink = target.attr if isinstance(target, ast.Attribute) else ""
                if sink in TEXT_SINKS and isinstance(node.value, ast.Constant | ast.JoinedStr | ast.Name):
                    bad.append(f"{path.name}:{node.lineno} a bare string in {sink}")
    assert not bad


def test_widgets_that_parse_by_class_are_told_not_to() -> None:
    """Subclasses of Static pass markup=False in their constructor."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(base, ast.Name) and base.id == "Static" for base in node.bases
            ):
                source = ast.unparse(node)
                assert "markup=False" in source, f"{path.name}: {node.name}"


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def test_the_app_starts_without_torch() -> None:
    out = run_python(
        "import sys, mindchat.tui.app, mindchat.tui.screens.chat; print({'torch', 'transformers', 'whoosh', 'bm25s'} &"
        " set(sys.modules))"
    )
    assert out.strip() == "set()"


def test_only_the_table_of_this_test_may_grow() -> None:
    """The lint sees files at all."""
    assert len(FILES) > 15
