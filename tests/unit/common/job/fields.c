/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/fields.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/job/enum_words.h"
#include "common/job/rules.h"
#include "common/job/training_job.h"

static const struct object_type *const roots[] = {&training_job_spec_type, &training_job_status_type,
                                                  &job_document_type, &training_sweep_spec_type,
                                                  &training_sweep_status_type};
#define ROOTS (sizeof roots / sizeof *roots)

static void for_each_field(const struct object_type *type,
                           void (*visit)(const struct object_type *type, const struct field *field))
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at)) {
        visit(type, at.field);
        if (at.field->kind == FIELD_OBJECT || at.field->kind == FIELD_LIST)
            for_each_field(at.field->type, visit);
    }
}

static void visit_all(void (*visit)(const struct object_type *type, const struct field *field))
{
    for (size_t i = 0; i < ROOTS; i++)
        for_each_field(roots[i], visit);
}

static void expect_sentence(const struct object_type *type, const struct field *field)
{
    size_t length = field->description ? strlen(field->description) : 0;
    cr_expect(length > 10 && field->description[length - 1] == '.', "%s.%s is not described in a sentence", type->title,
              field->name);
    cr_expect(strchr(field->description, '\n') == NULL && strchr(field->description, '|') == NULL);
    /* `cox generate` prints the part of one word alone. */
    cr_expect(strcasestr(field->description, "likewise") == NULL, "%s.%s", type->title, field->name);
}

Test(fields, every_field_is_described_in_a_sentence)
{
    visit_all(expect_sentence);
}

static void expect_bounds(const struct object_type *type, const struct field *field)
{
    bool bounded = field->kind == FIELD_STRING || field->kind == FIELD_INTEGER || field->kind == FIELD_LIST ||
                   field->kind == FIELD_STRING_LIST || field->kind == FIELD_INTEGER_LIST ||
                   field->kind == FIELD_SCALAR_LIST || (field->flags & FIELD_OPEN);
    cr_expect(!bounded || field->max > 0, "%s.%s has no upper bound", type->title, field->name);
    cr_expect(field->max >= field->min);
    cr_expect(field->kind != FIELD_ENUM || field->words, "%s.%s has no words", type->title, field->name);
    cr_expect((field->kind != FIELD_OBJECT && field->kind != FIELD_LIST) || field->type, "%s.%s has no type",
              type->title, field->name);
    cr_expect(field->kind != FIELD_LIST || field->offset == NO_MEMBER || field->type->size > 0);
    cr_expect(field->kind != FIELD_LIST || field->offset == NO_MEMBER || field->companion != NO_MEMBER);
}

Test(fields, every_string_list_and_number_is_bounded)
{
    visit_all(expect_bounds);
}

static void expect_one_of_its_name(const struct object_type *type, const struct field *field)
{
    int count = 0;
    for (struct field_cursor at = field_first(type); at.field; field_next(&at))
        count += strcmp(at.field->name, field->name) == 0;
    cr_expect(count == 1, "%s.%s stands %d times", type->title, field->name, count);
    cr_expect(field_find(type, field->name) == field);
}

Test(fields, names_are_unique)
{
    visit_all(expect_one_of_its_name);
    cr_expect(field_find(&training_job_spec_type, "absent") == NULL);
}

static void expect_room_in_the_struct(const struct object_type *type, const struct field *field)
{
    size_t sizes[] = {
        [FIELD_STRING] = sizeof(char *), [FIELD_INTEGER] = sizeof(int64_t),   [FIELD_DECIMAL] = sizeof(double),
        [FIELD_BOOLEAN] = sizeof(bool),  [FIELD_TIME] = sizeof(int64_t),      [FIELD_OPAQUE] = sizeof(void *),
        [FIELD_VOLUME] = sizeof(void *), [FIELD_SCALAR_LIST] = sizeof(void *)};
    if (field->offset == NO_MEMBER)
        return;
    size_t size = (size_t)field->kind < sizeof sizes / sizeof *sizes ? sizes[field->kind] : 0;
    cr_expect(size == 0 || size == field->size, "%s.%s: the member has %zu bytes", type->title, field->name,
              field->size);
    if (field->kind == FIELD_ENUM)
        cr_expect(field->size == sizeof(unsigned) || field->size == sizeof(bool));
    if (field->kind == FIELD_LIST)
        cr_expect(field->size ==
                      (field->flags & FIELD_INLINE ? (size_t)field->max * field->type->size : sizeof(void *)),
                  "%s.%s", type->title, field->name);
    if (field->kind == FIELD_STRING_LIST || field->kind == FIELD_INTEGER_LIST)
        cr_expect(field->size == (field->flags & FIELD_APART ? sizeof(char **) : (size_t)field->max * 8), "%s.%s",
                  type->title, field->name);
}

Test(fields, members_have_the_size_of_their_kind)
{
    visit_all(expect_room_in_the_struct);
}

/* The operator copies a parsed job for each look at it. */
Test(fields, a_parsed_job_is_small)
{
    cr_expect_leq(sizeof(struct data_spec), 1024);
}

static void expect_good_default(const struct object_type *type, const struct field *field)
{
    if (field->fallback == NULL)
        return;
    cr_expect(!(field->flags & FIELD_REQUIRED), "%s.%s is required and has a default", type->title, field->name);
    switch (field->kind) {
    case FIELD_INTEGER:
        cr_expect(strtoll(field->fallback, NULL, 10) >= field->min && strtoll(field->fallback, NULL, 10) <= field->max);
        break;
    case FIELD_DECIMAL:
        cr_expect(string_format_matches(STRING_FORMAT_DECIMAL, field->fallback), "%s.%s", type->title, field->name);
        cr_expect(decimal_value(field->fallback) >= field->lowest && decimal_value(field->fallback) <= field->highest);
        break;
    case FIELD_ENUM:
        cr_expect(words_find(field->words, field->fallback) >= 0, "%s.%s", type->title, field->name);
        break;
    case FIELD_STRING:
        cr_expect(string_format_matches(field->format, field->fallback), "%s.%s", type->title, field->name);
        break;
    default:
        break;
    }
}

Test(fields, defaults_are_within_bounds)
{
    visit_all(expect_good_default);
}

static const struct field *resolve(const struct object_type *type, const char *path)
{
    char name[64] = {0};
    size_t length = strcspn(path, ".");
    cr_assert(length < sizeof name);
    memcpy(name, path, length);
    const struct field *field = field_find(type, name);
    return field && path[length] ? resolve(field->type, path + length + 1) : field;
}

Test(fields, rules_blame_fields_that_exist)
{
    for (const struct rule *rule = rules; rule->name; rule++) {
        cr_expect(rule->field == NULL || resolve(rule->about, rule->field) != NULL, "rule %s", rule->name);
        cr_expect(rule->holds && rule->message, "rule %s", rule->name);
        cr_expect((rule->cel && strstr(rule->cel, "oldSelf")) ? rule->on_update : !rule->on_update, "rule %s",
                  rule->name);
    }
}
