/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/immutability.h"

static void check_member(const struct field *field, const struct json *value, const struct json *old, bool suspended,
                         struct violations *violations)
{
    bool later = field->flags & FIELD_MUTABLE_SUSPENDED;
    if ((field->flags & FIELD_MUTABLE_INSIDE) && value && old) {
        size_t length = violations_enter(violations, field->name);
        immutability_check(field->type, value, old, suspended, violations);
        violations_leave(violations, length);
    } else if (!(later && suspended) && !json_equal(value, old)) {
        violations_add(violations, field->name, later ? IMMUTABLE_UNLESS_SUSPENDED : IMMUTABLE_MESSAGE);
    }
}

void immutability_check(const struct object_type *type, const struct json *object, const struct json *old,
                        bool suspended, struct violations *violations)
{
    for (struct field_cursor at = field_first(type); at.field; field_next(&at))
        if (!(at.field->flags & FIELD_MUTABLE))
            check_member(at.field, json_member(object, at.field->name), json_member(old, at.field->name), suspended,
                         violations);
}
