// SPDX-License-Identifier: Apache-2.0
//
// Shows how the parameters of a sweep and its objective belong together.
//   parallel(figure, {title, axes, lines, best})   draws a line for each trial over one axis for each parameter and one for the objective
//     axes: [{name, logarithmic, values}]  values: of all trials; numbers, or words with a place for each
//     lines: [{name, values, rank}]        values: null where the trial has none; rank: 0 (best) to 1 (worst); null: none, the line is dim
//     best: the line to emphasise
//   explainedShare(values, objectives)             how much of the objective one parameter explains, 0 to 1; null: too few trials to tell
"use strict";

const AXIS_TOP = 34, AXIS_BOTTOM = 12, AXIS_HEIGHT = 300, MARK_HEIGHT = 13, COLOURS = 5;

const isNumeric = (values) => values.length > 0 && values.every((value) => value !== "" && value !== null && typeof value !== "boolean" && isFinite(Number(value)));
const spansPowers = (values) => values.every((value) => value > 0) && Math.max(...values) > 50 * Math.min(...values);

// Where values stand on an axis, 0 (bottom) to 1, and the marks beside it.
function scaleOf(axis) {
    const known = axis.values.filter((value) => value !== null && value !== "");
    if (!isNumeric(known)) {
        const words = [...new Set(known.map(String))].sort(collator.compare), last = Math.max(1, words.length - 1);
        const shown = Math.ceil(words.length / 12);
        return {place: (value) => words.indexOf(String(value)) / last, marks: words.map((word, i) => [i / last, word]).filter((_, i) => i % shown === 0)};
    }
    const numbers = known.map(Number), logarithmic = (axis.logarithmic || spansPowers(numbers)) && Math.min(...numbers) > 0;
    const measure = (value) => logarithmic ? Math.log10(value) : value;
    let low = measure(Math.min(...numbers)), high = measure(Math.max(...numbers));
    if (high === low) { low -= 1; high += 1; }
    const place = (value) => (measure(Number(value)) - low) / (high - low), few = [...new Set(numbers)];
    const marks = few.length <= 6 ? few : logarithmic && high - low > 1 ? powers(low, high).map((power) => 10 ** power) : ticks(low, high, 5).map((at) => logarithmic ? 10 ** at : at);
    return {place, marks: marks.map((value) => [place(value), figureText(value, gapAt(value, marks))])};
}

