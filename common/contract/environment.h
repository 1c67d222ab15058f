/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pod is told: environment variables, ports and paths. The operator
 * writes them, the worker reads them, the node of the embedded control plane
 * passes them through.
 */
#ifndef COXSWAIN_CONTRACT_ENVIRONMENT_H
#define COXSWAIN_CONTRACT_ENVIRONMENT_H

#define ENV_PREFIX "COXSWAIN_"

/* For every framework: decimal numbers, the job's UID, an absolute directory. */
#define ENV_INCARNATION "COXSWAIN_INCARNATION" /* fencing token of this pod, from the status */
#define ENV_ATTEMPT "COXSWAIN_ATTEMPT"         /* how often the whole crew has started, from 1 */
#define ENV_JOB_UID "COXSWAIN_JOB_UID"
#define ENV_CHECKPOINT_DIR "COXSWAIN_CHECKPOINT_DIR" /* absent: no checkpoints */
#define ENV_ROLE "COXSWAIN_ROLE"                     /* "worker", "chief", "ps", "evaluator" */
#define ENV_INDEX "COXSWAIN_INDEX"                   /* within the role, from 0 */

/* For jobs with section coxswain. */
#define ENV_JOB "COXSWAIN_JOB"         /* the job document, JSON: see common/job/job_document.h */
#define ENV_STORAGE "COXSWAIN_STORAGE" /* "name=/mount/path" for each storage, joined by ':' */
#define ENV_TF_CONFIG "TF_CONFIG"      /* read only when COXSWAIN_JOB has no crew; written for TensorFlow */

/* A file with the key by which a crew's pods know each other (worker/comm/crew_key.h); mounted from the job's Secret. */
#define ENV_CREW_KEY_FILE "COXSWAIN_CREW_KEY_FILE"
#define CREW_KEY_DIRECTORY "/coxswain/crew"
#define CREW_KEY_NAME "key"

/* A directory with the certificates under which a crew talks in private (worker/comm/crew_certificates.h); absent: in the
 * clear. Each file is the key CREW_TLS_KEY of a Secret. */
#define ENV_CREW_TLS_DIR "COXSWAIN_CREW_TLS_DIR"
#define CREW_TLS_DIRECTORY "/coxswain/tls"
#define CREW_TLS_EVEN "even.pem"
#define CREW_TLS_ODD "odd.pem"
#define CREW_TLS_KEY "crew.pem"
#define CREW_TLS_NAME "crew.coxswain" /* for whom each of them is */

/* Set by a node that cannot give a pod its own /etc/hosts: a file in that format, kept current in place,
 * which the worker asks before the resolver. */
#define ENV_HOSTS_FILE "COXSWAIN_HOSTS_FILE"
/* Where the one line of cause and remedy goes; default /dev/termination-log. */
#define ENV_TERMINATION_LOG "COXSWAIN_TERMINATION_LOG"
/* Compute threads of a worker; default: the machine's processors, shared among the crew's members on it. */
#define ENV_THREADS "COXSWAIN_THREADS"
/* Seconds without a chief after which a member ends with 160; default 600. Above what the chief's successor needs to come. */
#define ENV_CHIEF_TIMEOUT "COXSWAIN_CHIEF_TIMEOUT"
/* How long a pod has to leave once it is asked to (SIGTERM), in seconds: its terminationGracePeriodSeconds, told where that
 * is not GRACE_SECONDS_DEFAULT, which Kubernetes gives a pod that says nothing. */
#define ENV_GRACE "COXSWAIN_GRACE_SECONDS"
#define GRACE_SECONDS_DEFAULT 30
/* The address a worker listens on and announces; default: all interfaces, announced as POD_IP or the host name. */
#define ENV_POD_IP "COXSWAIN_POD_IP"

/* A file to which all processes of a crew append which examples each step took (worker/data/step_record.h); for proofs. */
#define ENV_RECORD "COXSWAIN_RECORD"
/* The instruction set of a CPU's arithmetic ("avx2", "portable") instead of the best there is; for tests. */
#define ENV_ARITHMETIC "COXSWAIN_ARITHMETIC"
/* A file that says by how many milliseconds each reading of a batch takes longer (worker/data/read_delay.h); for tests. */
#define ENV_READ_DELAY "COXSWAIN_READ_DELAY"
/* 0: a crew's sums begin when the backward pass has ended, not bucket by bucket beside it; to measure what that is worth. */
#define ENV_OVERLAP "COXSWAIN_OVERLAP"
/* 0: the host waits for the GPU in each step, and queues the next one only then; to measure what the other is worth. */
#define ENV_GPU_AHEAD "COXSWAIN_GPU_AHEAD"
/* 0: a step is not launched as CUDA graphs, but operation by operation; likewise. */
#define ENV_GPU_GRAPHS "COXSWAIN_GPU_GRAPHS"
/* 1: cuBLASLt finishes products (bias, GELU), in place of kernels behind them; to measure what that is worth, on real GPUs, where it
 * has not run yet. Crews compare, for it is a part of their arithmetic. */
#define ENV_GPU_LT "COXSWAIN_GPU_LT"
/* 1: cuDNN computes convolutions where it can, in place of our kernels and products of patches; likewise. */
#define ENV_GPU_DNN "COXSWAIN_GPU_DNN"
/* 0: GPUs of a worker copy to each other by way of the host, although they can access each other's memory; for machines that have
 * trouble with it. */
#define ENV_GPU_PEERS "COXSWAIN_GPU_PEERS"

/* How many rows of a wide last layer's logits a pass computes at a time, in place of what its shape says; 0: all of them. To
 * measure what that is worth. The same for a whole crew: bits follow it. */
#define ENV_LOGIT_ROWS "COXSWAIN_LOGIT_ROWS"

/* Ports of a pod. Collectives over TCP listen on a port announced at the join (0 picks a free one when taken). */
#define PORT_CREW 2222       /* gRPC; TensorFlow's servers too */
#define PORT_COLLECTIVE 2223 /* bulk data */
#define PORT_HTTP 8080       /* /healthz /metrics /status */
#define PORT_PYTORCH 23456   /* where a PyTorch crew meets */
#define PORT_JAX 8476        /* where a JAX crew meets */
#define PORT_CREW_NAME "crew"

/* Where a storage is mounted: STORAGE_ROOT "/" name. */
#define STORAGE_ROOT "/coxswain/storage"

/* One environment variable ends at 128 KiB on Linux; ours stop well before. */
#define JOB_DOCUMENT_MAX (96 * 1024)

#endif
