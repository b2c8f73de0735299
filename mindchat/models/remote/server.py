"""A language model on an OpenAI-compatible server: vLLM, llama.cpp, Ollama, hosted ones. The Model port over HTTP.

Owns: prompts as messages, streaming, samples, choices. Does not own: the connection (wire), what the server can do (connect), reading its
words (replies). Differences to a model on this machine, all of them told at connect (`notes`):
* LOGPROB and ENTROPY only if the server showed them when it was asked; the entropy is a lower bound from its k likeliest tokens
  (replies.entropy_bounds says how far the true value can lie above it). ATTENTION and HIDDEN never.
* Kept words are continued as text, since ids are the server's own affair; an open assistant turn needs a server that continues one.
* count() estimates from characters, at a rate that was measured at connect; usage() are the server's own figures where it sends them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from mindchat.config import ModelSection, ServerSection
from mindchat.errors import CapabilityError, ServerError, WindowError
from mindchat.events import ModelLoading
from mindchat.models.decode.stop_strings import Tail
from mindchat.models.remote.capabilities import Abilities, address_of, find_out, key_of, settings_of
from mindchat.models.remote.http_client import Wire
from mindchat.models.remote.replies import FINISHES, Allowance, Assembler, Echo, Reader, choices_of, scored_of
from mindchat.models.remote.server_scoring import elect
from mindchat.ports import NEVER, Cancel
from mindchat.values import Choice, Draft, Finish, Finished, Piece, Prefilled, Prompt, Signal, Span, StreamItem, Token

_CONTROL = re.compile(r"<(?=[|｜]|/?s>|bos>|eos>|start_of_turn>|end_of_turn>)|\[(?=/?INST\])")
"""Where a control token of a common chat template begins: servers read them as such wherever they stand."""
_BEGIN = (
    "Your reply begins with the words below, which stand there already. Write only what comes after them, without"
    " repeating them.\n"
)
CHAT = "chat/completions"
MARGIN = 1.05
"""The estimate of count() is this much too high rather than too low."""
PER_MESSAGE = 6
"""Tokens of the template around a message."""
Messages = list[dict[str, str]]


class ServerModel:
    """A model behind an OpenAI-compatible address. Implements mindchat.ports.Model. Not for two threads at once, except count(), render()."""

    def __init__(self, wire: Wire, abilities: Abilities) -> None:
        self.wire, self.abilities = wire, abilities
        self.notes = abilities.notes
        """What the user should know of this server, in sentences."""
        found = {Signal.LOGPROB: abilities.logprob, Signal.ENTROPY: abilities.entropy}
        self._provides = frozenset(signal for signal, there in found.items() if there)
        self._words: dict[str, int] = {}
        self._used = [0, 0, 0]

    @classmethod
    def connect(
        cls,
        server: ServerSection,
        model: ModelSection,
        progress: Callable[[ModelLoading], None] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        cancel: Cancel = NEVER,
    ) -> ServerModel:
        """Ask the server what it has and can. Raises ConfigError (no key), ServerError, ModelMissingError (naming its models)."""
        tell = progress or (lambda news: None)
        started = time.monotonic()
        wire = Wire(address_of(server.url), key_of(server, os.environ if environ is None else environ), server.timeout)
        tell(ModelLoading("connecting"))
        connected = cls(wire, find_out(wire, model, cancel))
        for note in connected.notes:
            tell(ModelLoading(f"note: {note}", 1, 1, time.monotonic() - started))
        tell(ModelLoading("ready", 1, 1, time.monotonic() - started))
        return connected

    # ── facts ──

    @property
    def id(self) -> str:
        """The server's id of the model."""
        return self.abilities.model

    @property
    def provides(self) -> frozenset[Signal]:
        """LOGPROB and ENTROPY (a lower bound), each only if the server gave them at connect."""
        return self._provides

    @property
    def window(self) -> int:
        """Most tokens of prompt and generation together, as set, told by the server, or assumed (see notes)."""
        return self.abilities.window

    def count(self, prompt: Prompt) -> int:
        """Tokens of the prompt, estimated from its characters; rather too many than too few."""
        messages = self._messages(prompt)
        letters = sum(len(message["content"]) for message in messages)
        return int(letters / self.abilities.letters * MARGIN) + PER_MESSAGE * len(messages)

    def render(self, prompt: Prompt) -> str:
        """Every message that would be sent; the chat template is the server's and not known here."""
        return "\n".join(f"<{message['role']}> {message['content']}" for message in self._messages(prompt))

    def usage(self) -> tuple[int, int, int]:
        """(prompt tokens new, prompt tokens cached, generated) since the last call, as the server counts them; estimated if it does not."""
        new, cached, generated = (max(amount, 0) for amount in self._used)
        self._used = [0, 0, 0]
        return new, cached, generated

    def close(self) -> None:
        """Close the connection."""
        self.wire.close()

    # ── verbs ──

    def stream(
        self,
        prompt: Prompt,
        *,
        want: frozenset[Signal],
        max_tokens: int,
        stop: Sequence[str] = (),
        allow: Sequence[str] | None = None,
        cancel: Cancel = NEVER,
    ) -> Iterator[StreamItem]:
        """See mindchat.ports.Model.stream. A stop string is looked for here and closes the connection, so that STOP and EOS can be told apart.

        Raises WindowError, ServerError; CapabilityError for `allow` without log-probabilities.
        """
        total, started = self._fit(prompt), time.monotonic()
        if allow is not None:
            yield Prefilled(total, total, 0, 0.0)
            best = max(self.choose(prompt, allow, cancel=cancel), key=lambda choice: choice.logprob)
            yield self._numbered(Token(0, -1, best.option, best.logprob if Signal.LOGPROB in want else None), 0)
            yield Finished(Finish.EOS)
            return
        limit = min(max_tokens, self.window - total)
        if limit < 1:
            yield Prefilled(total, total, 0, 0.0)
            yield Finished(Finish.LENGTH)
            return
        count = 0
        for item in self._events(prompt, want, limit, stop, total, cancel):
            if isinstance(item, Prefilled):
                item = replace(item, seconds=time.monotonic() - started)
            elif isinstance(item, Token):
                item, count = self._numbered(item, count), count + 1
            yield item

    def sample(
        self,
        prompt: Prompt,
        *,
        n: int,
        want: frozenset[Signal],
        max_tokens: int,
        temperature: float = 1.0,
        top_k: int = 50,
        top_p: float = 0.9,
        seed: int = 0,
        stop: Sequence[str] = (),
        cancel: Cancel = NEVER,
    ) -> Sequence[Draft]:
        """See mindchat.ports.Model.sample. `top_k` is no field of the protocol and is not sent; what a seed repeats is up to the server."""
        limit = min(max_tokens, self.window - self._fit(prompt))
        drafts: list[Draft] = []
        while len(drafts) < n:  # a server that gives one sample a request is asked again
            body = self._body(prompt, want, limit)
            body |= {"n": n - len(drafts), "temperature": temperature, "top_p": top_p, "seed": seed + len(drafts)}
            answer = self.wire.post(CHAT, body, cancel)
            self._counted(answer.get("usage"), prompt, 0)
            choices = answer.get("choices") or []
            if not choices:
                raise self._empty()
            drafts += [self._draft(prompt, choice, want, stop, limit) for choice in choices[: n - len(drafts)]]
        return drafts

    def choose(self, prompt: Prompt, options: Sequence[str], *, cancel: Cancel = NEVER) -> Sequence[Choice]:
        """See mindchat.ports.Model.choose; how exactly depends on the server (elect). Raises CapabilityError if it gives no log-probabilities."""
        self._fit(prompt)
        return elect(self, prompt, options, cancel)

    def attention(self, prompt: Prompt, draft: Draft, span: Span, *, cancel: Cancel = NEVER) -> Sequence[Piece]:
        """Raises CapabilityError: no server of this kind tells attention."""
        raise CapabilityError(
            f"{self.id} runs on a server, which tells no attention.",
            "Choose a policy that needs none, such as flare, or a model on this machine.",
        )

    # ── one request ──

    def one(self, prompt: Prompt, more: Mapping[str, Any], cancel: Cancel) -> Mapping[str, Any]:
        """One unstreamed answer of one token with `more` fields: the whole body. Counts it."""
        answer: dict[str, Any] = self.wire.post(CHAT, {**self._body(prompt, frozenset(), 1), **more}, cancel)
        self._counted(answer.get("usage"), prompt, 1)
        if not answer.get("choices"):
            raise self._empty()
        return answer

    def _empty(self) -> ServerError:
        return ServerError(f"The server {self.wire.shown} answers without a choice.", "Its log may say why.")

    def _events(
        self, prompt: Prompt, want: frozenset[Signal], limit: int, stop: Sequence[str], total: int, cancel: Cancel
    ) -> Iterator[Prefilled | Token | Finished]:
        """The answer as it comes: Prefilled, unnumbered tokens, Finished."""
        counting = settings_of("instruct", 0, self.abilities.counts)
        events = self.wire.stream(CHAT, {**self._body(prompt, want, limit), **counting, "stream": True}, limit, cancel)
        reader, usage, made, finish = self._reader(prompt, want, stop), None, 0, Finish.EOS
        allowance, begun, ended = Allowance(limit), False, False
        try:
            for event in events:
                if not begun:
                    begun = True
                    self._used[0] += (
                        total  # whoever asks for usage() in the middle of a stream gets the estimate; _settle corrects it
                    )
                    yield Prefilled(total, total, 0, 0.0)
                usage = event.get("usage") or usage
                for choice in choices_of(event, ended):
                    said, scored = allowance.grant(choice.get("delta") or {}, scored_of(choice))
                    for token in reader.feed(said, scored):
                        made += 1
                        self._used[2] += 1
                        yield token
                    ended = bool(choice.get("finish_reason"))
                    finish = self._finish(choice, finish)
                if reader.stopped or allowance.exceeded:
                    finish = Finish.STOP if reader.stopped else Finish.LENGTH
                    break
            for token in reader.close():
                made += 1
                self._used[2] += 1
                yield token
            self._settle(usage, total, made)
            yield Finished(finish)
        finally:
            events.close()  # type: ignore[attr-defined]  # a generator; closes the connection, so that the server stops

    def _body(self, prompt: Prompt, want: frozenset[Signal], limit: int) -> dict[str, Any]:
        able, messages = self.abilities, self._messages(prompt)
        opened = bool(messages) and messages[-1]["role"] == "assistant"
        top = able.top if want & {Signal.LOGPROB, Signal.ENTROPY} else 0
        fields = settings_of(able.mode if opened else "instruct", top, False)
        return {"model": able.model, "messages": messages, "temperature": 0, able.limit: limit, **fields}

    def _reader(self, prompt: Prompt, want: frozenset[Signal], stop: Sequence[str]) -> Reader:
        want = want & self._provides
        opened = bool(prompt.messages) and prompt.messages[-1].role == "assistant"
        echo = prompt.messages[-1].text if self.abilities.mode == "instruct" and opened else ""
        return Reader(
            Assembler(logprob=Signal.LOGPROB in want, entropy=Signal.ENTROPY in want),
            Echo(echo),
            Tail([s for s in stop if s]),
        )

    def _draft(
        self, prompt: Prompt, choice: Mapping[str, Any], want: frozenset[Signal], stop: Sequence[str], limit: int
    ) -> Draft:
        reader = self._reader(prompt, want, stop)
        said, scored = Allowance(limit).grant(choice.get("message") or {}, scored_of(choice))
        found = [*reader.feed(said, scored), *reader.close()]
        tokens = tuple(self._numbered(token, i) for i, token in enumerate(found))
        finish = Finish.STOP if reader.stopped else self._finish(choice, Finish.EOS)
        return Draft("".join(token.text for token in tokens), tokens, None, finish)

    def _finish(self, choice: Mapping[str, Any], known: Finish) -> Finish:
        reason = choice.get("finish_reason")
        if reason == "content_filter":
            raise ServerError(
                f"The server {self.wire.shown} holds the answer back: its filter objects.",
                "Ask in other words, or use another server.",
            )
        return FINISHES.get(str(reason), Finish.EOS) if reason else known

    def _numbered(self, token: Token, index: int) -> Token:
        """With its place, and an id that stands for its text: the server's own ids are not told."""
        return replace(token, index=index, id=self._words.setdefault(token.text, len(self._words)))

    def _fit(self, prompt: Prompt) -> int:
        total = self.count(prompt)
        if total >= self.window:
            raise WindowError(
                f"The prompt has about {total} tokens; the window of {self.id} has {self.window}.",
                "Shorten the question, lower -k or --repeat, or set model.window to the server's.",
            )
        return total

    def _counted(self, usage: Mapping[str, Any] | None, prompt: Prompt, made: int) -> None:
        """Add one whole request to the account."""
        total = self.count(prompt)
        self._used[0] += total
        self._used[2] += made
        self._settle(usage, total, made)

    def _settle(self, usage: Mapping[str, Any] | None, total: int, made: int) -> None:
        """Put the server's own figures in place of the estimates that the account holds."""
        usage = usage or {}
        sent = int(usage.get("prompt_tokens") or total)
        cached = min(int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0), sent)
        for i, amount in enumerate((sent - cached - total, cached, int(usage.get("completion_tokens") or made) - made)):
            self._used[i] += amount

    def _messages(self, prompt: Prompt) -> Messages:
        """Roles and words; without an open turn, its words become an instruction at the end of the user's."""
        messages = [
            {"role": message.role, "content": _CONTROL.sub(r"\g<0> ", message.text)} for message in prompt.messages
        ]
        if (
            messages
            and messages[-1]["role"] == "assistant"
            and (not messages[-1]["content"] or self.abilities.mode == "instruct")
        ):
            begun = messages.pop()["content"]
            if begun and messages and messages[-1]["role"] == "user":
                messages[-1]["content"] += f"\n\n{_BEGIN}{begun}"
            elif begun:
                messages.append({"role": "user", "content": _BEGIN + begun})
        return messages
