#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of an S3 server that injects faults by rules. It passes the Host header on, so signatures stay valid.

    proxy.py HOST:PORT RULES LOG        prints the port that it listens on at 127.0.0.1

RULES is a JSON list that is read again when it changes; the first rule that matches a request applies:

    {"method": "PUT", "path": "manifest", "fault": "status", "status": 503, "times": 3, "skip": 1, "every": 5}

`path` is a part of the request's path and query. Faults:
    status         answer with `status` and code `code` (SlowDown) without passing the request on
    cut-request    pass half of the body on, then close both connections
    cut-answer     pass half of the answer on, then close both connections
    lose-answer    pass the request on, wait for the answer, then close the connection without sending any of it
    hang           never answer
    delay          wait `seconds`, then pass the request on
LOG gets a line for each request: method, path, fault or "-", and the status of the answer.
"""
import http.client
import json
import os
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PIECE = 65536
server_host, server_port = sys.argv[1].rsplit(":", 1)
rules_path, log_path = sys.argv[2:4]
lock = threading.Lock()
state = {"seen": None, "rules": []}


def choose(method, path):
    with lock:
        try:
            seen = os.stat(rules_path).st_mtime_ns
            if seen != state["seen"]:
                with open(rules_path) as file:
                    state["rules"] = json.load(file)
                state["seen"] = seen
        except (OSError, ValueError):
            pass
        for rule in state["rules"]:
            if rule.get("method", method) != method or rule.get("path", "") not in path:
                continue
            rule["met"] = rule.get("met", 0) + 1
            if rule["met"] <= rule.get("skip", 0) or (rule["met"] - rule.get("skip", 0) - 1) % rule.get("every", 1):
                continue
            if rule.get("struck", 0) >= rule.get("times", 1 << 60):
                continue
            rule["struck"] = rule.get("struck", 0) + 1
            return rule
    return {"fault": "-"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def note(self, fault, status):
        with lock, open(log_path, "a") as file:
            file.write(f"{self.command} {self.path} {fault} {status}\n")

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def upstream(self):
        connection = http.client.HTTPConnection(server_host, int(server_port), timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        return connection

    def pass_body(self, connection, length):
        while length > 0:
            piece = self.rfile.read(min(PIECE, length))
            if not piece:
                raise ConnectionError
            length -= len(piece)
            try:
                connection.send(piece)
            except OSError:  # a server that refuses the request answers at once and reads no further
                while length > 0 and (piece := self.rfile.read(min(PIECE, length))):
                    length -= len(piece)

    def serve(self):
        rule = choose(self.command, self.path)
        fault, length = rule["fault"], int(self.headers.get("Content-Length") or 0)
        if fault == "status":
            while length > 0:
                length -= len(self.rfile.read(min(PIECE, length))) or length
            code = rule.get("code", "SlowDown")
            text = f"<Error><Code>{code}</Code><Message>spoilt by the proxy</Message></Error>".encode()
            self.send_response(rule["status"])
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)
            self.note(fault, rule["status"])
            return
        if fault == "hang":
            self.note(fault, 0)
        if fault in ("hang", "delay"):
            time.sleep(3600 if fault == "hang" else rule["seconds"])
        try:
            connection = self.upstream()
            if fault == "cut-request":
                self.note(fault, 0)
                self.pass_body(connection, length // 2)
                connection.sock.shutdown(socket.SHUT_RDWR)
                return self.cut()
            self.pass_body(connection, length)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException):
            self.note("broken", 0)
            return self.cut()
        self.note(fault, answer.status)
        if fault == "lose-answer":
            answer.read()
            return self.cut()
        self.answer(answer, fault)
        connection.close()

    def answer(self, answer, fault):
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "keep-alive", "transfer-encoding"):
                self.send_header(name, value)
        if self.command == "HEAD" or answer.status in (204, 304):
            self.end_headers()
            return
        length = answer.getheader("Content-Length")
        text = None if length is not None else answer.read()
        if text is not None:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        left = int(length) // (2 if fault == "cut-answer" else 1) if text is None else 0
        if text is not None:
            self.wfile.write(text if fault != "cut-answer" else text[: len(text) // 2])
        while left > 0:
            piece = answer.read(min(PIECE, left))
            if not piece:
                return self.cut()
            self.wfile.write(piece)
            left -= len(piece)
        if fault == "cut-answer":
            self.wfile.flush()
            self.cut()

    def guarded(self):
        try:
            self.serve()
        except OSError:
            self.cut()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = guarded


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
