/* SPDX-License-Identifier: Apache-2.0
 *
 * Names the environment variables, ports and paths by which the operator configures a pod. The
 * operator sets the variables, the node of the embedded control plane passes them on, and the
 * worker reads them.
 */
#ifndef COXSWAIN_CONTRACT_ENVIRONMENT_H
#define COXSWAIN_CONTRACT_ENVIRONMENT_H

#define ENV_PREFIX "COXSWAIN_"

/* Set in the pods of every framework. */
#define ENV_INCARNATION "COXSWAIN_INCARNATION" /* fencing token of this pod, from the status */
#define ENV_ATTEMPT "COXSWAIN_ATTEMPT"         /* number of the whole crew's start, from 1 */
#define ENV_JOB_UID "COXSWAIN_JOB_UID"
#define ENV_CHECKPOINT_DIR "COXSWAIN_CHECKPOINT_DIR" /* absent: no checkpoints */
/* JSON, present if checkpoints are kept in object storage: {"endpoint", "bucket", "prefix" (of the job's checkpoints, without a slash at
 * its end), "region", "credentials" (a folder)}. The last two may be absent. ENV_CHECKPOINT_DIR is then the folder of the local copy. */
#define ENV_CHECKPOINT_S3 "COXSWAIN_CHECKPOINT_S3"
/* JSON as in ENV_CHECKPOINT_S3 for the export, present if the trained weights are exported to object storage; "prefix" is the key of the
 * exported file. */
#define ENV_EXPORT_S3 "COXSWAIN_EXPORT_S3"
#define ENV_ROLE "COXSWAIN_ROLE"   /* "worker", "chief", "ps", "evaluator" */
#define ENV_INDEX "COXSWAIN_INDEX" /* within the role, from 0 */

/* Set in the pods of jobs with section coxswain. */
#define ENV_JOB "COXSWAIN_JOB"         /* the job document, JSON: see common/job/job_document.h */
#define ENV_STORAGE "COXSWAIN_STORAGE" /* "name=/mount/path" for each storage, joined by ':' */
#define ENV_TF_CONFIG "TF_CONFIG"      /* read only when COXSWAIN_JOB has no crew; written for TensorFlow */

/* The step at which the crew saves and then waits until it is asked to end; absent: none. It affects neither the schedule of the learning
 * rate nor the results. ParameterServer and PeerToPeer ignore it. */
#define ENV_PAUSE_STEP "COXSWAIN_PAUSE_STEP"
/* The chief's status message begins with this text while its crew waits at that step. */
#define PAUSE_MESSAGE "paused after step "

/* File with the key by which a crew's pods authenticate each other (worker/comm/crew_key.h),
 * mounted from the job's Secret. */
#define ENV_CREW_KEY_FILE "COXSWAIN_CREW_KEY_FILE"
#define CREW_KEY_DIRECTORY "/coxswain/crew"
#define CREW_KEY_NAME "key"

/* Directory with the TLS certificates of a crew (worker/comm/crew_certificates.h); absent: the
 * crew's connections are not encrypted. Each file is the key CREW_TLS_KEY of a Secret. */
#define ENV_CREW_TLS_DIR "COXSWAIN_CREW_TLS_DIR"
#define CREW_TLS_DIRECTORY "/coxswain/tls"
#define CREW_TLS_EVEN "even.pem"
#define CREW_TLS_ODD "odd.pem"
#define CREW_TLS_KEY "crew.pem"
#define CREW_TLS_NAME "crew.coxswain" /* the name that each certificate is issued for */

/* How a script of another framework sends its progress to the operator: the URL, and the files with the certificate of the authority and
 * with the token, mounted from the job's Secret. The names are those of Kubeflow Trainer, which scripts know. */
#define ENV_PUSH_URL "KUBEFLOW_TRAINER_SERVER_URL"
#define ENV_PUSH_CA "KUBEFLOW_TRAINER_SERVER_CA_CERT"
#define ENV_PUSH_TOKEN "KUBEFLOW_TRAINER_SERVER_TOKEN"
#define PUSH_DIRECTORY "/coxswain/progress"
#define PUSH_CA_NAME "ca.crt"
#define PUSH_TOKEN_NAME "token"

/* File in the format of /etc/hosts, which the worker looks up before it asks the resolver. A node
 * that cannot give a pod its own /etc/hosts sets it, and updates the file in place. */
#define ENV_HOSTS_FILE "COXSWAIN_HOSTS_FILE"
/* File for the termination message, one line with cause and remedy; default
 * /dev/termination-log. */
#define ENV_TERMINATION_LOG "COXSWAIN_TERMINATION_LOG"
/* Number of compute threads of a worker; default: the machine's processors, divided among the
 * crew's members on that machine. */
#define ENV_THREADS "COXSWAIN_THREADS"
#define COMPUTE_THREADS_MAX 1024
/* Seconds without a chief after which a member exits with code 160; default 600. Must be longer
 * than it takes to replace the chief. */
