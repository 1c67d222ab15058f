/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/coordination/arithmetic.h"

#include <criterion/criterion.h>

Test(arithmetic, a_processor_has_what_is_below_its_best)
{
    cr_assert_not(arithmetic_is_lacking("avx512", "avx512"));
    cr_assert_not(arithmetic_is_lacking("avx512", "portable"));
    cr_assert(arithmetic_is_lacking("portable", "avx2"));
    cr_assert(arithmetic_is_lacking("avx2", "avx512"));
}

Test(arithmetic, a_gpu_has_its_own_alone)
{
    cr_assert_not(arithmetic_is_lacking("sm_90", "sm_90"));
    cr_assert(arithmetic_is_lacking("sm_90", "sm_80"));
    cr_assert(arithmetic_is_lacking("sm_90", "sm_90+l"));
    cr_assert(arithmetic_is_lacking("sm_90", "portable"));
    cr_assert(arithmetic_is_lacking("avx512", "sm_90"));
}

Test(arithmetic, other_numbers_of_threads_have_nothing_in_common)
{
    cr_assert_str_eq(arithmetic_in_common("avx512/4", "avx2/4"), "avx2/4");
    cr_assert_null(arithmetic_in_common("avx512/4", "avx512/2"));
    cr_assert_null(arithmetic_in_common("avx512/4", "avx512"));
    cr_assert_eq(arithmetic_threads("portable/1024"), 1024);
    cr_assert_eq(arithmetic_threads("avx2"), 0);
    cr_assert_eq(arithmetic_threads("avx2/1025"), 0);
    cr_assert_eq(arithmetic_threads("avx2/-4"), 0);
    cr_assert_eq(arithmetic_length("avx2/16"), 4);
}

Test(arithmetic, programs_with_other_code_have_nothing_in_common)
{
    const char *ours = "avx512/4/aa/bb/cc";
    cr_assert_str_eq(arithmetic_in_common(ours, "avx2/4/aa/bb/cc"), "avx2/4/aa/bb/cc");
    cr_assert_eq(arithmetic_difference(ours, "avx2/4/aa/bb/cc"), ARITHMETIC_PARTS);
    static const char *const others[ARITHMETIC_PARTS] = {"avx512/2/ab/bb/cc", "avx512/4/ab/bb/cd", "avx512/4/aa/bc/cc",
                                                         "avx512/4/aa/bb/c"};
    for (int part = 0; part < ARITHMETIC_PARTS; part++) {
        cr_assert_null(arithmetic_in_common(ours, others[part]));
        cr_assert_eq(arithmetic_difference(ours, others[part]), (enum arithmetic_part)part);
    }
    cr_assert_eq(arithmetic_difference(ours, "avx512/4"), ARITHMETIC_PROCESSOR);
}

Test(arithmetic, the_better_of_both_is_taken)
{
    cr_assert_str_eq(arithmetic_in_common("avx512", "avx2"), "avx2");
    cr_assert_str_eq(arithmetic_in_common("portable", "avx512"), "portable");
    cr_assert_str_eq(arithmetic_in_common("sm_90", "sm_90"), "sm_90");
    cr_assert_null(arithmetic_in_common("sm_90", "sm_80"));
    cr_assert_null(arithmetic_in_common("avx2", "sm_90"));
    cr_assert_null(arithmetic_in_common("sm_90+d92801+l", "sm_90+d92801"));
}
