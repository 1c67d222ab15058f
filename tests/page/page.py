# SPDX-License-Identifier: Apache-2.0
"""Looks at the page of `cox ui` as a person does. Called by tests/page/check."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
import traceback
import urllib.request
from urllib.parse import urlsplit

import audit
import crowd
from driver import browser, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

URL, SERVER, TOKEN, CA = sys.argv[1:5]
COOKIE = f"cox-ui-{urlsplit(URL).port}={urlsplit(URL).query.split('=')[1]}"
WORK = os.getcwd()
SHOTS = os.environ["SHOTS"]
JOBS = "/apis/coxswain.dev/v1beta1/namespaces/default/trainingjobs"
SWEEPS = "/apis/coxswain.dev/v1beta1/namespaces/default/trainingsweeps"
PODS = "/api/v1/namespaces/default/pods"
trust = ssl.create_default_context(cafile=CA)


def api(method, path, body=None):
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = urllib.request.Request(SERVER + path, method=method, data=json.dumps(body).encode() if body else None,
                                     headers={"Authorization": "Bearer " + TOKEN, "Content-Type": kind})
    with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
        return json.load(answer)


def training(steps, **more):
    return {"strategy": {"type": "MultiWorkerMirrored"}, "model": {"preset": "mlp", "width": 16},
            "data": {"format": "Synthetic", "examples": 2000, "validation": {"last": 200}},
            "training": {"steps": steps, "batchSize": 50, "optimizer": {"type": "SGD", "learningRate": 0.05}},
            "evaluation": {"everySteps": 20}, **more}


def pods_that_wait(**more):
    """Batches are as slow as the file `delay` says."""
    return {"template": {"spec": {"containers": [{"name": "trainer", "env": [
        {"name": "COXSWAIN_READ_DELAY", "value": WORK + "/delay"}]}]}}, **more}


def job(name, spec, **metadata):
    api("POST", JOBS, {"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingJob", "metadata": {"name": name, **metadata}, "spec": spec})


def check(name, passed, why=""):
    print(f"ok {name}" if passed else f"not ok {name}: {str(why)[:400]}", flush=True)
    return passed


def scheme(page, word):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": word}]})


def size(page, width, height):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})


def shot(page, name):
    page.save_screenshot(f"{SHOTS}/{name}.png")


def audited(page, view):
    """In both colour schemes."""
    found = []
    for word in ("dark", "light"):
        scheme(page, word)
        found += [f"{word}: {one}" for one in (audit.violations(page) if audit.AXE else [])]
    if audit.AXE:
        check(f"{view}: axe-core finds nothing serious", not found, found)
    check(f"{view}: tables, charts and controls have names for a screen reader", not (unnamed := audit.unnamed(page)), unnamed)


def audit_works(page):
    """A picture and a button without words are found, so that an audit without findings means something."""
    page.execute_script("document.getElementById('main').insertAdjacentHTML('beforeend', '<div id=nameless><img src=\\'data:,\\'><button></button></div>')")
    found = audit.violations(page) if audit.AXE else ["image-alt", "button-name"]
    check("the audit finds what has no name", all(any(one.startswith(rule) for one in found) for rule in ("image-alt", "button-name")) and "button" in audit.unnamed(page), found)
    page.execute_script("document.getElementById('nameless').remove()")


def text(page, selector):
    return page.find_element(By.CSS_SELECTOR, selector).text


# What a chart shows: Chart.js has it, and the canvas has pixels of its colour. {curve: its points}, {kind of mark: how many}.
DRAWN = """
    const canvas = document.querySelector(arguments[0] + " canvas"), picture = Chart.getChart(canvas), style = getComputedStyle(document.documentElement);
    const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, probe = document.createElement("canvas").getContext("2d");
    const isSeen = (colour) => {
        probe.fillStyle = colour;
        probe.fillRect(0, 0, 1, 1);
        const wanted = probe.getImageData(0, 0, 1, 1).data;
        let pixels = 0;
        for (let i = 0; i < bytes.length; i += 4) if (bytes[i + 3] > 200 && [0, 1, 2].every((c) => Math.abs(bytes[i + c] - wanted[c]) < 25)) pixels++;
        return pixels > 20;
    };
    const count = (kind, name) => isSeen(style.getPropertyValue(name)) ? picture.data.marks.filter((mark) => mark.kind === kind).length : 0;
    return {lines: Object.fromEntries(picture.data.datasets.filter((one) => isSeen(one.borderColor)).map((one) => [one.label, one.data.filter((point) => point.y !== null).length])),
        marks: {restart: count("restart", "--bad"), whole: count("whole", "--wait"), checkpoint: count("checkpoint", "--mark")}, best: isSeen(style.getPropertyValue("--good"))};"""


def drawn(page, figure):
    return page.execute_script(DRAWN, figure)


def raw(method="GET", path="/", **headers):
    """A request as no browser sends it: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(URL).port, timeout=20)
    connection.putrequest(method, path, skip_host=True)
    headers.setdefault("Host", f"127.0.0.1:{urlsplit(URL).port}")
    for key, value in headers.items():
        connection.putheader(key, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read().decode()


def gate():
    port, query = urlsplit(URL).port, urlsplit(URL).query
    own = f"http://127.0.0.1:{port}"
    status, headers, body = raw(path="/?" + query)
    check("the token opens the page, and becomes a cookie that scripts do not see", status == 200 and "HttpOnly" in headers["Set-Cookie"]
          and "SameSite=Strict" in headers["Set-Cookie"] and "default-src 'none'" in headers["Content-Security-Policy"]
          and "<script src=" in body and "<script>" not in body, (status, dict(headers)))
    refused = [raw(path="/?token=" + "0" * 64)[0], raw()[0], raw(path="/api/list")[0], raw(path="/page.js", Cookie=COOKIE + "0")[0]]
    check("without the token, or with another one, nothing is answered", refused == [401] * 4, refused)
    hosts = [raw(path="/?" + query, Host="evil.example")[0], raw(path="/api/list", Host=f"evil.example:{port}", Cookie=COOKIE)[0],
             raw(path="/api/list", Cookie=COOKIE)[0]]
    check("nor to another host name", hosts == [421, 421, 200], hosts)
    delete = "/api/delete?kind=job&namespace=default&name=none"
    posts = [raw("POST", delete, Cookie=COOKIE)[0], raw("POST", delete, Cookie=COOKIE, Origin="http://127.0.0.1:1")[0],
             raw("POST", delete, Origin=own)[0], raw("GET", delete, Cookie=COOKIE)[0], raw("POST", delete, Cookie=COOKIE, Origin=own)[0]]
    check("only the page itself changes something", posts == [403, 403, 401, 404, 404], posts)
    wrong = [raw(path="/api/job?namespace=default&name=A_b", Cookie=COOKIE)[0], raw(path="/../etc/passwd", Cookie=COOKIE)[0],
             raw(path="/api/job", Cookie=COOKIE)[0]]
    check("names that nothing can have, and other paths, are refused", wrong == [400, 404, 400], wrong)


# JavaScript: the fewest milliseconds that a function takes in some tries, because other programs run beside the browser. The bounds below
# are three to four times what was measured on two busy processors.
FASTEST = """const fastest = (count, act) => Math.min(...Array.from({length: count}, () => { const begun = performance.now(); act(); return performance.now() - begun; }));
"""


def cell(page, title):
    """What the first line of the list has in the column with this title."""
    return page.execute_script("""
        const at = columns.findIndex((column) => column.title === arguments[0]);
        return document.querySelector(".rows .row:not([hidden])").children[at].textContent;""", title)


def cut_cells(page):
    """Cells of the list whose text does not fit."""
    return page.execute_script("return [...document.querySelectorAll('.grid .row:not([hidden]) > :not([hidden]), .head > div > *')].filter((one) => one.clientWidth > 0 && one.scrollWidth > one.clientWidth).map((one) => one.textContent)")


def the_list(page):
    page.get(URL)
    check("the token leaves the address", until(lambda: "token" not in page.current_url), page.current_url)
    check("the list shows the jobs and the sweep", until(lambda: set(page.execute_script("return [...rows.values()].map((row) => row.NAME)")) >= {"digits", "broken", "rates"} and text(page, ".rows")), text(page, "main"))
    field = page.find_element(By.ID, "filter")
    field.send_keys("broken")  # among the trials of the sweeps it may not be in sight
    check("the job that fails is shown as failed", until(lambda: "Failed" in text(page, ".rows")), text(page, ".rows"))
    field.send_keys(Keys.BACKSPACE * 6)
    field.send_keys("digi")
    check("the filter leaves what matches", until(lambda: text(page, ".rows").startswith("digits") and "broken" not in text(page, ".rows")), text(page, ".rows"))
    check("a job has a score, as soon as it is evaluated, and the time of its start", until(lambda: " %" in cell(page, "Score") and float(cell(page, "Score").split()[0]) > 5 and cell(page, "Started").endswith(" ago")), text(page, ".grid"))
    field.send_keys(Keys.BACKSPACE * 4, "rates")
    until(lambda: page.execute_script("listChoice.kind = 'sweep'; view.listChanged(); return true"))
    check("that of a sweep is its best objective", until(lambda: cell(page, "Score").startswith("loss 0.")), text(page, ".grid"))
    page.execute_script("listChoice.kind = ''; view.listChanged()")
    field.send_keys(Keys.BACKSPACE * 5)
    page.execute_script("document.querySelector('.rows').focus()")
    page.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    check("arrow keys go from name to name", until(lambda: page.switch_to.active_element.tag_name == "a"), page.switch_to.active_element.tag_name)


def list_events(page):
    """The page gets changes of the list as server-sent events; without these, it polls."""
    page.get(URL.split("?")[0] + "#/")
    check("the page has an event stream", until(lambda: page.execute_script("return stream !== null && stream.readyState === 1")), text(page, "#connection"))
    page.execute_script("performance.clearResourceTimings()")
    seen = page.execute_script("return version")
    check("changes reach the page", until(lambda: page.execute_script("return version") != seen))
    time.sleep(3)
    asked = page.execute_script("return performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/list')).length")
    check("without requests for the list", asked == 0 and page.execute_script("return stream !== null"), asked)
    page.get("about:blank")
    others = []

    def refused():
        """Opens streams until one is refused: those of the page that is gone may not have ended yet."""
        connection = http.client.HTTPConnection("127.0.0.1", urlsplit(URL).port, timeout=20)
        connection.request("GET", "/api/events?since=0", headers={"Cookie": COOKIE})
        answer = connection.getresponse()
        others.append((connection, answer))
        return answer.status == 503
    check("the number of streams is limited", until(refused) and len(others) <= 5, len(others))
    event = others[0][1].readline().decode()
    check("the first event has the whole list", others[0][1].headers["Content-Type"] == "text/event-stream" and json.loads(event.removeprefix("data: "))["whole"], event[:100])
    unknown = raw(path="/api/events", Cookie=COOKIE + "0")[0]
    check("streams need the token, too", unknown == 401, unknown)
    page.get(URL.split("?")[0] + "#/")
    check("a page without a stream polls", until(lambda: text(page, "#connection") == "live" and page.execute_script("return version > 0 && stream === null")), text(page, "#connection"))
    seen = page.execute_script("return version")
    check("and sees what changes", until(lambda: page.execute_script("return version") != seen))
    for connection, answer in others:
        answer.close()
        connection.close()
    check("until there is room", until(lambda: page.execute_script("return stream !== null && stream.readyState === 1")))
    page.delete_all_cookies()
    page.execute_script("closeStream()")
    check("a page with an expired token says what to do", until(lambda: "the whole URL that cox ui printed" in text(page, "#trouble")), text(page, "body"))
    page.get(URL)
    check("until the URL is opened again", until(lambda: text(page, "#connection") == "live" and not text(page, "#trouble")), text(page, "body"))
    page.get_log("browser")


def open_job(page, name):
    page.get(URL.split("?")[0] + f"#/job/default/{name}")
    return until(lambda: text(page, "h2").startswith(name))


def chief_log():
    chief = next(pod for pod in api("GET", PODS)["items"] if pod["metadata"]["name"].startswith("digits-worker-0-"))
    request = urllib.request.Request(f"{SERVER}{PODS}/{chief['metadata']['name']}/log", headers={"Authorization": "Bearer " + TOKEN})
    with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
        return answer.read().decode()


def curves(page):
    query = urlsplit(URL).query
    until(lambda: chief_log().count("checkpoint of step ") >= 2)
    first = raw(path="/api/curves?namespace=default&name=digits", Cookie=f"cox-ui-{urlsplit(URL).port}={query.split('=')[1]}")[2]
    check("checkpoints are in the curves though no page was open", sum(mark[0] == "checkpoint" for mark in json.loads(first)["marks"]) >= 2, first[-300:])
    open_job(page, "digits")
    check("a job begins with the sentence of cox why", until(lambda: text(page, "#why").startswith("digits waits for nothing: it runs")), text(page, "main"))
    check("its losses are a curve", until(lambda: drawn(page, "#loss")["lines"]["training"]), text(page, "#loss"))
    before = text(page, ".facts")
    check("it is live", until(lambda: text(page, ".facts") != before), before)
    chief = next(pod for pod in api("GET", PODS)["items"] if pod["metadata"]["name"].startswith("digits-worker-0-"))
    os.kill(int(chief["status"]["containerStatuses"][0]["containerID"].split("//")[1]), signal.SIGKILL)
    check("a killed chief shows as a restart", until(lambda: "\n1" in text(page, ".facts").split("Restarts")[1]), text(page, ".facts"))
    check("and is marked in the curves", until(lambda: (found := drawn(page, "#loss")["marks"])["restart"] == 1 and found["checkpoint"] >= 2), text(page, "#loss"))
    check("the curve goes on, and held-out examples have one of their own", until(lambda: "held out" in text(page, "#loss") and drawn(page, "#loss")["lines"]["held out"]), text(page, "#loss"))
    page.find_element(By.ID, "logarithmic").send_keys(Keys.TAB)
    check("Tab leads to the curve", page.execute_script("return document.activeElement.matches('#loss canvas')"))
    page.switch_to.active_element.send_keys(Keys.HOME)
    first, known = page.execute_script(SHOWN, "#loss"), text(page, ".facts")
    check("and keys show its points", first["said"].startswith(f"step {first['step']:,}, training "), first)
    until(lambda: text(page, ".facts") != known)
    time.sleep(3)
    check("also while the job goes on", page.execute_script(SHOWN, "#loss") == first, (page.execute_script(SHOWN, "#loss"), first))
    marks = page.execute_script("return [...document.querySelectorAll('#loss ul li')].map((item) => item.textContent)")
    check("restart and checkpoints are in a list", sum(mark.startswith("a new chief began with step ") for mark in marks) == 1 and sum(mark.startswith("checkpoint of step ") for mark in marks) >= 2, marks)


def tabs(page):
    page.find_element(By.ID, "tab-log").click()
    check("the log has the lines of all pods", until(lambda: "worker-0 |" in text(page, "#log") and "worker-1 |" in text(page, "#log")), text(page, "#panel-log"))
    shot(page, "log")
    audited(page, "log")
    page.find_element(By.ID, "log-filter").send_keys("loss")
    check("and a filter", until(lambda: all("loss" in line for line in text(page, "#log").splitlines()) and text(page, "#log")), text(page, "#log"))
    page.find_element(By.ID, "tab-pods").click()
    check("pods and conditions are tables", until(lambda: "digits-worker-1-" in text(page, "#panel-pods") and "CrewComplete" in text(page, "#panel-pods")), text(page, "main"))
    shot(page, "pods")
    audited(page, "pods")
    page.find_element(By.ID, "tab-layers").click()
    check("the layers are those of the worker", until(lambda: "then 4 layers with 12,730 parameters" in text(page, "#layers-said")), text(page, "#panel-layers"))
    rows = [row.text for row in page.find_elements(By.CSS_SELECTOR, "#layers tbody tr")]
    check("with their shapes and parameters", len(rows) == 4 and "Dense 16 12,560" in rows[1] and "Dense 10 170" in rows[3], rows)
    boxes = page.execute_script("return [...document.querySelectorAll('#layer-graph g.box')].map((box) => [...box.querySelectorAll('text')].map((word) => word.textContent).filter(Boolean).join(' '))")
    check("and as a diagram, from the input down", len(boxes) == 5 and boxes[0] == "Input 28x28x1" and boxes[2].startswith("Dense") and boxes[2].endswith("16 12,560 parameters"), boxes)
    shot(page, "layers")
    audited(page, "layers")
    page.find_element(By.ID, "tab-manifest").click()
    check("the manifest is there", until(lambda: "kind: TrainingJob" in text(page, "#panel-manifest")), text(page, "main"))
    other = page.find_element(By.ID, "other")
    other.send_keys("nobody")
    check("a job that is not in the list is not compared", until(lambda: "No other job of the list" in text(page, "#panel-manifest")), text(page, "#panel-manifest"))
    other.send_keys(Keys.BACKSPACE * 6, "vers")
    check("names that match are offered", until(lambda: page.execute_script("return [...document.querySelectorAll('#other-names option')].map((one) => one.value)") == ["verse"]
          and "1 job matches" in text(page, "#panel-manifest")), text(page, "#panel-manifest"))
    other.send_keys("e")
    check("the fields that differ from another job's are shown above it", until(lambda: {"coxswain.model.preset mlp gpt-bytes", "coxswain.training.steps 12000 20", "coxswain.model.depth – 4"}
          <= {line.text for line in page.find_elements(By.CSS_SELECTOR, "#manifest-differences tbody tr")}), text(page, "#panel-manifest"))
    shot(page, "manifest")
    audited(page, "manifest")
    other.send_keys(Keys.BACKSPACE * 5)
    check("until the field is empty", until(lambda: not page.find_element(By.ID, "manifest-differences").is_displayed()), text(page, "#panel-manifest"))
    page.find_element(By.ID, "tab-curves").click()


def crew(page):
    open_job(page, "digits")
    page.find_element(By.ID, "tab-crew").click()
    check("the crew has a row for each worker, from the chief's log", until(lambda: "worker 0" in text(page, "#crew") and "worker 1" in text(page, "#crew")
          and page.find_elements(By.CSS_SELECTOR, "#timeline path.own")), text(page, "#panel-crew"))
    check("with the time that it computes and waits", " of " in text(page, "#crew tbody tr td:nth-child(2)") and "%" in text(page, "#crew tbody tr td:nth-child(3)"), text(page, "#crew"))
    late = page.execute_script("""
        const paces = Array.from({length: 1000}, (_, i) => [10 * (i + 1), 10, [4, i < 500 ? 4 : 9, i < 900 ? 5 : null]]);
        const given = {members: ["worker 0", "worker 1", "worker 2"], paces}, host = document.createElement("div"), figure = document.createElement("figure");
        document.getElementById("panel-crew").append(figure, host);
        timeline(figure, host, given, [{kind: "restart", x: 5000, text: "restart"}]);
        const said = [...host.querySelectorAll("tbody tr")].map((row) => row.textContent);
        const found = {columns: timelineColumns(given).length, said, late: [...figure.querySelectorAll("path.late")].map((path) => (path.getAttribute("d").match(/M/g) || []).length), marks: figure.querySelectorAll("line.restart").length,
            elements: figure.querySelectorAll("*").length};
        figure.remove();
        host.remove();
        return found;""")
    check("late members are red and named in the table, and a thousand lines make few elements", late["columns"] <= 160 and late["late"][0] == late["late"][2] == 0 and 60 <= late["late"][1] <= 80
          and "also now" in late["said"][1] and "in 50 %" in late["said"][1] and "never" in late["said"][0] and "not in the crew" in late["said"][2] and late["marks"] == 1 and late["elements"] < 40, late)
    resumed = page.execute_script("""
        const given = {members: ["worker 0", "worker 1"], paces: [[5010, 0, [0, 0]], [5020, 0, [0, 0]], [10, 1, [1, 0.5]]]}, host = document.createElement("div"), figure = document.createElement("figure");
        timeline(figure, host, given, []);
        return {columns: timelineColumns(given).map((one) => [one.from, one.to]), words: figure.innerHTML + host.textContent};""")
    check("the first line is not about all steps before it, and steps of 0.0 ms are drawn", resumed["columns"] == [[5000, 5010], [5010, 5020], [0, 10]] and "NaN" not in resumed["words"], resumed)
    check("a crew of one gets an explanation", "at least two workers" in page.execute_script("""
        const figure = document.createElement("figure"), host = document.createElement("div");
        timeline(figure, host, {members: [], paces: []}, []);
        return figure.textContent;"""))
    shot(page, "crew")
    audited(page, "crew")


def use_of_models(page):
    """What was trained is used: a text model continues a prompt, a classifier is evaluated."""
    open_job(page, "digits")
    page.find_element(By.ID, "tab-use").click()
    until(lambda: page.find_element(By.ID, "use-go").is_displayed())
    page.find_element(By.ID, "use-go").click()
    check("a classifier is evaluated on the held-out examples, with its newest weights", until(lambda: text(page, "#use-said").startswith("Weights: the checkpoint of step")), text(page, "#panel-use"))
    cells = page.execute_script("return [...document.querySelectorAll('#confusion tbody tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent))")
    counts = [[int(cell or 0) for cell in row[:-1]] for row in cells]
    check("its confusion matrix counts each of them once", len(counts) == 10 and all(len(row) == 10 for row in counts) and sum(map(sum, counts)) == 200, cells)
    right = sum(counts[i][i] for i in range(10)) / 200
    check("and its diagonal is the accuracy", f"{100 * right:.2f} %" in text(page, "#use-result .facts"), text(page, "#use-result .facts"))
    made = page.execute_script("""return [...confusionTable([[1, 2], [0, 3]], (i) => "c" + i).querySelectorAll("tbody tr")].map((row) =>
        [...row.cells].map((cell) => cell.title || cell.textContent))""")
    check("its rows are the true classes", made == [["c0", "1 of class c0 were taken for c0", "2 of class c0 were taken for c1", "33 %"], ["c1", "", "3 of class c1 were taken for c1", "100 %"]], made)
    worst = [line.text for line in page.find_elements(By.CSS_SELECTOR, "#worst li")]
    losses = [float(line.split("loss ")[1]) if "none" not in line else float("inf") for line in worst]
    check("the worst examples come first", len(worst) == 24 and losses == sorted(losses, reverse=True), worst)
    inks = page.execute_script("""return [...document.querySelectorAll("#worst canvas")].map((canvas) =>
        [canvas.width, new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data).size, canvas.getAttribute("aria-label")])""")
    check("with their pictures, and in words", len(inks) == 24 and all(width == 28 and shades > 5 and "taken for" in words for width, shades, words in inks), inks)
    size(page, 1280, 1130)
    shot(page, "use-classifier")
    audited(page, "classifier")
    size(page, 1280, 950)
    open_job(page, "verse")
    until(lambda: "Succeeded" in text(page, "h2"))
    page.find_element(By.ID, "tab-use").click()
    until(lambda: page.find_element(By.ID, "prompt").is_displayed())
    page.find_element(By.ID, "use-go").click()
    check("an empty prompt is refused with a sentence", until(lambda: "Write a text" in text(page, "#use-said")), text(page, "#panel-use"))
    page.find_element(By.ID, "prompt").send_keys("Sphinx of <b>black</b>")
    page.execute_script("document.getElementById('temperature').value = 0; document.getElementById('tokens').value = 40")
    page.find_element(By.ID, "use-go").click()
    check("a text model continues the prompt, as text", until(lambda: "It took" in text(page, "#use-said") and text(page, "#generated").startswith("Sphinx of <b>black</b>") and len(text(page, "#generated")) > 30), text(page, "#panel-use"))
    first = text(page, "#generated")
    page.execute_script("document.getElementById('use-said').textContent = ''")
    page.find_element(By.ID, "use-go").click()
    check("with temperature 0 the text is the same each time", until(lambda: "It took" in text(page, "#use-said") and text(page, "#generated") == first), text(page, "#generated"))
    shot(page, "use-text")
    audited(page, "text model")
    page.find_element(By.ID, "tab-layers").click()
    check("a transformer's residual branches are drawn", until(lambda: page.find_elements(By.CSS_SELECTOR, "#layer-graph .pass")), text(page, "#panel-layers"))
    size(page, 1280, 1000)
    shot(page, "layers-text")
    size(page, 1280, 950)
    page.find_element(By.ID, "tab-use").click()
    page.execute_script("""
        window.lengths = new Set();
        new MutationObserver(() => { const shown = document.getElementById("generated"); if (shown) lengths.add(shown.textContent.length); })
            .observe(document.getElementById("use-result"), {childList: true, subtree: true, characterData: true});
        document.getElementById("tokens").value = 2000;
        document.getElementById("use-go").click();""")
    check("the text is shown while it grows", until(lambda: page.execute_script("return lengths.size > 1 && !document.getElementById('use-stop').hidden")), text(page, "#panel-use"))
    page.execute_script("document.getElementById('use-stop').click()")
    check("Stop stops it", until(lambda: text(page, "#use-said") == "Stopped."), text(page, "#panel-use"))
    open_job(page, "broken")
    page.find_element(By.ID, "tab-use").click()
    until(lambda: page.find_element(By.ID, "use-go").is_displayed())
    page.find_element(By.ID, "use-go").click()
    check("a job without weights says so", until(lambda: "there are no weights" in text(page, "#use-said")), text(page, "#panel-use"))


def actions(page):
    page.find_element(By.ID, "suspend").click()
    check("Suspend suspends", until(lambda: "Suspended" in text(page, "h2") and "suspended" in text(page, "#why")), text(page, "main"))
    check("and does not say for ever that it is about to", until(lambda: page.execute_script("return document.getElementById('said').textContent === ''")), text(page, "main"))
    page.find_element(By.ID, "resume").click()
    check("Resume lets it go on", until(lambda: "Running" in text(page, "h2")), text(page, "main"))
    page.find_element(By.ID, "delete").click()
    until(lambda: page.find_element(By.ID, "confirm").is_displayed())
    audited(page, "dialog")
    page.find_element(By.CSS_SELECTOR, "#confirm button[value=no]").click()
    time.sleep(1)
    check("Delete asks, and takes no for an answer", api("GET", JOBS + "/digits")["metadata"].get("deletionTimestamp") is None)
    page.find_element(By.ID, "delete").click()
    until(lambda: page.find_element(By.ID, "confirm").is_displayed())
    page.find_element(By.ID, "confirm-yes").click()
    check("and a yes: the page says that the job is gone", until(lambda: "digits has been deleted" in text(page, "#why")), text(page, "main"))
    page.get(URL.split("?")[0] + "#/")
    check("the list has it no more", until(lambda: "broken" in text(page, ".rows") and "digits" not in text(page, ".rows")), text(page, "main"))


def compare(page):
    page.get(URL.split("?")[0] + "#/")
    until(lambda: "rates-0" in text(page, ".rows"))
    page.find_element(By.ID, "filter").send_keys("rates")

    def box(name):
        return page.find_element(By.CSS_SELECTOR, f".rows .row:not([hidden]) input[aria-label='compare {name}']")

    until(lambda: box("rates-0")).click()
    check("one job alone is not compared", until(lambda: "Choose another job" in text(page, ".filters")) and not page.find_element(By.ID, "compare").is_displayed(), text(page, ".filters"))
    until(lambda: box("rates-2")).send_keys(Keys.SPACE)
    check("two are, chosen with the mouse or the keyboard", until(lambda: text(page, "#compare") == "Compare 2 jobs"), text(page, ".filters"))
    check("a sweep cannot be chosen", not page.find_element(By.CSS_SELECTOR, ".rows input[aria-label='compare rates']").is_displayed())
    page.find_element(By.ID, "filter").send_keys(Keys.BACKSPACE * 5)
    page.find_element(By.ID, "compare").click()
    check("their losses are in one chart", until(lambda: set(drawn(page, "#loss")["lines"]) == {"rates-0", "rates-2"}
          and "rates-0" in text(page, "#loss") and "rates-2" in text(page, "#loss")), text(page, "main"))
    lines = [line.text for line in page.find_elements(By.CSS_SELECTOR, "#differences tbody tr")]
    check("and the fields of their specs that differ, no others", lines == ["coxswain.training.optimizer.learningRate 0.001 0.1"], lines)
    check("and how they are", "Succeeded" in text(page, "#numbers") and "60/60" in text(page, "#numbers"), text(page, "#numbers"))
    shot(page, "compare")
    audited(page, "comparison")
    found = page.execute_script("return differences([{a: [1, {b: 2}], c: {}}, {a: [1, {b: 3}], c: {}, d: null}])")
    check("fields in lists, and those that one alone has, are found", found == [["a.1.b", 2, 3], ["d", None, None]], found)
    page.get(URL.split("?")[0] + "#/compare/default/rates-0/default/nobody")
    check("a job that is not there is told", until(lambda: "There is no job nobody" in text(page, "#failed")), text(page, "main"))
    page.get(URL.split("?")[0] + "#/")
    until(lambda: page.find_element(By.ID, "compare-clear").is_displayed())
    page.find_element(By.ID, "compare-clear").click()
    check("the choice is kept until it is taken back", until(lambda: not page.find_element(By.ID, "compare").is_displayed() and not page.find_elements(By.CSS_SELECTOR, ".rows input:checked")))


@contextlib.contextmanager
def ended_at_last(process):
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


class Machine:
    """A home directory of its own for `cox run` and `cox ui --runs`, without a cluster."""

    def __init__(self, name):
        self.home = f"{WORK}/{name}"
        self.runs = self.home + "/state/coxswain"
        self.environment = {**os.environ, "HOME": self.home, "XDG_STATE_HOME": self.home + "/state"}
        self.environment.pop("KUBECONFIG", None)
        os.makedirs(self.home, exist_ok=True)

    def start(self, kind, name, spec):
        """Starts `cox run` of a manifest, and returns its process."""
        with open(f"{self.home}/{name}.json", "w") as file:
            json.dump({"apiVersion": "coxswain.dev/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}, file)
        return subprocess.Popen(["cox", "run", f"{self.home}/{name}.json"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, kind, name, spec):
        """Returns once it has succeeded."""
        assert self.start(kind, name, spec).wait(120) == 0, f"cox run {self.home}/{name}.json"

    @contextlib.contextmanager
    def ui(self, *options):
        """Gives the URL of a `cox ui --runs`."""
        server = subprocess.Popen(["cox", "ui", "--runs", *options], env=self.environment, stdout=subprocess.PIPE, text=True)
        with ended_at_last(server):
            server.stdout.readline()
            yield server.stdout.readline().strip()


def runs_of_this_machine(page):
    """Another cox ui, without a cluster: the list of all runs, one of them, and two beside each other."""
    machine = Machine("machine")
    machine.run("TrainingSweep", "rates", {"parallelism": 2, "algorithm": {"type": "Grid"},
        "parameters": [{"path": "coxswain.training.optimizer.learningRate", "values": [0.01, 0.1, 0.3]}, {"path": "coxswain.model.width", "values": [8, 16]}],
        "template": {"coxswain": {**training(60), "strategy": {"type": "OneDevice"}}}})
    for name, rate in (("slow", 0.01), ("quick", 0.2)):
        spec = {**training(200), "strategy": {"type": "OneDevice"}}
        spec["training"] = {**spec["training"], "optimizer": {"type": "SGD", "learningRate": rate}}
        machine.run("TrainingJob", name, {"workers": {"replicas": 1}, "coxswain": spec})
    with machine.ui() as url:
        page.get(url)
        check("without a cluster the page lists the runs of this machine", until(lambda: "quick" in text(page, ".rows") and "slow" in text(page, ".rows")), text(page, "body"))
        head, row = text(page, ".head"), text(page, ".rows .row:not([hidden])")
        check("with score and disk", "Score" in head and "Disk" in head and "Restarts" not in head and " %" in row and " MB" in row, head + row)
        check("and says so", text(page, "#connection") == "live: the runs of this machine", text(page, "#connection"))
        check("and no text is cut off", until(lambda: "loss 0." in text(page, ".rows")) and cut_cells(page) == [], cut_cells(page))
        shot(page, "runs")
        audited(page, "runs")
        for name in ("slow", "quick"):
            until(lambda: page.find_element(By.CSS_SELECTOR, f".rows .row:not([hidden]) input[aria-label='compare {name}']")).click()
        page.find_element(By.LINK_TEXT, "quick").click()
        check("a run has its curves", until(lambda: drawn(page, "#loss")["lines"]["training"]) and not page.find_element(By.ID, "suspend").is_displayed(), text(page, "main"))
        page.find_element(By.ID, "tab-log").click()
        check("and its log", until(lambda: "step" in text(page, "#log")), text(page, "#panel-log"))
        page.execute_script("performance.clearResourceTimings()")
        time.sleep(5)
        asked = page.execute_script("return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/api/job')).length")
        check("an ended run is read once", asked == 0, asked)
        page.find_element(By.CSS_SELECTOR, "h1 a").click()
        until(lambda: page.find_element(By.ID, "compare").is_displayed())
        page.find_element(By.ID, "compare").click()
        check("two runs are compared", until(lambda: len(drawn(page, "#loss")["lines"]) == 2 and "default-slow" in text(page, "#loss")), text(page, "main"))
        lines = [line.text for line in page.find_elements(By.CSS_SELECTOR, "#differences tbody tr")]
        check("by what differs in their specs", lines == ["coxswain.training.optimizer.learningRate 0.01 0.2"], lines)
        shot(page, "runs-compare")
        page.get(url.split("?")[0] + "#/")
        until(lambda: page.find_element(By.LINK_TEXT, "rates")).click()
        check("a sweep that has ended has its parallel coordinates", until(lambda: len(page.find_elements(By.CSS_SELECTOR, "#parallel line.axis")) == 3 and page.find_elements(By.CSS_SELECTOR, "#parallel path.chosen")), text(page, "main"))
        check("and all its trials", until(lambda: len(page.find_elements(By.CSS_SELECTOR, "#trials tbody tr")) == 6) and "rates waits for nothing: it is complete" in text(page, "#why"), text(page, "main"))
        shot(page, "runs-sweep")
        audited(page, "sweep of a run")
        page.find_element(By.CSS_SELECTOR, "#trials tbody tr:nth-child(3) a").click()
        check("whose links lead to the trials of that run", until(lambda: text(page, "h2").startswith("rates-2") and drawn(page, "#loss")["lines"]["training"]), text(page, "main"))
        check("and back", "rates" in text(page, ".facts") and until(lambda: page.find_element(By.LINK_TEXT, "rates")).get_attribute("href").endswith("/default-rates"), text(page, ".facts"))


def run_events(page):
    """Another cox ui, without a cluster: runs that change are sent to the page, also after cox ui was started again."""
    machine = Machine("machine")

    def is_live():
        return text(page, "#connection") == "live: the runs of this machine" and page.execute_script("return stream !== null && stream.readyState === 1")

    def sent(name):
        """Runs a job, and returns why the page does not show its end; "": it does, without a request for the list."""
        page.execute_script("performance.clearResourceTimings()")
        machine.run("TrainingJob", name, {"workers": {"replicas": 1}, "coxswain": {**training(200), "strategy": {"type": "OneDevice"}}})
        shown = until(lambda: page.execute_script("return [...rows.values()].some((row) => row.NAME === arguments[0] && row.STATE === 'Succeeded' && row.step === 200)", name), 10)
        asked = page.execute_script("return performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/list')).length")
        return "" if shown and asked == 0 and is_live() else f"shown: {shown}, requests for the list: {asked}; {text(page, 'body')}"

    with machine.ui() as url:
        page.get(url)
        check("the page of the runs has an event stream", until(is_live), text(page, "#connection"))
        why = sent("early")
        check("a run that begins and ends is sent to it", not why, why)
        beats = page.execute_script("return heard")
        check("and the stream beats when nothing changes", until(lambda: page.execute_script("return heard") > beats + 5000, 15), page.execute_script("return heard"))
    check("a page of the runs tells that cox ui has ended", until(lambda: "cox ui does not answer any more" in text(page, "#trouble")), text(page, "body"))
    with machine.ui("--port", str(urlsplit(url).port)) as url:
        old = page.current_window_handle
        page.switch_to.new_window("tab")
        page.get(url)
        page.close()
        page.switch_to.window(old)
        check("its stream is back after cox ui was started again", until(is_live), text(page, "body"))
        why = sent("late")
        check("and is sent the next run", not why, why)


def change_runs(page):
    """Another cox ui, without a cluster: a run that goes on is controlled, and runs that have ended are deleted."""
    machine = Machine("machine")
    run = machine.start("TrainingJob", "long", {
        "coxswain": training(900000, checkpoint={"storage": "runs", "everySteps": 50}), "storage": [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}}],
        "workers": pods_that_wait(replicas=1, minReplicas=1, maxReplicas=2)})
    directory = machine.runs + "/default-"
    with ended_at_last(run), machine.ui() as url:
        page.get(url)
        until(lambda: "Running" in text(page, ".rows"))
        page.find_element(By.LINK_TEXT, "long").click()
        until(lambda: "Running" in text(page, "h2"))
        page.find_element(By.ID, "scale").click()
        until(lambda: page.find_element(By.ID, "confirm").is_displayed())
        page.switch_to.active_element.send_keys(Keys.BACKSPACE, "2", Keys.ENTER)
        check("a run that goes on is scaled", until(lambda: "Ready\n2/2" in text(page, ".facts")), text(page, "main"))
        page.find_element(By.ID, "suspend").click()
        check("and suspended", until(lambda: "Suspended" in text(page, "h2")), text(page, "main"))
        page.find_element(By.ID, "resume").click()
        check("and resumed", until(lambda: "Running" in text(page, "h2")), text(page, "main"))
        page.find_element(By.ID, "tab-pods").click()
        until(lambda: "long-worker-0-" in text(page, "#panel-pods"))
        before = text(page, "#panel-pods")
        page.find_element(By.ID, "restart").click()
        confirm(page, "yes")
        check("and restarted", until(lambda: "starts over from its last checkpoint" in text(page, "#said")) and until(lambda: "Running" in text(page, "h2") and text(page, "#said") == "" and text(page, "#panel-pods") != before), text(page, "main"))
        page.find_element(By.ID, "delete").click()
        confirm(page, "yes")
        check("and deleted, which ends its cox run", run.wait(60) == 1)
        page.get(url.split("?")[0] + "#/")
        until(lambda: page.find_element(By.LINK_TEXT, "slow")).click()
        until(lambda: "Succeeded" in text(page, "h2"))
        page.find_element(By.ID, "delete").click()
        until(lambda: page.find_element(By.ID, "confirm").is_displayed())
        check("before a run that has ended is deleted, the page says what goes with it", "checkpoints and weights, too" in text(page, "#confirm"), text(page, "#confirm"))
        confirm(page, "no")
        time.sleep(1)
        check("and takes no for an answer", os.path.exists(directory + "slow"))
        with open(directory + "slow/used-by", "w") as file:
            file.write(directory + "quick\n")
        with open(directory + "quick/run.json") as file:
            record = json.load(file)
        with open(directory + "quick/run.json", "w") as file:
            json.dump({**record, "volumes": {"data": directory + "slow/volumes"}}, file)
        os.makedirs(directory + "slow/volumes", exist_ok=True)
        page.find_element(By.ID, "delete").click()
        confirm(page, "yes")
        check("a run whose files another one uses stays", until(lambda: "slow stays: the run quick was given a directory in it" in text(page, "#said")) and os.path.exists(directory + "slow"), text(page, "main"))
        with open(directory + "quick/run.json", "w") as file:
            json.dump(record, file)
        page.find_element(By.ID, "delete").click()
        confirm(page, "yes")
        check("another one is deleted", until(lambda: "slow has been deleted" in text(page, "#why")) and not os.path.exists(directory + "slow"), text(page, "main"))
        page.get(url.split("?")[0] + "#/")
        check("and not listed any more", until(lambda: "quick" in text(page, ".rows") and "slow" not in text(page, ".rows")), text(page, ".rows"))


def very_many_runs(page):
    """Another cox ui, with 10,000 runs of this machine."""
    machine = Machine("crowd")
    crowd.make_runs(machine.runs, 10000)
    with machine.ui() as url:
        page.get(url)
        check("10,000 runs of this machine are listed", until(lambda: text(page, ".filters").endswith("10000 in all")), text(page, ".filters"))
        field = page.find_element(By.ID, "filter")
        field.send_keys("many-777")
        check("and filtered", until(lambda: "11 of 10000" in text(page, ".filters") and len(page.find_elements(By.CSS_SELECTOR, ".rows .row:not([hidden])")) == 11), text(page, ".filters"))
        check("with their disk usage, sooner or later", until(lambda: cell(page, "Disk").endswith(" KB")), text(page, ".grid"))
        before = page.execute_script("window.got = []; const take = takeList; takeList = (answer) => { got.push([answer.whole, answer.rows.map((row) => row.NAME)]); take(answer); }; return version")
        crowd.write_run(machine.runs, 777, 250)
        check("a run that changes is updated", until(lambda: "25 %" in text(page, ".rows")), text(page, ".rows"))
        got = page.execute_script("return got")
        check("without the rows of the others", not any(whole for whole, _ in got) and any("many-777" in names for _, names in got) and page.execute_script("return version") > before, got[-1])
        shutil.rmtree(f"{machine.runs}/default-many-777")
        check("and a run that is deleted is gone", until(lambda: "10 of 9999" in text(page, ".filters")), text(page, ".filters"))


def confirm(page, answer):
    until(lambda: page.find_element(By.ID, "confirm").is_displayed())
    page.find_element(By.CSS_SELECTOR, f"#confirm button[value={answer}]").click()


def restart_and_scale(page):
    open_job(page, "digits")
    until(lambda: "Running" in text(page, "h2"))
    check("a job of a fixed number of workers cannot be scaled", not page.find_element(By.ID, "scale").is_displayed())
    job("stretch", {"coxswain": training(90000, checkpoint={"storage": "runs", "everySteps": 20}),
                    "storage": [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}}],
                    "workers": pods_that_wait(replicas=1, minReplicas=1, maxReplicas=2)})
    open_job(page, "stretch")
    until(lambda: "Running" in text(page, "h2"))
    page.find_element(By.ID, "scale").click()
    until(lambda: page.find_element(By.ID, "confirm").is_displayed())
    number = page.switch_to.active_element
    check("Scale asks for a number between the job's bounds", [number.get_attribute(name) for name in ("id", "value", "min", "max")] == ["confirm-number", "1", "1", "2"]
          and "1 to 2" in text(page, "#confirm"), text(page, "#confirm"))
    number.send_keys("7", Keys.ENTER)
    time.sleep(1)
    check("and takes no other", page.find_element(By.ID, "confirm").is_displayed() and api("GET", JOBS + "/stretch")["spec"]["workers"]["replicas"] == 1)
    number.send_keys(Keys.BACKSPACE, "2", Keys.ENTER)
    check("Enter scales", until(lambda: api("GET", JOBS + "/stretch")["spec"]["workers"]["replicas"] == 2), text(page, "main"))
    check("and the new worker is ready", until(lambda: "Ready\n2/2" in text(page, ".facts")), text(page, ".facts"))

    def pods():
        return {pod["metadata"]["uid"] for pod in api("GET", PODS)["items"] if pod["metadata"]["name"].startswith("stretch-")}

    before = pods()
    page.find_element(By.ID, "restart").click()
    confirm(page, "no")
    time.sleep(1)
    check("Restart asks, and takes no for an answer", not api("GET", JOBS + "/stretch")["spec"].get("suspend") and pods() == before)
    page.find_element(By.ID, "restart").click()
    confirm(page, "yes")
    check("Restart suspends the job", until(lambda: "starts over from its last checkpoint" in text(page, "#said")), text(page, "main"))
    check("until its pods are gone; then it goes on with others", until(lambda: "Running" in text(page, "h2") and pods() and not pods() & before), text(page, "main"))
    check("and the page says no more about it", until(lambda: page.execute_script("return document.getElementById('said').textContent === ''")), text(page, "main"))
    api("DELETE", JOBS + "/stretch")


