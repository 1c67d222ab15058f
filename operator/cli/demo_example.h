/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses what `cox demo` trains: a LeNet on handwritten digits if their files are found or can be
 * downloaded, otherwise a language model over the bytes of Coxswain's own text (corpus.h). Files with the
 * wrong contents are an error, not a reason to train on the text.
 */
#ifndef COXSWAIN_CLI_DEMO_EXAMPLE_H
#define COXSWAIN_CLI_DEMO_EXAMPLE_H

#include "common/error.h"
#include "common/event_loop.h"
#include "operator/cli/terminal.h"

/* Owns its strings except the title; release with demo_example_release. */
struct demo_example {
    const char *title;
    char *manifest;
    char *volume; /* "claim=directory" */
    char *data;   /* a file, or a digest that identifies the data (struct run_ingredients) */
};

/* Chooses the example. Shows a progress bar during a download; if it chooses the text, prints the reason to stdout and writes the text to
 * `directory`. ERROR_CANCELLED if *interrupted becomes true; ERROR_CORRUPT or ERROR_TOO_LARGE if the data of the digits is wrong. */
int demo_example_choose(struct demo_example *ret_example, const char *directory, struct event_loop *loop,
                        struct terminal *terminal, const bool *interrupted, struct error *error);
void demo_example_release(struct demo_example *example);

#endif
