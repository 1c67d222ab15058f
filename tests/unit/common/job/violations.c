/* SPDX-License-Identifier: Apache-2.0 */
#include "common/job/violations.h"

#include "manifest.h"

Test(violations, paths_go_down_and_come_back)
{
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "spec");
    size_t spec = violations_enter(&violations, "roles");
    size_t roles = violations_enter_element(&violations, 2);
    violations_add(&violations, "count", "is %d", 7);
    violations_leave(&violations, roles);
    violations_add(&violations, NULL, "is odd");
    violations_leave(&violations, spec);
    violations_add(&violations, "image", "is missing");
    expect_printed(violations.list, "[{\"field\":\"spec.roles[2].count\",\"message\":\"is 7\"},"
                                    "{\"field\":\"spec.roles\",\"message\":\"is odd\"},"
                                    "{\"field\":\"spec.image\",\"message\":\"is missing\"}]");
    struct error error = ERROR_INIT;
    cr_expect(violations_to_error(&violations, &error) < 0);
    cr_expect_str_eq(error.message, "spec.roles[2].count: is 7 (and 2 more)");
}

Test(violations, none_is_no_error)
{
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "");
    struct error error = ERROR_INIT;
    cr_expect(violations_to_error(&violations, &error) == 0);
    cr_expect(error.kind == ERROR_NONE);
}

Test(violations, a_path_of_any_length_stays_within_its_room)
{
    SCOPED(violations_release) struct violations violations;
    violations_init(&violations, "");
    size_t lengths[100];
    for (int i = 0; i < 100; i++)
        lengths[i] = violations_enter(&violations, "a-rather-long-name");
    cr_expect(violations.path_length < FIELD_PATH_MAX);
    violations_add(&violations, NULL, "deep");
    for (int i = 100; i-- > 0;)
        violations_leave(&violations, lengths[i]);
    cr_expect(violations.path_length == 0 && *violations.path == '\0');
}
