/* SPDX-License-Identifier: Apache-2.0
 *
 * What `cox demo` trains: digits where their data can be had, else a byte model on
 * this project's own text.
 */
#ifndef COXSWAIN_CLI_DEMO_EXAMPLE_H
#define COXSWAIN_CLI_DEMO_EXAMPLE_H

#include "common/error.h"
#include "common/event_loop.h"
#include "operator/cli/terminal.h"

/* Strings but the title are its own; release with demo_example_release. */
struct demo_example {
    const char *title;
    char *manifest;
    char *volume; /* "claim=directory" */
    char *data;   /* file, or what pins it (struct run_ingredients) */
};

/* Downloads with a progress bar when it must; says on stdout why it takes the text instead. `interrupted` may become true
 * meanwhile: ERROR_CANCELLED. Data that is there but wrong is an error (ERROR_CORRUPT, ERROR_TOO_LARGE). The text is
 * collected in `directory`. */
int demo_example_choose(struct demo_example *ret_example, const char *directory, struct event_loop *loop,
                        struct terminal *terminal, const bool *interrupted, struct error *error);
void demo_example_release(struct demo_example *example);

#endif