def place_is_kept(page):
    """What is written again each two seconds leaves focus, scrolling and the reader's place."""
    open_job(page, "digits")
    page.find_element(By.CSS_SELECTOR, ".skip").send_keys(Keys.ENTER)
    check("'Skip to the content' goes there", page.switch_to.active_element.get_attribute("id") == "main", page.switch_to.active_element.tag_name)
    page.execute_script("location.hash = '#main'")
    time.sleep(0.5)
    check("and stays with the job", text(page, "h2").startswith("digits"), text(page, "main"))
    check("the sentence of cox why is not read out each time that it changes", page.find_element(By.ID, "why").get_attribute("aria-live") is None)
    open_job(page, "digits")
    page.find_element(By.ID, "tab-pods").click()
    until(lambda: page.find_elements(By.CSS_SELECTOR, "#panel-pods .scroll"))
    page.execute_script("""
        const first = document.querySelector("#panel-pods .scroll");
        first.focus();
        getSelection().selectAllChildren(first.querySelector("tbody td:nth-child(2)"));""")
    before = page.execute_script("return [document.activeElement.className, String(getSelection()).trim()]")
    time.sleep(5)
    after = page.execute_script("return [document.activeElement.className, String(getSelection()).trim()]")
    check("a table keeps its focus and what is selected in it", before == after and before[0] == "scroll" and "digits-worker-" in before[1], (before, after))
    page.get(URL.split("?")[0] + "#/sweep/default/rates")
    until(lambda: page.find_elements(By.CSS_SELECTOR, "#trials a"))
    page.execute_script("document.querySelector('#trials tr:last-child a').focus()")
    time.sleep(5)
    check("so does a trial's link", page.execute_script("return document.activeElement.matches('#trials tr:last-child a')"))


