# SPDX-License-Identifier: Apache-2.0
"""Looks at the page of `cox ui` for a real cluster. Called by tests/cluster/test_page.sh."""

import json
import os
import subprocess
import sys
import time
import traceback

import audit
from driver import browser, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

EDITOR, VIEWER = sys.argv[1:3]
SPACE = os.environ["SPACE"]


def check(name, passed, why=""):
    print(f"ok {name}" if passed else f"not ok {name}: {str(why)[:400]}", flush=True)
    return passed


def kubectl(*words):
    return subprocess.run(["kubectl", "-n", SPACE, *words], stdout=subprocess.PIPE, text=True, timeout=120).stdout


def job(name):
    return json.loads(kubectl("get", "tj", name, "-o", "json") or "null")


def text(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector).text


def click(page, identifier):
    until(lambda: page.find_element(By.ID, identifier).is_displayed())
    page.find_element(By.ID, identifier).click()


def open_job(page, url, name, kind="job"):
    page.get(url.split("?")[0] + f"#/{kind}/{SPACE}/{name}")
    return until(lambda: text(page, "h2").startswith(name))


def lists(page):
    page.get(EDITOR)
    check("the list has the jobs and the sweep of the namespace", until(lambda: {"steady", "grows", "ends", "nowhere", "rates"} <= set(page.execute_script("return [...rows.values()].map((row) => row.NAME)"))), text(page, "main"))
    check("with a score column, and without the disk", "Score" in text(page, ".head") and "Restarts" in text(page, ".head") and "Disk" not in text(page, ".head"), text(page, ".head"))
    check("through an event stream", until(lambda: page.execute_script("return stream !== null && stream.readyState === 1")), text(page, "#connection"))
    page.save_screenshot(os.environ["SHOTS"] + "/cluster-list.png")


def looks(page):
    open_job(page, EDITOR, "nowhere")
    check("a job says why it waits, in the scheduler's words", until(lambda: "nowhere waits for a node for pod nowhere-worker-0-" in text(page, "#why") and "nodes are available" in text(page, "#why")), text(page, "#why"))
    open_job(page, EDITOR, "ends")
    check("a job that failed says so", until(lambda: "Failed" in text(page, "h2") and "exited with code 3" in text(page, "#why")), text(page, "main"))
    open_job(page, EDITOR, "steady")
    click(page, "tab-pods")
    check("pods, their nodes and events are there", until(lambda: "node-" in text(page, "#panel-pods") and "CrewComplete" in text(page, "#panel-pods") and "a crew of 2 pods is being created" in text(page, "#panel-pods")), text(page, "#panel-pods"))
    page.save_screenshot(os.environ["SHOTS"] + "/cluster-pods.png")
    click(page, "tab-log")
    check("logs that cannot be read are counted", until(lambda: "could not be read" in text(page, "#panel-log")), text(page, "#panel-log"))
    click(page, "tab-curves")
    check("without a log there are no curves, and a sentence says where they come from", until(lambda: "No steps are known" in text(page, "#loss") or "the log of pod steady-worker-0-" in text(page, "#failed")), text(page, "main"))
    page.save_screenshot(os.environ["SHOTS"] + "/cluster-curves.png")
    click(page, "tab-layers")
    check("the layers are known before any training", until(lambda: "layers with" in text(page, "#layers-said")), text(page, "#panel-layers"))
    click(page, "tab-use")
    check("a model of a cluster cannot be tried, and a sentence says why", until(lambda: "cluster" in text(page, "#panel-use") and not any(one.is_displayed() for one in page.find_elements(By.ID, "use-go"))), text(page, "#panel-use"))
    click(page, "tab-manifest")
    page.find_element(By.ID, "other").send_keys("grows")
    check("its manifest differs from another's", until(lambda: "workers.maxReplicas" in text(page, "#manifest-differences")), text(page, "#panel-manifest"))
    open_job(page, EDITOR, "rates", "sweep")
    check("a sweep has its trials", until(lambda: len(page.find_elements(By.CSS_SELECTOR, "#trials tbody tr")) == 2), text(page, "main"))
    check("no view has anything without a name for a screen reader", not audit.unnamed(page), audit.unnamed(page))


