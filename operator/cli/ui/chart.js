// SPDX-License-Identifier: Apache-2.0
//
// Draws curves with Chart.js, which nothing else calls. chart(figure, options) draws into a <figure>; when it is called again, it shows the
// new data in the same chart:
//   title, unit      of the vertical axis
//   series           [{name, className, points: [[x, y, begins]], dots, hollow, stepped}]; className: the colour, a variable of page.css;
//                    begins: no line leads to the point; dots: points without a line; hollow: of which only the rim is drawn; stepped: the line keeps its height up to the next point
//   marks            [{kind: "restart" | "whole" | "checkpoint", x, text}]
//   best             x of the point to emphasise, and to call the best; null: there is none. Without it the lowest value is the best, or
//                    with higherIsBetter the highest
//   logarithmic      whether the vertical axis is logarithmic
// A chart has the keyboard's focus like a link: arrow keys, Page Up, Page Down, Home and End show the tooltip of one point after another and
// say it to a screen reader, Escape closes it. For screen readers there are also a summary of the values and a list of the marks.
// closeCharts() frees all charts. The helpers of the SVG drawings (svg, ticks, powers) and of both kinds (figureText, gapAt, writeCaption) are here, too.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 640, LEFT = 58, RIGHT = 12; // of an SVG drawing: the width if it is not shown, and its margins
const POINTS_DOTTED = 40; // a line of at most so many points has a dot for each
const POINTS_PARSED = 10000; // of more points Chart.js draws a part; for that they must be in order of x, which those of a restarted job are not. The server sends at most 2,056
const DIGITS_MAX = 12; // more may be rounding errors
const PARTS_TOLD = 50; // values of a chart that are this part of its height apart have different texts
const MARK_NEAR = 6; // how many pixels a mark may be away from the tooltip's point
const PAGE_PARTS = 10; // Page Down goes on by this part of the points
const MARK_COLOURS = {restart: "bad", whole: "wait", checkpoint: "mark"};

function svg(name, attributes, parent) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.append(element);
    return element;
}

// A value with three significant digits or, where it is to be told from values that are `step` away, with as many as that takes.
function figureText(value, step = Infinity) {
    if (value === null || value === undefined || !isFinite(value)) return "none";
    if (value === 0) return "0";
    const size = Math.abs(value), placeOf = (number) => Math.floor(Math.log10(number)), unit = size >= 1e6 ? 1e6 : 1e3;
    const digits = (least) => Math.min(DIGITS_MAX, Math.max(least, placeOf(size) - placeOf(step) + 1));
    if (size >= 1e4 && step >= unit / 100) return Number((value / unit).toPrecision(digits(3))) + (unit === 1e6 ? "M" : "k");
    if (size >= 1e4) return Number(value.toPrecision(digits(3))).toLocaleString("en", {maximumFractionDigits: DIGITS_MAX});
    if (size >= 0.001) return String(Number(value.toPrecision(digits(Math.max(3, placeOf(size) + 1)))));
    return value.toExponential(digits(2) - 1).replace(/\.?0+e/, "e");
}

// How far the nearest other number is.
const gapAt = (value, others) => others.reduce((gap, other) => typeof other === "number" && other !== value ? Math.min(gap, Math.abs(other - value)) : gap, Infinity);

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

// Empties a figure but for its chart, and writes its caption: the title, a key for each of the series, and a text about values, which is returned.
function writeCaption(figure, title, keyed) {
    const value = make("span", {class: "value"});
    figure.setAttribute("aria-label", title);
    for (const old of [...figure.children]) if (old.className !== "plot") old.remove();
    figure.prepend(make("figcaption", {}, make("span", {class: "title", text: title}), ...keyed.map((one) => make("span", {class: "key " + one.className, text: one.name})), value));
    return value;
}

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const eachChart = (act) => Object.values(Chart.instances).forEach(act);
const closeCharts = () => eachChart((one) => one.destroy());

