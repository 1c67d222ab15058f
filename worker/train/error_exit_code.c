/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/error_exit_code.h"

enum exit_code error_exit_code(const struct error *error, enum exit_code otherwise)
{
    switch (error->kind) {
    case ERROR_STALE:
        return EXIT_CODE_SUPERSEDED;
    case ERROR_TIMEOUT:
    case ERROR_UNAVAILABLE:
    case ERROR_FORBIDDEN: /* of another version, or without the key: no crew of ours */
        return EXIT_CODE_LOST_CREW;
    case ERROR_CANCELLED:
        return EXIT_CODE_LEFT;
    case ERROR_NO_SPACE:
        return otherwise == EXIT_CODE_NOT_STORED ? otherwise : EXIT_CODE_NO_MEMORY;
    case ERROR_UNSUPPORTED:
        return otherwise == EXIT_CODE_NO_CHECKPOINT ? otherwise : EXIT_CODE_NO_DEVICE;
    case ERROR_CONFLICT:
        return EXIT_CODE_BAD_JOB;
    case ERROR_NOT_FOUND: /* during a step only a file with examples can disappear */
        return otherwise == EXIT_CODE_INTERNAL ? EXIT_CODE_BAD_DATA : otherwise;
    case ERROR_NOT_FINITE:
        return EXIT_CODE_NOT_FINITE;
    case ERROR_DEVICE:
        return EXIT_CODE_DEVICE_FAILED;
    case ERROR_INTERNAL:
        return EXIT_CODE_INTERNAL;
    default:
        return otherwise;
    }
}
