# SPDX-License-Identifier: Apache-2.0
"""Objects as JSON, one after the other, so that whatever calls a webhook calls it at an address of this machine.

    webhooks_here.py ADDRESS AUTHORITY [GROUP]

AUTHORITY is a file with the certificate of its authority. With GROUP, webhooks of other API groups are left out. Services are left out.
"""
import base64
import json
import pathlib
import sys

address, authority = sys.argv[1], base64.b64encode(pathlib.Path(sys.argv[2]).read_bytes()).decode()
group = sys.argv[3] if len(sys.argv) > 3 else None


def here(client):
    path = client.pop("service")["path"]
    client.update(url=f"https://{address}{path}", caBundle=authority)


def wanted(hook):
    return group is None or all(one == group for rule in hook["rules"] for one in rule["apiGroups"])


text, items = sys.stdin.read().strip(), []
while text:
    item, end = json.JSONDecoder().raw_decode(text)
    text = text[end:].strip()
    if item["kind"] == "Service":
        continue
    if "webhooks" in item:
        item["webhooks"] = [hook for hook in item["webhooks"] if wanted(hook)]
        for hook in item["webhooks"]:
            here(hook["clientConfig"])
    elif item.get("spec", {}).get("conversion", {}).get("strategy") == "Webhook":
        here(item["spec"]["conversion"]["webhook"]["clientConfig"])
    items.append(item)
json.dump({"apiVersion": "v1", "kind": "List", "items": items}, sys.stdout)
