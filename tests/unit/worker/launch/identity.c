/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/launch/identity.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/environment.h"
#include "common/memory.h"
#include "common/scope.h"

static const char *const switches[] = {ENV_OVERLAP, ENV_GPU_AHEAD, ENV_GPU_GRAPHS,
                                       ENV_GPU_LT,  ENV_GPU_DNN,   ENV_GPU_PEERS};
#define SWITCHES (sizeof switches / sizeof *switches)

Test(identity, what_is_absent_or_empty_has_its_default)
{
    struct identity identity;
    for (size_t i = 0; i < SWITCHES; i++)
        setenv(switches[i], "", 1);
    cr_assert_eq(identity_read(&identity, NULL), 0);
    cr_assert_not(identity.sums_wait_for_pass || identity.waits_for_device || identity.launches_singly);
    cr_assert_eq(identity.logit_rows, 0);
    cr_assert_str_eq(identity.role, "worker");
}

Test(identity, switches_are_off_at_0)
{
    struct identity identity;
    for (size_t i = 0; i < SWITCHES; i++)
        setenv(switches[i], "0", 1);
    cr_assert_eq(identity_read(&identity, NULL), 0);
    cr_assert(identity.sums_wait_for_pass && identity.waits_for_device && identity.launches_singly);
}

Test(identity, an_unknown_value_of_a_switch_is_refused)
{
    static const char *const unknown[] = {"true", "on", "2", "01", " 1", "-1"};
    struct identity identity;
    for (size_t i = 0; i < SWITCHES; i++) {
        for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++) {
            struct error error = ERROR_INIT;
            setenv(switches[i], unknown[k], 1);
            cr_expect_lt(identity_read(&identity, &error), 0, "%s=%s", switches[i], unknown[k]);
            SCOPED_FREE char *expected = memory_format("%s: \"%s\" is neither 0 nor 1", switches[i], unknown[k]);
            cr_expect_str_eq(error.message, expected);
        }
        setenv(switches[i], "1", 1);
        cr_expect_eq(identity_read(&identity, NULL), 0);
    }
}

Test(identity, numbers_have_bounds)
{
    struct identity identity;
    struct error error = ERROR_INIT;
    setenv(ENV_THREADS, "1025", 1);
    cr_assert_lt(identity_read(&identity, &error), 0);
    cr_assert_str_eq(error.message, ENV_THREADS ": \"1025\" is not a number from 0 to 1024");
}
