// SPDX-License-Identifier: Apache-2.0
//
// What the page of `cox ui` does with a trained model: a text model continues a prompt; a classifier is evaluated on the held-out
// examples, with its confusion matrix and the examples that it gets most wrong.
"use strict";

const MODEL_PATIENCE_MS = 110000; // cox ui gives the worker 100 s

// Returns {element, update(document), end()}; update takes each new /api/job document.
function modelPanel(place) {
    const element = make("div", {}), said = make("p", {class: "faint", id: "use-said", role: "status", "aria-live": "polite"});
    const result = make("div", {id: "use-result"});
    let kind = null, running = null; // running: aborts the use that is not answered yet

    // Each use has a button that stops it; the server kills the worker when the request is aborted.
    async function use(path, more, options, show, showPart = null) {
        const aborter = new AbortController(), begun = Date.now();
        running = aborter;
        writeButtons();
        setText(said, "The model is being loaded and used on this machine…");
        try {
            const answer = await ask(addressed(path, place, more), {method: "POST", ...options, signal: AbortSignal.any([aborter.signal, AbortSignal.timeout(MODEL_PATIENCE_MS)])}, MODEL_PATIENCE_MS, showPart);
            show(answer);
            setText(said, `Weights: ${answer.weights || "unknown"}. It took ${((Date.now() - begun) / 1000).toFixed(1)} s` + (answer.unfinished ? ", after which it was stopped: the text is not complete." : "."));
        } catch (error) {
            setText(said, aborter.signal.aborted ? "Stopped." : error.message);
            if (!(error instanceof Refused || error instanceof Unanswered)) console.error(error);
        }
        running = null;
        writeButtons();
    }

    const go = make("button", {id: "use-go"}), stop = make("button", {id: "use-stop", text: "Stop", onclick: () => running && running.abort()});
    // The focus stays with the buttons: one that is disabled or hidden loses it.
    function writeButtons() {
        const focused = document.activeElement === go || document.activeElement === stop;
        go.disabled = Boolean(running);
        stop.hidden = !running;
        result.setAttribute("aria-busy", Boolean(running));
        if (focused) (running ? stop : go).focus();
    }

    function promptForm(bytes) {
        const prompt = make("textarea", {id: "prompt", rows: 4, maxlength: 4000, "aria-describedby": "prompt-help"});
        const tokens = make("input", {type: "number", id: "tokens", min: 1, max: 2000, value: 200, required: true});
        const temperature = make("input", {type: "number", id: "temperature", min: 0, max: 100, step: "any", value: 0.8, required: true});
        const seed = make("input", {type: "number", id: "seed", min: 0, max: 2147483647, value: 0, required: true});
        const form = make("form", {}, make("p", {}, make("label", {for: "prompt", text: "Prompt"})), prompt,
            make("p", {class: "faint", id: "prompt-help", text: bytes ? "A text, which the model continues." : "Token numbers, such as 17 4 250: a job has no tokenizer."}),
            make("div", {class: "filters"}, make("label", {for: "tokens", text: bytes ? "Bytes" : "Tokens"}), tokens, make("label", {for: "temperature", text: "Temperature (0: the most probable)"}), temperature,
                make("label", {for: "seed", text: "Seed"}), seed, go, stop));
        go.textContent = "Continue";
        form.addEventListener("submit", (event) => {
            event.preventDefault();
            const generated = make("pre", {class: "log", id: "generated", tabindex: 0, "aria-label": "the continued text"});
            const show = (answer) => { setText(generated, answer.text); result.replaceChildren(generated); };
            use("/api/generate", {tokens: tokens.value, temperature: temperature.value, seed: seed.value}, {body: prompt.value}, show, show);
        });
        return form;
    }

    function evaluationForm() {
        go.textContent = "Evaluate";
        go.type = "button";
        go.addEventListener("click", () => use("/api/predict", {}, {}, (answer) => showResult(result, answer.result)));
        return make("div", {}, make("p", {text: "Evaluates all held-out examples with the newest weights."}), make("div", {class: "filters"}, go, stop));
    }

    // Returns why the job's model cannot be used here; "": it can.
    function obstacleOf({spec, here}) {
        if (!spec.coxswain) return "The model of another framework can only be used with that framework.";
        if (!here) return "The weights are on a volume of the cluster, which cox ui cannot read. It can use the models of runs on this machine: cox ui --state RUN.";
        if (kind === "prompt" && spec.coxswain.model && spec.coxswain.model.program) return "A program cannot generate one token at a time: load the exported weights in the framework that it comes from.";
        return kind === "evaluation" && !(spec.coxswain.data && spec.coxswain.data.validation) ? "The job has no held-out examples: give it data.validation, such as {last: 1000}." : "";
    }

    return {element, update: (newest) => {
        if (kind) return;
        const format = newest.spec.coxswain && newest.spec.coxswain.data ? newest.spec.coxswain.data.format : "";
        kind = format === "Bytes" || format === "Tokens" ? "prompt" : "evaluation";
        const obstacle = obstacleOf(newest);
        if (obstacle) element.replaceChildren(make("p", {class: "empty", id: "use-obstacle", text: obstacle}));
        else element.replaceChildren(kind === "prompt" ? promptForm(format === "Bytes") : evaluationForm(), said, result);
        writeButtons();
    }, end: () => running && running.abort()};
}

