"""An LLM provider that says what the test wants.

It speaks OpenAI's chat API and Anthropic's on a free port. Each API key has a `Desk` of its own: what calls with
this key get, and which came. So one provider serves all tests, and none sees another's calls.
"""

import json
import select
import socket
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from service import PATIENCE, wait_until

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class Exchange:
    """One call of the provider, and the ways to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, raw: bytes):
        body = json.loads(raw)
        self.raw = raw
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.path = handler.path
        self.body = body
        self._handler = handler
        self._head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": body["model"]}

    @property
    def question(self) -> str:
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else content[0]["text"]

    def json(self, status: int, value: dict, **headers: str):
        content = json.dumps(value).encode()
        self._begin(status, {"content-type": "application/json", "content-length": len(content)} | headers)
        self._handler.wfile.write(content)

    def whole(self, message: dict, finish: str = "stop"):
        choice = {"index": 0, "message": {"role": "assistant"} | message, "finish_reason": finish}
        self.json(200, self._head | {"object": "chat.completion", "choices": [choice], "usage": USAGE})

    def refuse(self, status: int, message: str, **headers: str):
        self.json(status, {"error": {"message": message, "type": "refused", "param": None, "code": None}}, **headers)

    def begin_stream(self):
        self._begin(200, {"content-type": "text/event-stream"})
        self.delta({"role": "assistant", "content": ""})

    def delta(self, delta: dict, finish: str | None = None):
        self._chunk([{"index": 0, "delta": delta, "finish_reason": finish}])

    def say(self, *texts: str):
        for text in texts:
            self.delta({"content": text})

    def end_stream(self, finish: str = "stop"):
        self.delta({}, finish)
        if (self.body.get("stream_options") or {}).get("include_usage"):
            self._chunk([], usage=USAGE)
        self._event("[DONE]")

    def caller_left(self) -> bool:
        """Whether the caller closes the connection while it is owed more."""
        readable, _, _ = select.select([self._handler.connection], [], [], PATIENCE)
        if not readable:
            return False
        try:
            return self._handler.connection.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            return True

    def _begin(self, status: int, headers: dict):
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), str(value))
        self._handler.send_header("connection", "close")
        self._handler.end_headers()

    def _chunk(self, choices: list, **fields):
        self._event(json.dumps(self._head | {"object": "chat.completion.chunk", "choices": choices} | fields))

    def _event(self, data: str):
        self._handler.wfile.write(f"data: {data}\n\n".encode())
        self._handler.wfile.flush()


class MessagesExchange(Exchange):
    """The same in Anthropic's words; they have no chunks, but blocks that begin, grow and end."""

    def __init__(self, handler: BaseHTTPRequestHandler, raw: bytes):
        super().__init__(handler, raw)
        self._message = {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": self.body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": USAGE["prompt_tokens"], "output_tokens": 1},
        }

    def whole(self, message: dict, finish: str = "end_turn"):
        self.blocks([{"type": "text", "text": message["content"]}], finish)

    def blocks(self, blocks: list, finish: str = "end_turn"):
        usage = self._message["usage"] | {"output_tokens": USAGE["completion_tokens"]}
        self.json(200, self._message | {"content": blocks, "stop_reason": finish, "usage": usage})

    def refuse(self, status: int, message: str, kind: str = "invalid_request_error", **headers: str):
        self.json(status, {"type": "error", "error": {"type": kind, "message": message}}, **headers)

    def begin_stream(self):
        self._begin(200, {"content-type": "text/event-stream"})
        self.event("message_start", message=self._message)
        self.event("ping")

    def begin_block(self, index: int, block: dict):
        self.event("content_block_start", index=index, content_block=block)

    def grow(self, index: int, delta: dict):
        self.event("content_block_delta", index=index, delta=delta)

    def end_block(self, index: int):
        self.event("content_block_stop", index=index)

    def say(self, *texts: str):
        self.begin_block(0, {"type": "text", "text": ""})
        for text in texts:
            self.grow(0, {"type": "text_delta", "text": text})
        self.end_block(0)

    def end_stream(self, finish: str = "end_turn"):
        usage = {"output_tokens": USAGE["completion_tokens"]}
        self.event("message_delta", delta={"stop_reason": finish, "stop_sequence": None}, usage=usage)
        self.event("message_stop")

    def event(self, name: str, **fields):
        data = json.dumps({"type": name} | fields)
        self._handler.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self._handler.wfile.flush()


def answer_for(question: str) -> str:
    """What a desk answers when nobody told it otherwise."""
    return f"The answer to “{question}” — 好的 ✓"


def answer(exchange: Exchange):
    text = answer_for(exchange.question)
    if not exchange.body.get("stream"):
        return exchange.whole({"content": text})
    exchange.begin_stream()
    exchange.say(*(word + " " for word in text.split(" ")[:-1]), text.split(" ")[-1])
    return exchange.end_stream()


class Desk:
    """What the calls with one API key get (`respond`), and those that came (`calls`)."""

    def __init__(self, key: str):
        self.key = key
        self.calls: list[Exchange] = []
        self.respond = answer

    def wait_calls(self, count: int) -> list[Exchange]:
        wait_until(lambda: len(self.calls) >= count, f"{count} calls of the provider")
        return self.calls


class Upstream:
    """The provider's server, on a thread for each call."""

    def __init__(self):
        self._desks: dict[str, Desk] = {}
        self._lock = threading.Lock()
        desk_of = self.desk

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["content-length"]))
                bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
                desk = desk_of(self.headers.get("x-api-key", bearer))
                kind = MessagesExchange if "/messages" in self.path else Exchange
                exchange = kind(self, raw)
                desk.calls.append(exchange)
                self.close_connection = True
                try:
                    desk.respond(exchange)
                except ConnectionError:
                    pass  # the caller left, which is what some tests are about

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:{}/v1".format(self._server.server_port)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def desk(self, key: str | None = None) -> Desk:
        """The desk of this key; a new key when none is named."""
        key = key if key is not None else f"sk-{uuid.uuid4().hex}"
        with self._lock:
            return self._desks.setdefault(key, Desk(key))

    def settings(self, models=("default", "*"), **provider: str) -> str:
        """Settings that have this provider serve the models."""
        fields = {"kind": "openai", "url": self.url} | provider
        lines = "".join(f"providers.fake.{name} = {json.dumps(value)}\n" for name, value in fields.items())
        lines += "".join(
            f"providers.claude.{name} = {json.dumps(value)}\n" for name, value in (fields | {"kind": "anthropic"}).items()
        )
        lines += 'models."claude-*".targets = [{ provider = "claude", model = "claude-fake" }]\n'
        target = '[{ provider = "fake", model = "fake-large" }]'
        routes = "".join(f'models."{model}".targets = {target}\n' for model in models)
        return lines + routes

    def close(self):
        self._server.shutdown()
        self._server.server_close()
