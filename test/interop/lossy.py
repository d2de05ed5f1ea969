"""A farm that loses members on purpose: it stands before the real one and takes away some of the answers' samples,
as a farm does whose sandboxes die. What is left is the real farm's."""

from __future__ import annotations

import json
import random
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Lossy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, farm: str, fraction: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.farm, self.fraction = farm, fraction
        self.draw, self.lock = random.Random(11), threading.Lock()
        self.lost = self.seen = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def take_away(self, answer: dict) -> None:
        with self.lock:
            for i in range(len(answer["rewards"])):
                self.seen += 1
                if self.draw.random() < self.fraction:
                    self.lost += 1
                    answer["rewards"][i] = None
                    cause = {"status": "no_result", "cause": "sandbox_lost", "detail": "on purpose"}
                    answer["outcomes"][i] = {"index": i, "reward": None, **cause}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Lossy

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        passed = {name: self.headers[name] for name in ("Authorization", "Content-Type", "Idempotency-Key")}
        request = urllib.request.Request(self.server.farm + self.path, body, passed)
        with urllib.request.urlopen(request, timeout=60) as reply:
            answer = json.load(reply)
        self.server.take_away(answer)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
