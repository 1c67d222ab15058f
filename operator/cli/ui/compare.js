// SPDX-License-Identifier: Apache-2.0
//
// Shows several jobs side by side: their curves in one chart each, their figures, and the fields of their specs that differ.
// comparedKeys: the keys of the jobs that are chosen in the list.
"use strict";

const COMPARED_MAX = 6; // as many colours; the server keeps the curves of 8 jobs
const COLOUR_NAMES = ["first", "second", "third", "fourth", "fifth", "sixth"];
const NAMES_SHOWN = 100; // of the jobs whose names have what is written
const comparedKeys = new Set();

// "#/compare/NAMESPACE/NAME/NAMESPACE/NAME…", or "#/compare-runs/NAMESPACE/NAME/RUN/…" of runs on this machine.
const compareAddress = (places) => (places.some((place) => place.run) ? "#/compare-runs/" : "#/compare/") +
    places.flatMap((place) => [place.namespace, place.name, ...(place.run ? [place.run] : [])]).map(encodeURIComponent).join("/");

// "a.b.0.c" -> value, of all fields of an object.
function fieldsOf(value, path = "", found = new Map()) {
    if (value !== null && typeof value === "object" && Object.keys(value).length > 0)
        for (const [key, inner] of Object.entries(value)) fieldsOf(inner, path ? `${path}.${key}` : key, found);
    else if (path) found.set(path, value);
    return found;
}

// [path, value of each object]; undefined: it does not have the field.
function differences(objects) {
    const fields = objects.map((object) => fieldsOf(object)), paths = [...new Set(fields.flatMap((one) => [...one.keys()]))].sort(collator.compare);
    return paths.map((path) => [path, ...fields.map((one) => one.get(path))]).filter(([, ...values]) => values.some((value) => JSON.stringify(value) !== JSON.stringify(values[0])));
}

function writeDifferences(host, labels, specs, empty) {
    writeTable(host, "Differences of the specs", ["Field", ...labels], differences(specs)
        .map(([path, ...values]) => [path, ...values.map((value) => value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value))]), empty);
}

// What stands above a job's manifest: in what it differs from that of another job of the list.
function manifestDifference(place) {
    const names = make("datalist", {id: "other-names"}), host = make("div", {id: "manifest-differences"}), said = make("span", {class: "faint", role: "status", "aria-live": "polite"});
    const field = make("input", {type: "search", id: "other", list: "other-names", placeholder: "name of another job", autocomplete: "off", oninput: () => choose()});
    const key = keyOf({kind: "job", NAMESPACE: place.namespace, NAME: place.name, run: place.run});
    const nameOf = (row) => namespaces || row.NAMESPACE !== place.namespace ? `${row.NAMESPACE}/${labelOf(row)}` : labelOf(row);
    let spec = null, other = null; // other: {label, spec}

    function write() {
        host.hidden = !spec || !other;
        if (!host.hidden) writeDifferences(host, [place.run || place.name, other.label], [spec, other.spec], `Its spec is equal to that of ${other.label}.`);
    }

    async function choose() {
        const word = field.value.trim(), candidates = [...rows.values()].filter((row) => row.kind === "job" && keyOf(row) !== key && nameOf(row).includes(word));
        const chosen = candidates.find((row) => nameOf(row) === word);
        names.replaceChildren(...candidates.slice(0, NAMES_SHOWN).map((row) => make("option", {value: nameOf(row)})));
        other = null;
        write();
        setText(said, !word || chosen ? "" : candidates.length === 0 ? "No other job of the list has this name." : candidates.length === 1 ? "1 job matches" : `${candidates.length} jobs match`);
        if (!chosen) return;
        try {
            const answer = await ask(addressed("/api/job", {namespace: chosen.NAMESPACE, name: chosen.NAME, run: chosen.run}));
            if (field.value.trim() === word) other = {label: word, spec: answer.spec};
            write();
        } catch (error) {
            tellReadError(said, error);
        }
    }

    field.addEventListener("focus", () => choose());
    return {element: make("div", {}, make("div", {class: "filters"}, make("label", {for: "other", text: "Difference from"}), field, names, said), host), update: (newest) => { spec = newest; write(); }};
}

// What stands beside the list's filters.
function compareBar() {
    const link = make("a", {id: "compare"}), said = make("span", {class: "faint", role: "status", "aria-live": "polite"});
    const clear = make("button", {id: "compare-clear", text: "Choose none", onclick: () => { comparedKeys.clear(); view.listChanged(); }});
    return {elements: [link, clear, said], update: () => {
        for (const key of comparedKeys) if (!rows.has(key)) comparedKeys.delete(key);
        link.hidden = comparedKeys.size < 2;
        clear.hidden = comparedKeys.size === 0;
        const address = compareAddress([...comparedKeys].map((key) => rows.get(key)).map((row) => ({namespace: row.NAMESPACE, name: row.NAME, run: row.run})));
        if (link.getAttribute("href") !== address) link.setAttribute("href", address);
        setText(link, `Compare ${comparedKeys.size} jobs`);
        setText(said, comparedKeys.size === 1 ? "Choose another job to compare it with." : comparedKeys.size === COMPARED_MAX ? `At most ${COMPARED_MAX} can be compared.` : "");
    }};
}

