/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/belonging.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/field_default.h"
#include "common/job/job_document.h"
#include "common/job/violations.h"
#include "manifest.h"

static const struct object_type *inside(const struct object_type *type, const char *name)
{
    return field_find(type, name)->type;
}

/* A value that is not the default; its form is another check's matter. */
static struct json *some_value(const struct field *field)
{
    if (field->kind == FIELD_BOOLEAN)
        return json_new_boolean(field->fallback == NULL || strcmp(field->fallback, "true") != 0);
    return json_new_string("0.125");
}

static struct json *object_with(const struct belonging *belonging, const char *kind, struct json *value)
{
    struct json *object = json_new_object();
    if (*kind)
        json_set_string(object, belonging->type->kind_field, kind);
    struct json *holder = belonging->inside ? json_set_object(object, belonging->inside->name) : object;
    if (value)
        json_set(holder, belonging->field->name, value);
    return object;
}

static void expect_verdict(const struct belonging *belonging, const char *kind, bool belongs)
{
    SCOPED_JSON *absent = object_with(belonging, kind, NULL);
    SCOPED_JSON *given = object_with(belonging, kind, some_value(belonging->field));
    SCOPED_JSON *at_default = object_with(belonging, kind, field_default_value(belonging->field));
    cr_expect(belonging_holds(belonging, absent), "%s of %s, left out", belonging->field->name, kind);
    cr_expect_eq(belonging_holds(belonging, given), belongs, "%s of '%s'", belonging->field->name, kind);
    cr_expect(belonging_holds(belonging, at_default), "%s of %s, by default", belonging->field->name, kind);
}

/* Every pair of a field and a kind; a word that no kind has would belong to nothing. */
static void expect_kinds(void *context, const struct belonging *belonging)
{
    const char *const *kinds = field_find(belonging->type, belonging->type->kind_field)->words;
    unsigned *count = context;
    for (const char *const *word = belonging->field->only_for; *word; word++)
        cr_expect(words_find(kinds, *word) >= 0, "%s is for '%s', which is no kind", belonging->field->name, *word);
    for (const char *const *kind = kinds; *kind; kind++)
        expect_verdict(belonging, *kind, words_find(belonging->field->only_for, *kind) >= 0);
    ++*count;
}

Test(belonging, each_field_is_refused_with_every_kind_that_it_is_not_for)
{
    const struct object_type *optimizer = inside(&training_type, "optimizer");
    const struct object_type *types[] = {&layer_type_type, &model_type, &data_type, optimizer,
                                         inside(optimizer, "schedule")};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        belongings_visit(types[i], expect_kinds, &count);
    cr_expect_geq(count, 38);
    belongings_visit(&strategy_type, expect_kinds, &count); /* its fields have rules of their own */
}

static const struct {
    const char *path, *message, *cel;
} texts[] = {
    {"kernel", "is for type Conv2D only and would be ignored here; leave it out",
     "!has(self.kernel) || self.type in ['Conv2D']"},
    {"bias", "is for type Dense or Conv2D only and would be ignored here; leave it out",
     "!has(self.bias) || self.bias || self.type in ['Dense', 'Conv2D']"},
    {"padding", "is for type Conv2D, MaxPool or AveragePool only and would be ignored here; leave it out",
     "!has(self.padding) || self.padding == 0 || self.type in ['Conv2D', 'MaxPool', 'AveragePool']"},
    {"statistics", "is for preset resnet20 or resnet50 only and would be ignored here; leave it out",
     "!has(self.statistics) || (has(self.preset) && self.preset in ['resnet20', 'resnet50'])"},
    {"loss", "is for a list of layers only and would be ignored here; leave it out",
     "!has(self.loss) || self.loss == 'SoftmaxCrossEntropy' || !has(self.preset)"},
    {"inputShape",
     "is for preset mlp, lenet, resnet20, resnet50 or a list of layers only and would be ignored here; leave it "
     "out",
     "!has(self.inputShape) || !has(self.preset) || self.preset in ['mlp', 'lenet', 'resnet20', 'resnet50']"},
    {"train.text", "is for format Bytes only and would be ignored here; leave it out",
     "!has(self.train) || !has(self.train.text) || self.format in ['Bytes']"},
};

static void expect_text(const struct belonging *belonging, const char *message, const char *cel)
{
    SCOPED_BUFFER own_message = BUFFER_INIT(BELONGING_MESSAGE_MAX), own_cel = BUFFER_INIT(BELONGING_CEL_MAX);
    belonging_message(belonging, &own_message);
    belonging_cel(belonging, &own_cel);
    cr_expect_str_eq(buffer_text(&own_message), message);
    cr_expect_str_eq(buffer_text(&own_cel), cel);
}

static void expect_texts(void *context, const struct belonging *belonging)
{
    SCOPED_BUFFER path = BUFFER_INIT(FIELD_PATH_MAX);
    belonging_path(belonging, &path);
    bool layers = belonging->type == &layer_type_type && strcmp(buffer_text(&path), "statistics") == 0;
    for (size_t i = 0; !layers && i < sizeof texts / sizeof *texts; i++) {
        if (strcmp(buffer_text(&path), texts[i].path) != 0)
            continue;
        expect_text(belonging, texts[i].message, texts[i].cel);
        ++*(unsigned *)context;
    }
}

Test(belonging, says_what_a_field_is_for)
{
    unsigned found = 0;
    belongings_visit(&layer_type_type, expect_texts, &found);
    belongings_visit(&model_type, expect_texts, &found);
    belongings_visit(&data_type, expect_texts, &found);
    cr_expect_eq(found, 7);
}

Test(belonging, a_job_is_told_the_field)
{
    SCOPED_JSON *source = manifest_value("strategy: {type: OneDevice}\n"
                                         "model: {inputShape: [4], layers: [{type: Dense, units: 2, kernel: 3}]}\n"
                                         "data: {format: Synthetic, examples: 10}\n"
                                         "training: {epochs: 1, batchSize: 2}\n");
    struct job_document job;
    struct error error = ERROR_INIT;
    cr_assert(job_document_parse(source, &job, &error) < 0);
    cr_expect_str_eq(error.message,
                     "model.layers[0].kernel: is for type Conv2D only and would be ignored here; leave it out");
}

/* A document that the operator writes, with its defaults, is accepted by the worker. */
Test(belonging, a_document_written_for_workers_passes)
{
    SCOPED_JSON *source = manifest_value("strategy: {type: OneDevice}\n"
                                         "model: {inputShape: [8, 8, 1], layers: [{type: Conv2D, filters: 2, "
                                         "kernel: 3}, {type: BatchNorm, statistics: Global}, {type: ReLU},"
                                         "{type: GlobalAveragePool}, {type: Dense, units: 2, bias: false}]}\n"
                                         "data: {format: Synthetic, examples: 10}\n"
                                         "training: {epochs: 1, batchSize: 2, optimizer: {type: AdamW}}\n");
    struct job_document job, again;
    struct error error = ERROR_INIT;
    cr_assert(job_document_parse(source, &job, &error) == 0, "%s", error.message);
    SCOPED_JSON *written = job_document_to_json(&job);
    cr_assert(job_document_parse(written, &again, &error) == 0, "%s", error.message);
    cr_expect_eq(again.model.layers[1].statistics, STATISTICS_GLOBAL);
    job_document_release(&again);
    job_document_release(&job);
}
