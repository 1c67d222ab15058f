/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs between clone and exec of a container, and beside it afterwards. It
 * makes system calls only, on what the parent has prepared: no allocation, no
 * locks, so that it is safe after a raw clone.
 *
 * In a PID namespace the supervisor is its first process: when it goes, the kernel
 * kills all that is left in it, and PR_SET_PDEATHSIG makes it go with the control
 * plane. Without one it is a child subreaper: it kills all descendants before it leaves.
 */
#ifndef COXSWAIN_STANDALONE_NODE_SUPERVISOR_H
#define COXSWAIN_STANDALONE_NODE_SUPERVISOR_H

#include <signal.h>

#include "operator/standalone/node_process.h"

/* Asks the supervisor to kill everything below it, and then to leave. */
#define SUPERVISOR_KILL SIGUSR2

struct supervisor_spec {
    const struct process_spec *process;
    int report; /* SOCK_SEQPACKET: one report from the command's process (its credentials tell the PID), then its end */
    int output; /* pipes */
    int errors;
    int lifeline; /* read end; the write end closes with the control plane */
    bool user_namespace;
    char uid_map[64], gid_map[64];
};

/* One datagram: an empty `what` says "about to run", else what failed. */
struct supervisor_report {
    int os_error;
    char what[256];
};

int supervisor_clone_flags(const struct supervisor_spec *spec);
_Noreturn void supervisor_run(const struct supervisor_spec *spec);

#endif
