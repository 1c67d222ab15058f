/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/operator/controller/execute/entry_scene.h"

#include <stdlib.h>

#include "common/buffer.h"

struct job_entry *entry_scene_begin(void)
{
    struct job_entry *entry = job_entry_new("default/digits");
    job_entry_set_job(entry, SCENE_JOB);
    return entry;
}

void entry_scene_end(struct job_entry *entry)
{
    for (size_t i = 0; i < entry->pod_count; i++)
        free((void *)entry->pods[i]);
    job_entry_free(entry);
}

void entry_scene_add(struct job_entry *entry, const struct entry_pod *pod)
{
    SCOPED_BUFFER conditions;
    SCOPED_JSON *nothing = json_new_object();
    struct pod_view view;
    pod_view_read(nothing, &view, &conditions);
    view.name = view.uid = pod->uid;
    view.job_uid = view.owner_uid = pod->owner ? pod->owner : SCENE_JOB;
    view.ip = pod->ip ? pod->ip : view.ip;
    view.role = pod->role;
    view.index = pod->index;
    view.incarnation = pod->incarnation;
    view.attempt = pod->attempt;
    view.phase = POD_RUNNING;
    view.member = view.current = true;
    view.ready = !pod->unready;
    job_entry_add_pod(entry, pod_record_new(&view));
}
