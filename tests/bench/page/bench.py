# SPDX-License-Identifier: Apache-2.0
"""Measures the page of `cox ui` with very many rows. Called by tests/bench/page/run."""

import base64
import http.client
import json
import os
import re
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import urlsplit

import driver
import crowd

COUNT = int(os.environ["BENCH_JOBS"])
WORK = os.getcwd()
TRIES = 7

# JavaScript; times are milliseconds since 1970, by the clock that Python has, too.
NOW = "const now = () => performance.timeOrigin + performance.now();\n"
# Calls done(now()) in the first frame in which `arguments[0]`, an expression, is true.
AWAIT = NOW + """const done = arguments[arguments.length - 1], holds = new Function("return " + arguments[0]);
(function look() { if (holds()) done(now()); else requestAnimationFrame(look); })();"""
# Scrolls for 4 s, a screen in five frames, and returns the milliseconds between frames.
SCROLL = """const done = arguments[0], box = document.querySelector(".rows"), times = [], begun = performance.now();
let last = begun;
requestAnimationFrame(function frame(at) {
    times.push(at - last);
    last = at;
    box.scrollTop = (box.scrollTop + box.clientHeight / 5) % (box.scrollHeight - box.clientHeight);
    if (at - begun < 4000) requestAnimationFrame(frame); else done(times.slice(2));
});"""
# Types a word into the filter, and returns of each letter the milliseconds until the list is written and until it is painted.
TYPE = """const done = arguments[0], field = document.getElementById("filter"), found = [], word = "many-77";
const letter = (i) => {
    if (i > word.length) { field.value = ""; field.dispatchEvent(new Event("input")); done(found); return; }
    requestAnimationFrame(() => {
        const begun = performance.now();
        field.value = word.slice(0, i);
        field.dispatchEvent(new Event("input"));
        const written = performance.now() - begun;
        setTimeout(() => { found.push([written, performance.now() - begun]); letter(i + 1); });
    });
};
letter(1);"""


def memory(process):
    """Resident memory now and at its highest, in MB."""
    text = open(f"/proc/{process}/status").read()
    return [int(re.search(name + r":\s+(\d+)", text)[1]) / 1024 for name in ("VmRSS", "VmHWM")]


def processor_seconds(process):
    words = open(f"/proc/{process}/stat").read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Ui:
    def __init__(self, *options, environment=None):
        self.begun = time.monotonic()
        self.process = subprocess.Popen(["cox", "ui", *options], stdout=subprocess.PIPE, text=True, env=environment)
        self.process.stdout.readline()
        self.url = self.process.stdout.readline().strip()
        self.port = urlsplit(self.url).port
        self.cookie = {"Cookie": f"cox-ui-{self.port}={urlsplit(self.url).query.split('=')[1]}"}

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path, headers=self.cookie)
        return connection.getresponse()

    def await_list(self):
        """Seconds from its start until it has the whole list, and the bytes of that."""
        while True:
            text = self.get("/api/list?since=0").read()
            if len(json.loads(text)["rows"]) == COUNT:
                return time.monotonic() - self.begun, len(text)
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)


def say(what, figure):
    print(f"  {what:<58} {figure}", flush=True)


def first_list(page, ui):
    """From the navigation to the first frame that has all jobs: the fewest milliseconds."""
    took = []
    for _ in range(3):
        page.get("about:blank")
        begun = 1000 * time.time()
        page.get(ui.url)
        took.append(page.execute_async_script(AWAIT, f"rows.size === {COUNT} && document.querySelector('.rows .row:not([hidden]) a')") - begun)
    say("from the address to the first frame with the list", f"{min(took):.0f} ms")


def frames(page, when):
    times = sorted(min((page.execute_async_script(SCROLL) for _ in range(3)), key=statistics.mean))
    say(f"frames while it is scrolled, {when}", f"median {statistics.median(times):.1f} ms, 95 % below {times[int(0.95 * len(times))]:.1f} ms, longest {times[-1]:.0f} ms")


def typing(page):
    letters = [page.execute_async_script(TYPE) for _ in range(3)]
    best = [min(tries) for tries in zip(*letters)]
    say("a letter in the filter, until the list is painted", f"median {statistics.median(one[1] for one in best):.1f} ms, longest {max(one[1] for one in best):.1f} ms")


