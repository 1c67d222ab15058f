/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/yaml.h"
#include "operator/cli/command.h"
#include "operator/cli/manifest.h"
#include "operator/cli/migration.h"

#define OUTPUT_MAX (64 * 1024 * 1024)

static const char usage[] =
    "usage: cox migrate FILE\n"
    "\n"
    "Prints the manifest FILE (-: the standard input) with each TrainingJob of v1alpha1, and each PyTorchJob, TFJob, "
    "JAXJob\n"
    "and TrainJob of Kubeflow, translated into a TrainingJob of the version that is served. Other documents stay as "
    "they\n"
    "are. Comments are lost. stderr has a line for each field that was left out, and for each that must be changed "
    "before a\n"
    "cluster takes the job.\n"
    "\n"
    "  cox migrate old.yaml >new.yaml\n"
    "  cox migrate old.yaml | kubectl apply -f -\n"
    "\n"
    "Exit code: 0 printed, 1 FILE cannot be read or holds no document, 2 wrong usage, 4 printed, but a field was left "
    "out or\n"
    "must be changed.\n";

struct work {
    const char *title;
    struct buffer text;
    bool incomplete;
};

static void print_notes(const struct work *work, const struct json *document, const struct json *notes)
{
    for (const struct json *note = json_first(notes); note; note = json_next(note))
        fprintf(stderr, "%s: %s %s: %s: %s\n", work->title, json_string_at(document, "kind", ""),
                json_string_at(document, "metadata.name", ""), json_string_at(note, "field", ""),
                json_string_at(note, "message", ""));
}

static int put_document(struct work *work, const struct json *document, struct error *error)
{
    if (work->text.length > 0 && buffer_append_string(&work->text, "---\n", error) < 0)
        return -1;
    return yaml_print(document, &work->text, error);
}

static int translate(struct work *work, const struct json *document, struct error *error)
{
    SCOPED_JSON *job = NULL;
    SCOPED_JSON *notes = json_new_array();
    bool done = migration_translate(document, &job, notes);
    print_notes(work, document, notes);
    if (!done)
        fprintf(stderr, "%s: %s %s: printed as it is\n", work->title, json_string_at(document, "kind", "a document"),
                json_string_at(document, "metadata.name", "without a name"));
    if (json_first(notes))
        work->incomplete = true;
    return put_document(work, job ? job : document, error);
}

/* kubectl get prints several objects as one List. */
static int translate_all(struct work *work, const struct json *documents, struct error *error)
{
    for (const struct json *item = json_first(documents); item; item = json_next(item)) {
        bool list = strcmp(json_string_at(item, "kind", ""), "List") == 0;
        if ((list ? translate_all(work, json_member(item, "items"), error) : translate(work, item, error)) < 0)
            return -1;
    }
    return 0;
}

static int migrate(struct work *work, const char *path, struct error *error)
{
    SCOPED_JSON *documents = NULL;
    if (manifest_documents(path, &documents, error) < 0)
        return -1;
    if (!json_first(documents))
        return error_set(error, ERROR_INVALID, "%s: it holds no document", path);
    return translate_all(work, documents, error);
}

int command_migrate(int count, char **words)
{
    struct error error = ERROR_INIT;
    struct work work = {.title = words[0]};
    if (count != 2 || (words[1][0] == '-' && words[1][1] != '\0'))
        return command_usage(count == 2 && strcmp(words[1], "--help") == 0, usage);
    buffer_init(&work.text, OUTPUT_MAX);
    bool failed = migrate(&work, words[1], &error) < 0;
    if (failed)
        fprintf(stderr, "%s: %s\n", work.title, error.message);
    else
        fputs(buffer_text(&work.text), stdout);
    buffer_release(&work.text);
    return failed ? EXIT_FAILURE : work.incomplete ? EXIT_LEFT_OUT : EXIT_SUCCESS;
}