// ---------------------------------------------------------------- an evaluation

function showResult(host, result) {
    const nameOf = (number) => result.classes ? String(result.classes[number]) : String(number), parts = [];
    const list = make("dl", {class: "facts"});
    writeFacts(list, [["Held-out examples", result.examples.toLocaleString("en")], ["Loss", result.loss !== undefined && figureText(result.loss)],
        ["Right", result.accuracy !== undefined && (100 * result.accuracy).toFixed(2) + " %"], ["Perplexity", result.perplexity !== undefined && figureText(result.perplexity)],
        ["RMSE in the labels' unit", result.rmse !== undefined && figureText(result.rmse)]]);
    parts.push(list);
    if (result.confusion) parts.push(make("h3", {text: "Confusion matrix"}), confusionTable(result.confusion, nameOf));
    else if (result.worst) parts.push(make("p", {class: "faint", text: "A confusion matrix is drawn for up to 100 classes; this model has more."}));
    if (result.worst && result.worst.length > 0) parts.push(make("h3", {text: "Held-out examples that it gets most wrong"}),
        make("p", {class: "legend", text: "Those whose true class got the lowest probability, the worst first."}), make("ul", {class: "examples", id: "worst"}, ...result.worst.map((one) => exampleOf(one, nameOf))));
    if (!result.worst) parts.push(make("p", {class: "faint", text: "The model gives no class for each example, so there is no confusion matrix."}));
    host.replaceChildren(...parts);
}

// Rows are the true classes. A cell is the darker the larger its share of the row; the numbers say the same.
function confusionTable(matrix, nameOf) {
    const head = make("tr", {}, make("th", {scope: "col", text: "true \\ predicted"}), ...matrix.map((row, i) => make("th", {scope: "col", text: nameOf(i)})), make("th", {scope: "col", text: "right"}));
    const body = matrix.map((row, i) => {
        const sum = row.reduce((a, b) => a + b, 0);
        return make("tr", {}, make("th", {scope: "row", text: nameOf(i)}), ...row.map((count, j) => {
            const level = sum === 0 || count === 0 ? 0 : Math.min(4, 1 + Math.floor(4 * count / sum));
            return make("td", {class: `number ${i === j ? "hit" : "miss"}-${level}`, text: count || "", title: count ? `${count} of class ${nameOf(i)} were taken for ${nameOf(j)}` : null});
        }), make("td", {class: "number", text: sum === 0 ? "" : Math.round(100 * row[i] / sum) + " %"}));
    });
    return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "confusion matrix"}, make("table", {class: "confusion", id: "confusion", "aria-label": "Confusion matrix"}, make("thead", {}, head), make("tbody", {}, ...body)));
}

function exampleOf(one, nameOf) {
    const wrong = one.given !== one.class, share = one.probability === null ? "" : ` (${Math.round(100 * one.probability)} %)`;
    const words = `is ${nameOf(one.class)}, taken for ${nameOf(one.given)}${share}`;
    return make("li", {}, ...one.picture ? [pictureOf(one.picture, `example ${one.example}: ${words}`)] : [], make("div", {}, make("span", {class: wrong ? "state bad" : "state good", text: wrong ? "wrong" : "right"})),
        make("div", {text: words}), make("div", {class: "faint", text: `example ${one.example}, loss ${figureText(one.loss)}`}));
}

function pictureOf(picture, words) {
    const canvas = make("canvas", {width: picture.width, height: picture.height, role: "img", "aria-label": words});
    const context = canvas.getContext("2d"), image = context.createImageData(picture.width, picture.height), bytes = atob(picture.pixels);
    for (let i = 0; i < picture.width * picture.height; i++) {
        for (let c = 0; c < 3; c++) image.data[4 * i + c] = bytes.charCodeAt(picture.channels * i + (picture.channels === 3 ? c : 0));
        image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return canvas;
}
