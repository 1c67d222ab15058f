/* SPDX-License-Identifier: Apache-2.0
 *
 * An object as an API server shows it becomes one that can be created: without what the server, the scheduler and its
 * owner gave it. For the programs of `make bench-operator`.
 */
#ifndef COXSWAIN_TESTS_BENCH_OPERATOR_OBJECT_ANEW_H
#define COXSWAIN_TESTS_BENCH_OPERATOR_OBJECT_ANEW_H

#include <string.h>

#include "common/buffer.h"
#include "common/json.h"

#define OBJECT_MAX (1024 * 1024)

/* Turns an object of the API server into one that can be created: it keeps only labels and annotations of its metadata, and has no name. */
static inline void object_anew(struct json *object)
{
    static const char *const kept[] = {"labels", "annotations"};
    SCOPED_JSON *old = json_copy(json_member(object, "metadata"));
    struct json *metadata = json_set(object, "metadata", json_new_object());
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (json_member(old, kept[i]))
            json_set(metadata, kept[i], json_copy(json_member(old, kept[i])));
    json_remove(object, "status");
    if (strcmp(json_string_at(object, "kind", ""), "Pod") == 0)
        json_remove(json_member(object, "spec"), "nodeName");
}

/* A file with one object; free with json_free. */
static inline int object_read(const char *path, struct json **ret_object, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(OBJECT_MAX);
    if (buffer_read_file(&text, path, error) < 0 ||
        json_parse(text.data, text.length, OBJECT_MAX, ret_object, error) < 0)
        return error_wrap(error, "%s", path);
    return 0;
}

#endif
