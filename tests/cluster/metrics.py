#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""External metrics as an autoscaler asks for them, scripted: every metric has the value that stands in a file.

metrics.py CERTIFICATE KEY VALUE_FILE PORT_FILE     serves external.metrics.k8s.io/v1beta1 on a free port of localhost
"""
import datetime
import http.server
import json
import ssl
import sys

GROUP = "/apis/external.metrics.k8s.io/v1beta1"


def discovery():
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "external.metrics.k8s.io/v1beta1",
            "resources": [{"name": "externalmetrics", "singularName": "", "namespaced": True,
                           "kind": "ExternalMetricValueList", "verbs": ["get"]}]}


def metric(name, value):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"kind": "ExternalMetricValueList", "apiVersion": "external.metrics.k8s.io/v1beta1", "metadata": {},
            "items": [{"metricName": name, "metricLabels": {}, "timestamp": now, "value": value}]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0].rstrip("/")
        if path == GROUP:
            self.answer(200, discovery())
        elif path.startswith(GROUP + "/namespaces/"):
            with open(sys.argv[3], encoding="ascii") as file:
                self.answer(200, metric(path.rpartition("/")[2], file.read().strip()))
        else:
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(sys.argv[4], "w", encoding="ascii") as file:
        file.write(f"{server.server_address[1]}\n")
    server.serve_forever()


if __name__ == "__main__":
    main()
