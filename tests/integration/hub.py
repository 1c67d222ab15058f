#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Hugging Face hub for tests, by HTTPS: hub.py PORT_FILE FOLDER CERTIFICATE KEY LOG. FOLDER/models/ORG/NAME are the files of a model;
every other path is a file of FOLDER itself. Models of the organisation `gated` need the token hf_secret. While FOLDER/slow exists, an answer
has 64 KiB a second; while FOLDER/cut exists, an answer is cut in its middle. The log has a line for each request: its path and range."""
import hashlib
import http.server
import json
import os
import ssl
import sys
import time

port_file, folder, certificate, key, log = sys.argv[1:]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def listing(model):
    files = []
    for where, _, names in os.walk(model):
        for name in sorted(names):
            path = os.path.join(where, name)
            data = open(path, "rb").read()
            file = {"rfilename": os.path.relpath(path, model), "size": len(data),
                    "blobId": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
            if len(data) > 1000:
                file["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
            files.append(file)
    return json.dumps({"sha": COMMIT, "siblings": files}).encode()


class Hub(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, headers=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        for at in range(0, len(body), 16384):
            if os.path.exists(folder + "/cut") and at > len(body) / 2:
                self.close_connection = True
                return
            self.wfile.write(body[at:at + 16384])
            if os.path.exists(folder + "/slow"):
                time.sleep(0.25)

    def do_GET(self):
        parts = self.path.split("?")[0].split("/")
        with open(log, "a") as lines:
            lines.write(f"{self.path} {self.headers.get('Range', '')} {self.headers.get('Authorization', '')}\n")
        if "gated" in parts and self.headers.get("Authorization") != "Bearer hf_secret":
            return self.answer(401, b"{}")
        if parts[1:3] == ["api", "models"]:
            model = os.path.join(folder, "models", *parts[3:5])
            known = os.path.isdir(model) and parts[6] in ("main", COMMIT)
            return self.answer(200 if known else 404, listing(model) if known else b"{}")
        if len(parts) > 4 and parts[3] == "resolve":
            return self.answer(302, b"", [("Location", "/models/" + "/".join(parts[1:3] + parts[5:]))])
        path = folder + "/".join(parts[:1] + parts[1:])
        if not os.path.isfile(path):
            return self.answer(404, b"")
        data = open(path, "rb").read()
        if "Range" not in self.headers:
            return self.answer(200, data)
        start = int(self.headers["Range"].split("=")[1].split("-")[0])
        self.answer(206, data[start:], [("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")])

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
with open(port_file + ".new", "w") as port:
    port.write(str(server.server_port))
os.rename(port_file + ".new", port_file)
server.serve_forever()
