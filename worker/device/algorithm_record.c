/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/device/algorithm_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

static const char *const kinds[ALGORITHM_KINDS] = {
    [ALGORITHM_PRODUCT] = "product", [ALGORITHM_CONVOLUTION] = "convolution"};

#define WORD_DIGITS 16
#define ALGORITHM_DIGITS ((size_t)ALGORITHM_WORDS * WORD_DIGITS)

const char *algorithm_kind_name(enum algorithm_kind kind)
{
    return kinds[kind];
}

void algorithm_record_release(struct algorithm_record *record)
{
    free(record->choices);
    *record = (struct algorithm_record){0};
}

void algorithm_record_copy(const struct algorithm_record *record, struct algorithm_record *ret_copy)
{
    *ret_copy = *record;
    ret_copy->choices = NULL;
    if (record->count == 0)
        return;
    ret_copy->choices = memory_allocate(record->count, sizeof *record->choices);
    memcpy(ret_copy->choices, record->choices, record->count * sizeof *record->choices);
}

bool algorithm_record_equal(const struct algorithm_record *one, const struct algorithm_record *other)
{
    return one->count == other->count && strcmp(one->device, other->device) == 0 &&
           strcmp(one->library, other->library) == 0 &&
           (one->count == 0 || memcmp(one->choices, other->choices, one->count * sizeof *one->choices) == 0);
}

bool algorithm_record_add(struct algorithm_record *record, const struct algorithm_choice *choice)
{
    if (record->count == ALGORITHM_CHOICES_MAX)
        return false;
    record->choices = memory_resize(record->choices, record->count + 1, sizeof *record->choices);
    record->choices[record->count++] = *choice;
    return true;
}

const struct algorithm_choice *algorithm_record_find(const struct algorithm_record *record, enum algorithm_kind kind,
                                                     const int64_t shape[ALGORITHM_NUMBERS])
{
    for (unsigned i = 0; i < record->count; i++) {
        const struct algorithm_choice *choice = &record->choices[i];
        if (choice->kind == (int64_t)kind && memcmp(choice->shape, shape, sizeof choice->shape) == 0)
            return choice;
    }
    return NULL;
}

/* ---- printing */

static void print_choice(struct json *choices, const struct algorithm_choice *choice)
{
    char text[ALGORITHM_DIGITS + 1];
    struct json *entry = json_append(choices, json_new_object());
    struct json *shape = json_set_array(entry, kinds[choice->kind]);
    for (unsigned i = 0; i < ALGORITHM_NUMBERS; i++)
        json_append(shape, json_new_integer(choice->shape[i]));
    for (size_t i = 0; i < ALGORITHM_WORDS; i++)
        snprintf(text + i * WORD_DIGITS, WORD_DIGITS + 1, "%016" PRIx64, choice->algorithm[i]);
    json_set_string(entry, "algorithm", text);
}

struct json *algorithm_record_to_json(const struct algorithm_record *record)
{
    struct json *document = json_new_object();
    json_set_string(document, "device", record->device);
    json_set_string(document, "library", record->library);
    struct json *choices = json_set_array(document, "choices");
    for (unsigned i = 0; i < record->count; i++)
        print_choice(choices, &record->choices[i]);
    return document;
}

/* ---- parsing */

static int parse_name(const struct json *document, const char *member, char name[ALGORITHM_NAME_MAX],
                      struct error *error)
{
    const char *text = json_string(json_member(document, member), "");
    if (text[0] == '\0' || strlen(text) >= ALGORITHM_NAME_MAX)
        return error_set(error, ERROR_INVALID, "%s is missing or longer than %d bytes", member, ALGORITHM_NAME_MAX - 1);
    snprintf(name, ALGORITHM_NAME_MAX, "%s", text);
    return 0;
}

static int parse_shape(const struct json *entry, struct algorithm_choice *choice, struct error *error)
{
    unsigned i = 0;
    const bool is_convolution = json_member(entry, kinds[ALGORITHM_CONVOLUTION]) != NULL;
    if (is_convolution == (json_member(entry, kinds[ALGORITHM_PRODUCT]) != NULL))
        return error_set(error, ERROR_INVALID, "an algorithm is for either a product or a convolution");
    choice->kind = is_convolution ? ALGORITHM_CONVOLUTION : ALGORITHM_PRODUCT;
    const char *name = kinds[choice->kind];
    const struct json *numbers = json_member(entry, name);
    if (json_type(numbers) != JSON_ARRAY || json_count(numbers) != ALGORITHM_NUMBERS)
        return error_set(error, ERROR_INVALID, "a %s is not a list of %d numbers", name, ALGORITHM_NUMBERS);
    for (const struct json *number = json_first(numbers); number; number = json_next(number), i++) {
        choice->shape[i] = json_integer(number, -1);
        if (choice->shape[i] < 0)
            return error_set(error, ERROR_INVALID, "number %u of a %s is negative, or none", i + 1, name);
    }
    return 0;
}

static int parse_algorithm(const char *text, uint64_t algorithm[ALGORITHM_WORDS], struct error *error)
{
    if (strlen(text) != ALGORITHM_DIGITS || strspn(text, "0123456789abcdef") != ALGORITHM_DIGITS)
        return error_set(error, ERROR_INVALID, "an algorithm is not %zu hexadecimal digits", ALGORITHM_DIGITS);
    for (size_t i = 0; i < ALGORITHM_WORDS; i++) {
        char word[WORD_DIGITS + 1];
        snprintf(word, sizeof word, "%.*s", WORD_DIGITS, text + i * WORD_DIGITS);
        algorithm[i] = strtoull(word, NULL, 16);
    }
    return 0;
}

static int parse_choices(const struct json *choices, struct algorithm_record *record, struct error *error)
{
    if (json_type(choices) != JSON_ARRAY || json_count(choices) > ALGORITHM_CHOICES_MAX)
        return error_set(error, ERROR_INVALID, "choices is not a list of up to %d", ALGORITHM_CHOICES_MAX);
    for (const struct json *entry = json_first(choices); entry; entry = json_next(entry)) {
        struct algorithm_choice choice;
        if (parse_shape(entry, &choice, error) < 0 ||
            parse_algorithm(json_string(json_member(entry, "algorithm"), ""), choice.algorithm, error) < 0)
            return -1;
        if (algorithm_record_find(record, (enum algorithm_kind)choice.kind, choice.shape))
            return error_set(error, ERROR_INVALID, "a %s has two algorithms", kinds[choice.kind]);
        (void)algorithm_record_add(record, &choice);
    }
    return 0;
}

int algorithm_record_from_json(const struct json *document, struct algorithm_record *ret_record, struct error *error)
{
    struct algorithm_record record = {0};
    if (parse_name(document, "device", record.device, error) < 0 ||
        parse_name(document, "library", record.library, error) < 0 ||
        parse_choices(json_member(document, "choices"), &record, error) < 0) {
        algorithm_record_release(&record);
        return error_wrap(error, "algorithms");
    }
    *ret_record = record;
    return 0;
}
