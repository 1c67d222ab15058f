// SPDX-License-Identifier: Apache-2.0
//
// Draws the timeline of a crew for the page of `cox ui`: a row for each member, with the share of each step in which it
// reads its examples and computes; the rest is waiting for others and communication. The figures come from the chief's lines "pace of the crew
// to step 120: …", through /api/curves.
"use strict";

const ROW_PITCH = 30, BAR_HEIGHT = 22, TIMELINE_LEFT = 90, TIMELINE_COLUMNS = 160, LATE_FACTOR = 1.3;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

// The log has tenths of milliseconds, so short steps may take 0.0 ms.
const shareOf = (ms, stepMs) => stepMs > 0 ? Math.min(1, ms / stepMs) : 1;

// Joins neighbours until there are at most TIMELINE_COLUMNS: [{from, to, stepMs, own: [ms or null…]}…]. A member is late in a column if its own
// part takes more than LATE_FACTOR times the median of all members, and over 1 ms longer: the others then wait for it.
function timelineColumns(crew) {
    const every = Math.max(1, Math.ceil(crew.paces.length / TIMELINE_COLUMNS)), columns = [];
    // The number of steps that most lines cover. The first line, and the first after a restart, do not say where theirs begin.
    const usualSteps = median(crew.paces.slice(1).map((pace, i) => pace[0] - crew.paces[i][0]).filter((steps) => steps > 0)) || 1;
    const mean = (values) => values.length === 0 ? null : values.reduce((a, b) => a + b, 0) / values.length;
    for (let at = 0; at < crew.paces.length; at += every) {
        const some = crew.paces.slice(at, at + every), before = at > 0 ? crew.paces[at - 1][0] : Infinity;
        const own = crew.members.map((_, i) => mean(some.map((pace) => pace[2][i]).filter((ms) => ms !== null)));
        const known = own.filter((ms) => ms !== null), usual = median(known);
        const from = before < some[0][0] ? before : Math.max(0, some[0][0] - usualSteps);
        columns.push({from, to: some[some.length - 1][0], stepMs: mean(some.map((pace) => pace[1])), own, late: own.map((ms) => ms !== null && known.length > 1 && ms > LATE_FACTOR * usual && ms - usual > 1)});
    }
    return columns;
}

// marks: as chart's.
function timeline(figure, table, crew, marks) {
    const columns = timelineColumns(crew);
    writeCaption(figure, "Own part of each step", [{name: "reads and computes", className: "first"}, {name: "late: the others wait for it", className: "sixth"}]);
    if (columns.length === 0) {
        figure.append(make("p", {class: "empty", text: "There are no figures yet. The chief of a crew of at least two workers prints every few seconds how long each of them computes (pace of the crew to step 120: …). Jobs with parameter servers and of other frameworks print no such lines."}));
        table.replaceChildren();
        table.head = null;
        return;
    }
    const height = crew.members.length * ROW_PITCH + 24, high = Math.max(...columns.map((one) => one.to)), low = Math.min(...columns.map((one) => one.from));
    const picture = svg("svg", {class: "chart timeline", role: "img", "aria-label": `timeline of ${crew.members.length} members up to step ${high}; the table after it says the same in words`});
    picture.style.height = height + "px";
    figure.append(picture);
    const right = (picture.getBoundingClientRect().width || WIDTH) - RIGHT, screenX = (step) => TIMELINE_LEFT + (step - low) / Math.max(1, high - low) * (right - TIMELINE_LEFT);
    crew.members.forEach((name, i) => {
        const top = i * ROW_PITCH, bars = (wanted) => columns.filter((one) => one.own[i] !== null && one.late[i] === wanted).map((one) => {
            const x = screenX(one.from), size = BAR_HEIGHT * shareOf(one.own[i], one.stepMs);
            return `M${x.toFixed(1)} ${(top + BAR_HEIGHT - size).toFixed(1)}H${Math.max(x + 1, screenX(one.to) - 0.5).toFixed(1)}V${top + BAR_HEIGHT}H${x.toFixed(1)}z`;
        }).join("");
        svg("text", {x: 0, y: top + 15}, picture).textContent = name;
        svg("rect", {class: "ground", x: TIMELINE_LEFT, y: top, width: right - TIMELINE_LEFT, height: BAR_HEIGHT}, picture);
        svg("path", {class: "own", d: bars(false)}, picture);
        svg("path", {class: "late", d: bars(true)}, picture);
    });
    for (const mark of marks.filter((one) => one.kind !== "checkpoint" && one.x >= low && one.x <= high))
        svg("title", {}, svg("line", {class: mark.kind, x1: screenX(mark.x), x2: screenX(mark.x), y1: 0, y2: height - 24}, picture)).textContent = mark.text;
    for (const step of ticks(low, high, 6).filter(Number.isInteger))
        svg("text", {x: Math.min(screenX(step), right - 12), y: height - 6, "text-anchor": "middle"}, picture).textContent = step.toLocaleString("en");
    const newest = columns[columns.length - 1];
    writeTable(table, "Members of the crew", ["Member", "Own part of a step", "Waiting and communication", "Late"], crew.members.map((name, i) => {
        const known = columns.filter((one) => one.own[i] !== null), late = known.filter((one) => one.late[i]).length, own = newest.own[i];
        return [name, own === null ? "not in the crew" : `${own.toFixed(1)} of ${newest.stepMs.toFixed(1)} ms`, own === null ? "" : Math.round(100 * (1 - shareOf(own, newest.stepMs))) + " %",
            late === 0 ? "never" : `in ${Math.round(100 * late / known.length)} % of the time` + (newest.late[i] ? ", also now" : "")];
    }), "");
}
