"""The user's config.toml stays valid and keeps what the user wrote, however it is laid out."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mindchat.config import load_config
from mindchat.errors import ConfigError, RefusedError
from mindchat.storage.settings_file import save_setting

LAYOUTS = {
    "nothing": "",
    "a comment behind the head": "[retrieve] # mine\nk = 3\n",
    "blanks in the head": "[ retrieve ]\nk = 3\n",
    "dotted at the top": "retrieve.k = 3\n",
    "a list over several lines": '[index]\nexclude = [\n  "a", # first\n  "b",\n]\n[retrieve]\nk = 3\n',
    "an inline table": "retrieve = { k = 3 }\n",
    "another section": "# mine\n[rind]\nalpha = 2.0\n",
    "Windows line ends": "[retrieve]\r\nk = 3\r\n",
    "the key in a comment": "[retrieve]\n# k = 9\nk = 3\n",
    "a quoted head": '["retrieve"]\n"k" = 3\n',
    "a text over several lines": '[model]\nname = """\n[retrieve]\nk = 9"""\n',
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_setting_is_written_into_every_layout(tmp_path: Path, layout: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(LAYOUTS[layout].encode())
    before = tomllib.loads(LAYOUTS[layout])
    save_setting(path, "retrieve.k", "5")
    after = tomllib.loads(path.read_text(encoding="utf-8"))
    assert after["retrieve"]["k"] == 5
    assert {k: v for k, v in after.items() if k != "retrieve"} == {k: v for k, v in before.items() if k != "retrieve"}
    for line in LAYOUTS[layout].splitlines():
        if "#" in line:
            assert line.partition("#")[2] in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "body",
    [
        "[retrieve\nk=3",
        "retrieve = 3\n",
        "[[retrieve]]\nk = 3\n",
        "\udce9".encode("utf-8", "surrogateescape").decode("latin-1"),
    ],
)
def test_a_file_that_cannot_be_changed_stays_as_it_is(tmp_path: Path, body: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(body.encode("latin-1"))
    with pytest.raises(ConfigError, match="cannot be changed"):
        save_setting(path, "retrieve.k", "5")
    assert path.read_bytes() == body.encode("latin-1")


def test_what_was_saved_is_what_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    for key, value in (
        ("retrieve.k", "5"),
        ("layout.role", "assistant"),
        ("rind.first", "false"),
        ("rind.alpha", "2.5"),
    ):
        save_setting(path, key, value)
    config = load_config(user_file=path, environ={}).config
    assert (config.retrieve.k, config.layout.role, config.rind.first, config.rind.alpha) == (5, "assistant", False, 2.5)


@pytest.mark.parametrize("key", ["server.url", "index.milvus"])
@pytest.mark.parametrize(
    "address", ["http://ada:hunter2@host:1/v1", "http://hunter2@host", "https://host/v1?api_key=hunter2"]
)
def test_an_address_with_credentials_is_not_stored(tmp_path: Path, key: str, address: str) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(RefusedError) as refused:
        save_setting(path, key, address)
    assert "hunter2" not in str(refused.value) + refused.value.hint
    assert "_env" in refused.value.hint
    assert not path.exists()
    save_setting(path, key, "http://host:1/v1")
