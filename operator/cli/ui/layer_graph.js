// SPDX-License-Identifier: Apache-2.0
//
// Draws the layers of a model as SVG: a box for each layer, from the input down, with its type, the shape of its output and its parameters.
// Lines go from box to box; those that pass others, such as of residual branches, go round them on the right, each in a lane of its own.
// layerGraph(figure, model) takes what coxswain-worker --describe-model prints.
"use strict";

const BOX_WIDTH = 400, BOX_HEIGHT = 42, BOX_PITCH = 64, LANE_WIDTH = 14, LAYERS_DRAWN = 400;

// Returns the lines that pass boxes: [{from, to, lane}…]; box 0 is the input. Two lines beside the same box have different lanes; a lane is
// free again from the box at which its line ends.
function lanesOf(model) {
    const lines = model.layers.flatMap((layer, i) => layer.inputs.filter((from) => from < i - 1).map((from) => ({from: from + 1, to: i + 1})));
    const ends = [];
    lines.sort((a, b) => a.from - b.from || b.to - a.to);
    for (const line of lines) {
        const lane = ends.findIndex((end) => end <= line.from);
        line.lane = lane < 0 ? ends.length : lane;
        ends[line.lane] = line.to;
    }
    return lines;
}

function layerGraph(figure, model) {
    figure.replaceChildren();
    if (model.layers.length > LAYERS_DRAWN) {
        figure.append(make("p", {class: "empty", text: `Up to ${LAYERS_DRAWN} layers are drawn; the table has all of them.`}));
        return;
    }
    const top = (at) => at * BOX_PITCH, middle = (at) => top(at) + BOX_HEIGHT / 2;
    const lines = lanesOf(model), lanes = Math.max(0, ...lines.map((line) => line.lane + 1));
    const width = BOX_WIDTH + (lanes + 1) * LANE_WIDTH + 2, height = top(model.layers.length) + BOX_HEIGHT + 2;
    const largest = Math.max(1, ...model.layers.map((layer) => layer.parameters));
    const picture = svg("svg", {class: "layer-graph", role: "img", width, height, viewBox: `-1 -1 ${width} ${height}`,
        "aria-label": `the ${model.layers.length} layers from the input down; ${lines.length} connections pass other layers. The table after it says the same in words`});
    const box = (at, type, name, output, parameters) => {
        const size = parameters > 0 ? parameters.toLocaleString("en") + " parameters" : "";
        const group = svg("g", {class: at === 0 ? "box input" : "box", transform: `translate(0 ${top(at)})`}, picture);
        const word = (x, y, className, text, anchor) => svg("text", {x, y, class: className, "text-anchor": anchor || "start"}, group).textContent = text;
        svg("rect", {width: BOX_WIDTH, height: BOX_HEIGHT, rx: 6}, group);
        if (parameters > 0) svg("rect", {class: "share", x: 1, y: BOX_HEIGHT - 4, width: Math.max(1, (BOX_WIDTH - 2) * parameters / largest), height: 3}, group);
        word(10, 18, "type", type);
        word(10, 33, "name", name);
        word(BOX_WIDTH - 10, 18, "output", output, "end");
        word(BOX_WIDTH - 10, 33, "name", size, "end");
        svg("title", {}, group).textContent = `${type} ${name}, output ${output}` + (size && ", " + size);
    };
    model.layers.forEach((layer, i) => {
        if (!layer.inputs.includes(i - 1)) return;
        svg("path", {class: "flow", d: `M${BOX_WIDTH / 2} ${top(i) + BOX_HEIGHT}V${top(i + 1) - 1}m-4 -6l4 6l4 -6`}, picture);
    });
    for (const {from, to, lane} of lines) {
        const x = BOX_WIDTH + (lane + 1) * LANE_WIDTH;
        svg("path", {class: "flow pass", d: `M${BOX_WIDTH} ${middle(from) + 8}H${x - 6}q6 0 6 6V${middle(to) - 14}q0 6 -6 6H${BOX_WIDTH + 1}m6 -4l-6 4l6 4`}, picture);
    }
    box(0, "Input", "", model.input, 0);
    model.layers.forEach((layer, i) => box(i + 1, layer.type, layer.name, layer.output, layer.parameters));
    figure.append(picture);
}
