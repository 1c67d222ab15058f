/* SPDX-License-Identifier: Apache-2.0
 *
 * Names every label, annotation and field manager that the operator uses, with its purpose.
 */
#ifndef COXSWAIN_CONTRACT_LABELS_H
#define COXSWAIN_CONTRACT_LABELS_H

#define API_GROUP "coxswain.dev"
#define API_VERSION "v1beta1"
#define API_GROUP_VERSION API_GROUP "/" API_VERSION
#define TRAINING_JOB_KIND "TrainingJob"
#define TRAINING_JOB_PLURAL "trainingjobs"
#define TRAINING_SWEEP_KIND "TrainingSweep"
#define TRAINING_SWEEP_PLURAL "trainingsweeps"
#define CLUSTER_TRAINING_CLASS_KIND "ClusterTrainingClass"
#define CLUSTER_TRAINING_CLASS_PLURAL "clustertrainingclasses"
#define TRAINING_CLASS_KIND "TrainingClass" /* of one namespace */
#define TRAINING_CLASS_PLURAL "trainingclasses"

/* On every object that belongs to a job: the job's name (for people) and UID (for selectors,
 * because names are reused). */
#define LABEL_JOB_NAME "coxswain.dev/job-name"
#define LABEL_JOB_UID "coxswain.dev/job-uid"
/* On the TrainingJobs of a TrainingSweep: the sweep's name, and the trial's number. */
#define LABEL_SWEEP_NAME "coxswain.dev/sweep-name"
#define LABEL_TRIAL "coxswain.dev/trial"
/* On the TrainingJobs of a TrainingSweep with action Pause: the step at which the job's workers save and wait for the sweep's decision
 * (ENV_PAUSE_STEP). The sweep removes it when it suspends the job, so that whoever resumes the job gets one that does not wait. */
#define ANNOTATION_PAUSE_STEP "coxswain.dev/pause-step"
/* On pods: role, index within the role, and the attempt and incarnation that they were
 * created in. */
#define LABEL_ROLE "coxswain.dev/role"
#define LABEL_INDEX "coxswain.dev/index"
#define LABEL_ATTEMPT "coxswain.dev/attempt"
#define LABEL_INCARNATION "coxswain.dev/incarnation"
/* On pods of a job with several slices of TPUs: the slice, from 0. */
#define LABEL_SLICE "coxswain.dev/slice"
/* "true" on the one pod of a role and index that the Service selects. Removed before the pod's
 * successor is created. */
#define LABEL_CURRENT "coxswain.dev/current"

/* On pods: the names of the nodes that their affinity excludes because of failures or notices, with
 * commas between them. */
#define ANNOTATION_AVOIDED_NODES "coxswain.dev/avoided-nodes"
/* On pods of a job that requests GPUs in several pods: how many these request together at least. The embedded control plane's node sets so
 * many aside for the job (node_gpus.h). */
#define ANNOTATION_CREW_GPUS "coxswain.dev/crew-gpus"
/* Karpenter's, on pods that it must not evict. */
#define ANNOTATION_DO_NOT_DISRUPT "karpenter.sh/do-not-disrupt"

/* The taint of nodes that --taint-sick-nodes sets, and the annotation with the time at which it was set
 * (sick_node.h). */
#define TAINT_SICK "coxswain.dev/sick"
#define ANNOTATION_SICK_SINCE "coxswain.dev/sick-since"
/* When the taint ends, as the operator that set it decided. */
#define ANNOTATION_SICK_UNTIL "coxswain.dev/sick-until"

/* Kubernetes' label of nodes by which affinities and topologies name them. */
#define LABEL_HOST_NAME "kubernetes.io/hostname"
/* Google Kubernetes Engine's label of nodes. A slice of several hosts is a node pool of its own. */
#define LABEL_NODE_POOL "cloud.google.com/gke-nodepool"

/* Standard labels, so that dashboards group our pods. */
#define LABEL_APP_NAME "app.kubernetes.io/name"             /* "coxswain" */
#define LABEL_APP_INSTANCE "app.kubernetes.io/instance"     /* the job's name */
#define LABEL_APP_COMPONENT "app.kubernetes.io/component"   /* the role */
#define LABEL_APP_MANAGED_BY "app.kubernetes.io/managed-by" /* "coxswain-operator" */

