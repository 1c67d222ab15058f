/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/summary.h"

#include <math.h>

#include "common/contract/checkpoint_layout.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"
#include "operator/cli/paths.h"
#include "operator/cli/view_print.h"
#include "operator/cli/volume_options.h"

#define CURVE_WIDTH 60

/* ---------------------------------------------------------------- places */

static const char *claim_of(const struct json *job, const char *storage)
{
    for (const struct json *item = json_first(json_at(job, "spec.storage")); item; item = json_next(item)) {
        if (strcmp(json_string_at(item, "name", ""), storage) == 0)
            return json_string_at(item, "persistentVolumeClaim.claimName", NULL);
    }
    return NULL;
}

char *storage_directory(const struct storage_place *place, const struct json *job, const char *name_space,
                        const char *storage)
{
    const char *claim = claim_of(job, storage);
    if (!place->state || !claim)
        return NULL;
    const char *given = volume_options_find(place->volumes, place->volume_count, claim);
    return given ? memory_copy_string(given)
                 : memory_format("%s/" STATE_VOLUMES "/%s/%s", place->state, name_space, claim);
}

static char *place_below(const struct storage_place *place, const struct json *job, const char *name_space,
                         const char *storage, const char *path)
{
    SCOPED_FREE char *directory = storage_directory(place, job, name_space, storage);
    return directory && *path ? memory_format("%s/%s", directory, path) : NULL;
}

char *checkpoint_directory(const struct storage_place *place, const struct json *job, const char *name_space)
{
    return place_below(place, job, name_space, json_string_at(job, "spec.coxswain.checkpoint.storage", ""),
                       json_string_at(job, "spec.coxswain.checkpoint.path", json_string_at(job, "metadata.name", "")));
}

char *export_file(const struct storage_place *place, const struct json *job, const char *name_space)
{
    return place_below(place, job, name_space, json_string_at(job, "spec.coxswain.export.storage", ""),
                       json_string_at(job, "spec.coxswain.export.path", ""));
}

/* ---------------------------------------------------------------- words */

static void write_path(struct buffer *out, const char *title, const char *path)
{
    if (!path)
        return;
    SCOPED_FREE char *shown = path_for_people(path);
    buffer_format(out, "  %-12s %s\n", title, shown);
}

static void write_places(const struct job_view *view, const struct json *job, const struct storage_place *place,
                         struct buffer *out)
{
    SCOPED_FREE char *checkpoints = checkpoint_directory(place, job, view->name_space);
    SCOPED_FREE char *board = checkpoints ? memory_format("%s/%s", checkpoints, CHECKPOINT_TENSORBOARD) : NULL;
    SCOPED_FREE char *weights = export_file(place, job, view->name_space);
    write_path(out, "checkpoints", checkpoints);
    write_path(out, "TensorBoard", board);
    write_path(out, "weights", weights);
}

static void write_curve(const struct job_view *view, struct buffer *out)
{
    if (view->loss_count < 2)
        return;
    buffer_append_string(out, "  loss         ", NULL);
    view_print_curve(view, CURVE_WIDTH, out);
    buffer_format(out, "\n               %.3f to %.4f\n", view->losses[0], view->losses[view->loss_count - 1]);
}

/* Side by side, since a held-out loss far above that of training, or of the best evaluation, shows overfitting. */
static void write_losses(const struct job_view *view, struct buffer *out)
{
    if (!isfinite(view->loss) || !isfinite(view->validation_loss))
        return;
    buffer_format(out, "  %-12s training %.4f (last step), held out %.4f", "losses", view->loss, view->validation_loss);
    if (view->best.best_step >= 0)
        buffer_format(out, " (last), %.4f (best)", view->best.loss);
    buffer_append_byte(out, '\n', NULL);
}

static void write_seconds(double seconds, struct buffer *out)
{
    if (seconds < 1)
        buffer_format(out, "  training     %.0f ms", 1000 * seconds);
    else
        buffer_format(out, "  training     %.1f s", seconds);
}

static void write_rate(double rate, const struct job_view *view, const char *when, struct buffer *out)
{
    buffer_append_string(out, ", ", NULL);
    view_print_number(llround(rate), out);
    buffer_format(out, " %s a second%s", view->unit, when);
}

/* The time of the steps and the mean rate over it, as the chief has counted them. Other trainers, and a crew that failed, tell only how fast
 * they are at the moment: then the time is from the first step to the last. */
static void write_speed(const struct job_view *view, struct buffer *out)
{
    bool counted = view->trained_examples > 0;
    double seconds = counted ? view->trained_seconds : (double)(view->last_step_ms - view->first_step_ms) / 1000;
    if (view->was_over || seconds <= 0)
        return;
    write_seconds(seconds, out);
    if (counted)
        write_rate((double)view->trained_examples / seconds, view, "", out);
    else if (isfinite(view->examples_per_second))
        write_rate(view->examples_per_second, view, " at the end", out);
    if (isfinite(view->goodput))
        buffer_format(out, ", goodput %.1f %%", view->goodput);
    buffer_append_byte(out, '\n', NULL);
}

static void write_held_out(const struct job_view *view, const struct json *job, struct buffer *out)
{
    const struct json *validation = json_at(job, "spec.coxswain.data.validation");
    int64_t held_out = json_integer_at(validation, "last", json_integer_at(validation, "sample", 0));
    const struct job_score score = job_view_score(view);
    if (isfinite(score.accuracy))
        buffer_format(out, ": %.1f %% right on ", 100 * score.accuracy);
    else if (isfinite(score.rmse))
        buffer_format(out, ": RMSE %.6g (loss %.4f) on ", score.rmse, score.loss);
    else if (view->loss_alone)
        buffer_format(out, ": loss %.4f on ", score.loss);
    else
        buffer_format(out, ": perplexity %.2f (loss %.4f) on ", exp(score.loss), score.loss);
    if (held_out > 0) {
        view_print_number(held_out, out);
        buffer_append_byte(out, ' ', NULL);
    }
    buffer_append_string(out, "held-out examples", NULL);
    if (score.best_step >= 0)
        buffer_format(out, " with the best weights, of step %lld%s", (long long)score.best_step,
                      job_exports(job) ? ", which are exported" : "");
}

static void write_result(const struct job_view *view, const struct json *job, struct buffer *out)
{
    if (!job_view_succeeded(view)) {
        buffer_format(out, "%s has failed: %s\n", view->name, *view->message ? view->message : view->reason);
        return;
    }
    buffer_format(out, "%s is done", view->name);
    const struct job_score score = job_view_score(view);
    if (job_score_is_known(&score))
        write_held_out(view, job, out);
    buffer_append_byte(out, '\n', NULL);
}

void summary_write(const struct job_view *view, const struct json *job, const struct storage_place *place, bool curve,
                   struct buffer *out)
{
    buffer_append_byte(out, '\n', NULL);
    write_result(view, job, out);
    if (curve)
        write_curve(view, out);
    write_losses(view, out);
    write_speed(view, out);
    if (job_view_succeeded(view))
        write_places(view, job, place, out);
}
