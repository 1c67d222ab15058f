# SPDX-License-Identifier: Apache-2.0
"""Whether the page can be used by people who do not see it: axe-core's rules, and what Chromium tells a screen reader."""

import os

AXE = os.environ.get("AXE", "")  # the path of axe.min.js; empty: it cannot be had here

RULES = """const done = arguments[0];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.target.join(" ") + (node.any[0] ? " (" + node.any[0].message + ")" : "")).join(", "))),
    (error) => done(["axe-core failed: " + error]));"""

# What a screen reader says first of these is their name.
NAMED = {"application", "table", "grid", "img", "image", "graphics-document", "progressbar", "button", "link", "textbox", "searchbox", "checkbox", "spinbutton",
         "combobox", "tab", "tablist", "tabpanel", "dialog", "alertdialog", "navigation", "figure", "Figure"}


def violations(page):
    """Those of axe-core that are serious or critical."""
    with open(AXE) as script:
        page.execute_script(script.read())
    return page.execute_async_script(RULES)


def unnamed(page):
    """What has a role that needs a name, and has none, in Chromium's tree for screen readers."""
    page.execute_cdp_cmd("Accessibility.enable", {})
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    page.execute_cdp_cmd("Accessibility.disable", {})
    return [node["role"]["value"] for node in nodes if not node.get("ignored") and node.get("role", {}).get("value") in NAMED
            and not node.get("name", {}).get("value", "").strip()]


def live_regions(page):
    """The roles of the regions whose changes are read out: {id or class: role}."""
    return page.execute_script("""return Object.fromEntries([...document.querySelectorAll("[role=status], [role=alert], [role=log], [aria-live]")]
        .map((one) => [one.id || one.className, one.getAttribute("role") || one.getAttribute("aria-live")]));""")
