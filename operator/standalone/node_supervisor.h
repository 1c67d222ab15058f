/* SPDX-License-Identifier: Apache-2.0
 *
 * The parent process of a container's command: sets up namespaces and mounts, starts
 * the command, reports its end, and kills its descendants. It makes only system
 * calls on data that the control plane has prepared. It does not allocate or lock,
 * which makes it safe after a raw clone.
 *
 * In a PID namespace the supervisor is the first process: when it exits, the kernel
 * kills all processes in the namespace. PR_SET_PDEATHSIG kills it together with the
 * control plane. Without a PID namespace it is a child subreaper and kills all
 * descendants before it exits.
 */
#ifndef COXSWAIN_STANDALONE_NODE_SUPERVISOR_H
#define COXSWAIN_STANDALONE_NODE_SUPERVISOR_H

#include <signal.h>

#include "operator/standalone/node_process.h"

/* Makes the supervisor kill all descendants and exit. */
#define SUPERVISOR_KILL SIGUSR2

struct supervisor_spec {
    const struct process_spec *process;
    /* SOCK_SEQPACKET: one report with credentials that contain the command's PID, then the end of the stream */
    int report;
    int output; /* pipes */
    int errors;
    int lifeline; /* read end; the write end closes with the control plane */
    bool user_namespace;
    char uid_map[64], gid_map[64];
};

/* One datagram. `what` is the step that failed; "": the command is about to run. */
struct supervisor_report {
    int os_error;
    char what[256];
};

/* Flags of clone() for the namespaces that `spec` asks for. */
int supervisor_clone_flags(const struct supervisor_spec *spec);
/* Runs in the new process, until the command and all descendants have ended. */
_Noreturn void supervisor_run(const struct supervisor_spec *spec);

#endif
