// SPDX-License-Identifier: Apache-2.0
//
// The page of `cox ui`. The server sends changes of the list as server-sent events; without these the page polls each second. It reads
// the job or sweep that is shown when that has changed in the list, and every few seconds. All texts come from the server; nothing is put
// into the page as HTML.
"use strict";

const LIST_MS = 1000, DETAIL_MS = 2000, DETAIL_STREAM_MS = 5000, STREAM_SILENCE_MS = 6000, STREAM_AGAIN_MS = 10000, ROW_HEIGHT = 40, ROWS_BEYOND = 8, LOG_LINES = 500, TRIALS_SHOWN = 200;
const LIST_PATIENCE_MS = 10000, DETAIL_PATIENCE_MS = 60000; // the list is answered at once, the rest by the cluster

const collator = new Intl.Collator("en", {numeric: true}); // a new one for each comparison would take most of the time
const rows = new Map(); // keyOf -> row
let version = 0, synced = false, lost = false, kept = false, runs = false, unlisted = 0, view = null, namespaces = false; // runs: the rows are runs of this machine

if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token is in the cookie now

// ---------------------------------------------------------------- small things

const byId = (id) => document.getElementById(id);

function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key === "text") element.textContent = value;
        else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children);
    return element;
}

function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

function duration(ms) {
    const seconds = Math.max(0, Math.round(ms / 1000)), minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
    if (seconds < 120) return seconds + "s";
    if (minutes < 120) return minutes + "m" + (minutes < 10 && seconds % 60 ? seconds % 60 + "s" : "");
    return hours < 48 ? hours + "h" : Math.floor(hours / 24) + "d";
}

const since = (time) => time ? duration(Date.now() - Date.parse(time)) : "";
const tookMs = (row) => (row.finished ? Date.parse(row.finished) : Date.now()) - Date.parse(row.created);
const took = (row) => row.created ? duration(tookMs(row)) : "";
const keyOf = (row) => `${row.kind}/${row.NAMESPACE}/${row.NAME}` + (row.run ? "/" + row.run : "");
// run: the run on this machine that the job belongs to; undefined in a cluster.
const addressOf = (kind, namespace, name, run) => `#/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}` + (run ? "/" + encodeURIComponent(run) : "");
const labelOf = (row) => row.label || row.NAME;

function stateClass(state) {
    if (state === "Succeeded" || state === "Complete") return "good";
    if (state === "Running") return "busy";
    return state.startsWith("Fail") || state === "Diverged" ? "bad" : "wait";
}

// Why a request has no result. Every other error is a mistake of this script.
class Refused extends Error {
    constructor(words, status) {
        super(words);
        this.status = status;
    }
}
class Unanswered extends Error {
    constructor(cause, patience) {
        super(`cox ui has not answered within ${patience / 1000} s.`, {cause});
        this.late = cause.name === "TimeoutError";
    }
}

// Returns the last of the server-sent events of an answer; `onPart` gets the earlier ones. (An EventSource can only send GET requests.)
async function lastEvent(response, onPart) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "", last = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
        const events = (text + part.value).split("\n\n");
        text = events.pop();
        for (const event of events) {
            if (last) onPart(JSON.parse(last));
            last = event.slice("data: ".length);
        }
    }
    return last;
}

// onPart: takes the documents that come before the last one, of answers that have several.
async function ask(path, options, patience = DETAIL_PATIENCE_MS, onPart = null) {
    let response, text, document;
    try {
        response = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(patience), ...options});
        text = onPart && response.headers.get("Content-Type") === "text/event-stream" ? await lastEvent(response, onPart) : await response.text();
    } catch (error) {
        throw new Unanswered(error, patience);
    }
    try { document = JSON.parse(text); } catch { throw new Refused(text || `the server answered ${response.status}`, response.status); }
    if (!response.ok || document.error) throw new Refused(document.error, response.status);
    return document;
}

// What pollList tells of the connection is not told twice.
function tellReadError(element, error) {
    if (error instanceof Refused ? error.status !== 503 : error instanceof Unanswered && error.late) setText(element, error.message);
    else if (!(error instanceof Refused || error instanceof Unanswered)) console.error(error);
}

const addressed = (path, place, more) => path + "?" + new URLSearchParams({namespace: place.namespace, name: place.name, ...(place.run ? {run: place.run} : {}), ...more});

// What is written again each two seconds changes only where it differs, so that focus, selection and scrolling stay.