/* Labels for tools that were written for the Kubeflow training operator. */
#define LABEL_KUBEFLOW_JOB_NAME "training.kubeflow.org/job-name"
#define LABEL_KUBEFLOW_REPLICA_TYPE "training.kubeflow.org/replica-type"
#define LABEL_KUBEFLOW_REPLICA_INDEX "training.kubeflow.org/replica-index"

/* How gang schedulers find the pods of a group: Volcano by annotations, the scheduler plugins by a
 * label. */
#define ANNOTATION_VOLCANO_GROUP "scheduling.k8s.io/group-name"
#define ANNOTATION_VOLCANO_TASK "volcano.sh/task-spec"
#define LABEL_COSCHEDULING_GROUP "scheduling.x-k8s.io/pod-group"

/* On a job: the Kueue queue that admits it. On its pods: their pod set in the Workload. */
#define LABEL_QUEUE_NAME "kueue.x-k8s.io/queue-name"
#define LABEL_QUEUE_PRIORITY "kueue.x-k8s.io/priority-class"
#define LABEL_QUEUE_POD_SET "kueue.x-k8s.io/podset"
/* On an elastic job: "true" lets the job give quota back, and ask for more, while it runs (Kueue's ElasticJobsViaWorkloadSlices). */
#define ANNOTATION_QUEUE_ELASTIC "kueue.x-k8s.io/elastic-job"
/* On a Workload: that by which its elastic job has quota, NAMESPACE/NAME. Kueue finishes that one when it admits this one. */
#define ANNOTATION_QUEUE_REPLACES "kueue.x-k8s.io/workload-slice-replacement-for"
/* On a Workload: how many of its job's Workloads were replaced before it. */
#define ANNOTATION_QUEUE_SLICE "coxswain.dev/workload-slice"
/* On a job: the Workload that MultiKueue has created for it. */
#define LABEL_QUEUE_WORKLOAD "kueue.x-k8s.io/prebuilt-workload-name"

/* spec.managedBy of jobs for the operator without --controller-name, to which jobs without a managedBy belong, too; and of those that
 * MultiKueue sends to other clusters. */
#define MANAGED_BY_OPERATOR "coxswain.dev/operator"
#define MANAGED_BY_MULTIKUEUE "kueue.x-k8s.io/multikueue"

/* Annotations of Kueue for topology-aware scheduling: on pod templates which level of a Topology the pods of a role must or should have
 * in common, and on pods the Workload that says where they belong. */
#define ANNOTATION_TOPOLOGY_REQUIRED "kueue.x-k8s.io/podset-required-topology"
#define ANNOTATION_TOPOLOGY_PREFERRED "kueue.x-k8s.io/podset-preferred-topology"
#define ANNOTATION_TOPOLOGY_UNCONSTRAINED "kueue.x-k8s.io/podset-unconstrained-topology"
#define ANNOTATION_QUEUE_WORKLOAD "kueue.x-k8s.io/workload"
/* With this scheduling gate a pod waits until Kueue has put its topology domain into its nodeSelector. */
#define TOPOLOGY_GATE "kueue.x-k8s.io/topology"
/* Field managers for a Workload's status: the first reports in its conditions what became of its
 * pods, the second releases its quota after an eviction. */
#define MANAGER_QUEUE_STATUS OPERATOR_NAME
#define MANAGER_QUEUE_RELEASE OPERATOR_NAME "-release"
/* Field manager for the number of workers in a Workload's spec, when an elastic job is scaled. */
#define MANAGER_QUEUE_SIZE OPERATOR_NAME "-size"

/* Field manager that restores a pod's owner reference to its job after it was lost. */
#define MANAGER_ADOPTION OPERATOR_NAME "-adoption"

/* The operator's name in managedFields, events (reportingController) and its Lease. */
#define OPERATOR_NAME "coxswain-operator"

/* Name of the container whose exit code counts; see main_container.h for pods without it. */
#define TRAINER_CONTAINER "trainer"

#endif