# Answers requests whose URL contains `part` in another way: the words of `answer` are the body of a function of fetch and its arguments.
STUB = """const [part, answer] = arguments, other = new Function("real", "path", answer), real = window.realFetch || window.fetch;
window.realFetch = real;
window.fetch = (path, ...more) => String(path).includes(part) ? other((...words) => real(...words, ...more), path) : real(path, ...more);"""
UNSTUB = "window.fetch = window.realFetch;"


def answers_that_fail(page):
    open_job(page, "digits")
    until(lambda: drawn(page, "#loss")["lines"]["training"])
    page.execute_script(STUB, "/api/job", "return Promise.resolve(new Response('{\"error\": \"no luck\"}', {status: 502}))")
    check("an error of a read is told", until(lambda: text(page, "#failed") == "no luck"), text(page, "main"))
    page.execute_script(UNSTUB)
    check("until a read succeeds", until(lambda: page.execute_script("return document.getElementById('failed').textContent === ''")), text(page, "main"))
    page.find_element(By.ID, "tab-log").click()
    page.execute_script(STUB, "/api/log", "return Promise.resolve(new Response('{\"text\": \"one\\\\n\", \"unread\": 2}'))")
    check("logs that could not be read are counted", until(lambda: "2 logs could not be read" in text(page, "#panel-log")), text(page, "#panel-log"))
    page.execute_script(STUB, "/api/log", """
        const all = !path.includes("role=");
        return new Promise((resolve) => setTimeout(() => resolve(new Response(JSON.stringify({text: all ? "all" : "chosen", unread: 0}))), all ? 1500 : 0));""")
    until(lambda: text(page, "#log") == "all")
    seen = page.execute_async_script("""
        const done = arguments[0], log = document.getElementById("log"), pod = document.getElementById("log-pod"), seen = [];
        setTimeout(() => { // while a read of all logs goes on
            pod.value = "worker/1";
            pod.dispatchEvent(new Event("change"));
            new MutationObserver(() => seen.push(log.textContent)).observe(log, {childList: true, characterData: true, subtree: true});
            seen.push(log.textContent);
            setTimeout(() => done(seen), 4000);
        }, 2500);""")
    check("the log of an earlier choice is not shown under the new one", "all" not in seen and "chosen" in seen, seen)
    page.execute_script(UNSTUB)
    page.get(URL.split("?")[0] + "#/")
    until(lambda: "digits" in text(page, ".rows"))
    scripts_are_silent(page)
    page.execute_script("view.listChanged = view.timePassed = () => { throw new TypeError('a mistake of the page'); }")
    said = until(lambda: [line for line in page.get_log("browser") if "a mistake of the page" in line["message"]])
    check("a mistake of the page is told in the console", said)
    check("and is not taken for a lost connection", text(page, "#connection") == "live", text(page, "body"))
    page.refresh()
    until(lambda: "digits" in text(page, ".rows"))
    page.get_log("browser")