function writeCell(cell, content) {
    if (!(content instanceof Node)) { setText(cell, String(content)); return; }
    const old = cell.firstElementChild;
    if (!old || old.nodeName !== content.nodeName) { cell.replaceChildren(content); return; }
    for (const {name, value} of content.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    setText(old, content.textContent);
}

// name: what a screen reader calls the table.
// order: {column, down, choose(column)} if a click on a title sorts the lines, which is up to the caller.
function writeTable(host, name, titles, lines, empty, order) {
    const head = lines.length === 0 ? empty : titles.join("\n");
    if (host.head !== head) {
        host.head = head;
        host.replaceChildren(lines.length === 0 ? make("p", {class: "empty", text: empty}) : make("div", {class: "scroll", tabindex: 0}, make("table", {"aria-label": name},
            make("thead", {}, make("tr", {}, ...titles.map((title, i) => make("th", {scope: "col"}, order && title ? make("button", {onclick: () => order.choose(i)}) : title)))), make("tbody", {}))));
    }
    if (order) host.querySelectorAll("th button").forEach((button, i) => { // only the last title may be empty
        const chosen = i === order.column;
        button.parentElement.setAttribute("aria-sort", chosen ? order.down ? "descending" : "ascending" : "none");
        setText(button, titles[i] + (chosen ? order.down ? " ▾" : " ▴" : ""));
    });
    const body = host.querySelector("tbody");
    while (body && body.rows.length > lines.length) body.lastChild.remove();
    lines.forEach((cells, i) => {
        const row = body.rows[i] || body.appendChild(make("tr", {}));
        row.className = cells.className || "";
        cells.forEach((cell, j) => writeCell(row.cells[j] || row.appendChild(make("td", {class: j < titles.length - 1 ? "tight" : null})), cell));
    });
}

function writeFacts(list, pairs) {
    const shown = pairs.filter(([, value]) => value), names = shown.map(([name]) => name).join("\n");
    if (list.names !== names) list.replaceChildren(...shown.map(([name]) => make("div", {}, make("dt", {text: name}), make("dd", {}))));
    list.names = names;
    shown.forEach(([, value], i) => writeCell(list.children[i].lastChild, value));
}

// ---------------------------------------------------------------- the list's data

function takeList(answer) {
    const shown = view && JSON.stringify(rows.get(view.key));
    if (answer.whole) rows.clear();
    for (const key of answer.gone) rows.delete(key);
    for (const row of answer.rows) rows.set(keyOf(row), row);
    version = answer.version;
    synced = answer.synced;
    kept = answer.kept;
    runs = Boolean(answer.runs);
    lost = false;
    tellConnection(answer.trouble || "");
    const changed = answer.whole || unlisted !== (answer.unlisted || 0) || answer.rows.length > 0 || answer.gone.length > 0;
    unlisted = answer.unlisted || 0;
    if (view && view.listChanged) {
        if (changed) view.listChanged();
        else view.timePassed();
    }
    if (view && view.key && (runs ? shown !== JSON.stringify(rows.get(view.key)) : stream && (answer.gone.includes(view.key) || answer.rows.some((row) => keyOf(row) === view.key)))) view.refresh();
}

// A stream takes one of the few connections that a browser opens to a server, so a page that nobody sees has none. An EventSource does not
// say why it failed; the next request for the list does.
let stream = null, heard = 0, tried = 0; // heard: when the last event came; tried: when a stream was last opened

function openStream() {
    if (stream || document.hidden || Date.now() - tried < STREAM_AGAIN_MS) return;
    tried = heard = Date.now();
    stream = new EventSource("/api/events?since=" + version);
    stream.onmessage = (event) => { heard = Date.now(); takeList(JSON.parse(event.data)); };
    stream.onerror = closeStream;
}

function closeStream() {
    if (stream) stream.close();
    stream = null;
}

document.addEventListener("visibilitychange", () => {
    if (document.hidden) closeStream();
    tried = 0;
});

async function pollList() {
    if (stream && Date.now() - heard < STREAM_SILENCE_MS) { setTimeout(pollList, LIST_MS); return; }
    closeStream();
    try {
        takeList(await ask("/api/list?since=" + version, {}, LIST_PATIENCE_MS));
        openStream();
    } catch (error) {
        if (error instanceof Unanswered || error instanceof Refused) {
            lost = true;
            tellConnection(error instanceof Refused ? error.message
                : "cox ui does not answer any more, and the page shows what was known last. Start cox ui again, and open the URL that it prints.");
        } else console.error(error);
    }
    setTimeout(pollList, LIST_MS);
}

function tellConnection(trouble) {
    const box = byId("connection"), alert = byId("trouble");
    box.className = trouble ? "lost" : "live";
    setText(box, trouble ? "not up to date" : runs ? "live: the runs of this machine" : kept ? "what an ended run has left: only to look at" : "live");
    setText(alert, trouble);
    alert.hidden = !trouble;
}

// ---------------------------------------------------------------- the list's page

const listChoice = {text: "", state: "", kind: "", sort: "created", down: true};

// Without a chosen column the newest come first.
const columns = [
    {title: "Name", sort: (row) => row.NAME, fill: fillName},
    {title: "Namespace", sort: (row) => row.NAMESPACE, fill: (cell, row) => setText(cell, row.NAMESPACE), namespace: true},
    {title: "State", sort: (row) => row.STATE, fill: fillState},
    {title: "Progress", sort: (row) => row.total > 0 ? row.step / row.total : -1, fill: fillProgress, className: "middle"},
    {title: "Score", sort: (row) => row.score === undefined ? Infinity : row.score, fill: (cell, row) => setText(cell, row.SCORE || ""), className: "number"},
    {title: "Loss", of: "cluster", sort: (row) => row.LOSS && isFinite(row.LOSS) ? Number(row.LOSS) : Infinity, fill: (cell, row) => setText(cell, row.LOSS || ""), className: "number wide"},
    {title: "Started", sort: (row) => row.created || Infinity, fill: fillStarted, className: "number wide"},
    {title: "Time", sort: (row) => row.created ? tookMs(row) : Infinity, fill: (cell, row) => setText(cell, took(row)), className: "number middle"},
    {title: "Disk", sort: (row) => row.disk, fill: (cell, row) => setText(cell, row.DISK), className: "number middle", of: "runs"},
    {title: "Left", of: "cluster", sort: (row) => row.left >= 0 ? row.left : Infinity, fill: (cell, row) => setText(cell, row.ETA || ""), className: "number wide"},
    {title: "Restarts", of: "cluster", sort: (row) => Number(row.RESTARTS || 0), fill: (cell, row) => setText(cell, row.RESTARTS || ""), className: "number wide"},
];

const isShown = (column) => (namespaces || !column.namespace) && (!column.of || column.of === (runs ? "runs" : "cluster"));

function fillName(cell, row) {
    if (!cell.firstChild) cell.append(make("input", {type: "checkbox"}), make("a", {}), make("span", {class: "tag"}));
    const [choice, link] = cell.children;
    fillChoice(choice, row);
    const address = addressOf(row.kind, row.NAMESPACE, row.NAME, row.run);
    if (link.getAttribute("href") !== address) link.setAttribute("href", address);
    setText(link, labelOf(row));
    link.title = row.run || row.NAME;
    cell.lastChild.hidden = row.kind !== "sweep";
    setText(cell.lastChild, row.kind);
}

function fillState(cell, row) {
    if (!cell.firstChild) cell.append(make("span", {}));
    const state = row.STATE || "not seen yet";
    cell.firstChild.className = "state " + stateClass(state);
    setText(cell.firstChild, state);
}

function fillProgress(cell, row) {
    if (!cell.firstChild) cell.append(make("div", {class: "progress"}, make("progress", {max: 1, "aria-label": "progress"}), make("span", {})));
    const [bar, words] = cell.firstChild.children;
    const known = row.step >= 0 && row.total > 0;
    bar.hidden = !known;
    if (known) bar.value = row.step / row.total;
    setText(words, !known ? row.STEP || "" : row.kind === "sweep" ? `${row.step} of ${row.total}` : Math.floor(100 * row.step / row.total) + " %");
    words.title = row.STEP || "";
}

function fillStarted(cell, row) {
    setText(cell, row.created ? since(row.created) + " ago" : "");
    cell.title = row.created ? new Date(row.created).toLocaleString() : "";
}

function listView() {
    const main = byId("main");
    main.className = "list";
    const search = make("input", {type: "search", id: "filter", placeholder: "part of a name", value: listChoice.text});
    const state = make("select", {id: "state"});
    const kind = make("select", {id: "kind"}, ...[["", "jobs and sweeps"], ["job", "jobs"], ["sweep", "sweeps"]].map(([value, text]) => make("option", {value, text})));
    kind.value = listChoice.kind;
    const count = make("span", {class: "faint", role: "status", "aria-live": "polite"}), bar = compareBar();
    const head = make("div", {role: "row"}), space = make("div", {class: "space"});
    const scroller = make("div", {class: "rows", tabindex: 0, role: "rowgroup", "aria-label": "jobs and sweeps"}, space);
    const grid = make("div", {class: "grid", role: "table", "aria-label": "Jobs and sweeps"}, make("div", {class: "head", role: "rowgroup"}, head), scroller);
    const empty = make("div", {class: "empty"});
    main.replaceChildren(make("div", {class: "filters"}, make("label", {for: "filter", text: "Filter"}), search, make("label", {for: "state", text: "State"}), state,
        make("label", {for: "kind", text: "Show"}), kind, count, ...bar.elements), grid, empty);
    setTrail([]);
    const pool = [];
    let sorted = [], shown = [], headFor = null; // sorted: all rows, {key, row, label, words: to look in, value: to sort by}

    function writeHead() {
        const now = `${namespaces}${runs}${listChoice.sort}${listChoice.down}`;
        if (now === headFor) return;
        headFor = now;
        grid.classList.toggle("with-namespace", namespaces);
        grid.classList.toggle("of-runs", runs);
        const focused = head.contains(document.activeElement) ? document.activeElement.textContent : null;
        head.replaceChildren(...columns.filter(isShown).map((column) => {
            const chosen = listChoice.sort === column.title;
            const button = make("button", {text: column.title + (chosen ? listChoice.down ? " ▾" : " ▴" : ""), onclick: () => {
                listChoice.sort = chosen && listChoice.down ? "created" : column.title;
                listChoice.down = chosen || listChoice.sort === "created";
                update();
                const again = [...head.querySelectorAll("button")].find((other) => other.textContent.startsWith(column.title));
                if (again) again.focus();
            }});
            return make("span", {role: "columnheader", class: column.className, "aria-sort": chosen ? listChoice.down ? "descending" : "ascending" : "none"}, button);
        }));
        if (focused) [...head.querySelectorAll("button")].filter((button) => button.textContent.slice(0, 4) === focused.slice(0, 4)).forEach((button) => button.focus());
    }

    function writeStates() {
        const states = ["", ...new Set([...rows.values()].map((row) => row.STATE).filter(Boolean).sort())];
        if (listChoice.state && !states.includes(listChoice.state)) states.push(listChoice.state);
        if (states.length === state.options.length && states.every((word, i) => state.options[i].value === word)) return;
        state.replaceChildren(...states.map((word) => make("option", {value: word, text: word || "any"})));
        state.value = listChoice.state;
    }

    function newLine() {
        const line = make("div", {class: "row", role: "row"});
        for (const column of columns) line.append(make("span", {role: "cell", class: column.className}));
        space.append(line);
        return line;
    }

    // Only the lines that can be seen exist.
    function draw() {
        const first = Math.max(0, Math.floor(scroller.scrollTop / ROW_HEIGHT) - ROWS_BEYOND);
        const last = Math.min(shown.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW_HEIGHT) + ROWS_BEYOND);
        while (pool.length < last - first) pool.push(newLine());
        pool.forEach((line, i) => {
            const at = first + i, row = shown[at];
            line.hidden = at >= last;
            if (line.hidden) return;
            line.style.top = at * ROW_HEIGHT + "px";
            line.setAttribute("aria-rowindex", at + 2);
            columns.forEach((column, j) => {
                const cell = line.children[j];
                cell.hidden = !isShown(column);
                if (!cell.hidden) column.fill(cell, row);
            });
        });
    }

    // Sorting what was sorted before takes a fraction of the time that it takes otherwise.
    function sortRows() {
        const column = columns.find((one) => one.title === listChoice.sort) || {sort: (row) => row.created}, sign = listChoice.down ? -1 : 1;
        if (sorted.length !== rows.size || !sorted.every((line) => rows.has(line.key))) sorted = [...rows.keys()].map((key) => ({key}));
        for (const line of sorted) {
            const row = rows.get(line.key);
            line.value = column.sort(row);
            if (row === line.row) continue;
            line.row = row;
            line.label = labelOf(row);
            line.words = line.label.toLowerCase();
        }
        sorted.sort((a, b) => {
            const left = a.value, right = b.value, unknown = (left === Infinity) - (right === Infinity);
            return unknown ? unknown : left < right ? -sign : left > right ? sign : collator.compare(a.label, b.label);
        });
    }

    function update() {
        namespaces = !runs && new Set([...rows.values()].map((row) => row.NAMESPACE)).size > 1;
        writeHead();
        writeStates();
        bar.update();
        sortRows();
        choose();
    }

    function choose() {
        const text = listChoice.text.toLowerCase();
        shown = sorted.filter(({words, row}) => (!text || words.includes(text)) && (!listChoice.state || row.STATE === listChoice.state) &&
            (!listChoice.kind || row.kind === listChoice.kind)).map(({row}) => row);
        space.style.height = shown.length * ROW_HEIGHT + "px";
        grid.setAttribute("aria-rowcount", shown.length + 1);
        grid.hidden = shown.length === 0;
        setText(count, (shown.length === rows.size ? `${rows.size} in all` : `${shown.length} of ${rows.size}`) + (unlisted > 0 ? `; ${unlisted} more cannot be read: cox runs says why` : ""));
        empty.hidden = shown.length > 0;
        if (!empty.hidden)
            setText(empty, !synced ? "Reading the list…" : rows.size > 0 ? "Nothing matches; change the filter, the state or what is shown."
                : runs ? "There are no runs on this machine yet. Start one with cox run JOB.yaml; cox generate --data FILE prints a job for your data."
                : "There are no jobs and no sweeps here. Start one with kubectl apply -f FILE, or look at all namespaces with cox ui -A.");
        draw();
    }

    search.addEventListener("input", () => { listChoice.text = search.value; choose(); });
    state.addEventListener("change", () => { listChoice.state = state.value; choose(); });
    kind.addEventListener("change", () => { listChoice.kind = kind.value; choose(); });
    scroller.addEventListener("scroll", () => requestAnimationFrame(draw));
    const resized = () => draw();
    addEventListener("resize", resized);
    // Arrow keys go from name to name.
    scroller.addEventListener("keydown", (event) => {
        const move = {ArrowDown: 1, ArrowUp: -1}[event.key];
        if (!move) return;
        const line = document.activeElement.closest(".row");
        const at = line ? Number(line.getAttribute("aria-rowindex")) - 2 + move : Math.round(scroller.scrollTop / ROW_HEIGHT);
        if (at < 0 || at >= shown.length) return;
        event.preventDefault();
        const top = at * ROW_HEIGHT;
        if (top < scroller.scrollTop) scroller.scrollTop = top;
        if (top + ROW_HEIGHT > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + ROW_HEIGHT - scroller.clientHeight;
        draw();
        const target = pool.find((other) => !other.hidden && Number(other.getAttribute("aria-rowindex")) === at + 2);
        if (target) target.querySelector("a").focus({preventScroll: true});
    });
    update();
    return {listChanged: update, timePassed: draw, end: () => removeEventListener("resize", resized)};
}

function setTrail(words) {
    byId("trail").textContent = words.length ? "/ " + words.join(" / ") : "";
    document.title = words.length ? words[words.length - 1] + " – Coxswain" : "Coxswain";
}

// ---------------------------------------------------------------- what a job and a sweep share

// field: {label, value, min, max} of a number to ask for, which is the result then.
function confirmed(title, text, verb, field) {
    const dialog = byId("confirm"), number = byId("confirm-number");
    byId("confirm-title").textContent = title;
    byId("confirm-text").textContent = text;
    byId("confirm-yes").textContent = verb;
    byId("confirm-field").hidden = number.disabled = !field;
    number.required = Boolean(field);
    if (field) {
        document.querySelector("label[for=confirm-number]").textContent = field.label;
        Object.assign(number, {min: field.min, max: field.max, value: field.value});
    }
    dialog.returnValue = "no";
    dialog.showModal();
    if (field) number.select();
    return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" && (field ? Number(number.value) : true)), {once: true}));
}

function actionsOf(place, said) {
    const kind = place.kind, stateOf = (row) => row && row.STATE + row.suspend;
    let newest = null, elastic = null, isKept = false, answered = false, shows = null; // shows: whether the words have done their duty
    const restartWords = "Its pods save and end. Once all are gone, it starts over from its last checkpoint.";
    const act = async (verb, words, effect, more) => {
        setText(said, words);
        said.className = "faint";
        shows = effect;
        answered = false;
        try {
            await ask(addressed("/api/" + verb, place, {kind, ...more}), {method: "POST"});
            answered = true;
            if (view && view.refresh) view.refresh();
        } catch (error) {
            const before = stateOf(newest);
            setText(said, error.message);
            said.className = "refused";
            shows = (row) => stateOf(row) !== before;
        }
    };
    const suspend = make("button", {id: "suspend", text: "Suspend", onclick: () => act("suspend", "It is being suspended: its pods save and end.", (row, over) => over || row.suspend && row.STATE === "Suspended")});
    const resume = make("button", {id: "resume", text: "Resume", onclick: () => act("resume", "It goes on, from its last checkpoint.", (row, over) => over || !row.suspend && row.STATE !== "Suspended")});
    const restart = make("button", {id: "restart", text: "Restart…", onclick: async () => {
        if (await confirmed(`Restart ${place.name}?`, restartWords, "Restart"))
            act("restart", restartWords, (row, over, job) => over || answered && !job.restarting);
    }});
    const scale = make("button", {id: "scale", text: "Scale…", hidden: true, onclick: async () => {
        const workers = await confirmed(`Scale ${place.name}?`, "Workers come and go while it trains; the highest indices go first.", "Scale",
            {label: `Workers (${elastic.min} to ${elastic.max})`, value: elastic.workers, min: elastic.min, max: elastic.max});
        if (workers) act("scale", `It is to have ${workers} ${workers === 1 ? "worker" : "workers"}.`, (row, over, job) => over || answered && job.elastic.workers === workers, {workers});
    }});
    const remove = make("button", {id: "delete", class: "danger", text: "Delete…", onclick: async () => {
        const what = isKept ? "" : kind === "sweep" ? "The sweep and the jobs of all its trials are deleted." : "The job and its pods are deleted, and with the pods their logs.";
        const left = isKept ? "The run's directory on this machine is deleted: its logs, checkpoints and weights, too." : " Checkpoints and weights on volumes stay.";
        if (await confirmed(`Delete ${place.run || place.name}?`, what + left, "Delete")) act("delete", "It is being deleted.", () => false);
    }});
    return {buttons: [suspend, resume, ...kind === "job" ? [restart, scale] : [], remove], update: (row, over, object) => {
        newest = row;
        elastic = object.elastic;
        isKept = object.kept;
        if (shows && shows(row, over, object)) {
            setText(said, "");
            shows = null;
        }
        if (!shows && object.restarting) { // also begun from another page
            setText(said, restartWords);
            said.className = "faint";
            shows = (row, over, job) => over || !job.restarting;
        }
        suspend.hidden = row.suspend || isKept;
        resume.hidden = !row.suspend || isKept;
        remove.hidden = isKept && !runs;
        restart.hidden = isKept;
        scale.hidden = isKept || !elastic;
        suspend.disabled = resume.disabled = scale.disabled = over;
        restart.disabled = over || row.suspend;
    }};
}

// What stands above the tabs of a job and of a sweep. `stored`: whose files stay when it is deleted.
function topOf(kind, place, stored) {
    byId("main").className = "";
    setTrail([...(place.run ? [place.run] : [place.namespace]), place.name]);
    const state = make("span", {role: "status", "aria-live": "polite"}), why = make("p", {class: "why", id: "why"});
    const said = make("p", {class: "faint", id: "said", role: "status", "aria-live": "polite"});
    const failed = make("p", {class: "refused", id: "failed", role: "status", "aria-live": "polite"});
    const actions = actionsOf({...place, kind}, said);
    return {
        state, why, said, failed,
        buttons: make("div", {class: "actions"}, ...actions.buttons),
        update: (object) => {
            const row = object.row;
            state.className = "state " + stateClass(row.STATE);
            setText(state, row.STATE);
            actions.update(row, object.over, object);
        },
        isGone: (wasThere) => {
            state.className = wasThere ? "state wait" : "";
            setText(state, wasThere ? "deleted" : "");
            setText(why, wasThere && place.run ? `${place.name} has been deleted; what is shown here is what was known last.` : wasThere ? `${place.name} has been deleted. What ${stored} stored on volumes is still there; what is shown here is what was known last.`
                : `There is no ${kind} ${place.name} in the namespace ${place.namespace}. Go back to the list and choose one.`);
            for (const button of actions.buttons) button.disabled = true;
            said.textContent = failed.textContent = "";
        }};
}

function tabs(names, chosen) {
    const list = make("div", {role: "tablist", "aria-label": "Views"});
    const panels = {};
    const show = (name) => {
        for (const tab of list.children) {
            const selected = tab.dataset.name === name;
            tab.setAttribute("aria-selected", selected);
            tab.tabIndex = selected ? 0 : -1;
            panels[tab.dataset.name].hidden = !selected;
        }
        chosen(name);
    };
    names.forEach(([name, title]) => {
        list.append(make("button", {role: "tab", id: "tab-" + name, "aria-controls": "panel-" + name, "data-name": name, text: title, onclick: () => show(name)}));
        panels[name] = make("section", {role: "tabpanel", id: "panel-" + name, "aria-labelledby": "tab-" + name});
    });
    list.addEventListener("keydown", (event) => {
        const move = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!move) return;
        const all = [...list.children], next = all[(all.indexOf(document.activeElement) + move + all.length) % all.length];
        next.focus();
        show(next.dataset.name);
    });
    return {list, panels, show};
}

