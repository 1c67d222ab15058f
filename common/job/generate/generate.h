/* SPDX-License-Identifier: Apache-2.0
 *
 * Generates the CustomResourceDefinitions of TrainingJob, TrainingSweep and of training classes, and
 * docs/api.md, from the table of fields (common/job/fields.h). `coxswain-generate crd`,
 * `sweep-crd`, `cluster-class-crd`, `class-crd` and `docs` print them; `make generate` writes them to their files, which
 * must not be edited by hand.
 */
#ifndef COXSWAIN_JOB_GENERATE_H
#define COXSWAIN_JOB_GENERATE_H

#include "common/buffer.h"

/* The CustomResourceDefinitions of TrainingJob, TrainingSweep, ClusterTrainingClass and TrainingClass as YAML. */
int crd_generate(struct buffer *out, struct error *error);
int sweep_crd_generate(struct buffer *out, struct error *error);
int cluster_class_crd_generate(struct buffer *out, struct error *error);
int class_crd_generate(struct buffer *out, struct error *error);
/* docs/api.md. */
int docs_generate(struct buffer *out, struct error *error);

#endif
