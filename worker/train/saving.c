/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/train/saving.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/checkpoint_layout.h"
#include "worker/checkpoint/bucket_shards.h"
#include "worker/checkpoint/file.h"
#include "worker/checkpoint/image.h"
#include "worker/train/averaging.h"
#include "worker/train/best.h"
#include "worker/train/completion_record.h"
#include "worker/train/export.h"
#include "worker/train/export_objects.h"
#include "worker/train/finished_examples.h"
#include "worker/train/resumed_order.h"
#include "worker/train/state_tensors.h"
#include "worker/train/trained_on.h"

#define STAGES_TEXT_MAX 65536
#define FIRST_SAVE_SECONDS 10
#define HELD_NS (30 * (int64_t)1000000000)

/* Parameter servers save their own shards (strategy is NULL). */
static void expect_saves(struct trainer *trainer)
{
    size_t bytes = 0;
    if (trainer->strategy == NULL)
        return;
    struct state_tensors tensors;
    state_tensors_init(&tensors, &trainer->state);
    for (unsigned i = 0; i < tensors.count; i++)
        bytes += tensors.tensors[i].bytes;
    state_tensors_release(&tensors);
    checkpoint_expect(trainer->files.store, bytes);
}

int64_t saving_begun_ns(const struct checkpoint_spec *spec)
{
    int64_t most = FIRST_SAVE_SECONDS;
    bool is_late = spec->every_seconds != FIELD_UNSET && spec->every_seconds > most;
    return clock_monotonic_ns() - (is_late ? (spec->every_seconds - most) * 1000000000 : 0);
}

int saving_begin(struct trainer *trainer, struct error *error)
{
    trainer->saves.held_ns = 0;
    if (trainer->saves.step > trainer->state.progress.step)
        trainer->saves.step = -1; /* that save failed, or the crew would not be behind it */
    if (trainer->files.store == NULL || trainer->files.store_begun)
        return 0;
    if (checkpoint_store_begin(trainer->files.store, !trainer->resumed.by_us, error) < 0)
        return -1;
    trainer->files.store_begun = true;
    trainer->saves.started_ns = saving_begun_ns(&trainer->job->checkpoint);
    expect_saves(trainer);
    best_begin(trainer);
    return 0;
}

/* ---- the manifest */

/* So that a resume need not measure the layers again. */
static void describe_stages(const struct trainer *trainer, struct json *model)
{
    unsigned layers;
    if (trainer->strategy == NULL) /* parameter servers have none */
        return;
    const unsigned *stages = strategy_stages(trainer->strategy, &layers);
    SCOPED_BUFFER text = BUFFER_INIT(STAGES_TEXT_MAX);
    if (stages == NULL)
        return;
    for (unsigned i = 0; i < layers; i++)
        buffer_format(&text, "%s%u", i ? " " : "", stages[i]);
    json_set_string(model, "stages", buffer_text(&text));
}

static void describe_finished(const struct trainer *trainer, struct json *model)
{
    int64_t counts[CREW_SIZE_MAX];
    if (trainer->strategy == NULL || !strategy_is_loose(trainer->strategy))
        return;
    for (unsigned seat = 0; seat < CREW_SIZE_MAX; seat++)
        counts[seat] = strategy_finished(trainer->strategy, seat);
    finished_examples_describe(model, counts);
}

struct json *saving_describe_model(const struct trainer *trainer)
{
    struct json *model = json_new_object();
    char arithmetic[ARITHMETIC_MAX];
    trainer_name_arithmetic(trainer, arithmetic);
    json_set_string(model, "preset", preset_name(trainer->job->model.preset));
    json_set_integer(model, "parameters", graph_layout(trainer->graph)->elements);
    json_set_string(model, "arithmetic", arithmetic);
    resumed_order_describe(model, &trainer->sampler, trainer->plan.global_batch);
    trained_on_describe(model, trainer->training);
    describe_stages(trainer, model);
    averaging_describe(trainer, model);
    describe_finished(trainer, model);
    return model;
}