const writeConditions = (host, conditions) => writeTable(host, "Conditions", ["Condition", "Status", "Since", "Reason", "Message"],
    conditions.map((one) => [one.type, one.status, since(one.time), one.reason, one.message]), "No operator has looked at it yet.");

// The points of a job's charts: loss, throughput, loss and accuracy on held-out examples. Where the loss is no number, the line is broken.
const pointsOf = (curves) => ({
    training: curves.points.map((p, i, all) => [p[0], p[1], p[3] || i > 0 && all[i - 1][1] === null]),
    rates: curves.points.map((p) => [p[0], p[2], p[3]]),
    held: curves.tests.map((p) => [p[0], p[1]]),
    right: curves.tests.filter((p) => p[2] !== null).map((p) => [p[0], 100 * p[2]])});

// Calls `read` now and every `pause` ms until `end` is called; a pause of null lasts until `now` is called. `now` may also be called while `read`
// runs: then it runs once more after that.
function repeat(read, pause = () => DETAIL_MS) {
    let ended = false, timer = null, running = false, wanted = false;
    const turn = async () => {
        wanted = true;
        if (running) return;
        clearTimeout(timer);
        running = true;
        while (wanted && !ended) {
            wanted = false;
            await read();
        }
        running = false;
        const ms = pause();
        if (!ended && ms !== null) timer = setTimeout(turn, ms);
    };
    turn();
    return {now: turn, end: () => { ended = true; clearTimeout(timer); }};
}