#define ENV_CHIEF_TIMEOUT "COXSWAIN_CHIEF_TIMEOUT"
/* Seconds between SIGTERM and SIGKILL: the pod's terminationGracePeriodSeconds. Absent if that is
 * GRACE_SECONDS_DEFAULT, Kubernetes' default. */
#define ENV_GRACE "COXSWAIN_GRACE_SECONDS"
#define GRACE_SECONDS_DEFAULT 30
/* The address a worker listens on and announces; default: all interfaces, announced as POD_IP or
 * the host name. */
#define ENV_POD_IP "COXSWAIN_POD_IP"

/* File to which all processes of a crew append the examples of each step
 * (worker/data/step_record.h); for verification. */
#define ENV_RECORD "COXSWAIN_RECORD"
/* Path of the PJRT plugin that runs programs (model.program); set in images that have one. */
#define ENV_PJRT_PLUGIN "COXSWAIN_PJRT_PLUGIN"
/* With how many GPUs XLA computes, through a plugin for CUDA. The worker sets it, also for the process that compiles. */
#define ENV_PJRT_GPUS "COXSWAIN_PJRT_GPUS"
/* How many devices a CPU's plugin has, which then takes the place of TPUs or GPUs in a job with devices.type TPU or GPU; for tests. */
#define ENV_PJRT_CPU_DEVICES "COXSWAIN_PJRT_CPU_DEVICES"
/* Instruction set for computing on the CPU ("avx2", "portable") instead of the best one; for
 * tests. */
#define ENV_ARITHMETIC "COXSWAIN_ARITHMETIC"
/* File with the milliseconds by which each read of a batch is delayed (worker/data/read_delay.h);
 * for tests. */
#define ENV_READ_DELAY "COXSWAIN_READ_DELAY"
/* The fault that a worker's pre-flight check pretends to find: "product", "memory" or "copies"
 * (worker/strategy/preflight.h); for tests. */
#define ENV_PREFLIGHT_FAULT "COXSWAIN_PREFLIGHT_FAULT"
/* The next six are switches, 0 or 1; a worker that finds another value in one ends with 64. */

/* 0: all-reduce gradients after the backward pass, instead of overlapping it bucket by bucket; for
 * benchmarks. */
#define ENV_OVERLAP "COXSWAIN_OVERLAP"
/* 0: the host waits for the GPU at the end of each step before it queues the next one; for
 * benchmarks. */
#define ENV_GPU_AHEAD "COXSWAIN_GPU_AHEAD"
/* 0: launch a step's operations one by one instead of as CUDA graphs; for benchmarks. */
#define ENV_GPU_GRAPHS "COXSWAIN_GPU_GRAPHS"
/* 1: fuse bias and GELU into matrix products with cuBLASLt epilogues, instead of separate kernels;
 * for benchmarks, not yet run on real GPUs. All members of a crew must use the same value, since it
 * changes the arithmetic. */
#define ENV_GPU_LT "COXSWAIN_GPU_LT"
/* 1: compute convolutions with cuDNN where possible, instead of our own kernels and matrix products
 * of patches (im2col). The restrictions of ENV_GPU_LT apply. */
#define ENV_GPU_DNN "COXSWAIN_GPU_DNN"
/* 0: copy between a worker's GPUs through host memory even if they have peer access; for machines
 * where peer access does not work. */
#define ENV_GPU_PEERS "COXSWAIN_GPU_PEERS"

/* Rows of a wide last layer's logits that a pass computes at a time; 0: all rows; absent: chosen
 * from the layer's shape. For benchmarks. All members of a crew must use the same value, since the
 * bits of the result depend on it. */
#define ENV_LOGIT_ROWS "COXSWAIN_LOGIT_ROWS"

/* Ports of a pod. Collectives over TCP listen on a port that is announced at the join; if the port
 * is taken, a free one is used. */
#define PORT_CREW 2222       /* gRPC; TensorFlow's servers too */
#define PORT_COLLECTIVE 2223 /* bulk data */
#define PORT_HTTP 8080       /* /healthz /metrics /status */
#define PORT_PYTORCH 23456   /* MASTER_PORT of a PyTorch crew */
#define PORT_JAX 8476        /* coordinator of a JAX crew */
#define PORT_CREW_NAME "crew"

/* A storage is mounted at STORAGE_ROOT "/" name. */
#define STORAGE_ROOT "/coxswain/storage"

/* Folders with the credentials of object storage, in the containers that copy files or save checkpoints: S3_DIRECTORY "/" number of the
 * storage. */
#define S3_DIRECTORY "/coxswain/s3"
/* Names of the sidecars that upload storages: SYNC_CONTAINER and the number of the storage. */
#define SYNC_CONTAINER "coxswain-sync-"

/* Linux limits an environment variable to 128 KiB; the job document must stay below that. */
#define JOB_DOCUMENT_MAX (96 * 1024)

#endif