def order(page):
    """Columns are sorted by their figures; what has none comes last."""
    page.get(URL.split("?")[0] + "#/")
    until(lambda: text(page, ".rows"))

    def names(column):
        return page.execute_script("""
            const made = [["a", 5400, "nan", 3, -0.5], ["b", 600, "0.5", 30, 0.9], ["c", 90, "10", 9, 0.1], ["d", -1, "", 1, undefined]];
            for (const [name, left, loss, age, score] of made) rows.set("job/default/order-" + name, {kind: "job", NAME: "order-" + name, NAMESPACE: "default", STATE: "Succeeded", score,
                STEP: "", LOSS: loss, RESTARTS: "0", ETA: left < 0 ? "" : Math.round(left / 60) + "m", left, created: "2026-01-0" + (1 + made.findIndex((one) => one[0] === name)) + "T00:00:00Z",
                finished: new Date(Date.parse("2026-01-0" + (1 + made.findIndex((one) => one[0] === name)) + "T00:00:00Z") + age * 3600000).toISOString(), step: -1, total: -1});
            listChoice.text = "order-";
            listChoice.sort = "created";
            listChoice.down = true;
            view.listChanged();
            const button = [...document.querySelectorAll(".head button")].find((one) => one.textContent.startsWith(arguments[0]));
            if (button) button.click();
            return [...document.querySelectorAll(".rows .row:not([hidden]) a")].map((link) => link.textContent.slice(-1)).join("");""", column)

    found = [names("Left"), names("Loss"), names("Time"), names("Started"), names("Score"), names("none of them")]
    check("columns are sorted by figures, and without one the newest come first", found == ["cbad", "bcad", "dacb", "abcd", "acbd", "dcba"], found)
    page.execute_script("listChoice.text = ''; listChoice.sort = 'created'; listChoice.down = true")
    page.refresh()


