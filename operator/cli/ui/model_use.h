/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses the model of a job for the page of `cox ui`: describes its layers, continues a text, or evaluates the held-out examples. Runs
 * coxswain-worker as a child process, as `cox generate-text` and `cox predict NAME --json` do, at a lower priority than training. The two
 * that need the weights run at most two at a time, each for at most 100 seconds, and the job's volumes must be directories of this machine.
 * The worker reads the prompt from a file, since other users of the machine can see command lines. Runs on the event loop and never blocks
 * it.
 */
#ifndef COXSWAIN_CLI_UI_MODEL_USE_H
#define COXSWAIN_CLI_UI_MODEL_USE_H

#include "common/event_loop.h"
#include "common/http_server.h"
#include "common/json.h"

#define MODEL_USES_MAX 2
#define MODEL_USE_SECONDS 100 /* less than the HTTP server lets a connection be idle */
#define MODEL_LAYERS_MAX 4    /* as many descriptions at a time */
#define MODEL_LAYERS_SECONDS 10
#define MODEL_TEXT_MS 200 /* how often a text is sent while it grows */
#define MODEL_TOKENS_MAX 2000

struct model_uses;
struct model_use;

enum model_purpose { MODEL_LAYERS, MODEL_PREDICT, MODEL_GENERATE };

struct model_question {
    enum model_purpose purpose;
    const char *prompt; /* MODEL_GENERATE, and so the rest */
    int64_t tokens, seed;
    double temperature;
};

struct model_uses *model_uses_new(struct event_loop *loop);
/* Kills the workers that still run. Call it after the HTTP server was freed, which ends the streams. */
void model_uses_free(struct model_uses *uses);

/* Starts a use. `state`: the state directory that has the job's volumes, or NULL if the job is in a cluster: then only its layers can be
 * described. model_use_attach must follow, with a stream whose `closed` is model_use_closed and whose context is the use: a stream reports
 * when the browser goes away, and the worker is then killed. */
int model_use_start(struct model_uses *uses, const char *state, const char *name_space, const struct json *job,
                    const struct model_question *question, struct model_use **ret_use, struct error *error);
/* Once the worker has ended, sends the answer to the stream and closes it. Layers: the worker's JSON. MODEL_PREDICT: {"weights": where
 * they come from, "unfinished": whether the time limit ended the worker, "result": the worker's JSON}. MODEL_GENERATE: the same with
 * "text" instead of "result", as the last of several server-sent events; the earlier ones are {"text": the text so far}. On failure
 * {"error": why}. */
void model_use_attach(struct model_use *use, struct http_stream *stream);
void model_use_closed(void *use);

#endif
