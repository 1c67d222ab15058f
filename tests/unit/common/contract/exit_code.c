/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contract/exit_code.h"

#include <criterion/criterion.h>

Test(exit_code, every_code_has_its_meaning)
{
    cr_expect_str_eq(exit_code_meaning(EXIT_CODE_BAD_JOB), "the job document is wrong");
    cr_expect_str_eq(exit_code_meaning(163), "superseded by a newer generation");
    cr_expect(EXIT_CODE_LEFT == 143 && EXIT_CODE_LOST_CREW == 160);
    cr_expect(exit_code_meaning(1) == NULL);
    cr_expect(exit_code_meaning(-1) == NULL);
}