struct json *saving_describe_optimizer(const struct trainer *trainer)
{
    struct json *optimizer = json_new_object();
    json_set_string(optimizer, "type", optimizer_type_name(trainer->job->training.optimizer.type));
    return optimizer;
}

static struct checkpoint_part_key part_key(const struct trainer *trainer)
{
    const struct world *world = strategy_world(trainer->strategy);
    return (struct checkpoint_part_key){.attempt = world->generation.attempt,
                                        .incarnation = world->generation.incarnation,
                                        .counter = world->generation.counter,
                                        .step = trainer->state.progress.step,
                                        .rank = world->rank};
}

static int save_state(struct trainer *trainer, enum checkpoint_start *ret_start, struct error *error)
{
    const struct training_progress *progress = &trainer->state.progress;
    checkpoint_fence(trainer->files.store); /* the host's copies are about to change */
    if (training_state_to_host(&trainer->state, error) < 0)
        return -1;
    SCOPED_JSON *model = saving_describe_model(trainer);
    SCOPED_JSON *optimizer = saving_describe_optimizer(trainer);
    const struct manifest manifest = {
        .step = progress->step,
        .generation = strategy_world(trainer->strategy)->generation.counter,
        .workers = strategy_world(trainer->strategy)->size,
        .logical_shards = trainer->plan.logical_shards,
        .seed = progress->seed,
        .data_epoch = progress->data_epoch,
        .examples_consumed = progress->examples_consumed,
        .loss_scale = progress->scaling.scale,
        .good_steps = progress->scaling.good_steps,
        .skipped_steps = progress->scaling.skipped_steps,
        .model = model,
        .optimizer = optimizer,
    };
    struct state_tensors tensors;
    state_tensors_init(&tensors, &trainer->state);
    const struct checkpoint_part_key key = part_key(trainer);
    if (!checkpoint_is_busy(trainer->files.store))
        trainer->saves.world = *strategy_world(trainer->strategy);
    unsigned writers = strategy_writers(trainer->strategy);
    int result = checkpoint_save_with_parts(trainer->files.store, &manifest, tensors.tensors, tensors.count, &key,
                                            writers, ret_start, error);
    state_tensors_release(&tensors);
    return result;
}

/* Replicas that differ save their mean. If an evaluation was abandoned, the state is the mean
 * already. */
static int start_save(struct trainer *trainer, enum checkpoint_start *ret_start, struct error *error)
{
    if (trainer->averaged)
        return save_state(trainer, ret_start, error);
    if (averaging_begin(trainer, error) < 0)
        return -1;
    int result = save_state(trainer, ret_start, error);
    averaging_end(trainer);
    return result;
}

/* ---- the parts of other ranks */

static bool writes_part(const struct trainer *trainer)
{
    unsigned rank = strategy_world(trainer->strategy)->rank;
    return trainer->files.parts && rank > 0 && rank < strategy_writers(trainer->strategy);
}

enum checkpoint_rank_fate saving_ask_rank(void *context, const struct checkpoint_part_key *key)
{
    const struct trainer *trainer = context;
    static const enum checkpoint_rank_fate fates[] = {RANK_STAYS, RANK_HAS_MOVED_ON, RANK_IS_LOST}; /* by presence */
    return trainer->member ? fates[member_presence_of(trainer->member, &trainer->saves.world, key->rank)] : RANK_STAYS;
}

void saving_name_rank(void *context, unsigned rank, char name[CHECKPOINT_RANK_NAME_MAX])
{
    const struct trainer *trainer = context;
    char text[COLLECTIVE_PEER_TEXT_MAX];
    collective_peer_describe(trainer->saves.world.peers, rank, text);
    snprintf(name, CHECKPOINT_RANK_NAME_MAX, "%s", text);
}

