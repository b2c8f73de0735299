"""The tree of failures: codes are unique, exit codes are the contract's, and the picture at the top of the module is
true.
"""

from __future__ import annotations

import re

from mindchat import errors
from mindchat.errors import MindChatError


def family(kind: type[MindChatError]) -> list[type[MindChatError]]:
    return [kind, *(grandchild for child in kind.__subclasses__() for grandchild in family(child))]


OWN = [kind for kind in family(MindChatError) if kind.__module__ == errors.__name__]


def test_every_code_is_its_own() -> None:
    codes = [kind.code for kind in OWN]
    assert len(set(codes)) == len(codes)


def test_exit_codes_are_the_contracts() -> None:
    assert {kind.exit_code for kind in OWN} == {1, 2, 3, 4, 130}


def test_the_picture_names_every_class_with_its_exit_code() -> None:
    drawn = dict(re.findall(r"(\w+) +(\d+)  ", errors.__doc__ or ""))
    assert drawn == {kind.__name__: str(kind.exit_code) for kind in OWN}


def test_message_and_hint() -> None:
    error = MindChatError("It failed.", "Do that.")
    assert (error.message, error.hint, str(error)) == ("It failed.", "Do that.", "It failed.")
