/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/data/training_facts.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/scope.h"
#include "common/utf8.h"

#define NUMBER_LENGTH_MAX 26 /* with its comma */
#define NUMBERS_TEXT_MAX ((size_t)TRAINING_FACTS_NUMBERS_MAX * NUMBER_LENGTH_MAX + 3)

#define INPUT_SCALE "inputScale"
#define INPUT_MEANS "inputMeans"
#define INPUT_DEVIATIONS "inputDeviations"
#define LABEL_MEANS "labelMeans"
#define LABEL_DEVIATIONS "labelDeviations"
#define COLUMNS "inputColumns"
#define CLASSES "classNames"
#define WORDS "inputWords"
#define LABEL "labelColumn"

void training_facts_release(struct training_facts *facts)
{
    standardization_release(&facts->standardization);
    json_free(facts->columns);
    json_free(facts->classes);
    json_free(facts->words);
    free(facts->label);
    facts->columns = facts->classes = facts->words = NULL;
    facts->label = NULL;
}

static bool is_text(const char *text, size_t length)
{
    for (size_t at = 0, step; at < length; at += step) {
        step = utf8_sequence(text + at, length - at);
        if (step == 0 || text[at] == '\0')
            return false;
    }
    return true;
}

char *training_facts_name(const char *text, size_t length)
{
    return is_text(text, length) ? memory_copy_bytes(text, length) : NULL;
}

bool training_facts_append(struct json **list, const char *text, size_t length)
{
    if (!is_text(text, length)) {
        json_free(*list);
        *list = NULL;
        return false;
    }
    SCOPED_FREE char *copy = memory_copy_bytes(text, length);
    if (*list == NULL)
        *list = json_new_array();
    json_append_string(*list, copy);
    return true;
}

/* ---------------------------------------------------------------- writing */

/* All digits of each number, so that it is read with the same bits. */
static void append_number(struct buffer *list, double number)
{
    buffer_format(list, "%c%.17g", list->length > 0 ? ',' : '[', number);
}

static void write_moments(struct json *object, const char *means_key, const char *deviations_key,
                          const struct column_moments *moments, int64_t count)
{
    SCOPED_BUFFER means = BUFFER_INIT(NUMBERS_TEXT_MAX);
    SCOPED_BUFFER deviations = BUFFER_INIT(NUMBERS_TEXT_MAX);
    for (int64_t i = 0; i < count; i++) {
        append_number(&means, moments[i].mean);
        append_number(&deviations, moments[i].deviation);
    }
    buffer_append_byte(&means, ']', NULL);
    buffer_append_byte(&deviations, ']', NULL);
    json_set_string(object, means_key, buffer_text(&means));
    json_set_string(object, deviations_key, buffer_text(&deviations));
}

static void write_list(struct json *object, const char *key, const struct json *list)
{
    SCOPED_BUFFER text = BUFFER_INIT(TRAINING_FACTS_LIST_MAX);
    if (list && json_print(list, &text, NULL) == 0)
        json_set_string(object, key, buffer_text(&text));
}

void training_facts_write(const struct training_facts *facts, struct json *object)
{
    const struct standardization *of = &facts->standardization;
    if (facts->input_scale > 0)
        json_set_string(object, INPUT_SCALE, facts->input_scale == 255 ? "255" : "1");
    write_list(object, COLUMNS, facts->columns);
    write_list(object, CLASSES, facts->classes);
    write_list(object, WORDS, facts->words);
    if (facts->label)
        json_set_string(object, LABEL, facts->label);
    if (of->inputs == 0 || of->inputs + of->targets > TRAINING_FACTS_NUMBERS_MAX)
        return;
    write_moments(object, INPUT_MEANS, INPUT_DEVIATIONS, of->moments, of->inputs);
    if (of->targets > 0)
        write_moments(object, LABEL_MEANS, LABEL_DEVIATIONS, of->moments + of->inputs, of->targets);
}

/* ---------------------------------------------------------------- reading */

/* Returns the array in the string, whose elements are all of that type; NULL: there is none. */
static struct json *read_list(const struct json *object, const char *key, enum json_type type)
{
    const char *text = json_string(json_member(object, key), NULL);
    struct json *list = NULL;
    if (!text || json_parse(text, strlen(text), NUMBERS_TEXT_MAX, &list, NULL) < 0)
        return NULL;
    bool fits = json_type(list) == JSON_ARRAY && json_count(list) > 0;
    for (const struct json *item = json_first(list); item && fits; item = json_next(item))
        fits = json_type(item) == type;
    if (!fits)
        json_free(list);
    return fits ? list : NULL;
}

static int read_scale(const struct json *object)
{
    const char *text = json_string(json_member(object, INPUT_SCALE), "");
    return strcmp(text, "255") == 0 ? 255 : strcmp(text, "1") == 0 ? 1 : 0;
}

/* Both lists have the same length. Returns false if a deviation is not above 0. */
static bool take_moments(struct column_moments *moments, const struct json *means, const struct json *deviations)
{
    const struct json *deviation = json_first(deviations);
    for (const struct json *mean = json_first(means); mean; mean = json_next(mean), deviation = json_next(deviation)) {
        *moments = (struct column_moments){.mean = json_number(mean, 0), .deviation = json_number(deviation, 0)};
        if (!((moments++)->deviation > 0))
            return false;
    }
    return true;
}

static void read_standardization(struct standardization *ret_standardization, const struct json *object)
{
    struct standardization read;
    SCOPED_JSON *means = read_list(object, INPUT_MEANS, JSON_NUMBER);
    SCOPED_JSON *deviations = read_list(object, INPUT_DEVIATIONS, JSON_NUMBER);
    SCOPED_JSON *label_means = read_list(object, LABEL_MEANS, JSON_NUMBER);
    SCOPED_JSON *label_deviations = read_list(object, LABEL_DEVIATIONS, JSON_NUMBER);
    size_t inputs = json_count(means), labels = json_count(label_means);
    if (inputs == 0 || inputs != json_count(deviations) || labels != json_count(label_deviations))
        return;
    standardization_init(&read, (int64_t)inputs, (int64_t)labels);
    if (take_moments(read.moments, means, deviations) &&
        take_moments(read.moments + inputs, label_means, label_deviations))
        *ret_standardization = read;
    else
        standardization_release(&read);
}

void training_facts_read(struct training_facts *ret_facts, const struct json *object)
{
    *ret_facts = (struct training_facts){.input_scale = read_scale(object),
                                         .columns = read_list(object, COLUMNS, JSON_STRING),
                                         .classes = read_list(object, CLASSES, JSON_STRING),
                                         .words = read_list(object, WORDS, JSON_ARRAY),
                                         .label = memory_copy_string(json_string(json_member(object, LABEL), NULL))};
    read_standardization(&ret_facts->standardization, object);
}
