/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads from a ClusterTrainingClass or a TrainingClass what the plan of a job needs: its spec, which is copied into the
 * status of each new job that names the class, or why no job can use it. The informer's cache keeps these views.
 */
#ifndef COXSWAIN_CONTROLLER_CLASS_VIEW_H
#define COXSWAIN_CONTROLLER_CLASS_VIEW_H

#include "common/json.h"

struct class_view {
    char *uid;
    int64_t generation;
    struct json *spec; /* NULL: no job can use it */
    char *flaw;        /* why no job can use it; NULL: `spec` is valid */
};

struct class_view *class_view_new(const struct json *object);
void class_view_free(struct class_view *view);

#endif
