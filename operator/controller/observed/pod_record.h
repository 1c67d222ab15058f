/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores a pod compactly in the operator's cache: one small block of memory holds everything that
 * the pod's view (pod_view.h) contains. There may be a hundred thousand pods, but planning a job
 * needs only that job's pods; so the cache stores no views, and pod_record_view makes a view when
 * one is needed. To save memory, UUIDs are stored as sixteen bytes (uid_bytes.h), and a pod's name
 * is not stored if it follows from the other fields; the view's strings for these are generated.
 */
#ifndef COXSWAIN_CONTROLLER_POD_RECORD_H
#define COXSWAIN_CONTROLLER_POD_RECORD_H

#include "common/job/arena.h"
#include "operator/controller/observed/pod_view.h"
#include "operator/controller/observed/uid_bytes.h"

struct pod_record;

/* Makes a record of a view; free with free(). Strings longer than POD_TEXT_MAX are truncated. */
struct pod_record *pod_record_new(const struct pod_view *view);
/* Makes a record from the pod's JSON object; free with free(). */
struct pod_record *pod_record_read(const struct json *pod);

/* Buffers for strings of a view that the record stores in another form. Need not be initialised. */
struct pod_room {
    char uid[UID_TEXT_MAX], job_uid[UID_TEXT_MAX];
    char name[POD_PLACE_NAME_MAX];
};

/* Returns the view. Its strings lie in the record and in `room`. */
struct pod_view pod_record_view(const struct pod_record *record, struct pod_room *room);

/* Returns whether the pod is the member of the crew with this role and index, and is labelled
 * `current`. Finds one of many pods without making views of the others. */
bool pod_record_holds(const struct pod_record *record, enum role role, int64_t index);

/* Returns views of `count` records, in the arena; the records must outlive them. */
const struct pod_view **pod_record_views(const struct pod_record *const *records, size_t count, struct arena *arena);

#endif
