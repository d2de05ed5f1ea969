"""A gateway of a few lines that speaks INTERFACE's wire, and misbehaves where a test asks it to.

A completion with "good" in it earns 1.0, one with "lost" has no result, anything else earns -0.1.
"""

from __future__ import annotations

import json
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional
from urllib.parse import parse_qs, unquote, urlsplit

FLOOR = -1.0
Misbehave = Callable[["Handler", dict], bool]


def outcome_of(index: int, completion: Any) -> dict:
    text = completion if isinstance(completion, str) else "".join(str(m.get("content")) for m in completion)
    if "lost" in text:
        return {"index": index, "status": "no_result", "reward": None, "cause": "sandbox_lost", "detail": "gone"}
    reward = 1.0 if "good" in text else -0.1
    return {"index": index, "status": "completed", "reward": reward, "components": {"env": reward}}


def group(number: int, run: str = "r") -> dict:
    members: List[dict] = [
        {"member": 0, "status": "completed", "reward": 1.0, "advantage": 0.0, "components": {"env": 1.0}},
        {"member": 1, "status": "no_result", "cause": "sandbox_lost", "detail": "gone", "attempts": 3},
    ]
    return {"cursor": f"c{number}", "run": run, "group": number, "task_id": f"t{number}", "members": members}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StubServer

    def log_message(self, *args: Any) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._seen(body):
            return
        outcomes = [outcome_of(i, completion) for i, completion in enumerate(body["completions"])]
        floor = FLOOR if body.get("on_no_result") == "floor" else None
        rewards = [o["reward"] if o["status"] == "completed" else floor for o in outcomes]
        self.answer(200, {"rewards": rewards, "outcomes": outcomes})

    def do_GET(self) -> None:
        if self._seen({}):
            return
        parts = urlsplit(self.path)
        names = [unquote(name) for name in parts.path.split("/")]
        run = names[names.index("runs") + 1]
        if run not in self.server.runs:
            return self.error(404, "run_unknown", f"there is no run {run}", "see farm runs")
        state = self.server.runs[run]
        if names[-1] != "results":
            return self.answer(200, {"run": run, "state": state["state"]})
        after = parse_qs(parts.query).get("after", [None])[0]
        cursors = [record["cursor"] for record in state["groups"]]
        if after is not None and after not in cursors:
            return self.error(400, "cursor_invalid", "no such cursor", "use one of this run")
        start = 0 if after is None else cursors.index(after) + 1
        self._results(state["groups"][start:])

    def _results(self, records: List[dict]) -> None:
        text = "".join(json.dumps(record) + "\n\n" for record in records)
        cut = self.server.cuts.pop(0) if self.server.cuts else None
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        data = text.encode()[: cut if cut is not None else None]
        for at in range(0, len(data), 100):
            piece = data[at : at + 100]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if cut is None:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _seen(self, body: dict) -> bool:
        with self.server.lock:
            self.server.requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
            step = self.server.script.pop(0) if self.server.script else None
        return step is not None and step(self, body)

    def answer(self, status: int, body: Any, **headers: str) -> None:
        self.raw(status, json.dumps(body).encode(), **headers)

    def error(self, status: int, code: str, message: str, hint: str, **headers: str) -> None:
        self.answer(status, {"error": {"code": code, "message": message, "hint": hint}}, **headers)

    def raw(self, status: int, data: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)


class StubServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.requests: List[Dict[str, Any]] = []
        self.connections = 0
        #: What the next requests meet; a step that returns True has answered.
        self.script: List[Misbehave] = []
        self.runs: Dict[str, Dict[str, Any]] = {}
        #: After how many bytes the next result streams break off; None lets one through.
        self.cuts: List[Optional[int]] = []
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks the network for this machine's name.
        socketserver.TCPServer.server_bind(self)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients that go away are what the tests are about

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def __enter__(self) -> StubServer:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def refuse(status: int, code: str = "busy", message: str = "later", **headers: str) -> Misbehave:
    def step(handler: Handler, body: dict) -> bool:
        handler.error(status, code, message, "try again", **headers)
        return True

    return step


def drop(handler: Handler, body: dict) -> bool:
    """Goes away without a word."""
    handler.close_connection = True
    return True


def cut_body(handler: Handler, body: dict) -> bool:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"rewards": [1.0')
    handler.close_connection = True
    return True


def says(body: Any) -> Misbehave:
    def step(handler: Handler, _: dict) -> bool:
        handler.raw(200, body if isinstance(body, bytes) else json.dumps(body).encode())
        return True

    return step


def hang(seconds: float) -> Misbehave:
    def step(handler: Handler, body: dict) -> bool:
        time.sleep(seconds)
        return False

    return step


def drip(handler: Handler, body: dict) -> bool:
    """A byte now and then: each read succeeds, the answer never comes."""
    for _ in range(200):
        handler.wfile.write(b"H")
        time.sleep(0.05)
    return True