// ---------------------------------------------------------------- one job

function jobView(place) {
    const main = byId("main"), top = topOf("job", place, "it"), numbers = make("dl", {class: "facts"});
    const lossFigure = make("figure", {id: "loss"}), rateFigure = make("figure", {id: "rate"}), accuracyFigure = make("figure", {id: "accuracy"});
    const logarithmic = make("input", {type: "checkbox", id: "logarithmic", onchange: () => drawCurves()});
    const log = make("pre", {class: "log", id: "log", tabindex: 0, "aria-label": "merged log of all pods"});
    const logFilter = make("input", {type: "search", id: "log-filter", placeholder: "part of a line", oninput: () => drawLog()});
    const logPod = make("select", {id: "log-pod", onchange: () => { logText = null; setText(log, "Reading…"); setText(logSaid, ""); again.now(); }}, make("option", {value: "", text: "all pods"}));
    const logSaid = make("span", {class: "faint"});
    const podTable = make("div", {}), conditions = make("div", {}), eventTable = make("div", {});
    const manifest = make("pre", {tabindex: 0, "aria-label": "manifest"}), description = make("pre", {tabindex: 0, "aria-label": "what cox describe prints"});
    const layerTable = make("div", {id: "layers"}), layerFigure = make("figure", {id: "layer-graph", tabindex: 0, role: "region", "aria-label": "diagram of the layers", hidden: true}), layersSaid = make("p", {class: "faint", id: "layers-said", role: "status", "aria-live": "polite"});
    let layersOf = null; // the spec whose layers are shown
    let current = "curves", curves = null, document_ = null, logText = null, unread = 0, gone = false;
    const set = tabs([["curves", "Curves"], ["crew", "Crew"], ["pods", "Pods and conditions"], ["log", "Log"], ["layers", "Layers"], ["use", "Try the model"], ["manifest", "Manifest"], ["describe", "Describe"]], (name) => { current = name; drawCurves(); drawCrew(); if (again) again.now(); });
    set.panels.curves.append(make("div", {class: "filters"}, make("label", {}, logarithmic, " logarithmic loss")), make("div", {class: "charts"}, lossFigure, rateFigure, accuracyFigure),
        make("p", {class: "legend", text: "Red dashes: the chief was replaced. Yellow dashes: the crew was whole again. Triangles: checkpoints. The curves begin with the oldest log of the chief that is still there."}));
    const crewFigure = make("figure", {id: "timeline"}), crewTable = make("div", {id: "crew"});
    set.panels.crew.append(crewFigure, crewTable,
        make("p", {class: "legend", text: `A column is as high as the member's own part of a step; the rest is waiting for others and communication. Red: more than ${LATE_FACTOR} times the median of the crew. Of larger crews the first 64 members are shown. Red dashes: the chief was replaced. Yellow dashes: the crew was whole again after a loss.`}));
    set.panels.pods.append(make("h3", {text: "Pods"}), podTable, make("h3", {text: "Conditions"}), conditions, make("h3", {text: "Events"}), eventTable);
    set.panels.log.append(make("div", {class: "filters"}, make("label", {for: "log-filter", text: "Filter"}), logFilter, make("label", {for: "log-pod", text: "Pod"}), logPod, logSaid), log);
    set.panels.layers.append(layersSaid, layerFigure, layerTable);
    const model = modelPanel(place);
    set.panels.use.append(model.element);
    const difference = manifestDifference(place);
    set.panels.manifest.append(difference.element, manifest);
    set.panels.describe.append(description);
    main.replaceChildren(make("h2", {}, place.name + " ", top.state), top.why, numbers, top.buttons, top.said, top.failed, set.list, ...Object.values(set.panels));

    const marksOf = () => curves.marks.map(([event, step]) => ({
        kind: {restart: "restart", "whole again": "whole", checkpoint: "checkpoint"}[event], x: step,
        text: {restart: `a new chief began with step ${step}`, "whole again": `the crew was whole again with step ${step}`, checkpoint: `checkpoint of step ${step}`}[event]}));

    function drawCrew() {
        if (curves && current === "crew") timeline(crewFigure, crewTable, curves.crew, marksOf());
    }

    function drawCurves() {
        if (!curves || current !== "curves") return;
        const marks = marksOf();
        const {training, rates, held, right} = pointsOf(curves);
        const empty = "No steps are known: the curves come from lines such as step 20/300 loss 0.5 in the chief's log.";
        chart(lossFigure, {title: "Loss", series: [{name: "training", className: "first", points: training}, {name: "held out", className: "second", points: held}], marks, logarithmic: logarithmic.checked, empty});
        chart(rateFigure, {title: "Throughput", unit: curves.unit + "/s", series: [{name: curves.unit + "/s", className: "first", points: rates}], marks, fromZero: true, higherIsBetter: true, empty});
        accuracyFigure.hidden = right.length === 0;
        if (right.length > 0) chart(accuracyFigure, {title: "Accuracy on held-out examples", unit: "%", series: [{name: "accuracy", className: "second", points: right}], marks, higherIsBetter: true});
    }

    function drawLog() {
        if (logText === null) return;
        const text = logFilter.value.toLowerCase(), atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 30;
        const lines = logText.split("\n");
        if (lines[lines.length - 1] === "") lines.pop();
        const kept = text ? lines.filter((line) => line.toLowerCase().includes(text)) : lines;
        setText(log, kept.join("\n") || (lines.length ? "No line has these words." : "No pod has written a line yet."));
        setText(logSaid, `${kept.length} lines` + (text ? ` of ${lines.length}` : "") + `; of each pod the last ${LOG_LINES}` + (unread === 0 ? "" : `; ${unread} ${unread === 1 ? "log" : "logs"} could not be read`));
        if (atEnd) log.scrollTop = log.scrollHeight;
    }

    function writePods() {
        const podLines = document_.pods.map((pod) => [`${pod.role} ${pod.index}`, pod.name + (pod.current ? "" : " (replaced)"), pod.state, since(pod.created), pod.node, pod.why]);
        const events = [...document_.events].reverse().slice(0, 100).map((event) => [since(event.time), event.type, event.reason, event.about + ": " + event.note]);
        writeTable(podTable, "Pods", ["Place", "Pod", "State", "Age", "Node", "Why it failed"], podLines, "There are no pods.");
        writeConditions(conditions, document_.conditions);
        writeTable(eventTable, "Events", ["Age", "Type", "Reason", "What"], events, "There are no events any more: a cluster keeps them for an hour.");
        const places = ["", ...new Set(document_.pods.map((pod) => `${pod.role}/${pod.index}`))];
        if (places.length !== logPod.options.length || places.some((value, i) => logPod.options[i].value !== value)) {
            const chosen = logPod.value;
            logPod.replaceChildren(...places.map((value) => make("option", {value, text: value ? value.replace("/", " ") : "all pods"})));
            logPod.value = places.includes(chosen) ? chosen : "";
        }
    }

    function writeLayers(model) {
        const nameOf = (at) => at < 0 ? "input" : model.layers[at].name;
        setText(layersSaid, `Input ${model.input}, then ${model.layers.length} layers with ${model.parameters.toLocaleString("en")} parameters. Shapes are those of one example; the bars compare the numbers of parameters; orange lines are connections that skip layers.`);
        layerFigure.hidden = false;
        layerGraph(layerFigure, model);
        writeTable(layerTable, "Layers", ["Layer", "Type", "Output", "Parameters", "Reads"], model.layers.map((layer, i) => {
            const usual = layer.inputs.length === 1 && layer.inputs[0] === i - 1;
            return [layer.name, layer.type, layer.output, layer.parameters ? layer.parameters.toLocaleString("en") : "", usual ? "" : layer.inputs.map(nameOf).join(", ")];
        }), "The model has no layers.");
    }

    // The layers follow from the spec; only the worker's program knows them.
    async function readLayers() {
        const spec = JSON.stringify(document_.spec);
        if (spec === layersOf) return;
        setText(layersSaid, "Reading…");
        try {
            writeLayers(await ask(addressed("/api/layers", place)));
            layersOf = spec;
        } catch (error) {
            if (!(error instanceof Refused) || error.status === 404 || error.status === 503) throw error;
            layersOf = spec;
            layerFigure.hidden = true;
            layerTable.replaceChildren();
            layerTable.head = null;
            setText(layersSaid, error.message);
        }
    }

    function writeHead() {
        const row = document_.row;
        top.update(document_);
        setText(top.why, document_.why);
        writeFacts(numbers, [["Step", row.STEP], ["Loss", row.LOSS], ["Held out", row.SCORE], ["Throughput", row.THROUGHPUT], ["Time left", row.ETA], ["Ready", row.READY], ["Restarts", row.RESTARTS],
            ["Strategy", row.STRATEGY], ["Time", took(row)],
            ["Sweep", row.sweep && make("a", {href: addressOf("sweep", place.namespace, row.sweep, place.run), text: row.sweep})]]);
    }

    async function read() {
        if (gone || lost) return;
        try {
            document_ = await ask(addressed("/api/job", place));
            writeHead();
            writePods();
            model.update(document_);
            setText(manifest, document_.manifest);
            difference.update(document_.spec);
            setText(description, document_.description);
            if (current === "curves" || current === "crew") {
                const answer = await ask(addressed("/api/curves", place, {known: curves ? curves.version : 0}));
                if (answer.points) { curves = answer; drawCurves(); drawCrew(); }
            }
            if (current === "layers") await readLayers();
            if (current === "log") {
                const chosen = logPod.value, [role, index] = chosen.split("/");
                const answer = await ask(addressed("/api/log", place, {tail: LOG_LINES, ...(chosen ? {role, index} : {})}));
                if (logPod.value === chosen) {
                    logText = answer.text;
                    unread = answer.unread;
                    drawLog();
                }
            }
            setText(top.failed, "");
        } catch (error) {
            gone = error.status === 404;
            if (gone) top.isGone(document_ !== null);
            else tellReadError(top.failed, error);
        }
    }

    let again = null;
    set.show("curves");
    again = repeat(read, () => document_ && document_.kept ? null : stream && !runs && current !== "log" ? DETAIL_STREAM_MS : DETAIL_MS);
    addEventListener("resize", drawCrew);
    return {key: keyOf({kind: "job", NAMESPACE: place.namespace, NAME: place.name, run: place.run}), refresh: () => again.now(), listChanged: null, end: () => { again.end(); model.end(); removeEventListener("resize", drawCrew); }};
}

