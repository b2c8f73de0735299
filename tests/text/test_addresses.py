"""What of a server's address may be shown."""

from __future__ import annotations

import pytest

from mindchat.text.addresses import holds_secret, secrets_of, shown_address, without_secrets

SECRETS = ("hunter2", "s3cr3t-token")
WITH = [
    "http://ada:hunter2@host:8000/v1",
    "https://hunter2@host/v1",
    "http://ada:hunter2/x@host/v1",
    "http://ada:hunter2?x@host/v1",
    "http://ada:hunter2#x@host/v1",
    "http://ada:a@hunter2@host/v1",
    "//ada:hunter2@host",
    "ada:hunter2@host:8000",
    "http://host/v1?api_key=s3cr3t-token",
    "http://host/v1#s3cr3t-token",
    "http://ada:hunter2@host/v1?key=s3cr3t-token&b=1",
    " HTTP://ada:hunter2@[::1]:80/v1 ",
]
WITHOUT = ["", "http://localhost:8000/v1", "https://host", "http://[::1]:80/v1", "models/milvus.db", "host:8000"]


@pytest.mark.parametrize("address", WITH)
def test_no_credential_of_an_address_is_shown(address: str) -> None:
    shown = shown_address(address)
    assert not any(secret in shown for secret in SECRETS)
    assert holds_secret(address)
    assert "host" in shown or "::1" in shown
    settings = without_secrets({"server.url": address, "index.milvus": address, "retrieve.k": 3})
    assert settings == {"server.url": shown, "index.milvus": shown, "retrieve.k": 3}


@pytest.mark.parametrize("address", WITHOUT)
def test_an_address_without_credentials_is_shown_as_it_is(address: str) -> None:
    assert shown_address(address) == address
    assert not holds_secret(address)
    assert secrets_of(address) == ()


def test_what_others_may_repeat_is_known_part_by_part() -> None:
    assert set(secrets_of("http://ada:hunter2@host/v1?key=s3cr3t-token")) >= set(SECRETS)
