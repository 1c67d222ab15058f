// SPDX-License-Identifier: Apache-2.0
//
// Draws curves as SVG. chart(figure, options) draws into a <figure>, and draws anew when it is called again:
//   title, unit      of the vertical axis
//   series           [{name, className, points: [[x, y, begins]], dots, bare}]; begins: no line leads to the point; dots: points alone;
//                    bare: the line alone
//   marks            [{kind: "restart" | "whole" | "checkpoint", x, text}]
//   best             x of the point to emphasise
//   logarithmic      whether the vertical axis is logarithmic
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 640, HEIGHT = 240, LEFT = 58, RIGHT = 12, TOP = 10, BOTTOM = 26;
const COLUMNS = 600;

function svg(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
}

function figureText(value) {
    if (value === null || value === undefined || !isFinite(value)) return "none";
    const size = Math.abs(value);
    if (size >= 1e6) return (value / 1e6).toPrecision(3) + "M";
    if (size >= 1e4) return Math.round(value / 1000) + "k";
    if (size >= 100) return String(Math.round(value));
    if (size >= 0.001 || size === 0) return String(Number(value.toPrecision(3)));
    return value.toExponential(1);
}

// About `count` round numbers between two values.
function ticks(low, high, count) {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw) || raw;
    const found = [];
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6 && found.length < 20; at += step) found.push(Number(at.toPrecision(12)));
    return found;
}

function powers(low, high) {
    const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9), every = Math.max(1, Math.ceil((last - first + 1) / 5));
    const found = [];
    for (let power = first; power <= last; power += every) found.push(power);
    return found.length > 1 ? found : ticks(low, high, 4);
}

// Of the points in one column of pixels only the first, the lowest, the highest and the last are drawn.
function decimate(points, low, high) {
    if (points.length <= 4 * COLUMNS) return points;
    const kept = [];
    let column = [], at = null;
    const flush = () => {
        if (column.length <= 4) { kept.push(...column); return; }
        let least = 0, most = 0;
        column.forEach((point, i) => {
            if (point[1] < column[least][1]) least = i;
            if (point[1] > column[most][1]) most = i;
        });
        [...new Set([0, Math.min(least, most), Math.max(least, most), column.length - 1])].forEach((i) => kept.push(column[i]));
    };
    for (const point of points) {
        const here = Math.floor((point[0] - low) / (high - low) * COLUMNS);
        if (here !== at || point[2]) { flush(); column = []; at = here; }
        column.push(point);
    }
    flush();
    return kept;
}

// Empties a figure but for its caption: the title, a key for each of the series, and a text about values, which is returned.
function writeCaption(figure, title, keyed) {
    const caption = document.createElement("figcaption");
    figure.setAttribute("aria-label", title);
    const part = (className, text) => {
        const element = document.createElement("span");
        element.className = className;
        element.textContent = text;
        caption.append(element);
        return element;
    };
    part("title", title);
    for (const one of keyed) part("key " + one.className, one.name);
    figure.replaceChildren(caption);
    return part("value", "");
}