def failed(page):
    open_job(page, "broken")
    check("a failed job says why", until(lambda: "failed" in text(page, "#why") and "Failed" in text(page, "h2")), text(page, "main"))
    shot(page, "failed")
    page.find_element(By.ID, "tab-layers").click()
    check("and has layers, though it never trained", until(lambda: "layers with" in text(page, "#layers-said") and len(page.find_elements(By.CSS_SELECTOR, "#layer-graph g.box")) == 5), text(page, "#panel-layers"))
    residual = page.execute_script("""
        const layers = [[-1], [0], [1, -1], [2], [3, 2], [4, 0]].map((inputs, i) => ({name: "<b>" + i, type: "Add", inputs, output: "8", parameters: i}));
        layerGraph(document.getElementById("layer-graph"), {input: "8", parameters: 15, layers});
        return {passing: document.querySelectorAll("#layer-graph .pass").length, flows: document.querySelectorAll("#layer-graph .flow:not(.pass)").length,
            lanes: lanesOf({layers}).map((line) => [line.from, line.to, line.lane]), words: document.querySelector("#layer-graph g:nth-of-type(2) .name").textContent}""")
    check("lines that pass layers have lanes of their own", residual == {"passing": 3, "flows": 6, "lanes": [[0, 3, 0], [1, 6, 1], [3, 5, 0]], "words": "<b>0"}, residual)
    deep = page.execute_script("""
        const layers = Array.from({length: 401}, (_, i) => ({name: "l" + i, type: "Dense", inputs: [i - 1], output: "8", parameters: 72}));
        layerGraph(document.getElementById("layer-graph"), {input: "8", parameters: 1, layers});
        return document.getElementById("layer-graph").textContent""")
    check("a model of very many layers is only listed in the table", "the table has all of them" in deep, deep)
    open_job(page, "nobody")
    check("a job that never was is not called deleted", until(lambda: text(page, "#why").startswith("There is no job nobody in the namespace default"))
          and "deleted" not in text(page, "main"), text(page, "main"))


