#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server in memory that obeys the rules of Google Cloud Storage's XML API where they differ from S3, as its documentation states them:

    - a request has headers of one family, x-amz-* with AWS4-HMAC-SHA256 or x-goog-* with GOOG4-HMAC-SHA256; both together are refused
    - all headers of the family are signed
    - If-None-Match has no effect on writes; x-goog-if-generation-match: 0 lets a write fail (412) if there is such an object
    - metadata come back in the family of the request

It is no Google: it knows objects, ranges, listings (version 2) and uploads in parts, of one bucket and one key.

    gcs.py LOG        prints the port that it listens on at 127.0.0.1; it is for clients with http_proxy, which ask for the true host
LOG gets a line for each request: method, path, the condition or "-", and the status of the answer.
"""
import hashlib
import hmac
import re
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

BUCKET, KEY, SECRET = "runs", "GOOG1EXAMPLE", "the-secret-of-the-test"
FAMILIES = {"AWS4-HMAC-SHA256": ("x-amz-", "AWS4", "s3", "aws4_request"), "GOOG4-HMAC-SHA256": ("x-goog-", "GOOG4", "storage", "goog4_request")}
lock = threading.Lock()
objects, uploads = {}, {}  # key: (bytes, metadata, generation); identifier: (key, metadata, {number: bytes})
numbers = iter(range(1, 1 << 62))


class Refused(Exception):
    def __init__(self, status, code):
        self.status, self.code = status, code


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", headers=()):
        with lock:
            log.write(f"{self.command} {self.path} {self.headers.get('x-goog-if-generation-match', '-')} {status}\n")
        self.send_response(status)
        headers = dict(headers)
        headers.setdefault("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def check_signature(self, url, body):
        """The family's prefix."""
        matched = re.fullmatch(r"([A-Z0-9-]+) Credential=([^/]+)/([^,]+), *SignedHeaders=([^,]+), *Signature=([0-9a-f]+)", self.headers.get("Authorization", ""))
        if not matched or matched[1] not in FAMILIES:
            raise Refused(403, "AccessDenied")
        prefix, start, service, last = FAMILIES[matched[1]]
        names = sorted(name.lower() for name in self.headers if name.lower().startswith(("x-amz-", "x-goog-")))
        if any(not name.startswith(prefix) for name in names):
            raise Refused(400, "ExcessHeaderValues")
        signed = matched[4].split(";")
        if signed != sorted(signed) or set(["host"] + names) - set(signed):
            raise Refused(400, "InvalidSecurity")
        day, region, *rest = matched[3].split("/")
        stamp = self.headers[prefix + "date"]
        if matched[2] != KEY or rest != [service, last] or not stamp.startswith(day) or hashlib.sha256(body).hexdigest() != self.headers[prefix + "content-sha256"]:
            raise Refused(403, "SignatureDoesNotMatch")
        if abs(time.time() - time.mktime(time.strptime(stamp + " UTC", "%Y%m%dT%H%M%SZ %Z")) + time.timezone) > 900:
            raise Refused(403, "RequestTimeTooSkewed")
        headers = "".join(f"{name}:{self.headers[name].strip()}\n" for name in signed)
        canonical = "\n".join([self.command, url.path, url.query, headers, matched[4], self.headers[prefix + "content-sha256"]])
        key = (start + SECRET).encode()
        for step in (day, region, service, last):
            key = mac(key, step)
        text = "\n".join([matched[1], stamp, matched[3], hashlib.sha256(canonical.encode()).hexdigest()])
        if not hmac.compare_digest(mac(key, text).hex(), matched[5]):
            raise Refused(403, "SignatureDoesNotMatch")
        return prefix

    def write(self, key, body, metadata):
        """Under the lock."""
        condition = self.headers.get("x-goog-if-generation-match")
        if condition is not None and int(condition) != (objects[key][2] if key in objects else 0):
            raise Refused(412, "PreconditionFailed")
        objects[key] = (body, metadata, next(numbers))
        return {"ETag": f'"{hashlib.md5(body).hexdigest()}"', "x-goog-generation": str(objects[key][2])}

    def list(self, query):
        most = 100 if query.get("list-type") == "2" else 0  # a page, so that the client has to ask for more
        keys = sorted(key for key in objects if key.startswith(query.get("prefix", "")) and key > query.get("continuation-token", ""))
        text = "".join(f"<Contents><Key>{escape(urllib.parse.quote(key))}</Key><Size>{len(objects[key][0])}</Size><ETag>\"{hashlib.md5(objects[key][0]).hexdigest()}\"</ETag></Contents>" for key in keys[:most])
        more = len(keys) > most
        token = f"<NextContinuationToken>{escape(keys[most - 1])}</NextContinuationToken>" if more else ""
        return (f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'><Name>{BUCKET}</Name><EncodingType>url</EncodingType>"
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{text}</ListBucketResult>").encode()

    def read(self, key, prefix):
        if key not in objects:
            raise Refused(404, "NoSuchKey")
        body, metadata, generation = objects[key]
        headers = {"ETag": f'"{hashlib.md5(body).hexdigest()}"', "x-goog-generation": str(generation)}
        headers.update({prefix + "meta-" + name: value for name, value in metadata.items()})
        if self.headers.get("If-Match", headers["ETag"]) != headers["ETag"]:
            raise Refused(412, "PreconditionFailed")
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not wanted:
            headers["Content-Length"] = str(len(body))
            return self.reply(200, body, headers)
        first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
        if first >= len(body):
            raise Refused(416, "InvalidRange")
        headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.reply(206, body[first:last + 1], headers)

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urllib.parse.urlsplit(self.path)
        prefix = self.check_signature(url, body)
        _, bucket, *rest = urllib.parse.unquote(url.path).split("/", 2)
        key = rest[0] if rest else ""
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        metadata = {name.lower()[len(prefix) + 5:]: value for name, value in self.headers.items() if name.lower().startswith(prefix + "meta-")}
        if bucket != BUCKET:
            raise Refused(404, "NoSuchBucket")
        if self.command in ("GET", "HEAD"):
            with lock:
                listing = self.list(query) if not key else None
            return self.read(key, prefix) if key else self.reply(200, listing)
        with lock:
            if self.command == "DELETE":
                uploads.pop(query.get("uploadId"), None)
                if "uploadId" not in query and objects.pop(key, None) is None:
                    raise Refused(404, "NoSuchKey")
                status, text, headers = 204, b"", {}
            elif "uploads" in query:
                identifier = f"upload-{next(numbers)}"
                uploads[identifier] = (key, metadata, {})
                status, text, headers = 200, f"<InitiateMultipartUploadResult><UploadId>{identifier}</UploadId></InitiateMultipartUploadResult>".encode(), {}
            elif "partNumber" in query:
                if query["uploadId"] not in uploads:
                    raise Refused(404, "NoSuchUpload")
                uploads[query["uploadId"]][2][int(query["partNumber"])] = body
                status, text, headers = 200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}
            elif "uploadId" in query:
                _, metadata, parts = uploads.pop(query["uploadId"])
                listed = [int(number) for number in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
                headers = self.write(key, b"".join(parts[number] for number in listed), metadata)
                status, text = 200, b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
            else:
                status, text, headers = 200, b"", self.write(key, body, metadata)
        return self.reply(status, text, headers)

    def do_GET(self):
        try:
            self.answer()
        except Refused as refused:
            self.reply(refused.status, f"<?xml version='1.0'?><Error><Code>{refused.code}</Code><Message>refused</Message></Error>".encode())

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


with open(sys.argv[1], "a", buffering=1, encoding="utf-8") as log:
    server = Listener(("127.0.0.1", 0), Server)
    print(server.server_port, flush=True)
    server.serve_forever()