function chart(figure, options) {
    const usable = (y) => y !== null && isFinite(y) && (!options.logarithmic || y > 0);
    const toY = (y) => options.logarithmic ? Math.log10(y) : y;
    const series = options.series.map((one) => ({...one, points: one.points.filter((p) => usable(p[1])).map((p) => [p[0], toY(p[1]), p[2], p[1]])}));
    const all = series.flatMap((one) => one.points), filled = series.filter((one) => one.points.length > 0);
    const nameOf = (one) => series.length > 1 ? one.name + " " : "";
    const newestOf = (one) => figureText(one.points[one.points.length - 1][3]);
    const drawn = figure.querySelector("svg");
    const pointer = drawn ? drawn.pointerX : null;
    const value = writeCaption(figure, options.title, series.length > 1 ? filled : []);
    if (all.length === 0) {
        const empty = document.createElement("p");
        empty.className = "empty";
        empty.textContent = options.empty || "No values yet.";
        figure.append(empty);
        return;
    }
    let lowX = Infinity, highX = -Infinity, lowY = Infinity, highY = -Infinity;
    for (const [x, y] of all) {
        lowX = Math.min(lowX, x); highX = Math.max(highX, x);
        lowY = Math.min(lowY, y); highY = Math.max(highY, y);
    }
    if (highX === lowX) { lowX -= 1; highX += 1; }
    if (highY === lowY) { const by = Math.abs(lowY) / 10 || 1; lowY -= by; highY += by; }
    const margin = (highY - lowY) * 0.06;
    if (options.fromZero && !options.logarithmic) { lowY = Math.min(0, lowY); highY += margin; } else { lowY -= margin; highY += margin; }
    const placeY = (y) => HEIGHT - BOTTOM - (y - lowY) / (highY - lowY) * (HEIGHT - TOP - BOTTOM);
    const last = filled.map((one) => one.name + " " + newestOf(one)).join(", ");
    const picture = svg("svg", {class: "chart", role: "img", "aria-label": `${options.title}: newest ${last}`});
    figure.append(picture);
    const right = (picture.getBoundingClientRect().width || WIDTH) - RIGHT;
    const screenX = (x) => LEFT + (x - lowX) / (highX - lowX) * (right - LEFT);
    for (const y of options.logarithmic ? powers(lowY, highY) : ticks(lowY, highY, 4)) {
        svg("line", {class: "grid-line", x1: LEFT, x2: right, y1: placeY(y), y2: placeY(y)}, picture);
        svg("text", {x: LEFT - 6, y: placeY(y) + 4, "text-anchor": "end"}, picture).textContent = figureText(options.logarithmic ? 10 ** y : y);
    }
    const wholeX = ticks(lowX, highX, Math.max(2, Math.min(6, (right - LEFT) / 90))).filter((x) => Number.isInteger(x));
    for (const x of wholeX)
        svg("text", {x: Math.min(screenX(x), right - 12), y: HEIGHT - 8, "text-anchor": "middle"}, picture).textContent = x.toLocaleString("en");
    for (const mark of options.marks || []) {
        if (mark.x < lowX || mark.x > highX) continue;
        const x = screenX(mark.x);
        const shape = mark.kind === "checkpoint"
            ? svg("path", {class: "checkpoint", d: `M${x - 4} ${HEIGHT - BOTTOM}h8l-4 -7z`}, picture)
            : svg("line", {class: mark.kind, x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM}, picture);
        svg("title", {}, shape).textContent = mark.text;
    }
    for (const one of series) {
        const group = svg("g", {class: one.className}, picture);
        const points = one.drawn = decimate(one.points, lowX, highX);
        if (!one.dots)
            svg("path", {class: "curve", d: points.map((p, i) => (i === 0 || p[2] ? "M" : "L") + screenX(p[0]).toFixed(1) + " " + placeY(p[1]).toFixed(1)).join("")}, group);
        if (one.dots || !one.bare && points.length <= 40)
            for (const p of points)
                svg("circle", {class: p[0] === options.best ? "dot best" : "dot", cx: screenX(p[0]), cy: placeY(p[1]), r: p[0] === options.best ? 6 : one.dots ? 4 : 2.5}, group);
    }
    const line = svg("line", {class: "pointer", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden"}, picture);
    const point = (x) => {
        picture.pointerX = x;
        if (x === null) {
            line.setAttribute("visibility", "hidden");
            value.textContent = filled.map((one) => nameOf(one) + newestOf(one) + (options.unit ? " " + options.unit : "")).join(", ");
            return;
        }
        const at = lowX + (x - LEFT) / (right - LEFT) * (highX - lowX);
        const nearest = filled.map((one) => [one, one.drawn.reduce((best, p) => Math.abs(p[0] - at) < Math.abs(best[0] - at) ? p : best)]);
        const place = nearest.reduce((best, [, p]) => Math.abs(p[0] - at) < Math.abs(best - at) ? p[0] : best, nearest[0][1][0]);
        line.setAttribute("visibility", "visible");
        line.setAttribute("x1", screenX(place));
        line.setAttribute("x2", screenX(place));
        value.textContent = `${options.xName || "step"} ${place.toLocaleString("en")}: ` + nearest.map(([one, p]) => nameOf(one) + figureText(p[3])).join(", ");
    };
    picture.addEventListener("pointermove", (event) => point(event.clientX - picture.getBoundingClientRect().left));
    picture.addEventListener("pointerleave", () => point(null));
    point(pointer === undefined ? null : pointer);
}
