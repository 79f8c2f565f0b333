"""The MCP server: tools from their definitions, calls to the workspace's host. No logic of its own.

It holds nothing that matters: runs and kernels belong to the host, so it may be ended at any time.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server

from .. import __version__
from ..agent.call_client import Answer, Reply, ToolCall
from ..agent.tool_definitions import BY_NAME, INSTRUCTIONS, TOOLS, Tool
from . import question_forms as forms
from .conversation import Conversation, OpenQuestions, Step

Context = ServerRequestContext[Any, Any]
_FORM = "answers"


@dataclass(frozen=True, slots=True)
class Client:
    """Who calls. `key` is one connection's own; `scopes` is None where nothing is refused."""

    actor: str
    key: str
    scopes: tuple[str, ...] | None = None

    def may(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """The scope that is missing, or ''."""
        if self.scopes is None:
            return ""
        needed = [tool.scope]
        if tool.name == "notebook_session" and arguments.get("action") == "promote":
            needed.append("write")  # it writes the notebook
        missing = [scope for scope in needed if scope != "read" and scope not in self.scopes]
        return missing[0] if missing else ""


WhoCalls = Callable[[Context], Client]


def said_name(ctx: Context) -> str:
    """What the client calls itself, fit for a record."""
    params = ctx.session.client_params
    name = params.client_info.name if params is not None else ""
    kept = "".join(
        c for c in name if not unicodedata.category(c).startswith(("C", "Z")) or c == " "
    )
    return " ".join(kept.split())[:64]


class Tools:
    """Answers for the server: which tools there are, and what they say."""

    def __init__(self, root: str, who: WhoCalls, env: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.who = who
        self.env = dict(os.environ if env is None else env)
        self.open = OpenQuestions()
        self._calls: dict[tuple[str, Any], ToolCall] = {}

    def server(self) -> Server[Any]:
        server: Server[Any] = Server(
            "quire",
            version=__version__,
            instructions=INSTRUCTIONS,
            get_tool_input_schema=lambda name: BY_NAME[name].schema() if name in BY_NAME else None,
            on_list_tools=self.list,
            on_call_tool=self.use,
        )
        server.middleware.append(self._hear_cancelling)
        return server

    async def list(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        client = self.who(ctx)
        return types.ListToolsResult(
            tools=[as_tool(tool) for tool in TOOLS if not client.may(tool, {})]
        )

    async def use(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        client = self.who(ctx)
        arguments = params.arguments or {}
        tool = BY_NAME.get(params.name)
        if tool is not None and (missing := client.may(tool, arguments)):
            return as_result(_refused(params.name, missing))
        if params.request_state is not None:
            conversation = self.open.take(params.request_state, client.key, params.name)
            if conversation is None:
                return as_result(_NOT_ASKED)
            conversation.reply(self._brought(ctx, conversation, params))
        else:
            conversation = Conversation(partial(self._call, client, params.name, arguments))
        return await self._follow(ctx, client, params.name, conversation)

    def _call(self, client: Client, name: str, arguments: Mapping[str, Any], ask: Any) -> ToolCall:
        env = self.env
        if client.actor and (client.scopes is not None or not env.get("QUIRE_ACTOR")):
            env = {**env, "QUIRE_ACTOR": client.actor}
        return ToolCall(self.root, name, arguments, env, client.key, ask=ask)

    async def _follow(
        self, ctx: Context, client: Client, name: str, conversation: Conversation
    ) -> types.CallToolResult | types.InputRequiredResult:
        key = (client.key, ctx.request_id)
        self._calls[key] = conversation.call
        shown = -1
        try:
            while True:
                event = await conversation.next()
                if isinstance(event, Answer):
                    self._calls.pop(key, None)
                    return as_result(event)
                if isinstance(event, Step):
                    if event.done > shown:  # it may only grow
                        shown = event.done
                        total = float(event.total) if event.total else None
                        await ctx.session.report_progress(float(shown), total, event.what)
                    continue
                asked = forms.can_ask(ctx.session.client_capabilities)
                if not asked or not forms.fits_a_form(event):
                    conversation.reply(Reply())
                elif ctx.session.can_send_request:
                    conversation.reply(await self._ask_now(ctx, event))
                else:
                    conversation.asked = event
                    self._calls.pop(key, None)
                    return _to_be_asked(event, self.open.put(conversation, client.key, name))
        except anyio.get_cancelled_exc_class():
            if ctx.session.can_send_request or ctx.request is None:
                raise  # if it was called off, that is said by a notification
            # Over HTTP the newest protocol says it by closing the stream.
            conversation.call.cancel()
            self._calls.pop(key, None)
            raise

    async def _ask_now(self, ctx: Context, asked: Any) -> Reply:
        """As older clients are asked: in the middle of the call."""
        try:
            result = await ctx.session.elicit_form(
                forms.message(asked), forms.form(asked), related_request_id=ctx.request_id
            )
        except (MCPError, ValueError):  # it can show forms, it said, and then could not
            return Reply()
        return forms.reply(asked, result, said_name(ctx) or "the client")

    def _brought(
        self, ctx: Context, conversation: Conversation, params: types.CallToolRequestParams
    ) -> Reply:
        result = (params.input_responses or {}).get(_FORM)
        found = result if isinstance(result, types.ElicitResult) else None
        return forms.reply(conversation.asked, found, said_name(ctx) or "the client")

    async def _hear_cancelling(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """A client that goes away has not cancelled: only one that says so has."""
        if ctx.method == "notifications/cancelled":
            wanted = (ctx.params or {}).get("requestId")
            call = self._calls.pop((self.who(ctx).key, wanted), None)
            if call is not None:
                await anyio.to_thread.run_sync(call.cancel)
        return await call_next(ctx)


def _to_be_asked(asked: Any, state: str) -> types.InputRequiredResult:
    """As the newest protocol asks: the client comes back with the answer and the state."""
    request = types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=forms.message(asked), requested_schema=forms.form(asked)
        )
    )
    return types.InputRequiredResult(input_requests={_FORM: request}, request_state=state)


def as_tool(tool: Tool) -> types.Tool:
    hints = tool.hints()
    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=tool.schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=hints["readOnlyHint"],
            destructive_hint=hints["destructiveHint"],
            idempotent_hint=hints["idempotentHint"],
            open_world_hint=hints["openWorldHint"],
        ),
    )


def as_result(answer: Answer) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=answer.text)]
    content += [
        types.ImageContent(type="image", data=data, mime_type=mime) for mime, data in answer.images
    ]
    return types.CallToolResult(content=content, is_error=answer.failed)


def _refused(name: str, scope: str) -> Answer:
    return Answer(
        f"error (scope): this token does not allow {name}: it lacks the scope {scope}\n"
        "hint: ask the person for one that has it; in a shell: "
        f"quire token create --agent NAME --scope {scope}",
        (),
        True,
    )


_NOT_ASKED = Answer(
    "error (usage): that question is not open any more\nhint: call the tool again from the start",
    (),
    True,
)