def update(page, change):
    """From the change of a job until the page shows it: the median."""
    took = []
    page.execute_script("listChoice.sort = 'Name'; listChoice.down = false; view.listChanged(); document.querySelector('.rows').scrollTop = 0")
    for percent in range(11, 11 + TRIES):
        result, shown = [], f"[...document.querySelectorAll('.rows .row:not([hidden])')].some((row) => row.querySelector('a').textContent === 'many-1' && row.textContent.includes('{percent} %'))"
        waiting = threading.Thread(target=lambda: result.append(page.execute_async_script(AWAIT, shown)))
        waiting.start()
        time.sleep(0.7)
        begun = 1000 * time.time()
        change(10 * percent)
        waiting.join()
        took.append(result[0] - begun)
    say("from the change of one job to the frame that shows it", f"median {statistics.median(took):.0f} ms, longest {max(took):.0f} ms")


def use(page, ui, change, disturb):
    """`change(step)`: gives the job many-1 this step. `disturb`: changes a job each 20 ms until its event is set."""
    seconds, length = ui.await_list()
    say("cox ui has the whole list, after its start", f"{seconds:.2f} s")
    say("the list", f"{length / 1e6:.2f} MB, {length / COUNT:.0f} bytes a job")
    first_list(page, ui)
    frames(page, "nothing changes")
    typing(page)
    update(page, change)
    ended = threading.Event()
    changing = threading.Thread(target=disturb, args=(ended,))
    before, begun = processor_seconds(ui.process.pid), time.monotonic()
    changing.start()
    frames(page, "50 jobs change each second")
    typing(page)
    ended.set()
    changing.join()
    say("processor time of cox ui meanwhile", f"{100 * (processor_seconds(ui.process.pid) - before) / (time.monotonic() - begun):.0f} % of one")
    say("memory of cox ui, and its highest", "{:.0f} MB, {:.0f} MB".format(*memory(ui.process.pid)))


def bytes_of_change(ui, change):
    """The bytes of an event that has one changed job."""
    stream = ui.get("/api/events?since=0")
    stream.readline(), stream.readline()
    change(999)
    while True:
        line = stream.readline()
        if b'"step":999' in line:
            return len(line)


def runs(page):
    folder = WORK + "/state-home/coxswain"
    begun = time.monotonic()
    crowd.make_runs(folder, COUNT)
    print(f"{COUNT:,} runs of this machine, made in {time.monotonic() - begun:.0f} s", flush=True)

    def disturb(ended):
        for i in range(2, COUNT):
            if ended.wait(0.02):
                break
            crowd.write_run(folder, i, i % 1000)

    with Ui("--runs", environment={**os.environ, "XDG_STATE_HOME": WORK + "/state-home"}) as ui:
        use(page, ui, lambda step: crowd.write_run(folder, 1, step), disturb)


def jobs(page):
    config = open(os.environ["KUBECONFIG"]).read()
    field = lambda name: base64.b64decode(re.search(name + r": (\S+)", config)[1]).decode()
    context, headers = ssl.create_default_context(cadata=field("certificate-authority-data")), {}
    if "client-certificate-data" in config:
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(field("client-certificate-data") + field("client-key-data"))
            file.flush()
            context.load_cert_chain(file.name)
    else:
        headers = {"Authorization": "Bearer " + re.search(r"token: (\S+)", config)[1]}
    make = lambda: crowd.Server(re.search(r"server: (\S+)", config)[1], context, headers)
    begun = time.monotonic()
    crowd.make_jobs(make, COUNT)
    print(f"{COUNT:,} TrainingJobs of {'a real' if os.environ['BENCH_API'] == 'cluster' else 'the embedded'} API server, made in {time.monotonic() - begun:.0f} s", flush=True)
    server, other = make(), make()

    def disturb(ended):
        for i in range(2, COUNT):
            if ended.wait(0.02):
                break
            other.write_status(i, (i + 7) % 1000)

    with Ui() as ui:
        use(page, ui, lambda step: server.write_status(1, step), disturb)
        page.get("about:blank")
        say("an event with one changed job", f"{bytes_of_change(ui, lambda step: server.write_status(1, step))} bytes")


def main():
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load average {load:.1f}" + (": too busy for figures to keep" if load > 0.5 * os.cpu_count() else ""))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that browser and cox ui end, too
    page = driver.browser(WORK + "/chromium")
    page.set_script_timeout(120)
    try:
        for one in (runs, jobs):
            if os.environ.get("BENCH_ONLY", one.__name__) == one.__name__:
                one(page)
    finally:
        page.quit()


main()
