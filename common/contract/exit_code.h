/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the exit codes of Coxswain's worker and how the operator reacts to each: it replaces the pod, which may count against the job's
 * backoffLimit, or fails the job. The enum, the meanings in messages and the classes come from one table. Programs of other frameworks have
 * codes of their own: of the table's failures, only 138 and 160 keep their meaning there; all others count against backoffLimit.
 */
#ifndef COXSWAIN_CONTRACT_EXIT_CODE_H
#define COXSWAIN_CONTRACT_EXIT_CODE_H

/* How the operator reacts (docs/operations.md). */
enum exit_class {
    EXIT_CLASS_SUCCESS,    /* the worker is done */
    EXIT_CLASS_PERMANENT,  /* would fail again: the job fails with the cause, the code and its meaning */
    EXIT_CLASS_RETRYABLE,  /* counts against backoffLimit */
    EXIT_CLASS_COLLATERAL, /* follows from another process's end: counts only if it recurs and no such end is seen */
    EXIT_CLASS_DISRUPTION, /* ended on request: never counts against backoffLimit */
    EXIT_CLASS_IGNORED,    /* another process had already taken this one's place: as EXIT_CLASS_COLLATERAL */
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
    X(UNFIT, 161, RETRYABLE, "failed the pre-flight check")                                                            \
    X(DEVICE_FAILED, 162, RETRYABLE, "a device failed")                                                                \
    X(SUPERSEDED, 163, IGNORED, "superseded by a newer generation")

enum exit_code {
#define X(name, code, class, meaning) EXIT_CODE_##name = (code),
    EXIT_CODES(X)
#undef X
};

#define REASON_DIVERGED "Diverged" /* the reason of a job that failed with NOT_FINITE; a sweep counts it as diverged */

/* An exit code of coxswain-storage: the server refuses its credentials. Errors that would occur again after a retry end it with
 * EXIT_CODE_BAD_DATA. */
#define STORAGE_EXIT_REFUSED 77

/* Returns the meaning from the table, NULL for a code that is not in it. */
const char *exit_code_meaning(int code);

#endif