/* If the end of the run waits for the save, this is the process's phase; else a warning. */
void saving_report_late(void *context, const char *rank, int64_t step, int64_t waited_ms)
{
    struct trainer *trainer = context;
    char text[CHECKPOINT_RANK_NAME_MAX + 128];
    snprintf(text, sizeof text, "%s has not written its part of step %lld for %.1f s", rank, (long long)step,
             (double)waited_ms / 1000);
    if (atomic_load(&trainer->saves.finishes))
        report_phase(trainer->report, STATUS_SAVING, text);
    else
        report_warn(trainer->report, "%s", text);
}

static int save_part(struct trainer *trainer, struct error *error)
{
    const struct checkpoint_part_key key = part_key(trainer);
    if (part_writer_has_begun(trainer->files.parts, &key))
        return 0;
    struct state_tensors tensors;
    state_tensors_init(&tensors, &trainer->state);
    int result = training_state_to_host(&trainer->state, error);
    if (result == 0)
        result = part_writer_save(trainer->files.parts, &key, tensors.tensors + tensors.shared_count,
                                  tensors.count - tensors.shared_count, error);
    state_tensors_release(&tensors);
    return result;
}

/* A part that cannot be saved is a warning here, and a failed save in the chief. */
static void begin_part(struct trainer *trainer)
{
    struct error cause = ERROR_INIT;
    if (save_part(trainer, &cause) < 0)
        report_warn(trainer->report, "no checkpoint of step %lld: %s", (long long)trainer->state.progress.step,
                    cause.message);
}

/* ---- when */

static bool is_due_at(const struct trainer *trainer, int64_t before, int64_t step)
{
    const struct checkpoint_spec *spec = &trainer->job->checkpoint;
    if (step == trainer->saves.step)
        return false;
    if (spec->every_steps != FIELD_UNSET && step / spec->every_steps != before / spec->every_steps)
        return true;
    return spec->every_seconds != FIELD_UNSET &&
           clock_monotonic_ns() - trainer->saves.started_ns >= spec->every_seconds * 1000000000;
}

/* Where several ranks write, the chief says when (saving_votes). */
static bool is_due(const struct trainer *trainer)
{
    return strategy_writers(trainer->strategy) == 1 &&
           is_due_at(trainer, strategy_step_before(trainer->strategy), trainer->state.progress.step);
}

static bool asks_for_save(const struct trainer *trainer)
{
    int64_t step = trainer->state.progress.step;
    return trainer->files.store && trainer->files.store_begun && is_due_at(trainer, step, step + 1) &&
           !checkpoint_is_busy(trainer->files.store);
}

unsigned saving_votes(const struct trainer *trainer)
{
    if (strategy_writers(trainer->strategy) == 1)
        return 0;
    bool yes = trainer_is_chief(trainer) ? asks_for_save(trainer)
                                         : trainer->files.parts == NULL || !part_writer_is_busy(trainer->files.parts);
    return yes ? STRATEGY_VOTE_CHECKPOINT : 0;
}

/* Warns that saves are held up; training continues. The results of saves that do start are reported
 * elsewhere. */
static void tell_held(struct trainer *trainer, const struct strategy_result *result)
{
    unsigned rank = result->checkpoint_held_by;
    int64_t now = clock_monotonic_ns();
    char name[COLLECTIVE_PEER_TEXT_MAX];
    if (result->checkpoint)
        trainer->saves.held_ns = 0;
    if (rank == 0)
        return;
    if (trainer->saves.held_ns == 0)
        trainer->saves.held_ns = trainer->saves.reported_held_ns = now;
    if (now - trainer->saves.reported_held_ns < HELD_NS)
        return;
    trainer->saves.reported_held_ns = now;
    collective_peer_describe(strategy_world(trainer->strategy)->peers, rank, name);
    report_warn(
        trainer->report,
        "no checkpoint of step %lld: %s still writes its part of an older one; saves have waited for it for %.1f s",
        (long long)trainer->state.progress.step, name, (double)(now - trainer->saves.held_ns) / 1e9);
}