Chart.defaults.set({animation: false, maintainAspectRatio: false, locale: "en", interaction: {mode: "nearestOfEach"}, font: {family: "system-ui, sans-serif"},
    plugins: {legend: {display: false}, decimation: {enabled: true}, tooltip: {borderWidth: 1, boxPadding: 4}}});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => eachChart((one) => one.drawAgain()));

// Of each series the point that is nearest to the pointer in x: series have points at different steps, so that no mode of Chart.js does it.
Chart.Interaction.modes.nearestOfEach = (picture, {x}) => picture.data.datasets.map((_, datasetIndex) => {
    const {data} = picture.getDatasetMeta(datasetIndex);
    const index = data.reduce((best, element, i) => !element.skip && Math.abs(element.x - x) < Math.abs(data[best].x - x) ? i : best, 0);
    return {element: data[index], datasetIndex, index};
});

// A plugin of Chart.js: dashed lines for restarts and crews that are whole again, triangles for checkpoints.
const drawMarks = {id: "marks", beforeDatasetsDraw({ctx, chartArea: {top, bottom}, scales: {x}, data: {marks}}) {
    ctx.save();
    for (const mark of marks.filter((one) => one.x >= x.min && one.x <= x.max)) {
        const at = x.getPixelForValue(mark.x), isCheckpoint = mark.kind === "checkpoint";
        ctx.strokeStyle = ctx.fillStyle = colourOf(MARK_COLOURS[mark.kind]);
        ctx.setLineDash([4, 3]);
        ctx.beginPath();
        for (const [across, up] of isCheckpoint ? [[-4, 0], [4, 0], [0, 7]] : [[0, 0], [0, bottom - top]]) ctx.lineTo(at + across, bottom - up);
        if (isCheckpoint) ctx.fill();
        else ctx.stroke();
    }
    ctx.restore();
}};

// The points of a series as data of Chart.js, with a point without y where the line is broken. `at` stays when decimation moves x to the
// middle of a column of pixels.
function dataOf(points, isUsable) {
    const data = [];
    let begins = false;
    for (const [x, y, isFirst] of points) {
        begins = begins || Boolean(isFirst);
        if (!isUsable(y)) continue;
        if (data.length > 0 && (begins || x < data.at(-1).x)) data.push({x, y: null});
        data.push({x, y, at: x});
        begins = false;
    }
    return data;
}

// The lowest and highest x, and the first points with the lowest and highest y.
function extremesOf(data) {
    let left = data[0].x, right = left, low = 0, high = 0;
    for (let i = 1; i < data.length; i++) {
        const {x, y} = data[i];
        if (y === null) continue;
        if (x < left) left = x;
        if (x > right) right = x;
        if (y < data[low].y) low = i;
        if (y > data[high].y) high = i;
    }
    return {left, right, low, high};
}

// The value of a point, told from those of the points beside it, and from what is `step` away.
const pointText = (data, i, step) => figureText(data[i].y, Math.min(step, gapAt(data[i].y, data.slice(Math.max(0, i - 1), i + 2).map(({y}) => y))));

// The vertical axis. `low` and `high` are those of the data.
function axisY(options, low, high) {
    const axis = {beginAtZero: Boolean(options.fromZero), grid: {color: colourOf("line"), drawBorder: false}, ticks: {color: colourOf("faint"), callback: (value, _, all) => figureText(value, gapAt(value, all.map((tick) => tick.value))), maxTicksLimit: 6}};
    return !options.logarithmic ? axis : {...axis, type: "logarithmic", min: 0.95 * low, max: 1.05 * high, ticks: {...axis.ticks, autoSkip: false},
        afterBuildTicks: (scale) => { scale.ticks = powers(Math.log10(scale.min), Math.log10(scale.max)).map((power) => ({value: 10 ** power})); }};
}

// ---------------------------------------------------------------- the keyboard, and screen readers

