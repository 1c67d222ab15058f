/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/error_exit_code.h"

#include <criterion/criterion.h>

Test(error_exit_code, kinds_that_say_more_win)
{
    static const struct {
        enum error_kind kind;
        enum exit_code stage, code;
    } cases[] = {
        {ERROR_INVALID, EXIT_CODE_BAD_DATA, EXIT_CODE_BAD_DATA},
        {ERROR_NOT_FOUND, EXIT_CODE_NO_CHECKPOINT, EXIT_CODE_NO_CHECKPOINT},
        {ERROR_STALE, EXIT_CODE_BAD_DATA, EXIT_CODE_SUPERSEDED},
        {ERROR_TIMEOUT, EXIT_CODE_BAD_DATA, EXIT_CODE_LOST_CREW},
        {ERROR_UNAVAILABLE, EXIT_CODE_BAD_JOB, EXIT_CODE_LOST_CREW},
        {ERROR_FORBIDDEN, EXIT_CODE_NO_CHECKPOINT, EXIT_CODE_LOST_CREW},
        {ERROR_CANCELLED, EXIT_CODE_BAD_JOB, EXIT_CODE_LEFT},
        {ERROR_NO_SPACE, EXIT_CODE_BAD_JOB, EXIT_CODE_NO_MEMORY},
        {ERROR_NO_SPACE, EXIT_CODE_NOT_STORED, EXIT_CODE_NOT_STORED},
        {ERROR_UNSUPPORTED, EXIT_CODE_BAD_JOB, EXIT_CODE_NO_DEVICE},
        {ERROR_UNSUPPORTED, EXIT_CODE_NO_CHECKPOINT, EXIT_CODE_NO_CHECKPOINT},
        {ERROR_CONFLICT, EXIT_CODE_NOT_STORED, EXIT_CODE_BAD_JOB},
        {ERROR_NOT_FOUND, EXIT_CODE_INTERNAL, EXIT_CODE_BAD_DATA},
        {ERROR_NOT_FINITE, EXIT_CODE_INTERNAL, EXIT_CODE_NOT_FINITE},
        {ERROR_DEVICE, EXIT_CODE_INTERNAL, EXIT_CODE_DEVICE_FAILED},
        {ERROR_INTERNAL, EXIT_CODE_BAD_JOB, EXIT_CODE_INTERNAL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error = {.kind = cases[i].kind};
        cr_expect_eq(error_exit_code(&error, cases[i].stage), cases[i].code, "kind %d in a stage of %d", cases[i].kind,
                     cases[i].stage);
    }
}