static void tell_saved(struct trainer *trainer, const struct checkpoint_counts *counts)
{
    if (counts->saved == trainer->saves.reported)
        return;
    trainer->saves.reported = counts->saved;
    report_save(trainer->report, NULL);
    report_saved(trainer->report, counts->committed_step, counts->last_bytes, counts->last_save_ns);
}

static int tell_results(struct trainer *trainer, struct error *error)
{
    struct error cause = ERROR_INIT;
    struct checkpoint_counts counts = checkpoint_store_counts(trainer->files.store);
    report_checkpoint(trainer->report, counts.committed_step);
    tell_saved(trainer, &counts);
    if (checkpoint_store_result(trainer->files.store, &cause) == 0 || counts.failed == trainer->saves.reported_failures)
        return 0;
    trainer->saves.reported_failures = counts.failed;
    if (cause.kind == ERROR_STALE || cause.kind == ERROR_CONFLICT)
        return error_set(error, cause.kind, "%s", cause.message);
    report_save(trainer->report, &cause);
    return 0;
}

int saving_consider(struct trainer *trainer, const struct strategy_result *result, struct error *error)
{
    if (writes_part(trainer) && result->checkpoint)
        begin_part(trainer);
    if (trainer->files.store == NULL || !trainer->files.store_begun)
        return 0;
    if (tell_results(trainer, error) < 0)
        return -1;
    tell_held(trainer, result);
    if (!result->checkpoint && !is_due(trainer))
        return 0;
    if (strategy_is_loose(trainer->strategy) && checkpoint_is_busy(trainer->files.store))
        return 0; /* no mean is taken for a save that would be skipped */
    enum checkpoint_start start;
    struct error cause = ERROR_INIT;
    if (start_save(trainer, &start, &cause) < 0) {
        error_wrap(&cause, "save step %lld", (long long)trainer->state.progress.step);
        report_save(trainer->report, &cause);
        return 0;
    }
    if (start == CHECKPOINT_STARTED) {
        trainer->saves.step = trainer->state.progress.step;
        trainer->saves.started_ns = clock_monotonic_ns();
    }
    return 0;
}

static int finish_save(struct trainer *trainer, struct error *error)
{
    int64_t step = trainer->state.progress.step;
    if (checkpoint_is_busy(trainer->files.store))
        report_phase(trainer->report, STATUS_SAVING, NULL);
    int last = checkpoint_wait(trainer->files.store, NULL);
    if (tell_results(trainer, error) < 0)
        return -1;
    if (last < 0 || checkpoint_store_counts(trainer->files.store).committed_step != step) {
        enum checkpoint_start start;
        report_phase(trainer->report, STATUS_SAVING, NULL);
        if (start_save(trainer, &start, error) < 0 || checkpoint_wait(trainer->files.store, error) < 0)
            return -1;
    }
    const struct checkpoint_counts counts = checkpoint_store_counts(trainer->files.store);
    report_checkpoint(trainer->report, step);
    tell_saved(trainer, &counts);
    return 0;
}

int saving_finish(struct trainer *trainer, struct error *error)
{
    if (writes_part(trainer) && (save_part(trainer, error) < 0 || part_writer_wait(trainer->files.parts, error) < 0))
        return -1;
    if (trainer->files.store == NULL || !trainer->files.store_begun)
        return 0;
    atomic_store(&trainer->saves.finishes, true);
    int result = finish_save(trainer, error);
    atomic_store(&trainer->saves.finishes, false);
    return result < 0 ? error_wrap(error, "final checkpoint") : 0;
}

/* ---- a boundary that the crew has left, or wants to */

static struct bucket *bucket_of(const struct trainer *trainer)
{
    return trainer->files.store ? checkpoint_store_bucket(trainer->files.store) : trainer->files.bucket;
}