// The places in x of all points, in pixels.
const placesOf = (picture) => [...new Set(picture.data.datasets.flatMap((_, i) => picture.getDatasetMeta(i).data.filter((element) => !element.skip).map((element) => element.x)))].sort((a, b) => a - b);

// Shows the tooltip of the points at a place, or none.
function showPlace(picture, place) {
    const found = place === null ? [] : Chart.Interaction.modes.nearestOfEach(picture, {x: place});
    picture.chosen = place === null ? null : picture.scales.x.getValueForPixel(place);
    picture.setActiveElements(found);
    picture.tooltip.setActiveElements(found, {x: place, y: picture.chartArea.top});
    picture.draw();
}

const tooltipText = ({title, body, footer}) => [[...title, ...body.flatMap((item) => item.lines)].join(", "), ...footer].join("; ");

// A key starts from the point that the tooltip shows, also if the pointer has chosen it, and goes on until the tooltip says something else: curves
// have points at different places. Returns whether it is one of the keys.
function moveByKey(picture, key) {
    const places = placesOf(picture), last = places.length - 1, page = Math.max(1, Math.round(places.length / PAGE_PARTS)), shown = picture.tooltip.getActiveElements();
    const by = {ArrowRight: 1, ArrowLeft: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity}[key];
    if (by === undefined) return false;
    const from = picture.chosen !== null ? picture.scales.x.getPixelForValue(picture.chosen) : shown.length > 0 ? shown[0].element.x : null;
    const before = from === null ? "" : tooltipText(picture.tooltip);
    let at = from === null ? by > 0 ? -1 : last + 1 : places.reduce((best, place, i) => Math.abs(place - from) < Math.abs(places[best] - from) ? i : best, 0);
    do {
        at = Math.max(0, Math.min(last, at + by));
        showPlace(picture, places[at]);
    } while (tooltipText(picture.tooltip) === before && at > 0 && at < last);
    return true;
}

// A canvas with what stands beside it for screen readers.
function newPlot() {
    const said = make("p", {class: "unseen", role: "status", "aria-live": "polite"}), picture = () => Chart.getChart(canvas);
    const close = () => { if (picture()) showPlace(picture(), null); said.textContent = ""; };
    const canvas = make("canvas", {role: "application", "aria-roledescription": "chart", tabindex: 0, onblur: close, onpointermove: () => { picture().chosen = null; }, onkeydown: (event) => {
        if (event.ctrlKey || event.altKey || event.metaKey) return;
        if (event.key === "Escape") close();
        else if (moveByKey(picture(), event.key)) {
            event.preventDefault();
            setText(said, tooltipText(picture().tooltip));
        }
    }});
    return make("div", {class: "plot"}, canvas, said, make("ul", {class: "unseen", "aria-label": "Marks of the curve"}));
}

function writeMarks(list, marks) {
    list.hidden = marks.length === 0;
    while (list.children.length > marks.length) list.lastChild.remove();
    marks.forEach((mark, i) => setText(list.children[i] || list.appendChild(make("li", {})), mark.text));
}

// The first, last and best value of a curve.
function summaryOf({data, low, high}, options, step) {
    const best = options.best !== undefined ? data.findIndex(({at}) => at === options.best) : options.higherIsBetter ? high : low;
    const text = (i) => `${pointText(data, i, step)} at ${options.xName || "step"} ${data[i].at.toLocaleString("en")}`;
    return `first ${text(0)}, last ${text(data.length - 1)}` + (best < 0 ? "" : `, best ${text(best)}`);
}

// ---------------------------------------------------------------- the chart

