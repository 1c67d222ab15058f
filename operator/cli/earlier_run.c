/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/earlier_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "operator/cli/paths.h"
#include "operator/cli/sha256.h"

#define RECORD_MAX (64 * 1024)

static int describe(const struct run_ingredients *ingredients, struct buffer *out, struct error *error)
{
    SCOPED_FREE char *worker = path_of_program("coxswain-worker");
    char manifest[DIGEST_TEXT_MAX], program[DIGEST_TEXT_MAX], data[DIGEST_TEXT_MAX];
    if (digest_file(ingredients->manifest, DIGEST_SHA256, manifest, error) < 0 ||
        digest_file(worker, DIGEST_SHA256, program, error) < 0)
        return -1;
    if (access(ingredients->data, R_OK) != 0)
        snprintf(data, sizeof data, "%s", ingredients->data);
    else if (digest_file(ingredients->data, DIGEST_SHA256, data, error) < 0)
        return -1;
    buffer_format(out, "job %s\nworker %s\ndata %s\n", manifest, program, data);
    return 0;
}

/* The record: what the run was made from, then "weights <path> <SHA-256>". */
static int compose(const struct run_ingredients *ingredients, const char *weights, struct buffer *out,
                   struct error *error)
{
    char digest[DIGEST_TEXT_MAX];
    if (describe(ingredients, out, error) < 0 || digest_file(weights, DIGEST_SHA256, digest, error) < 0)
        return -1;
    buffer_format(out, "weights %s %s\n", digest, weights);
    return 0;
}

int earlier_run_remember(const char *state, const struct run_ingredients *ingredients, const char *weights,
                         struct error *error)
{
    SCOPED_FREE char *path = memory_format("%s/" STATE_MADE_FROM, state);
    SCOPED_BUFFER record = BUFFER_INIT(RECORD_MAX);
    if (compose(ingredients, weights, &record, error) < 0)
        return -1;
    return buffer_write_file(&record, path, error);
}

char *earlier_run_weights(const char *state, const struct run_ingredients *ingredients)
{
    SCOPED_FREE char *path = memory_format("%s/" STATE_MADE_FROM, state);
    SCOPED_BUFFER record = BUFFER_INIT(RECORD_MAX), expected = BUFFER_INIT(RECORD_MAX);
    if (buffer_read_file(&record, path, NULL) < 0)
        return NULL;
    const char *place = strstr(buffer_text(&record), "\nweights ");
    if (!place || strlen(place) < strlen("\nweights ") + DIGEST_TEXT_MAX + 1)
        return NULL;
    place += strlen("\nweights ") + DIGEST_TEXT_MAX;
    char *weights = memory_copy_bytes(place, strcspn(place, "\n"));
    if (compose(ingredients, weights, &expected, NULL) == 0 &&
        strcmp(buffer_text(&record), buffer_text(&expected)) == 0)
        return weights;
    free(weights);
    return NULL;
}
