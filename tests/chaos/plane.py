# SPDX-License-Identifier: Apache-2.0
"""The embedded control plane for tests that run many jobs at a time: started, asked over connections that stay, and watched."""
import base64
import http.client
import json
import os
import re
import ssl
import subprocess
import threading
import time
from urllib.parse import urlsplit

JOBS = "/apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs"
PODS = "/api/v1/namespaces/default/pods"
TRIES = 5


class Plane:
    """coxswain-standalone with its state in `directory`, the working directory of its programs."""

    def __init__(self, binaries, root, directory):
        state = os.path.join(directory, "state")
        self.kubeconfig = os.path.join(state, "kubeconfig")
        with open(os.path.join(directory, "standalone.log"), "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(binaries, "coxswain-standalone"), "--state", state,
                 "--crd", os.path.join(root, "deploy/crd")], stdout=log, stderr=log)
        wait_until(lambda: os.path.exists(self.kubeconfig) and os.path.getsize(self.kubeconfig) > 0, 60)
        with open(self.kubeconfig, encoding="utf-8") as file:
            text = file.read()
        self.address = urlsplit(re.search(r"^ *server: (\S+)", text, re.M)[1])
        self.token = re.search(r"^ *token: (\S+)", text, re.M)[1]
        authority = base64.b64decode(re.search(r"^ *certificate-authority-data: (\S+)", text, re.M)[1])
        self.context = ssl.create_default_context(cadata=authority.decode())
        self.own = threading.local()

    def end(self):
        self.process.terminate()
        self.process.wait()

    def connection(self):
        return http.client.HTTPSConnection(self.address.hostname, self.address.port, context=self.context, timeout=120)

    def headers(self, method):
        patch = method == "PATCH"
        return {"Authorization": "Bearer " + self.token,
                "Content-Type": "application/merge-patch+json" if patch else "application/json"}

    def ask(self, method, path, body=None):
        """Status and answer. Each thread has a connection of its own."""
        for attempt in range(TRIES):
            if not getattr(self.own, "connection", None):
                self.own.connection = self.connection()
            try:
                self.own.connection.request(method, path, json.dumps(body) if body else None, self.headers(method))
                answer = self.own.connection.getresponse()
                return answer.status, json.loads(answer.read() or b"{}")
            except (OSError, http.client.HTTPException):
                self.own.connection.close()
                self.own.connection = None
                if attempt + 1 == TRIES:
                    raise
        return None

    def watch(self, path, taken):
        """Calls taken(type, object) for all there is and all that happens, for ever, in a thread of its own."""
        threading.Thread(target=self.watch_forever, args=(path, taken), daemon=True).start()

    def watch_forever(self, path, taken):
        position = ""
        while True:
            try:
                connection = self.connection()
                connection.request("GET", f"{path}?watch=true{position}", None, self.headers("GET"))
                for line in connection.getresponse():
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        position = ""
                        break
                    taken(event["type"], event["object"])
                    position = "&resourceVersion=" + event["object"]["metadata"]["resourceVersion"]
            except (OSError, http.client.HTTPException, ValueError):  # the last line may be cut
                time.sleep(0.2)


def wait_until(condition, seconds, pause=0.05):
    """Whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
