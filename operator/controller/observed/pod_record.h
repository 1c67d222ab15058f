/* SPDX-License-Identifier: Apache-2.0
 *
 * A pod as the cache keeps it: what its view holds, in one small block. There may
 * be a hundred thousand of them, of which a plan looks at a few at a time; so a
 * view is made of a record when it is needed, and some of its texts are made anew.
 */
#ifndef COXSWAIN_CONTROLLER_POD_RECORD_H
#define COXSWAIN_CONTROLLER_POD_RECORD_H

#include "common/job/arena.h"
#include "operator/controller/observed/pod_view.h"
#include "operator/controller/observed/uid_bytes.h"

struct pod_record;

/* Free with free(). Texts longer than POD_TEXT_MAX are cut. */
struct pod_record *pod_record_new(const struct pod_view *view);
/* Of a pod as the API server shows it. */
struct pod_record *pod_record_read(const struct json *pod);

/* Where the texts of a view are made that a record has in another form; nothing to begin with. */
struct pod_room {
    char uid[UID_TEXT_MAX], job_uid[UID_TEXT_MAX];
    char name[POD_PLACE_NAME_MAX];
};

/* The view's texts lie in the record and in `room`. */
struct pod_view pod_record_view(const struct pod_record *record, struct pod_room *room);

/* Whether a member of the crew has that place and is labelled `current`: of many pods, the view of one is wanted. */
bool pod_record_holds(const struct pod_record *record, enum role role, int64_t index);

/* Views of `count` records, in the arena; the records must outlive them. */
const struct pod_view **pod_record_views(const struct pod_record *const *records, size_t count, struct arena *arena);

#endif