def sweep(page):
    page.get(URL.split("?")[0] + "#/sweep/default/rates")
    check("a sweep shows its trials, the objective as a chart, and the best",
          until(lambda: (found := drawn(page, "#objective"))["lines"]["validationLoss"] == 4 and found["best"]
                and "best" in text(page, "tr.best") and text(page, "#why") == "rates waits for nothing: it is complete, and 4 of 4 trials succeeded"), text(page, "main"))
    best = next(trial for trial in page.execute_script("return fetch('/api/sweep?namespace=default&name=rates').then((answer) => answer.json())")["trials"] if trial["best"])
    facts = text(page, ".facts")
    check("and its figures", f"Trials done\n4 of 4" in facts and f"Best trial\n{best['name']}\nlearningRate\n{list(best['parameters'].values())[0]}" in facts and "Failed" not in facts, facts)
    shot(page, "sweep-light")
    scheme(page, "dark")
    time.sleep(0.3)
    shot(page, "sweep-dark")
    audited(page, "sweep")
    page.execute_script(STUB, "/api/sweep", """return real(path).then((answer) => answer.json()).then((sweep) => {
        sweep.trials.forEach((trial, i) => { trial.objective = 0.97501 + i * 1e-5; });
        return new Response(JSON.stringify(sweep)); });""")
    check("objectives that are close are told apart", until(lambda: [row.text.split()[3] for row in page.find_elements(By.CSS_SELECTOR, "#trials tbody tr")] == ["0.97501", "0.97502", "0.97503", "0.97504"]), text(page, "#trials"))
    page.execute_script(STUB, "/api/sweep", """return real(path).then((answer) => answer.json()).then((sweep) => {
        Object.assign(sweep.trials.find((trial) => !trial.best), {state: "Stopped", objective: 0.5, step: 3});
        return new Response(JSON.stringify(sweep)); });""")
    check("the value of a trial that was stopped early has no rank", until(lambda: (lines := drawn(page, "#objective")["lines"]).get("at an earlier step") == 1
          and lines["validationLoss"] == 3 and len(page.find_elements(By.CSS_SELECTOR, "#parallel path.early")) == 1), (drawn(page, "#objective"), text(page, "main")))
    def sorted_by(title, column):
        """The texts of a column after a click on its title, and what is told of its order."""
        next(button for button in page.find_elements(By.CSS_SELECTOR, "#trials th button") if button.text.startswith(title)).click()
        rows = page.find_elements(By.CSS_SELECTOR, "#trials tbody tr")
        return [row.find_elements(By.TAG_NAME, "td")[column].text for row in rows], page.find_elements(By.CSS_SELECTOR, "#trials th")[column].get_attribute("aria-sort")

    numbers = lambda texts: [float(each.split()[0]) for each in texts]
    up, down, back = sorted_by("learningRate", 2), sorted_by("learningRate", 2), sorted_by("learningRate", 2)
    check("a click on a title sorts the trials by it", up[1] == "ascending" and numbers(up[0]) == sorted(numbers(up[0])) and len(up[0]) == 4
          and down == (up[0][::-1], "descending"), (up, down))
    check("a third one by number again", back[1] == "none" and [row.text.split()[0] for row in page.find_elements(By.CSS_SELECTOR, "#trials tbody tr")] == ["0", "1", "2", "3"], back)
    check("and names its step", "0.5 after step 3" in text(page, "#trials"), text(page, "#trials"))
    page.execute_script(UNSTUB)
    page.find_element(By.ID, "tab-best").click()
    check("and the best trial as a job", until(lambda: "rates-best" in text(page, "#panel-best")), text(page, "main"))


def why_of_sweeps(page):
    """A sweep says what it waits for and why its trials failed, as cox why does; trials without a job are no links."""
    def said():
        """The page's words, and those of cox why."""
        words = [text(page, "#why"), *(item.text for item in page.find_elements(By.CSS_SELECTOR, "#reasons li"))]
        return words, subprocess.run(["cox", "why", "mixed"], stdout=subprocess.PIPE, text=True, timeout=30).stdout.splitlines()

    def trials():
        """Of each line of the table the trial's number, and where its link leads."""
        return page.execute_script("return [...document.querySelectorAll('#trials tbody tr')].map((row) => [row.cells[0].textContent, row.querySelector('a') && row.querySelector('a').getAttribute('href')])")

    api("POST", SWEEPS, {"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingSweep", "metadata": {"name": "mixed"}, "spec": {
        "suspend": True, "parallelism": 1, "maxFailedTrials": 3, "algorithm": {"type": "Grid"}, "parameters": [
            {"path": "coxswain.training.optimizer.learningRate", "values": [0.05, "abc"]}, {"path": "coxswain.model.width", "values": [16, 17]}],
        "template": {"runPolicy": {"backoffLimit": 0}, "storage": [{"name": "verse", "persistentVolumeClaim": {"claimName": "verse"}}], "coxswain": {
            **training(20), "strategy": {"type": "OneDevice"}, "model": {"preset": "gpt-bytes", "depth": 1, "heads": 2, "context": 8},
            "data": {"format": "Bytes", "storage": "verse", "train": {"text": "corpus.txt"}, "validation": {"last": 8}}}}}})
    page.get(URL.split("?")[0] + "#/sweep/default/mixed")
    waits = "mixed waits for a user to resume it: it is suspended (cox sweep resume mixed)"
    check("a sweep begins with the sentence of cox why", until(lambda: said() == ([waits], [waits])), said())
    page.find_element(By.ID, "resume").click()
    until(lambda: "mixed waits for nothing: it is complete" in text(page, "#why"))
    words, printed = said()
    check("when it is over, with the reasons of the trials that failed", words == printed and len(words) == 4 and words[0].endswith("it is complete, and 1 of 4 trials succeeded, 3 failed")
          and sum("cannot be shared by 2 heads" in line for line in words) == 1 and sum("learningRate abc" in line for line in words) == 2, (words, printed))
    jobs = {item["metadata"]["name"] for item in api("GET", JOBS)["items"] if item["metadata"]["name"].startswith("mixed-")}
    links = [f"#/job/default/mixed-{number}" if f"mixed-{number}" in jobs else None for number in range(4)]
    check("trials whose values make no valid job are no links", len(jobs) == 2 and trials() == [[str(number), link] for number, link in enumerate(links)], (jobs, trials()))
    reasons = [link.get_attribute("href").split("#")[1] for link in page.find_elements(By.CSS_SELECTOR, "#reasons a")]
    failed_trial = next(line.split()[0] for line in words if "2 heads" in line)
    check("nor are they in the reasons", reasons == ["/job/default/" + failed_trial], reasons)
    check("a sentence says why", "Trials without a link have no job" in text(page, "#panel-trials"), text(page, "#panel-trials"))
    shot(page, "sweep-why")
    audited(page, "failed trials")
    api("DELETE", f"{JOBS}/{failed_trial}")
    check("nor is a trial whose job is deleted", until(lambda: [link for _, link in trials()].count(None) == 3 and not page.find_elements(By.CSS_SELECTOR, "#reasons a")), trials())
    words, printed = said()
    check("whose reason is then unknown", words == printed and f"{failed_trial} failed: the reason was in its job, which has been deleted; with learningRate 0.05, width 17" in words, (words, printed))
    page.find_element(By.CSS_SELECTOR, "#trials tbody a").click()
    check("the link that is left leads to a job", until(lambda: "Succeeded" in text(page, "h2")), text(page, "main"))
    page.get(URL.split("?")[0] + "#/sweep/default/mixed")
    until(lambda: page.find_elements(By.CSS_SELECTOR, "#trials tbody a"))
    api("DELETE", f"{SWEEPS}/mixed")
    check("when the sweep is deleted, none is left", until(lambda: "mixed has been deleted" in text(page, "#why") and len(trials()) == 4 and not page.find_elements(By.CSS_SELECTOR, "#trials tbody a")), (text(page, "#why"), trials()))


def search(page):
    """A sweep at random over three parameters: what they and the objective have to do with each other."""
    page.get(URL.split("?")[0] + "#/sweep/default/search")
    check("a sweep at random ends", until(lambda: "search waits for nothing: it is complete" in text(page, "#why"), 240), text(page, "main"))
    size(page, 1280, 1000)
    check("there is an axis for each parameter and the objective, and the best trial is emphasised",
          until(lambda: len(page.find_elements(By.CSS_SELECTOR, "#parallel line.axis")) == 4 and page.find_elements(By.CSS_SELECTOR, "#parallel path.chosen")),
          text(page, "main"))
    label = page.find_element(By.CSS_SELECTOR, "#parallel svg").get_attribute("aria-label")
    check("in words too", "20 trials" in label and "best: search-" in label, label)
    marks = page.execute_script("return [...document.querySelectorAll('#parallel text.mark')].map((mark) => mark.textContent)")
    check("the axis of logUniform is logarithmic", {"0.01", "0.1"} <= set(marks), marks)
    cut = page.execute_script("""
        const box = document.querySelector("#parallel svg").getBoundingClientRect();
        return [...document.querySelectorAll("#parallel text")].filter((one) => one.getBoundingClientRect().right > box.right).map((one) => one.textContent);""")
    check("names and marks lie within the picture", cut == [], cut)
    check("the best so far is a line", drawn(page, "#objective")["lines"].get("best so far") == 20, text(page, "#objective"))
    shares = text(page, "#shares")
    check("the learning rate explains most", shares.splitlines()[1].startswith("learningRate"), shares)
    for word in ("dark", "light"):
        scheme(page, word)
        time.sleep(0.3)
        shot(page, "search-" + word)
    scheme(page, "light")
    page.execute_script("""
        const box = document.querySelector("#parallel svg").getBoundingClientRect();
        document.querySelector("#parallel svg").dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 150}));""")
    check("the trial under the pointer is named", "search-" in text(page, "#parallel .value") and "best" not in text(page, "#parallel .value"), text(page, "#parallel"))
    large = page.execute_script(FASTEST + """
        const random = (() => { let at = 1; return () => (at = at * 48271 % 2147483647) / 2147483647; })(), trials = [];
        for (let i = 0; i < 1000; i++) {
            const parameters = {rate: 10 ** (-4 * random()), units: [16, 32, 64][Math.floor(3 * random())], kind: random() < 0.5 ? "a" : "b", noise: random()};
            trials.push({trial: i, name: "t-" + i, state: "Succeeded", parameters, objective: (Math.log10(parameters.rate) + 2) ** 2 + 0.3 * (parameters.kind === "a") + 0.1 * random(), seconds: 1, best: false});
        }
        const column = (name) => trials.map((trial) => trial.parameters[name]), objectives = trials.map((trial) => trial.objective), ranks = ranksOf(objectives);
        const figure = document.getElementById("parallel"), took = fastest(5, () => parallel(figure, {title: "large", lines: trials.map((trial, i) => ({name: trial.name, values: [...Object.values(trial.parameters), trial.objective], rank: ranks[i]})),
            axes: [...["rate", "units", "kind", "noise"].map((name) => ({name, logarithmic: name === "rate", values: column(name)})), {name: "loss", values: objectives}]}));
        return {shares: ["rate", "units", "kind", "noise"].map((name) => explainedShare(column(name), objectives)), elements: figure.querySelectorAll("*").length, took, words: explainedShare([1, 2, 3], [1, 2, 3])};""")
    gap = page.execute_script("""
        const figure = document.getElementById("parallel");
        parallel(figure, {title: "gap", lines: [{name: "t-0", values: [1, null, 2, 3], rank: 0}], axes: ["a", "b", "c", "d"].map((name, i) => ({name, values: [[1], [null], [2], [3]][i]}))});
        return figure.querySelector("path.rank-0").getAttribute("d").replace(/[^ML]/g, "");""")
    check("a trial without a value of a parameter has a gap there", gap == "MML", gap)
    close = page.execute_script("""
        const figure = document.getElementById("parallel");
        parallel(figure, {title: "close", lines: [{name: "t-0", values: [1, 2], rank: 0}], axes: ["a", "b"].map((name) => ({name, values: [1, 1.001, 5]}))});
        return [...figure.querySelectorAll("text.mark")].map((mark) => mark.textContent);""")
    check("marks that would overlap are left out", close == ["1", "5", "1", "5"], close)
    rate, units, kind, noise = large["shares"]
    check("what explains the objective is found, and what does not is not", rate > 0.7 and 0.01 < kind < 0.3 and units < 0.02 and noise < 0.02 and large["words"] is None, large)
    check("1,000 trials are a few elements, drawn in a fraction of a second", large["elements"] < 80 and large["took"] < 35, large)
    print("# elements, and milliseconds of 1,000 trials:", large["elements"], round(large["took"], 1))
    page.refresh()


