#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the NetworkPolicies of a cluster let through, by the API's documentation.

policies.py ask                  answers questions from stdin, one a line: `yes|no FROM TO PORT[/UDP] NAME…`; FROM and TO are
                                 NAMESPACE/POD or an address of nobody's. Prints ok or not ok for each NAME,
                                 which several lines may share.
policies.py rules                the same as rules for nft
policies.py enforce NAMESPACE…   keeps these rules in the network namespaces of these files (/proc/N/ns/net), which route
                                 pods. New pods are known within a second, as with other agents

Only what these policies use is understood; anything else is an error, never passed over.
"""
import ipaddress
import json
import subprocess
import sys
import time

TABLE = "coxswain_policies"


def understood(value, keys, what):
    unknown = set(value or {}) - set(keys)
    if unknown:
        raise ValueError(f"{what}: {sorted(unknown)} is not understood")


def selects(selector, labels):
    understood(selector, ("matchLabels", "matchExpressions"), "selector")
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for expression in selector.get("matchExpressions") or []:
        key, operator, values = expression["key"], expression["operator"], expression.get("values", [])
        holds = {"Exists": key in labels, "DoesNotExist": key not in labels, "In": labels.get(key) in values,
                 "NotIn": labels.get(key) not in values}[operator]
        if not holds:
            return False
    return True


def blocks(peers):
    found = []
    for peer in peers:
        if "ipBlock" in peer:
            understood(peer, ("ipBlock",), "peer")
            understood(peer["ipBlock"], ("cidr",), "ipBlock")
            found.append(ipaddress.ip_network(peer["ipBlock"]["cidr"]))
    return found


class Cluster:
    """Policies, pods and namespaces as they are now."""

    def __init__(self, lists):
        self.policies, self.pods, self.namespaces = [], [], {}
        for item in lists["items"]:
            if item["kind"] == "NetworkPolicy":
                self.policies.append(item)
            elif item["kind"] == "Namespace":
                self.namespaces[item["metadata"]["name"]] = item["metadata"].get("labels", {})
            elif item["status"].get("phase") not in ("Succeeded", "Failed"):
                self.pods.append(item)

    def pod(self, name):
        """None for an address that is no pod's."""
        if "/" not in name:
            return None
        for pod in self.pods:
            if f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" == name:
                return pod
        raise ValueError(f"there is no pod {name}")

    def is_peer(self, peer, policy, pod):
        if "ipBlock" in peer:
            return False  # for what is outside, says the API: whether a pod's address counts is the plugin's affair
        understood(peer, ("podSelector", "namespaceSelector"), "peer")
        space = pod["metadata"]["namespace"]
        if "namespaceSelector" in peer:
            if not selects(peer["namespaceSelector"], self.namespaces[space]):
                return False
        elif space != policy["metadata"]["namespace"]:
            return False
        return selects(peer.get("podSelector") or {}, pod["metadata"].get("labels", {}))

    def rules_for(self, pod, direction):
        """None when nothing isolates this pod in this direction, else (policy, rule) of all that do."""
        isolated, rules = False, []
        for policy in self.policies:
            spec = policy["spec"]
            understood(spec, ("podSelector", "policyTypes", "ingress", "egress"), "NetworkPolicy")
            if policy["metadata"]["namespace"] != pod["metadata"]["namespace"] or direction not in spec["policyTypes"] or \
                    not selects(spec.get("podSelector") or {}, pod["metadata"].get("labels", {})):
                continue
            isolated = True
            rules += [(policy, rule) for rule in spec.get(direction.lower()) or []]
        return rules if isolated else None

    def opens(self, policy, rule, direction, other, address, port, protocol):
        """`other` is a pod, or None where `address` is nobody's."""
        peers, ports = rule.get("from" if direction == "Ingress" else "to"), rule.get("ports")
        understood(rule, ("from" if direction == "Ingress" else "to", "ports"), "rule")
        if peers and not (any(self.is_peer(peer, policy, other) for peer in peers) if other else
                          any(ipaddress.ip_address(address) in block for block in blocks(peers))):
            return False
        return not ports or any(p["port"] == port and p.get("protocol", "TCP") == protocol for p in ports)

    def allowed(self, source, target, port, protocol="TCP"):
        """Both are NAMESPACE/POD or an address of nobody's."""
        for this, that, direction in ((source, target, "Egress"), (target, source, "Ingress")):
            pod, other = self.pod(this), self.pod(that)
            rules = self.rules_for(pod, direction) if pod else None
            if rules is not None and not any(self.opens(policy, rule, direction, other, that, port, protocol) for policy, rule in rules):
                return False
        return True

    def chain(self, name, pod, direction, rules):
        """Lines of a chain that returns what is allowed and drops the rest."""
        yield f"  chain {name} {{ # {pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for policy, rule in rules:
            peers, ports = rule.get("from" if direction == "Ingress" else "to"), rule.get("ports")
            who = ""
            if peers:
                addresses = sorted(p["status"]["podIP"] for p in self.pods if p["status"].get("podIP") and
                                   any(self.is_peer(peer, policy, p) for peer in peers)) + [str(block) for block in blocks(peers)]
                if not addresses:
                    continue
                who = f"ip {'saddr' if direction == 'Ingress' else 'daddr'} {{ {', '.join(addresses)} }} "
            for port in ports or [None]:
                understood(port, ("port", "protocol"), "port")
                what = f"{port.get('protocol', 'TCP').lower()} dport {int(port['port'])} " if port else ""
                yield f"    {who}{what}return"
        yield "    counter drop"
        yield "  }"

    def nft(self):
        chains, jumps = [], []
        for number, pod in enumerate(self.pods):
            address = pod["status"].get("podIP")
            for direction, field in (("Egress", "saddr"), ("Ingress", "daddr")):
                rules = self.rules_for(pod, direction)
                if not address or rules is None:
                    continue
                name = f"{direction.lower()}_{number}"
                chains += self.chain(name, pod, direction, rules)
                jumps.append(f"    ip {field} {address} jump {name}")
        return "\n".join([f"table inet {TABLE}", f"delete table inet {TABLE}", f"table inet {TABLE} {{", *chains,
                          "  chain forward {", "    type filter hook forward priority 10; policy accept;",
                          "    ct state established,related accept", *jumps, "  }", "}", ""])


