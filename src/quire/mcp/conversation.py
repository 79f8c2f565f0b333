"""One call of a tool while it lasts: the host on one side, in a thread; the client on the other.

A question can outlive a request: at the newest protocol the client hears of it as the request's
result, and brings the answer with the next one.
"""

from __future__ import annotations

import asyncio
import queue
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..agent.call_client import Answer, Questions, Reply, ToolCall

PATIENCE = 900.0  # seconds a question waits for its answer
OPEN = 64  # questions that wait at once


@dataclass(frozen=True, slots=True)
class Step:
    """The call is this far."""

    done: int
    total: int
    what: str


class Conversation:
    """Made in the event loop. `next` is what happens next; `answer` an Answer at the end."""

    def __init__(self, make: Callable[[Callable[[Questions], Reply]], ToolCall]) -> None:
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Step | Answer | Questions] = asyncio.Queue()
        self._replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        self.asked: Questions = ()  # what the client was last sent away with
        self.call = make(self._ask)
        self.call.progress = lambda done, total, what: self._put(Step(done, total, what))
        threading.Thread(target=self._work, name=self.call.name, daemon=True).start()

    async def next(self) -> Step | Answer | Questions:
        return await self._events.get()

    def reply(self, reply: Reply) -> None:
        self._replies.put(reply)

    def _work(self) -> None:
        try:
            answer = self.call.run()
        except Exception as error:  # noqa: BLE001 - the client must hear something
            answer = Answer(f"error (fault): {type(error).__name__}: {error}", (), True)
        self._put(answer)

    def _ask(self, questions: Questions) -> Reply:
        self._put(questions)
        try:
            return self._replies.get(timeout=PATIENCE)
        except queue.Empty:
            return Reply()

    def _put(self, what: Step | Answer | Questions) -> None:
        try:
            self._loop.call_soon_threadsafe(self._events.put_nowait, what)
        except RuntimeError:
            return  # the loop is over, and whoever would have listened


@dataclass(frozen=True, slots=True)
class Waiting:
    conversation: Conversation
    owner: str
    tool: str
    since: float


class OpenQuestions:
    """Calls that wait for the client to come back with answers, by a state nobody can guess."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}

    def put(self, conversation: Conversation, owner: str, tool: str) -> str:
        self._tidy()
        state = secrets.token_urlsafe(24)
        self._waiting[state] = Waiting(conversation, owner, tool, time.monotonic())
        return state

    def take(self, state: str, owner: str, tool: str) -> Conversation | None:
        """None for a state that is not, or no more, theirs."""
        waiting = self._waiting.get(state)
        if waiting is None or (waiting.owner, waiting.tool) != (owner, tool):
            return None
        return self._waiting.pop(state).conversation

    def _tidy(self) -> None:
        now = time.monotonic()
        for state, waiting in list(self._waiting.items()):
            if now - waiting.since > PATIENCE or len(self._waiting) >= OPEN:
                self._waiting.pop(state).conversation.reply(Reply())
