/* SPDX-License-Identifier: Apache-2.0
 *
 * How a worker's process ends, and what the operator makes of it. One table; the
 * enum, the texts and the class all come from it.
 */
#ifndef COXSWAIN_CONTRACT_EXIT_CODE_H
#define COXSWAIN_CONTRACT_EXIT_CODE_H

/* What the operator does with an end of that class (docs/operations.md). */
enum exit_class {
    EXIT_CLASS_SUCCESS,    /* done */
    EXIT_CLASS_PERMANENT,  /* would fail again: the job fails with the cause, the code and its meaning */
    EXIT_CLASS_RETRYABLE,  /* counts against backoffLimit */
    EXIT_CLASS_COLLATERAL, /* caused by somebody else's end: never counts by itself */
    EXIT_CLASS_DISRUPTION, /* left by request: never spends backoffLimit */
    EXIT_CLASS_IGNORED,    /* superseded: the successor is already there */
};

/*  name, code, class, meaning */
#define EXIT_CODES(X)                                                                                                  \
    X(DONE, 0, SUCCESS, "done")                                                                                        \
    X(BAD_JOB, 64, PERMANENT, "the job document is wrong")                                                             \
    X(BAD_DATA, 65, PERMANENT, "the training data is wrong or missing")                                                \
    X(NO_CHECKPOINT, 66, PERMANENT, "a checkpoint is required and none is usable")                                     \
    X(NO_DEVICE, 69, PERMANENT, "a device or library that the job asks for is missing")                                \
    X(INTERNAL, 70, PERMANENT, "internal error")                                                                       \
    X(NOT_FINITE, 71, PERMANENT, "the loss is not finite")                                                             \
    X(NO_MEMORY, 72, PERMANENT, "the memory plan does not fit")                                                        \
    X(NOT_STORED, 74, PERMANENT, "the final checkpoint or export could not be stored")                                 \
    X(RESTART_ASKED, 138, COLLATERAL, "asked to restart")                                                              \
    X(LOST_CREW, 160, COLLATERAL, "lost contact with the crew")                                                        \
    X(LEFT, 143, DISRUPTION, "left by request, state safe")                                                            \
    X(DEVICE_FAILED, 162, RETRYABLE, "a device failed")                                                                \
    X(SUPERSEDED, 163, IGNORED, "superseded by a newer generation")

enum exit_code {
#define X(name, code, class, meaning) EXIT_CODE_##name = (code),
    EXIT_CODES(X)
#undef X
};

/* The table's text, or NULL for a code that is not in it. */
const char *exit_code_meaning(int code);

#endif