// The checkbox of a line; sweeps have none.
function fillChoice(box, row) {
    const key = keyOf(row);
    box.hidden = row.kind !== "job";
    box.checked = comparedKeys.has(key);
    box.disabled = !box.checked && comparedKeys.size >= COMPARED_MAX;
    box.setAttribute("aria-label", `compare ${labelOf(row)}`);
    box.onchange = () => {
        if (box.checked) comparedKeys.add(key);
        else comparedKeys.delete(key);
        view.listChanged();
    };
}

function compareView(places) {
    const main = byId("main"), jobs = places.slice(0, COMPARED_MAX).map((place, i) => ({...place, className: COLOUR_NAMES[i], curves: null, document: null, gone: false}));
    const severalNamespaces = new Set(jobs.map((job) => job.namespace)).size > 1;
    for (const job of jobs) job.label = job.run || (severalNamespaces ? `${job.namespace}/${job.name}` : job.name);
    const figures = ["loss", "held", "accuracy", "rate"].map((id) => make("figure", {id}));
    const [loss, held, accuracy, rate] = figures, numbers = make("div", {id: "numbers"}), fields = make("div", {id: "differences"});
    const failed = make("p", {class: "refused", id: "failed", role: "status", "aria-live": "polite"});
    const logarithmic = make("input", {type: "checkbox", id: "logarithmic", onchange: () => draw()});
    main.className = "";
    setTrail(["Compare"]);
    main.replaceChildren(make("h2", {text: "Compare " + jobs.map((job) => job.label).join(", ")}), failed, numbers,
        make("h3", {text: "What differs in their specs"}), fields, make("h3", {text: "Curves"}),
        make("div", {class: "filters"}, make("label", {}, logarithmic, " logarithmic loss")), make("div", {class: "charts"}, ...figures));

    function draw() {
        const drawn = jobs.filter((job) => job.curves).map((job) => [job, pointsOf(job.curves)]);
        const series = (which) => drawn.map(([job, points]) => ({name: job.label, className: job.className, points: points[which]}));
        const some = (list) => list.some((one) => one.points.length > 0);
        const units = new Set(drawn.filter(([, points]) => points.rates.length > 0).map(([job]) => job.curves.unit));
        chart(loss, {title: "Loss", logarithmic: logarithmic.checked, series: series("training"), empty: "No steps are known of these jobs."});
        const tests = series("held"), right = series("right");
        held.hidden = !some(tests);
        if (!held.hidden) chart(held, {title: "Loss on held-out examples", logarithmic: logarithmic.checked, series: tests});
        accuracy.hidden = !some(right);
        if (!accuracy.hidden) chart(accuracy, {title: "Accuracy on held-out examples", unit: "%", higherIsBetter: true, series: right});
        chart(rate, {title: "Throughput", unit: [...units].join(" or ") + "/s", fromZero: true, higherIsBetter: true, series: series("rates"), empty: "No throughput is known of these jobs."});
    }

    function write() {
        const known = jobs.filter((job) => job.document);
        writeTable(numbers, "Jobs", ["Job", "State", "Step", "Loss", "Held out", "Throughput", "Time", "Restarts", "Strategy"], known.map((job) => {
            const row = job.document.row;
            return [make("a", {class: "key " + job.className, href: addressOf("job", job.namespace, job.name, job.run), text: job.label}),
                make("span", {class: "state " + (job.gone ? "wait" : stateClass(row.STATE)), text: job.gone ? "deleted" : row.STATE}), row.STEP || "", row.LOSS || "", row.SCORE || "", row.THROUGHPUT || "", took(row), row.RESTARTS || "", row.STRATEGY || ""];
        }), "Reading…");
        writeDifferences(fields, known.map((job) => job.label), known.map((job) => job.document.spec), known.length < jobs.length ? "Reading…" : "Their specs are equal.");
    }

    // Returns whether the curves of a job have changed.
    async function readJob(job) {
        if (job.gone) return false;
        try {
            job.document = await ask(addressed("/api/job", job));
            const answer = await ask(addressed("/api/curves", job, {known: job.curves ? job.curves.version : 0}));
            if (answer.points) job.curves = answer;
            return Boolean(answer.points);
        } catch (error) {
            job.gone = error.status === 404;
            if (!job.gone) throw error;
            return false;
        }
    }

    async function read() {
        if (lost) return;
        const missing = [];
        let changed = false;
        try {
            for (const job of jobs) {
                if (await readJob(job)) changed = true;
                if (job.gone && !job.document) missing.push(job.label);
            }
            setText(failed, missing.length > 0 ? `There is no job ${missing.join(", ")}.` : "");
        } catch (error) {
            tellReadError(failed, error);
        }
        write();
        if (changed) draw();
    }

    draw();
    const again = repeat(read, () => jobs.every((job) => job.gone || job.document && job.document.kept) ? null : DETAIL_MS);
    return {refresh: () => again.now(), end: () => again.end()};
}
