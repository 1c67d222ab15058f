/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads JSON Lines (jsonlines.org) in memory: an object in each line. A file is either a table (csv.h) or texts: each object has a string
 * `text`, which is a document. Empty lines and a byte order mark are skipped.
 *
 *     json_lines_init(&lines, bytes, length);
 *     while ((result = json_lines_next(&lines, &object, &error)) > 0) { … json_free(object); }
 */
#ifndef COXSWAIN_COMMON_DATA_JSON_LINES_H
#define COXSWAIN_COMMON_DATA_JSON_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buffer.h"
#include "common/error.h"
#include "common/json.h"

#define JSON_LINES_LENGTH_MAX ((size_t)16 << 20) /* bytes of a line */
#define JSON_LINES_TEXTS_MAX ((size_t)4 << 30)   /* a ceiling for the buffer of json_lines_texts, in bytes */

struct json_lines {
    const char *at, *end;
    int64_t line; /* of the object read last, from 1 */
};

/* Returns whether a file's name ends in .jsonl, .ndjson, .jsonl.gz or .ndjson.gz. */
bool json_lines_named(const char *path);

void json_lines_init(struct json_lines *lines, const uint8_t *bytes, size_t length);
/* Returns 1 for an object, which the caller frees, 0 at the end; -1, ERROR_INVALID: a line is not an object, ERROR_TOO_LARGE: it is longer
 * than JSON_LINES_LENGTH_MAX. The message names the line. */
int json_lines_next(struct json_lines *lines, struct json **ret_object, struct error *error);

/* Returns whether the first object is a document: it has a string `text`, and no `label`. False if there is none. */
bool json_lines_are_texts(const uint8_t *bytes, size_t length);
/* Appends the texts of all objects, and a line feed after each. ERROR_INVALID names the line of an object without a string `text`. */
int json_lines_texts(const uint8_t *bytes, size_t length, struct buffer *texts, struct error *error);

#endif