// ---------------------------------------------------------------- one sweep

function sweepView(place) {
    const main = byId("main"), top = topOf("sweep", place, "its trials"), reasons = make("ul", {class: "reasons", id: "reasons"}), numbers = make("dl", {class: "facts"});
    const figure = make("figure", {id: "objective"}), parallels = make("figure", {id: "parallel"}), shares = make("div", {id: "shares"}), shareNote = make("p", {class: "legend"});
    const trials = make("div", {id: "trials"}), more = make("p", {class: "faint"}), best = make("pre", {tabindex: 0, "aria-label": "the best trial as a job"});
    const conditions = make("div", {}), manifest = make("pre", {tabindex: 0, "aria-label": "manifest"});
    let document_ = null, gone = false, again = null, drawn = null;
    const set = tabs([["trials", "Trials"], ["best", "Best trial"], ["conditions", "Conditions"], ["manifest", "Manifest"]], () => redraw());
    set.panels.trials.append(make("div", {class: "charts"}, figure, make("section", {}, make("h3", {text: "What explains the objective"}), shares, shareNote)), parallels, make("h3", {text: "Trials"}), trials, more);
    set.panels.best.append(best);
    set.panels.conditions.append(conditions);
    set.panels.manifest.append(manifest);
    main.replaceChildren(make("h2", {}, place.name + " ", top.state, make("span", {class: "tag", text: "sweep"})), top.why, reasons, numbers, top.buttons, top.said, top.failed, set.list, ...Object.values(set.panels));

    function write() {
        const done = document_.trials.filter((trial) => trial.objective !== null), objectives = done.map((trial) => trial.objective);
        top.update(document_);
        const chosen = document_.trials.find((trial) => trial.best);
        writeWhy();
        writeNumbers(chosen);
        const picture = JSON.stringify([done.map((trial) => [trial.trial, trial.objective, trial.state, trial.step]), chosen && chosen.trial]);
        if (picture !== drawn) drawPictures(done, chosen);
        drawn = picture;
        const hasParents = document_.trials.some((trial) => trial.parent !== undefined);
        const columns = [["Trial", (trial) => trial.trial], ["State", (trial) => trial.state], ...document_.parameters.map((title, i) => [title, (trial) => Object.values(trial.parameters)[i]]),
            [document_.metric, (trial) => trial.objective], ["Time", (trial) => trial.seconds], ...(hasParents ? [["Goes on from", (trial) => trial.parent]] : [])];
        const shown = trialsShown(order.column === null ? null : columns[order.column][1]);
        const lines = shown.map((trial) => {
            const values = Object.values(trial.parameters).map((value) => value === null ? "" : String(value));
            const cells = [trial.hasJob ? make("a", {href: jobAddress(trial), text: trial.trial}) : make("span", {text: trial.trial}),
                make("span", {class: "state " + stateClass(trial.state), text: trial.state}), ...values, trial.objective === null ? "" : figureText(trial.objective, gapAt(trial.objective, objectives)) + (isEarly(trial) ? ` after step ${trial.step.toLocaleString("en")}` : ""), trial.seconds === null ? "" : duration(1000 * trial.seconds), ...(hasParents ? [trial.parent === null ? "" : String(trial.parent)] : []), trial.best ? "best" : ""];
            if (trial.best) cells.className = "best";
            return cells;
        });
        writeTable(trials, "Trials", [...columns.map(([title]) => title), ""], lines, "No trial has started yet.", order);
        setText(more, [shown.every((trial) => trial.hasJob) ? "" : "Trials without a link have no job: it was deleted, or their values make no valid one.",
            shown.length === document_.trials.length ? "" : `${order.column !== null ? `The first ${TRIALS_SHOWN}` : `The best and the newest ${TRIALS_SHOWN}`} of ${document_.trials.length} trials are shown; cox sweep export ${place.name} prints all.`].filter(Boolean).join(" "));
        setText(best, document_.best || "No trial has succeeded yet. Once one has, its values are here as the manifest of a job, for cox run.");
        writeConditions(conditions, document_.conditions);
        setText(manifest, document_.manifest);
    }

    // A third click on a title sorts by number again.
    const order = {column: null, down: false, choose: (column) => {
        const chosen = order.column === column;
        order.column = chosen && order.down ? null : column;
        order.down = chosen && !order.down;
        write();
    }};

    // Those without a value come last.
    function compareValues(a, b) {
        if (a === null || b === null) return (a === null) - (b === null);
        const difference = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
        return order.down ? -difference : difference;
    }

    // valueOf: what they are sorted by; null: their numbers.
    function trialsShown(valueOf) {
        const all = document_.trials;
        if (valueOf) return [...all].sort((left, right) => compareValues(valueOf(left), valueOf(right))).slice(0, TRIALS_SHOWN);
        return all.length > TRIALS_SHOWN ? all.filter((trial) => trial.best || trial.trial >= all.length - TRIALS_SHOWN) : all;
    }

    const jobAddress = (trial) => addressOf("job", place.namespace, trial.name, place.run);

    // The value of a trial that was stopped or paused, or still runs, is of an earlier step, so that it has no rank among those of trials that ended.
    const isEarly = (trial) => trial.step !== null && trial.state !== "Succeeded";

    // The lines of cox why: what the sweep waits for or how it ended, then why trials failed, with links to those that have jobs.
    function writeWhy() {
        const [first, ...others] = document_.why.trimEnd().split("\n"), withJobs = new Map(document_.trials.filter((trial) => trial.hasJob).map((trial) => [trial.name, trial]));
        const items = others.map((line) => [withJobs.get(line.split(" ")[0]), line]), written = JSON.stringify(items.map(([trial, line]) => [Boolean(trial), line]));
        setText(top.why, first);
        if (reasons.written === written) return;
        reasons.written = written;
        reasons.hidden = items.length === 0;
        reasons.replaceChildren(...items.map(([trial, line]) => make("li", {}, ...(trial ? [make("a", {href: jobAddress(trial), text: trial.name}), line.slice(trial.name.length)] : [line]))));
    }

    function writeNumbers(chosen) {
        const row = document_.row, number = (text) => text === "0" ? "" : text;
        writeFacts(numbers, [["Trials done", row.total > 0 && `${row.step} of ${row.total}`], ["Running", !document_.over && number(row.RUNNING)], ["Failed", number(row.FAILED)], ["Time left", document_.left >= 0 && duration(1000 * document_.left)],
            [`Best ${document_.metric}`, row.OBJECTIVE], ["Best trial", chosen && (chosen.hasJob ? make("a", {href: jobAddress(chosen), text: chosen.name}) : chosen.name)],
            ...(chosen ? Object.values(chosen.parameters).map((value, i) => [document_.parameters[i], value === null ? "" : String(value)]) : [])]);
    }

    // The best of the trials that have succeeded, up to each.
    function bestSoFar(done) {
        let best = null;
        return done.filter((one) => one.state === "Succeeded").map(({trial, objective}) => {
            best = best === null ? objective : document_.maximize ? Math.max(best, objective) : Math.min(best, objective);
            return [trial, best];
        });
    }

    function drawPictures(done, chosen) {
        const objectives = done.map((trial) => trial.objective), valuesOf = (i) => done.map((trial) => Object.values(trial.parameters)[i]);
        const ended = done.filter((trial) => !isEarly(trial)), ranks = ranksOf(ended.map((trial) => trial.objective));
        const rankOf = new Map(ended.map((trial, i) => [trial, document_.maximize ? 1 - ranks[i] : ranks[i]]));
        chart(figure, {title: `${document_.metric} of each trial`, xName: "trial", best: chosen ? chosen.trial : null, empty: "No trial has a value yet.",
            series: [{name: document_.metric, className: "first", dots: true, points: ended.map((trial) => [trial.trial, trial.objective])},
                {name: "best so far", className: "second", stepped: true, points: bestSoFar(done)},
                {name: "at an earlier step", className: "faint", dots: true, hollow: true, points: done.filter(isEarly).map((trial) => [trial.trial, trial.objective])}],
            logarithmic: done.length > 2 && spansPowers(objectives)});
        const lines = done.map((trial) => ({name: trial.name + (isEarly(trial) ? ` after step ${trial.step.toLocaleString("en")}` : ""), values: [...Object.values(trial.parameters), trial.objective], rank: rankOf.get(trial) ?? null}));
        parallels.hidden = done.length < 2;
        if (!parallels.hidden) parallel(parallels, {title: "Parameters and objective", lines, best: chosen && lines.find((line) => line.name === chosen.name),
            axes: [...document_.parameters.map((name, i) => ({name, logarithmic: document_.logarithmic[i], values: valuesOf(i)})), {name: document_.metric, values: objectives}]});
        writeShares(done.filter((trial) => trial.state === "Succeeded"));
    }

    function writeShares(done) {
        const shareOf = (i) => {
            const having = done.filter((trial) => Object.values(trial.parameters)[i] !== null);
            return explainedShare(having.map((trial) => Object.values(trial.parameters)[i]), having.map((trial) => trial.objective));
        };
        const found = document_.parameters.map((name, i) => [name, shareOf(i)])
            .filter(([, share]) => share !== null).sort((a, b) => b[1] - a[1]);
        writeTable(shares, "What explains the objective", ["Parameter", "Share", ""], found.map(([name, share]) => [name, make("progress", {max: 1, value: share.toFixed(3), "aria-label": `share of ${name}`}), Math.round(100 * share) + " %"]),
            `This needs ${TRIALS_FOR_SHARE} trials that have succeeded.`);
        setText(shareNote, found.length === 0 ? "" : "How much of the variance of the objective's ranks each parameter explains by itself. Parameters that matter only together are not found.");
    }

    async function read() {
        if (gone || lost) return;
        try {
            document_ = await ask(addressed("/api/sweep", place));
            write();
            setText(top.failed, "");
        } catch (error) {
            gone = error.status === 404;
            if (gone && document_) { // the jobs of its trials go with it
                for (const trial of document_.trials) trial.hasJob = false;
                write();
            }
            if (gone) top.isGone(document_ !== null);
            else tellReadError(top.failed, error);
        }
    }

    // The parallel coordinates are as wide as they are shown.
    function redraw() {
        if (!document_ || set.panels.trials.hidden) return;
        drawn = null;
        write();
    }

    set.show("trials");
    again = repeat(read, () => document_ && document_.kept ? null : DETAIL_MS); // an ended run does not change
    addEventListener("resize", redraw);
    return {key: keyOf({kind: "sweep", NAMESPACE: place.namespace, NAME: place.name, run: place.run}), refresh: () => again.now(), end: () => { again.end(); removeEventListener("resize", redraw); }};
}

// ---------------------------------------------------------------- addresses

function route() {
    const words = location.hash.split("/").map((part) => { try { return decodeURIComponent(part); } catch { return ""; } });
    const [, kind, namespace, name, run] = words, place = {namespace, name, run}, compared = [], size = kind === "compare-runs" ? 3 : 2;
    for (let i = 2; i + size <= words.length; i += size) compared.push({namespace: words[i], name: words[i + 1], run: size === 3 ? words[i + 2] : undefined});
    if (view) view.end();
    view = null;
    closeCharts();
    byId("main").scrollTop = 0;
    view = (size === 3 || kind === "compare") && compared.length > 1 ? compareView(compared) : kind === "job" && name ? jobView(place) : kind === "sweep" && name ? sweepView(place) : listView();
}

// Enter in the number of the dialog means yes; a form would take its first button, which is no.
byId("confirm-number").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    byId("confirm-yes").click();
});
// Other addresses than "#/…" are places in the page.
addEventListener("hashchange", () => {
    if (!location.hash || location.hash.startsWith("#/")) route();
    byId("main").focus();
});
document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
});
route();
pollList();
