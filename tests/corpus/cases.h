/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the tables of manifests that are refused (tests/corpus/manifests/bad.yaml and tests/corpus/sweeps/bad.yaml).
 */
#ifndef TESTS_CORPUS_CASES_H
#define TESTS_CORPUS_CASES_H

#include "common/json.h"
#include "common/yaml.h"

#define CORPUS_MAX (1024 * 1024)

/* `at` is the field at which `manifest` is refused, NULL where a section's own manifest, which is taken, is meant. */
typedef void corpus_case(const char *name, const char *at, bool by_operator, const struct json *manifest,
                         void *context);

/* Calls `call` for the manifest of each section of the table at `path`, then for each case of the section. */
static inline int corpus_each(const char *path, corpus_case *call, void *context, struct error *error)
{
    SCOPED_BUFFER text = BUFFER_INIT(CORPUS_MAX);
    SCOPED_JSON *documents = NULL;
    if (buffer_read_file(&text, path, error) < 0 ||
        yaml_parse(text.data, text.length, CORPUS_MAX, &documents, error) < 0)
        return -1;
    const struct json *section = json_first(json_first(documents));
    for (; section; section = json_next(section)) {
        call(json_key(section), NULL, false, json_member(section, "manifest"), context);
        for (const struct json *item = json_first(json_member(section, "cases")); item; item = json_next(item)) {
            struct json *manifest = json_copy(json_member(section, "manifest"));
            SCOPED_JSON *patch = json_copy(item);
            json_remove(patch, "at");
            json_remove(patch, "operator");
            json_merge_patch(&manifest, patch);
            call(json_key(item), json_string_at(item, "at", ""), json_boolean_at(item, "operator", false), manifest,
                 context);
            json_free(manifest);
        }
    }
    return 0;
}

#endif