function chart(figure, options) {
    if (!figure.isConnected) return; // the answer to the last read of a view that was left
    const isUsable = (y) => y !== null && isFinite(y) && (!options.logarithmic || y > 0), marks = options.marks || [];
    const filled = options.series.map((one) => ({...one, data: dataOf(one.points, isUsable)})).filter((one) => one.data.length > 0);
    const nameOf = (name) => options.series.length > 1 ? name + " " : "";
    const value = writeCaption(figure, options.title, options.series.length > 1 ? filled : []);
    let canvas = figure.querySelector("canvas");
    if (filled.length === 0) {
        if (canvas) Chart.getChart(canvas).destroy();
        figure.replaceChildren(figure.firstChild, make("p", {class: "empty", text: options.empty || "No values yet."}));
        return;
    }
    filled.forEach((one) => Object.assign(one, extremesOf(one.data)));
    const lowX = Math.min(...filled.map(({left}) => left)), highX = Math.max(...filled.map(({right}) => right));
    const lowY = Math.min(...filled.map(({data, low}) => data[low].y)), highY = Math.max(...filled.map(({data, high}) => data[high].y));
    const step = (highY - lowY) / PARTS_TOLD || Infinity, newestOf = ({data}) => pointText(data, data.length - 1, step);
    value.textContent = filled.map((one) => nameOf(one.name) + newestOf(one) + (options.unit ? " " + options.unit : "")).join(", ");
    const isBest = ({raw}) => Boolean(raw) && raw.at === options.best, text = colourOf("text");
    const datasets = filled.map(({name, data, className, dots, hollow, stepped}, i) => ({label: name, data, order: -i, stepped, showLine: !dots, clip: 8, borderWidth: 1.8, borderColor: colourOf(className), pointBorderWidth: hollow ? 1.5 : 0,
        pointRadius: dots ? (point) => isBest(point) ? 6 : 4 : stepped || data.length > POINTS_DOTTED ? 0 : 2.5, backgroundColor: hollow ? "transparent" : dots ? (point) => colourOf(isBest(point) ? "good" : className) : colourOf(className)}));
    const settings = {data: {datasets, marks}, options: {parsing: filled.every(({data}) => data.length <= POINTS_PARSED),
        scales: {x: {type: "linear", ...isFinite(lowX) ? {min: lowX, max: Math.max(highX, lowX + 1)} : {}, grid: {display: false, drawBorder: false}, ticks: {color: colourOf("faint"), precision: 0, includeBounds: false, maxRotation: 0}},
            y: axisY(options, lowY, highY)},
        plugins: {tooltip: {backgroundColor: colourOf("raised"), borderColor: colourOf("line"), titleColor: text, bodyColor: text, footerColor: text, callbacks: {
            title: ([first]) => `${options.xName || "step"} ${first.raw.at.toLocaleString("en")}`,
            label: ({raw, dataset, dataIndex, chart: {tooltip: {dataPoints: [first]}}}) => nameOf(dataset.label) + pointText(dataset.data, dataIndex, step) + (raw.at === first.raw.at ? "" : ` at ${raw.at.toLocaleString("en")}`),
            footer: ([{element, chart: {scales: {x}}}]) => marks.filter((mark) => Math.abs(x.getPixelForValue(mark.x) - element.x) < MARK_NEAR).map((mark) => mark.text)}}}}};
    if (canvas) {
        Object.assign(Chart.getChart(canvas), settings).update();
    } else {
        figure.append(newPlot());
        canvas = figure.querySelector("canvas");
        new Chart(canvas, {type: "line", plugins: [drawMarks], ...settings}).chosen = null;
    }
    const picture = Chart.getChart(canvas);
    picture.drawAgain = () => chart(figure, options);
    if (picture.chosen !== null) showPlace(picture, picture.scales.x.getPixelForValue(picture.chosen)); // the data are others
    writeMarks(figure.querySelector("ul"), marks);
    // A screen reader says the name of what has the focus each time that it changes.
    if (document.activeElement !== canvas)
        canvas.setAttribute("aria-label", `${options.title}: ${filled.map((one) => nameOf(one.name) + summaryOf(one, options, step)).join("; ")}. Arrow keys show its points.`);
}
