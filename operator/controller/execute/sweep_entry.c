/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/sweep_entry.h"

#include <stdlib.h>
#include <string.h>

#include "common/extremes.h"
#include "common/memory.h"
#include "operator/controller/sweep/trial_build.h"

#define RESULTS_PER_MS 10

struct sweep_entry *sweep_entry_new(const char *key, void *controller)
{
    struct sweep_entry *entry = memory_allocate(1, sizeof *entry);
    entry->key = memory_copy_string(key);
    entry->controller = controller;
    return entry;
}

static void forget_trials(struct sweep_entry *entry)
{
    for (size_t i = 0; i < entry->note_count; i++)
        free(entry->notes[i].message);
    free(entry->notes);
    entry->notes = NULL;
    entry->note_count = 0;
    for (size_t i = 0; i < entry->ended_count; i++)
        trial_view_free(entry->ended[i]);
    free(entry->ended);
    entry->ended = NULL;
    entry->ended_count = 0;
}

void sweep_entry_free(struct sweep_entry *entry)
{
    if (entry->timer)
        event_timer_cancel(entry->timer);
    forget_trials(entry);
    free(entry->obstacle);
    free(entry->uid);
    free(entry->key);
    free(entry);
}

void sweep_entry_set_sweep(struct sweep_entry *entry, const char *uid)
{
    if (entry->uid && strcmp(entry->uid, uid) == 0)
        return;
    forget_trials(entry);
    sweep_entry_set_obstacle(entry, NULL);
    free(entry->uid);
    entry->uid = memory_copy_string(uid);
}

int64_t sweep_entry_pace_ms(const struct sweep_entry *entry, int64_t results, int64_t now_ms)
{
    return int64_max(entry->planned_ms + results / RESULTS_PER_MS - now_ms, 0);
}

void sweep_entry_note(struct sweep_entry *entry, int64_t trial, enum trial_note_kind kind, const char *message)
{
    struct trial_note *note = NULL;
    for (size_t i = 0; i < entry->note_count && !note; i++)
        if (entry->notes[i].trial == trial)
            note = &entry->notes[i];
    if (!note) {
        entry->notes = memory_resize(entry->notes, entry->note_count + 1, sizeof *entry->notes);
        note = &entry->notes[entry->note_count++];
        note->message = NULL;
    }
    free(note->message);
    *note = (struct trial_note){trial, kind, memory_copy_string(message)};
}

void sweep_entry_keep_ended(struct sweep_entry *entry, const struct trial_view *trial)
{
    entry->ended = memory_resize(entry->ended, entry->ended_count + 1, sizeof *entry->ended);
    entry->ended[entry->ended_count++] = trial_view_copy(trial);
}

static bool is_counted(const struct sweep_status *status, int64_t trial)
{
    if (trial < 0 || trial >= status->result_count)
        return false;
    return status->results[trial].state != TRIAL_RUNNING && status->results[trial].state != TRIAL_PAUSED;
}

void sweep_entry_forget_counted(struct sweep_entry *entry, const struct training_sweep *sweep)
{
    size_t kept = 0;
    for (size_t i = 0; i < entry->ended_count; i++) {
        if (is_counted(&sweep->status, trial_number(sweep, entry->ended[i]->name)))
            trial_view_free(entry->ended[i]);
        else
            entry->ended[kept++] = entry->ended[i];
    }
    entry->ended_count = kept;
}

void sweep_entry_set_obstacle(struct sweep_entry *entry, const char *message)
{
    free(entry->obstacle);
    entry->obstacle = memory_copy_string(message);
}
