#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sink of CloudEvents for tests: sink.py PORT_FILE LOG. Appends each body that it takes to the log, a line each, and answers 503 while
the file LOG.away exists."""
import http.server
import os
import sys


class Sink(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        away = os.path.exists(sys.argv[2] + ".away")
        with open(sys.argv[2] + (".refused" if away else ""), "ab") as log:
            log.write(self.headers["Content-Type"].encode() + b" " + body + b"\n")
        self.send_response(503 if away else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
with open(sys.argv[1] + ".new", "w") as port:
    port.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