def chart_details(page):
    found = page.execute_async_script("""
        const done = arguments[0], figure = document.createElement("figure");
        document.getElementById("main").append(figure);
        const draw = (logarithmic) => chart(figure, {title: "details", logarithmic, marks: [{kind: "restart", x: 30, text: "a new chief"}], series: [{name: "a", className: "first",
            points: [[0, 1], [10, 0], [20, 100], [30, null], [30, 10, true], [40, 1000], [25, 1], [40, 2]]}]});
        draw(false);
        const canvas = figure.querySelector("canvas"), picture = Chart.getChart(canvas), at = (step) => Math.round(picture.scales.x.getPixelForValue(step));
        const {top, height} = picture.chartArea, columnIsEmpty = (x) => canvas.getContext("2d").getImageData(x, top + 1, 1, height - 10).data.every((byte, i) => i % 4 !== 0 || byte > 150 || byte === 0);
        const gaps = [columnIsEmpty(at(15)), columnIsEmpty(at(24)), columnIsEmpty(at(34))], box = canvas.getBoundingClientRect(), one = picture.data.datasets[0].data;
        canvas.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + at(31), clientY: box.top + 100, bubbles: true}));
        requestAnimationFrame(() => requestAnimationFrame(() => {
            const {title, body, footer} = picture.tooltip, gapsAt = one.map((point, i) => point.y === null ? i : null).filter((i) => i !== null);
            draw(true);
            const result = {gaps, gapsAt, title, body: body.map((item) => item.lines).flat(), footer, role: canvas.getAttribute("role"), label: canvas.getAttribute("aria-label"), again: Chart.getChart(canvas) === picture,
                type: picture.scales.y.type, usable: picture.data.datasets[0].data.filter((point) => point.y !== null).length, marks: picture.scales.y.ticks.map((tick) => tick.label), open: 0};
            route();
            done({...result, open: Object.keys(Chart.instances).length});
        }));""")
    check("a line is broken where the loss is no number, a chief begins or steps are repeated", found["gaps"] == [False, True, False] and found["gapsAt"] == [3, 6], found)
    check("the tooltip has the step, the value and the mark", found["title"] == ["step 30"] and found["body"] == ["10"] and found["footer"] == ["a new chief"], found)
    check("a logarithmic axis has powers of ten, and leaves out what has no logarithm", found["type"] == "logarithmic" and found["usable"] == 6 and {"1", "10", "100", "1000"} <= set(found["marks"]), found)
    check("new data come into the same chart, which has words and is freed when another page is shown", found["again"] and found["role"] == "application" and found["label"] == "details: first 1 at step 0, last 2 at step 40, best 1 at step 0. Arrow keys show its points." and found["open"] == 0, found)


def digits(page):
    """Labels and tooltips have as many digits as it takes to tell neighbours apart, also where all values are about the same."""
    found = page.execute_script("""
        const figure = document.createElement("figure"), result = {};
        document.getElementById("main").append(figure);
        const look = (name, values, more) => {
            chart(figure, {title: name, series: values.map((list, i) => ({name: "s" + i, className: "first", points: list.map((y, x) => [x, y])})), ...more});
            const picture = Chart.getChart(figure.querySelector("canvas")), marks = picture.scales.y.ticks;
            const said = values[0].map((_, index) => {
                picture.tooltip.setActiveElements(values.map((_, datasetIndex) => ({datasetIndex, index})), {x: 0, y: 0});
                return picture.tooltip.body.map((item) => item.lines).flat();
            }).flat();
            result[name] = {labels: marks.map((mark) => mark.label), ticks: marks.map((mark) => mark.value), said, caption: figure.querySelector(".value").textContent};
        };
        look("plateau", [[0.97501, 0.97502, 0.97503, 0.97504, 0.97504]]);
        look("logarithmic", [[0.97501, 0.97502, 0.97503, 0.97504]], {logarithmic: true});
        look("thousands", [[10000, 10500, 11000, 11500, 12000]]);
        look("rate", [[12860, 12861, 12863, 12861]], {fromZero: true});
        look("tiny", [[0.00012341, 0.00012342, 0.00012345]]);
        look("two", [[0.97501, 0.97601], [0.97503, 0.97603]]);
        look("end", [[0.1, 0.9, 0.97501, 0.97502]]);
        look("plain", [[2.30259, 1.2, 0.5123, 0.1]]);
        figure.remove();
        return result;""")
    linear = {name: one["labels"] for name, one in found.items() if name != "logarithmic"}
    same = [labels for labels in linear.values() if len(labels) < 3 or len(set(labels)) < len(labels)]
    check("no two labels of an axis are the same", not same, same)
    astray = [(label, tick) for label, tick in zip(found["plateau"]["labels"], found["plateau"]["ticks"]) if abs(float(label) - tick) > 1e-9]
    check("and each says its place", not astray, astray)
    plateau = ["0.97501", "0.97502", "0.97503", "0.97504"]
    wanted = {"plateau": [*plateau, "0.97504"], "logarithmic": plateau, "thousands": ["10k", "10.5k", "11k", "11.5k", "12k"], "rate": ["12,860", "12,861", "12,863", "12,861"],
              "tiny": ["1.2341e-4", "1.2342e-4", "1.2345e-4"], "two": ["s0 0.97501", "s1 0.97503", "s0 0.97601", "s1 0.97603"], "end": ["0.1", "0.9", "0.97501", "0.97502"],
              "plain": ["2.3", "1.2", "0.512", "0.1"]}
    said = {name: one["said"] for name, one in found.items()}
    check("a tooltip tells a value from those beside it, and has three digits where these do", said == wanted, said)
    check("so does the caption", found["plateau"]["caption"] == "0.97504" and found["plain"]["caption"] == "0.1", found)
    trials = page.execute_script("""
        const figure = document.createElement("figure"), values = [0.97501, 0.97502, 0.97503];
        document.getElementById("main").append(figure);
        const lines = values.map((value, i) => ({name: "t-" + i, values: [value, value], rank: 0}));
        parallel(figure, {title: "close", lines, best: lines[1], axes: ["a", "b"].map((name) => ({name, values}))});
        const found = {marks: [...figure.querySelectorAll("text.mark")].map((mark) => mark.textContent), best: figure.querySelector(".value").textContent};
        figure.remove();
        return found;""")
    check("and the axes of a sweep", trials == {"marks": 2 * plateau[:3], "best": "best: t-1: a 0.97502, b 0.97502"}, trials)


# The step that the tooltip of a chart shows, and what a screen reader is told.
SHOWN = """const plot = document.querySelector(arguments[0] + " .plot"), {opacity, title, body, footer} = Chart.getChart(plot.querySelector("canvas")).tooltip;
    const tooltip = opacity > 0 ? [...title, ...body.flatMap((item) => item.lines), ...footer] : [];
    return {tooltip, step: tooltip.length > 0 ? Number(tooltip[0].split(" ")[1].replaceAll(",", "")) : null, said: plot.querySelector("[aria-live=polite]").textContent};"""


def single_point(page):
    axis = page.execute_script("""
        const figure = document.createElement("figure");
        document.getElementById("main").append(figure);
        chart(figure, {title: "single", xName: "trial", series: [{name: "loss", className: "first", dots: true, points: [[0, 2]]}]});
        const {min, max} = Chart.getChart(figure.querySelector("canvas")).scales.x;
        figure.remove();
        return [min, max];""")
    check("the axis of a single trial begins with that trial", axis == [0, 1], axis)


def keyboard(page):
    """A chart without a pointer: two curves with points at different steps, and marks."""
    page.execute_script("""
        const figure = document.createElement("figure");
        figure.id = "keys";
        document.getElementById("main").append(figure);
        window.draw = (more) => chart(figure, {title: "Loss", marks: [{kind: "restart", x: 20, text: "a new chief began with step 20"}, {kind: "checkpoint", x: 40, text: "checkpoint of step 40"}], series: [
            {name: "training", className: "first", points: [[0, 3], [10, 2], [20, 1], [30, null], [40, 1.5], ...more]}, {name: "held out", className: "second", points: [[15, 4], [40, 2]]}]});
        draw([]);""")
    canvas = page.find_element(By.CSS_SELECTOR, "#keys canvas")
    label = canvas.get_attribute("aria-label")
    check("a chart says its first, last and best values", label == "Loss: training first 3 at step 0, last 1.5 at step 40, best 1 at step 20; "
          "held out first 4 at step 15, last 2 at step 40, best 2 at step 40. Arrow keys show its points.", label)
    check("and of accuracy and throughput the highest is the best", "best 4 at step 15" in page.execute_script("""
        const figure = document.createElement("figure");
        document.getElementById("main").append(figure);
        chart(figure, {title: "Accuracy", higherIsBetter: true, series: [{name: "a", className: "first", points: [[0, 3], [15, 4], [20, 1]]}]});
        const label = figure.querySelector("canvas").getAttribute("aria-label");
        figure.remove();
        return label;"""))
    marks = page.execute_script("return [...document.querySelectorAll('#keys ul li')].map((item) => [item.textContent, item.getBoundingClientRect().width <= 1 || getComputedStyle(item.parentNode).clipPath !== 'none'])")
    check("its marks are a list, which is not drawn", marks == [["a new chief began with step 20", True], ["checkpoint of step 40", True]], marks)
    page.execute_script("document.querySelector('#keys canvas').focus()")
    check("it takes the focus, without a tooltip yet", page.switch_to.active_element == canvas and page.execute_script(SHOWN, "#keys")["step"] is None)

    def press(key):
        canvas.send_keys(key)
        return page.execute_script(SHOWN, "#keys")

    steps = [press(key)["step"] for key in [Keys.ARROW_RIGHT] * 5 + [Keys.ARROW_LEFT, Keys.HOME, Keys.ARROW_LEFT, Keys.END, Keys.PAGE_UP, Keys.PAGE_DOWN]]
    check("keys move through the points of all curves", steps == [0, 10, 20, 40, 40, 20, 0, 0, 40, 20, 40], steps)
    press(Keys.HOME)
    third = [press(Keys.ARROW_RIGHT) for _ in range(2)][-1]
    check("and say what the tooltip has", third["said"] == "step 20, training 1, held out 4 at 15; a new chief began with step 20", third)
    press(Keys.ESCAPE)
    pointed = page.execute_async_script("""
        const canvas = document.querySelector("#keys canvas"), box = canvas.getBoundingClientRect(), picture = Chart.getChart(canvas), done = arguments[0];
        canvas.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + picture.scales.x.getPixelForValue(20), clientY: box.top + 100, bubbles: true}));
        requestAnimationFrame(() => requestAnimationFrame(() => done([...picture.tooltip.title, ...picture.tooltip.body.flatMap((item) => item.lines), ...picture.tooltip.footer])));""")
    check("which is that of the pointer", pointed == third["tooltip"], (pointed, third))
    last = press(Keys.END)
    page.execute_script("draw([[50, 1.4], [60, 1.3]])")
    kept = page.execute_script(SHOWN, "#keys")
    check("new data leave the tooltip where it is, and are not read out", kept["step"] == last["step"] == 40 and kept["said"] == last["said"] and canvas.get_attribute("aria-label") == label, (kept, last))
    check("from there the keys go on", press(Keys.ARROW_RIGHT)["step"] == 50 and press(Keys.END)["step"] == 60)
    check("Escape closes the tooltip", press(Keys.ESCAPE) == {"step": None, "tooltip": [], "said": ""})
    press(Keys.ARROW_LEFT)
    canvas.send_keys(Keys.TAB)
    left = page.execute_script(SHOWN, "#keys")
    check("so does leaving the chart", left["step"] is None and page.switch_to.active_element != canvas, left)
    page.execute_script("draw([[50, 1.4], [60, 1.3]])")
    check("then its words are new", "last 1.3 at step 60" in canvas.get_attribute("aria-label"), canvas.get_attribute("aria-label"))
    page.execute_script("document.getElementById('keys').remove()")


