/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod as the cache keeps it: what its view holds, in one small block. There may
 * be a hundred thousand of them, of which a plan looks at a few at a time; so a
 * view is made of a record when it is needed.
 */
#ifndef COXSWAIN_CONTROLLER_POD_RECORD_H
#define COXSWAIN_CONTROLLER_POD_RECORD_H

#include "common/job/arena.h"
#include "operator/controller/observed/pod_view.h"

struct pod_record;

/* Free with free(). Texts longer than POD_TEXT_MAX are cut. */
struct pod_record *pod_record_new(const struct pod_view *view);
/* Of a pod as the API server shows it. */
struct pod_record *pod_record_read(const struct json *pod);

/* The view's texts lie in the record. */
struct pod_view pod_record_view(const struct pod_record *record);

/* Views of `count` records, in the arena; the records must outlive them. */
const struct pod_view **pod_record_views(const struct pod_record *const *records, size_t count, struct arena *arena);

#endif