def confirm(page, answer):
    until(lambda: page.find_element(By.ID, "confirm").is_displayed())
    page.find_element(By.CSS_SELECTOR, f"#confirm button[value={answer}]").click()


def acts(page):
    open_job(page, EDITOR, "grows")
    until(lambda: "Running" in text(page, "h2"))
    click(page, "scale")
    until(lambda: page.find_element(By.ID, "confirm").is_displayed())
    page.switch_to.active_element.send_keys(Keys.BACKSPACE, "4", Keys.ENTER)
    check("Scale scales", until(lambda: job("grows")["spec"]["workers"]["replicas"] == 4 and "4/4" in text(page, ".facts")), text(page, "main"))
    click(page, "suspend")
    check("Suspend suspends", until(lambda: "Suspended" in text(page, "h2") and "waits for a user to resume it" in text(page, "#why")), text(page, "main"))
    click(page, "resume")
    check("Resume lets it go on", until(lambda: "Running" in text(page, "h2")), text(page, "main"))
    before = kubectl("get", "pods", "-l", "coxswain.dev/job-name=grows", "-o", "name").split()
    click(page, "restart")
    confirm(page, "yes")
    check("Restart replaces all pods", until(lambda: (now := kubectl("get", "pods", "-l", "coxswain.dev/job-name=grows", "-o", "name").split()) and not set(now) & set(before) and "Running" in text(page, "h2"), 120), text(page, "main"))
    click(page, "delete")
    confirm(page, "no")
    time.sleep(1)
    check("Delete asks", job("grows")["metadata"].get("deletionTimestamp") is None)
    click(page, "delete")
    confirm(page, "yes")
    check("and deletes", until(lambda: "grows has been deleted" in text(page, "#why") and job("grows") is None), text(page, "main"))


def only_looks(page):
    page.get(VIEWER)
    check("who may only look sees the list", until(lambda: "steady" in page.execute_script("return [...rows.values()].map((row) => row.NAME)")), text(page, "body"))
    open_job(page, VIEWER, "steady")
    click(page, "suspend")
    check("and is told which right is missing to change a job", until(lambda: "cannot patch resource" in text(page, "#said") and "edit" in text(page, "#said")), text(page, "#said"))
    click(page, "delete")
    confirm(page, "yes")
    check("or to delete it", until(lambda: "cannot delete resource" in text(page, "#said")), text(page, "#said"))
    check("nothing has changed", not job("steady")["spec"].get("suspend") and "deletionTimestamp" not in job("steady")["metadata"])
    page.save_screenshot(os.environ["SHOTS"] + "/cluster-viewer.png")


def loses_rights(page):
    """A token that is no longer valid, as when it has expired."""
    kubectl("delete", "serviceaccount", "viewer")
    open_job(page, VIEWER, "steady")
    check("an expired kubeconfig is told, with what to do", until(lambda: "Unauthorized" in text(page, "body") and "kubeconfig" in text(page, "body"), 120), text(page, "body"))
    page.get(VIEWER.split("?")[0] + "#/")
    check("also in the list, which stays", until(lambda: "Unauthorized" in text(page, "#trouble") and "steady" in text(page, ".rows"), 120), text(page, "body"))
    page.save_screenshot(os.environ["SHOTS"] + "/cluster-expired.png")


def main():
    page = browser(os.getcwd() + "/chromium")
    try:
        for look in (lists, looks, acts, only_looks, loses_rights):
            look(page)
    except Exception:  # told as a failed case
        check("the page could be looked at to the end", False, traceback.format_exc()[-400:].replace("\n", " "))
    finally:
        page.quit()


main()