def many(page):
    """10,000 rows, made in the page: only those that can be seen are elements."""
    page.get(URL.split("?")[0] + "#/")
    until(lambda: text(page, ".rows"))
    figures = page.execute_script(FASTEST + """
        for (let i = 0; i < 10000; i++) rows.set("job/default/many-" + i, {kind: "job", NAME: "many-" + i, NAMESPACE: "default", STATE: i % 3 ? "Running" : "Succeeded",
            STEP: i + "/10000", LOSS: String(i / 100), RESTARTS: "0", ETA: "", created: "2026-01-01T00:00:00Z", finished: "", step: i, total: 10000});
        let at = 0;
        const took = fastest(5, () => { document.querySelector(".rows").scrollTop = at++ * 1000 * 40; view.listChanged(); });
        return [document.querySelectorAll(".rows .row").length, took];""")
    check("10,000 jobs are a few elements, and an update takes a fraction of a second", figures[0] < 80 and figures[1] < 100, figures)
    print("# elements, and milliseconds of an update:", figures)
    points = page.execute_script(FASTEST + """
        const points = Array.from({length: 1000000}, (_, i) => [i, Math.sin(i / 5000) + (i === 777777 ? 9 : 0), false]);
        const figure = document.createElement("figure");
        document.getElementById("main").append(figure);
        const took = fastest(5, () => chart(figure, {title: "large", series: [{name: "a", className: "first", points}]})), canvas = figure.querySelector("canvas"), picture = Chart.getChart(canvas);
        const moved = fastest(5, () => {
            const found = Chart.Interaction.modes.nearestOfEach(picture, {x: 300});
            picture.setActiveElements(found);
            picture.tooltip.setActiveElements(found, {x: 300, y: 100});
            picture.draw();
        });
        moveByKey(picture, "Home");
        const pressed = fastest(5, () => moveByKey(picture, "ArrowRight")), data = picture.data.datasets[0].data;
        const result = {drawn: data.length, elements: figure.querySelectorAll("*").length, took, moved, pressed, peak: picture.scales.y.getPixelForValue(Math.max(...data.map((point) => point.y))) < 40, said: picture.tooltip.title[0]};
        figure.remove();
        return result;""")
    check("1,000,000 points are a few thousand drawn, the highest among them, and pointer and keys find its step", points["drawn"] <= 4 * 1280 and points["elements"] < 60 and points["peak"]
          and points["took"] < 1500 and points["moved"] < 5 and points["pressed"] < 20 and points["said"].startswith("step "), points)
    print("# points drawn, and milliseconds of 1,000,000 points, of a move of the pointer and of a key:", points["drawn"], round(points["took"]), round(points["moved"], 1), round(points["pressed"], 1))
    digits(page)
    single_point(page)
    keyboard(page)
    chart_details(page)
    check("and in the middle of the list there are lines", until(lambda: "many-" in text(page, ".rows")), text(page, ".rows")[:100])
    page.refresh()


def the_end(page):
    """The control plane ends, then cox ui."""
    open_job(page, "broken")
    until(lambda: "failed" in text(page, "#why"))
    os.kill(int(os.environ["PAGE"]), signal.SIGSTOP)
    check("a cox ui that hangs is told", until(lambda: "cox ui does not answer any more" in text(page, "#trouble")), text(page, "body"))
    os.kill(int(os.environ["PAGE"]), signal.SIGCONT)
    check("until it answers again", until(lambda: text(page, "#connection") == "live" and not text(page, "#trouble")), text(page, "body"))
    os.kill(int(os.environ["STANDALONE"]), signal.SIGTERM)
    check("when the control plane ends, the page says so and keeps what it knows",
          until(lambda: "API server has not answered" in text(page, "#trouble") and "failed" in text(page, "#why")), text(page, "body"))
    shot(page, "ended")
    os.kill(int(os.environ["PAGE"]), signal.SIGTERM)
    check("the same for cox ui itself", until(lambda: "cox ui does not answer any more" in text(page, "#trouble") and "failed" in text(page, "#why")), text(page, "body"))


def pictures(page):
    page.get(URL.split("?")[0] + "#/")
    until(lambda: "digits" in text(page, ".rows"))
    for word in ("light", "dark"):
        scheme(page, word)
        shot(page, "list-" + word)
    audited(page, "list")
    audit_works(page)
    size(page, 420, 800)
    shot(page, "list-narrow")
    open_job(page, "digits")
    until(lambda: drawn(page, "#loss")["lines"]["training"])
    time.sleep(0.5)
    shot(page, "job-narrow")
    wide = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    check("nothing is wider than a narrow window", wide[0] <= wide[1], wide)
    size(page, 1280, 950)
    time.sleep(2.5)
    for word in ("dark", "light"):
        scheme(page, word)
        time.sleep(0.3)
        shot(page, "job-" + word)
        colours = page.execute_script("return [Chart.getChart(document.querySelector('#loss canvas')).data.datasets[0].borderColor, getComputedStyle(document.documentElement).getPropertyValue('--first')]")
        check(f"the curves have the colours of the {word} scheme", colours[0] == colours[1] and drawn(page, "#loss")["lines"]["training"], colours)
    audited(page, "job")
    regions = audit.live_regions(page)
    check("what changes by itself is in live regions", {"connection": "status", "trouble": "alert", "said": "status", "failed": "status"}.items() <= regions.items(), regions)


def scripts_are_silent(page):
    said = [line["message"] for line in page.get_log("browser") if line["level"] == "SEVERE" and "/api/" not in line["message"]]
    check("no script fails, and the policy keeps nothing out", not said, said)


def main():
    with open("delay", "w") as file:
        file.write("40")
    job("digits", {"runPolicy": {"backoffLimit": 3}, "coxswain": training(12000, checkpoint={"storage": "runs", "everySteps": 50}),
                   "storage": [{"name": "runs", "persistentVolumeClaim": {"claimName": "runs"}}], "workers": pods_that_wait(replicas=2)})
    job("broken", {"runPolicy": {"backoffLimit": 0}, "coxswain": training(10),
                   "workers": {"template": {"spec": {"containers": [{"name": "trainer", "readinessProbe": None,
                                                                     "command": ["/bin/sh", "-c", "echo ValueError: no such file; exit 3"]}]}}}})
    os.makedirs("state/volumes/default/verse")
    with open("state/volumes/default/verse/corpus.txt", "w") as file:
        file.write("Sphinx of black quartz, judge my vow. " * 300)
    job("verse", {"workers": {"replicas": 1}, "storage": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("verse", "runs")], "coxswain": {
        "strategy": {"type": "OneDevice"}, "model": {"preset": "gpt-bytes", "width": 256, "depth": 4, "heads": 4, "context": 48}, "checkpoint": {"storage": "runs"}, # large enough that 2,000 tokens take seconds
        "data": {"format": "Bytes", "storage": "verse", "train": {"text": "corpus.txt"}, "validation": {"last": 8}},
        "training": {"steps": 20, "batchSize": 8, "optimizer": {"type": "AdamW", "learningRate": 0.01}}}})
    api("POST", SWEEPS, {"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingSweep", "metadata": {"name": "rates"}, "spec": {
        "parallelism": 2, "parameters": [{"path": "coxswain.training.optimizer.learningRate", "values": [0.001, 0.01, 0.1, 0.3]}],
        "algorithm": {"type": "Grid"}, "template": {"coxswain": {**training(60), "strategy": {"type": "OneDevice"}}}}})
    api("POST", SWEEPS, {"apiVersion": "coxswain.dev/v1beta1", "kind": "TrainingSweep", "metadata": {"name": "search"}, "spec": {
        "parallelism": 2, "maxTrials": 20, "algorithm": {"type": "Random", "seed": 1}, "parameters": [
            {"path": "coxswain.training.optimizer.learningRate", "logUniform": {"min": 0.0005, "max": 0.3}},
            {"path": "coxswain.model.width", "values": [8, 16, 32]}, {"path": "coxswain.training.optimizer.momentum", "uniform": {"min": 0, "max": 0.9}}],
        "template": {"coxswain": {**training(60), "strategy": {"type": "OneDevice"}}}}})
    gate()
    page = browser(WORK + "/chromium")
    try:
        for look in (the_list, list_events, curves, tabs, pictures, crew, use_of_models, failed, sweep, search, why_of_sweeps, compare, runs_of_this_machine, run_events, change_runs, very_many_runs, restart_and_scale, place_is_kept, answers_that_fail, order):
            look(page)
        open_job(page, "digits")
        for look in (actions, many, the_end, scripts_are_silent):
            look(page)
    except Exception:  # told as a failed case
        check("the page could be looked at to the end", False, traceback.format_exc()[-400:].replace("\n", " "))
        shot(page, "trouble")
    finally:
        page.quit()


main()
