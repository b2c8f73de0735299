"""The tree of errors that a user may meet, each with a hint and an exit code.

Owns: the classes below and their exit codes. Does not own: printing them (cli, tui).

MindChatError                   1  failed or refused
├── ConfigError                 2  a setting, flag or key is wrong
├── UsageError                  2  the command itself is wrong (empty question, unknown name)
├── ResourceError               3  a resource is missing or busy; may be retried
│   ├── ModelMissingError       3  the model is not on this machine
│   ├── ModelTooLargeError      3  the model does not fit into memory
│   ├── IndexMissingError       3  nothing is indexed
│   ├── IndexLockedError        3  another process writes the index
│   ├── MemoryStoreError        3  memory.db or chats.db cannot be read or written
│   └── ServerError             3  the model server cannot be reached or refuses
├── CapabilityError             1  the model cannot measure what the policy needs
├── DocumentError               1  a document cannot be read
├── NotFoundError               1  nothing matches what was named (a fact, a session)
├── RefusedError                1  asked for, but not done: a secret, a pinned fact, a missing --yes
├── WindowError                 1  the question alone does not fit the model's window
├── DownloadError               3  a download failed or its bytes are not the expected ones
├── DeadlineError               4  --timeout passed
└── Interrupted               130  Esc or Ctrl+C
"""

from __future__ import annotations


class MindChatError(Exception):
    """Base of every expected failure: one clear sentence (`message`) and what to do next (`hint`)."""

    code = "failed"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ConfigError(MindChatError):
    """A setting is unknown, has the wrong type or a value out of range."""

    code, exit_code = "config", 2


class UsageError(MindChatError):
    """The command is wrong: an empty question, an unknown policy."""

    code, exit_code = "usage", 2


class ResourceError(MindChatError):
    """Something needed is missing or busy; trying again later may work."""

    code, exit_code = "resource", 3


class ModelMissingError(ResourceError):
    """The model is not on this machine."""

    code = "model_missing"


class ModelTooLargeError(ResourceError):
    """The estimated memory of the model exceeds what is free."""

    code = "model_too_large"


class IndexMissingError(ResourceError):
    """Nothing has been indexed yet, or the index is gone."""

    code = "index_missing"


class IndexLockedError(ResourceError):
    """Another process is writing the index."""

    code = "index_locked"


class MemoryStoreError(ResourceError):
    """memory.db or chats.db cannot be read or written."""

    code = "memory_store"


class ServerError(ResourceError):
    """The model server cannot be reached, refuses, or answers in a way that makes no sense. `status`: HTTP status, 0 if
    there is none.
    """

    code = "server"

    def __init__(self, message: str, hint: str = "", status: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status


class DownloadError(ResourceError):
    """A download failed, or its bytes do not have the expected hash."""

    code = "download"


class CapabilityError(MindChatError):
    """The model cannot measure a signal that the policy needs."""

    code = "capability"


class DocumentError(MindChatError):
    """A document cannot be read; the message names it and the reason."""

    code = "document"


class NotFoundError(MindChatError):
    """Nothing matches what was named."""

    code = "not_found"


class RefusedError(MindChatError):
    """The request was understood and is not carried out; nothing changed."""

    code = "refused"


class WindowError(MindChatError):
    """Question and instructions alone exceed the model's window."""

    code = "window"


class DeadlineError(MindChatError):
    """The time limit given by the user has passed."""

    code, exit_code = "timeout", 4


class Interrupted(MindChatError):
    """The user cancelled."""

    code, exit_code = "interrupted", 130