function parallel(figure, options) {
    const value = writeCaption(figure, options.title, []);
    if (options.lines.length === 0 || options.axes.length < 2) return;
    const words = (line) => `${line.name}: ` + options.axes.map((axis, i) => `${axis.name} ${typeof line.values[i] === "number" ? figureText(line.values[i], gapAt(line.values[i], axis.values)) : line.values[i] ?? "none"}`).join(", ");
    const best = options.best ? "best: " + words(options.best) : "";
    value.textContent = best;
    const picture = svg("svg", {class: "chart parallel", role: "img", "aria-label": `${options.title}: ${options.lines.length} trials; ${best}`});
    figure.append(picture);
    const width = picture.getBoundingClientRect().width || WIDTH, scales = options.axes.map(scaleOf), last = options.axes.length - 1;
    const placeX = (i) => LEFT + i / last * (width - 2 * LEFT), placeY = (at) => AXIS_HEIGHT - AXIS_BOTTOM - at * (AXIS_HEIGHT - AXIS_TOP - AXIS_BOTTOM);
    const drawn = options.lines, isKnown = (one) => one !== null && one !== undefined && one !== "";
    // A trial may have no value of a parameter that depends on another: its line has a gap there.
    const heights = new Map(drawn.map((line) => [line, line.values.map((one, i) => isKnown(one) ? Math.round(placeY(scales[i].place(one))) : null)]));
    const pathOf = (line) => heights.get(line).map((y, i, all) => y === null ? "" : (i === 0 || all[i - 1] === null ? "M" : "L") + placeX(i).toFixed(1) + " " + y).join("");
    // A path for each colour, the best last; lines on the same pixels are drawn once.
    const colourOfLine = (line) => line.rank === null ? "early" : `rank-${Math.min(COLOURS - 1, Math.floor(line.rank * COLOURS))}`;
    for (const colour of ["early", ...Array.from({length: COLOURS}, (_, i) => `rank-${COLOURS - 1 - i}`)]) {
        const paths = new Set(drawn.filter((line) => colourOfLine(line) === colour).map(pathOf));
        if (paths.size > 0) svg("path", {class: `trial ${colour}` + (drawn.length > 100 ? " many" : ""), d: [...paths].join("")}, picture);
    }
    if (heights.has(options.best)) svg("path", {class: "trial chosen", d: pathOf(options.best)}, picture);
    const pointed = svg("path", {class: "trial pointed", d: "", visibility: "hidden"}, picture);
    options.axes.forEach((axis, i) => {
        svg("line", {class: "axis", x1: placeX(i), x2: placeX(i), y1: placeY(0), y2: placeY(1)}, picture);
        const anchor = i === 0 ? "start" : i === last ? "end" : "middle", room = Math.max(4, Math.floor(width / (last + 1) / 7));
        const name = svg("text", {class: "name", x: i === 0 ? 2 : i === last ? width - 2 : placeX(i), y: 14, "text-anchor": anchor}, picture);
        name.textContent = axis.name.length > room ? axis.name.slice(0, room - 1) + "…" : axis.name;
        svg("title", {}, name).textContent = axis.name;
        let previous = Infinity;
        for (const [at, text] of scales[i].marks.sort((a, b) => a[0] - b[0])) {
            if (previous - placeY(at) < MARK_HEIGHT) continue;
            previous = placeY(at);
            svg("text", {class: "mark", x: placeX(i) + (i === last ? 6 : -6), y: previous + 4, "text-anchor": i === last ? "start" : "end"}, picture).textContent = text;
        }
    });
    picture.addEventListener("pointermove", (event) => {
        const box = picture.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
        const at = Math.max(0, Math.min(last, (x - LEFT) / (width - 2 * LEFT) * last)), before = Math.min(last - 1, Math.floor(at));
        const distance = (line) => {
            const [from, to] = heights.get(line).slice(before, before + 2);
            return from === null || to === null ? Infinity : Math.abs(from + (at - before) * (to - from) - y);
        };
        const nearest = drawn.reduce((found, line) => !found || distance(line) < distance(found) ? line : found, null);
        if (!nearest || distance(nearest) === Infinity) return;
        pointed.setAttribute("d", pathOf(nearest));
        pointed.setAttribute("visibility", "visible");
        value.textContent = words(nearest);
    });
    picture.addEventListener("pointerleave", () => { pointed.setAttribute("visibility", "hidden"); value.textContent = best; });
}

// Ranks from 0 to 1 in order of size; equal values share one.
function ranksOf(values) {
    const order = values.map((value, i) => [value, i]).sort((a, b) => a[0] - b[0]), ranks = new Array(values.length);
    for (let from = 0, to; from < order.length; from = to) {
        for (to = from; to < order.length && order[to][0] === order[from][0]; to++);
        for (let i = from; i < to; i++) ranks[order[i][1]] = (from + to - 1) / 2 / Math.max(1, order.length - 1);
    }
    return ranks;
}

const GROUP_MIN = 4, GROUPS_MAX = 8, TRIALS_FOR_SHARE = 8;

// Groups of trials with the same value; of numbers with many values, groups of about the same size along the axis.
function groupsOf(values) {
    const distinct = [...new Set(values.map(String))];
    if (!isNumeric(values) || distinct.length <= values.length / GROUP_MIN) return values.map((value) => distinct.indexOf(String(value)));
    const count = Math.max(2, Math.min(GROUPS_MAX, Math.floor(values.length / GROUP_MIN)));
    return ranksOf(values.map(Number)).map((rank) => Math.min(count - 1, Math.floor(rank * count)));
}

// The share of the variance of the objective's ranks that lies between the groups, less what groups drawn by lot would explain (epsilon squared).
function explainedShare(values, objectives) {
    const n = values.length, groups = groupsOf(values), sums = new Map();
    if (n < TRIALS_FOR_SHARE) return null;
    const ranks = ranksOf(objectives), mean = ranks.reduce((sum, rank) => sum + rank, 0) / n;
    ranks.forEach((rank, i) => {
        const group = sums.get(groups[i]) || {sum: 0, count: 0};
        group.sum += rank;
        group.count++;
        sums.set(groups[i], group);
    });
    const whole = ranks.reduce((sum, rank) => sum + (rank - mean) ** 2, 0);
    const between = [...sums.values()].reduce((sum, group) => sum + group.count * (group.sum / group.count - mean) ** 2, 0);
    if (sums.size >= n) return null;
    return whole === 0 || sums.size < 2 ? 0 : Math.max(0, 1 - (whole - between) / (n - sums.size) / (whole / (n - 1)));
}