void saving_call(struct trainer *trainer)
{
    struct error cause = ERROR_INIT;
    const struct checkpoint_part_key key = part_key(trainer);
    bool writes = trainer_is_chief(trainer) || writes_part(trainer);
    struct bucket *bucket = bucket_of(trainer);
    if (!writes)
        return;
    if ((bucket ? bucket_call_parts(bucket, &key, &cause)
                : checkpoint_parts_call(trainer->files.checkpoint_directory, &key, &cause)) < 0)
        report_warn(trainer->report, "the other workers could not be asked to save step %lld: %s", (long long)key.step,
                    cause.message);
}

bool saving_is_called(const struct trainer *trainer)
{
    const struct checkpoint_part_key key = part_key(trainer);
    struct bucket *bucket = bucket_of(trainer);
    if (!trainer->files.checkpoint_directory || strategy_writers(trainer->strategy) == 1 ||
        !strategy_is_whole(trainer->strategy))
        return false;
    return bucket ? bucket_parts_are_called(bucket, &key)
                  : checkpoint_parts_are_called(trainer->files.checkpoint_directory, &key);
}

/* Verifies every byte: a manifest alone does not prove that the checkpoint is complete. */
static bool is_whole(const struct trainer *trainer, const struct manifest *manifest)
{
    const struct checkpoint_name name = {
        .step = manifest->step, .attempt = manifest->attempt, .incarnation = manifest->incarnation};
    char text[CHECKPOINT_NAME_MAX];
    checkpoint_name_format(&name, text);
    SCOPED_FREE char *path = file_path_join(trainer->files.checkpoint_directory, text);
    struct manifest verified;
    if ((trainer->files.store && checkpoint_store_fetch(trainer->files.store, &name, NULL) < 0) ||
        checkpoint_image_verify(path, &name, &verified, NULL) < 0)
        return false;
    manifest_release(&verified);
    return true;
}

/* Whether the job's export is still the file that the record says: under the name may lie an earlier job's. */
static bool export_is(const struct trainer *trainer, const struct completion_record *record)
{
    int64_t bytes;
    uint32_t crc;
    if (trainer->files.export_path == NULL)
        return true;
    int found = trainer->files.export_objects ? export_objects_look(trainer->files.export_objects, &bytes, &crc)
                                              : file_digest(trainer->files.export_path, &crc, &bytes, NULL);
    return found == 0 && record->exported && record->export_bytes == bytes && record->export_crc32c == crc;
}

bool saving_is_complete(const struct trainer *trainer, struct status_document *ret_status)
{
    struct manifest manifest;
    struct completion_record record;
    if (trainer->files.checkpoint_directory == NULL || trainer->identity->job_uid[0] == '\0' ||
        checkpoint_newest_manifest(trainer->files.checkpoint_directory, &manifest, NULL) < 0)
        return false;
    bool complete = step_plan_is_over(&trainer->plan, manifest.step, manifest.data_epoch, manifest.examples_consumed) &&
                    completion_record_read(trainer->files.checkpoint_directory, &record, NULL) == 0 &&
                    strcmp(record.status.job_uid, trainer->identity->job_uid) == 0 && record.step == manifest.step &&
                    export_is(trainer, &record) && is_whole(trainer, &manifest);
    if (complete)
        *ret_status = record.status;
    manifest_release(&manifest);
    return complete;
}

void saving_complete(const struct trainer *trainer, const struct exported *exported)
{
    struct error cause = ERROR_INIT;
    if (trainer->files.store == NULL)
        return;
    struct completion_record record = {.step = checkpoint_store_counts(trainer->files.store).committed_step,
                                       .exported = exported != NULL,
                                       .export_bytes = exported ? exported->bytes : 0,
                                       .export_crc32c = exported ? exported->crc32c : 0};
    report_get_status(trainer->report, &record.status);
    if (completion_record_write(trainer->files.checkpoint_directory, &record, &cause) < 0 ||
        checkpoint_store_publish(trainer->files.store, CHECKPOINT_COMPLETION, &cause) < 0)
        report_warn(trainer->report, "the job has done everything, but the record that says so (%s) is not written: %s",
                    CHECKPOINT_COMPLETION, cause.message);
}