def look():
    lists = subprocess.run(["kubectl", "get", "networkpolicies,pods,namespaces", "--all-namespaces", "-o", "json"], check=True,
                           stdout=subprocess.PIPE, timeout=60)
    return Cluster(json.loads(lists.stdout))


def ask():
    cluster, wrong = look(), {}
    for line in sys.stdin:
        expected, source, target, port, *name = line.split()
        number, _, protocol = port.partition("/")
        says = cluster.allowed(source, target, int(number), protocol or "TCP")
        answers = wrong.setdefault(" ".join(name), [])
        if says != (expected == "yes"):
            answers.append(f"{source} to {target} port {port} is {'allowed' if says else 'refused'}")
    for name, answers in wrong.items():
        print(f"not ok {name}: {'; '.join(answers)}" if answers else f"ok {name}")
    return 1 if any(wrong.values()) else 0


def enforce(places):
    in_force = None
    while True:
        try:
            rules = look().nft()
        except (subprocess.SubprocessError, json.JSONDecodeError) as error:
            print("the API server does not answer:", type(error).__name__, flush=True)
            rules = in_force
        if rules != in_force:
            for place in places:
                subprocess.run(["nsenter", f"--net={place}", "nft", "-f", "-"], input=rules.encode(), check=True)
            print(f"{rules.count('jump')} isolated ends", flush=True)
            in_force = rules
        time.sleep(0.5)


def main():
    if sys.argv[1:] == ["ask"]:
        return ask()
    if sys.argv[1:] == ["rules"]:
        print(look().nft(), end="")
        return 0
    if len(sys.argv) > 2 and sys.argv[1] == "enforce":
        return enforce(sys.argv[2:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
