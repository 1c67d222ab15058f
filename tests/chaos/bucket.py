# SPDX-License-Identifier: Apache-2.0
"""A real S3 server (MinIO) for crews that keep their checkpoints in a bucket, and for each of these crews a proxy in front of it that
injects faults (tests/s3/proxy.py)."""
import json
import os
import re
import socket
import subprocess
import sys
import time

from program import Missing

HERE = os.path.dirname(os.path.abspath(__file__))
NAME, KEY, SECRET = "runs", "first-key", "first-secret-of-the-test"
MANIFEST = re.compile(r" \S*/step-(\d+)\.[^/]*/manifest\.json$", re.MULTILINE)
CANNOT_BE_HAD = 3  # the exit status of get-tools


def prepare():
    """The server's program."""
    done = subprocess.run([os.path.join(HERE, os.pardir, "cluster", "get-tools"), "minio"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == CANNOT_BE_HAD:
        raise Missing("no S3 server can be had here")
    if done.returncode:
        raise RuntimeError("the S3 server does not build")
    return os.path.join(done.stdout.strip().splitlines()[-1], "minio")


class Server:
    def __init__(self, program, build, directory):
        self.storage, self.directory = os.path.join(build, "coxswain-storage"), directory
        self.credentials = os.path.join(directory, "credentials")
        for folder in ("credentials", "objects"):
            os.makedirs(os.path.join(directory, folder))
        for name, value in (("AWS_ACCESS_KEY_ID", KEY), ("AWS_SECRET_ACCESS_KEY", SECRET)):
            with open(os.path.join(self.credentials, name), "w") as file:
                file.write(value + "\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        environment = {**os.environ, "MINIO_ROOT_USER": KEY, "MINIO_ROOT_PASSWORD": SECRET, "MINIO_BROWSER": "off", "MINIO_UPDATE": "off",
                       "HOME": directory}
        with open(os.path.join(directory, "server.log"), "wb") as log:
            self.child = subprocess.Popen([program, "server", "--quiet", "--address", self.address, os.path.join(directory, "objects")],
                                          env=environment, stdout=log, stderr=log)
        end = time.monotonic() + 60
        while not self.makes_bucket():
            if time.monotonic() > end:
                raise RuntimeError("the S3 server does not answer")
            time.sleep(0.2)

    def makes_bucket(self):
        make = ["curl", "-sf", "--user", f"{KEY}:{SECRET}", "--aws-sigv4", "aws:amz:us-east-1:s3", "-X", "PUT", f"http://{self.address}/{NAME}"]
        return subprocess.run(make, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def end(self):
        self.child.kill()
        self.child.wait()


class Folder:
    """The part of the bucket that one crew writes to, as it sees it through its proxy."""

    def __init__(self, server, directory):
        self.server, self.directory, self.prefix = server, directory, os.path.basename(directory)
        self.rules, self.log = (os.path.join(directory, name) for name in ("rules.json", "proxy.log"))
        self.read = 0  # of the log
        self.spoil([])
        open(self.log, "w").close()
        self.child = subprocess.Popen([sys.executable, os.path.join(HERE, os.pardir, "s3", "proxy.py"), server.address, self.rules, self.log],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.endpoint = f"http://127.0.0.1:{self.child.stdout.readline().strip()}"

    def environment(self, incarnation):
        """Each pod has a folder of its own, and nothing of its predecessor's."""
        settings = {"endpoint": self.endpoint, "bucket": NAME, "prefix": self.prefix, "credentials": self.server.credentials}
        return {"COXSWAIN_CHECKPOINT_DIR": os.path.join(self.directory, f"local-{incarnation}"), "COXSWAIN_CHECKPOINT_S3": json.dumps(settings)}

    def spoil(self, rules):
        """Rules for the proxy, from now on; []: it injects nothing."""
        with open(self.rules + ".new", "w") as file:
            json.dump(rules, file)
        os.replace(self.rules + ".new", self.rules)

    def is_uploading(self):
        """Whether a part of a checkpoint has been uploaded since the last call."""
        with open(self.log) as file:
            file.seek(self.read)
            text = file.read()
        self.read += len(text)
        return "PUT" in text

    def spoilt(self):
        """How many requests the proxy has spoilt."""
        with open(self.log) as file:
            return sum(line.split()[2] != "-" for line in file)

    def newest_committed(self):
        """Asks the server itself."""
        listing = subprocess.run([self.server.storage, "--endpoint", f"http://{self.server.address}", "--bucket", NAME, "--credentials",
                                  self.server.credentials, "list", self.prefix + "/"], stdout=subprocess.PIPE, text=True, check=True)
        return max(map(int, MANIFEST.findall(listing.stdout)), default=0)

    def end(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()
