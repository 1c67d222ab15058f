/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/report.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/status_document.h"
#include "common/json.h"
#include "common/lock.h"
#include "common/memory.h"
#include "worker/report/pace.h"
#include "worker/report/sparkline.h"
#include "worker/report/status_server.h"
#include "worker/report/tensorboard.h"
#include "worker/report/termination.h"

#define LINE_INTERVAL_NS 500000000LL /* at most two step lines a second */
#define SAVED_LINE_INTERVAL_NS 5000000000LL
#define FLUSH_INTERVAL_NS 2000000000LL
/* How long to wait for a disk that may hang: at the end, and when the process is asked to leave
 * and has saved what it could. */
#define FREE_PATIENCE_MS 10000
#define FLUSH_PATIENCE_MS 2000
#define SPARKLINE_WIDTH 60
#define SAY_MAX 2048

#define METRIC_LOSS "loss"
#define METRIC_BYTES_SENT "bytesSentPerStep" /* by this process */
#define METRIC_UPDATES_LOST "updatesLost"
#define METRIC_REPLICAS_MISSING "replicasMissing"

struct report {
    enum log_format format;
    bool chief;
    char *unit;
    char *tensorboard_directory;
    struct status_server *server; /* NULL: none */
    pthread_mutex_t board_lock;   /* guards `board`: a process that is asked to leave flushes it from another thread */
    struct tensorboard *board;    /* NULL: none */
    pthread_mutex_t mutex;        /* guards `status`: another thread describes what a waiting crew waits for */
    struct status_document status;
    struct pace pace;
    struct sparkline losses;
    int64_t line_ns, flush_ns;  /* time of the last step line and of the last flush */
    int64_t saved_line_ns;      /* of the last line about a checkpoint; 0: none yet */
    int64_t saved_line_step;    /* the step of that checkpoint */
    bool lacks_events;          /* it was reported that events are missing from the TensorBoard log */
    int64_t straggler_since_ns; /* when the present straggler was first reported */
    double flops_per_example, peak_flops;
    double perplexity; /* after the last evaluation; NAN: none */
};

/* ---- lines */

static void print_line(const struct report *report, const char *level, const char *text)
{
    if (report->format == LOG_TEXT) {
        printf("%s%s\n", level ? "warning: " : "", text);
    } else {
        SCOPED_JSON *line = json_new_object();
        SCOPED_BUFFER printed = BUFFER_INIT(8 * SAY_MAX);
        if (level)
            json_set_string(line, "level", level);
        json_set_string(line, "message", text);
        if (json_print(line, &printed, NULL) == 0)
            printf("%s\n", buffer_text(&printed));
    }
    fflush(stdout);
}

void report_say(struct report *report, const char *format, ...)
{
    char text[SAY_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line(report, NULL, text);
}

void report_warn(struct report *report, const char *format, ...)
{
    char text[SAY_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    print_line(report, "warning", text);
}

/* ---- life cycle */

static void fill_identity(struct status_document *status, const struct report_options *options)
{
    status_document_init(status);
    snprintf(status->job_uid, sizeof status->job_uid, "%s", options->job_uid ? options->job_uid : "");
    snprintf(status->role, sizeof status->role, "%s", options->role ? options->role : "worker");
    status->index = options->index;
    status->incarnation = options->incarnation;
}

/* A TensorBoard log that cannot be opened is only a warning; training continues. */
static void open_tensorboard(struct report *report)
{
    struct error cause = ERROR_INIT;
    if (report->tensorboard_directory && report->chief &&
        tensorboard_open(report->tensorboard_directory, &report->board, &cause) < 0)
        report_warn(report, "no TensorBoard log: %s", cause.message);
}

static void warn_of_lacks(struct report *report, int64_t left_out, bool is_there)
{
    if (left_out > 0)
        report_warn(report, "the TensorBoard log lacks %lld events, because its disk was too slow",
                    (long long)left_out);
    if (!is_there)
        report_warn(report, "the last events of the TensorBoard log are not on the disk");
}

static void close_board(struct report *report, int64_t ms)
{
    int64_t left_out = tensorboard_left_out(report->board);
    bool is_there = tensorboard_free(report->board, ms);
    report->board = NULL;
    warn_of_lacks(report, left_out, is_there);
}

int report_open(const struct report_options *options, struct report **ret_report, struct error *error)
{
    struct report *report = memory_allocate(1, sizeof *report);
    report->format = options->format;
    report->chief = options->chief;
    report->unit = memory_copy_string(options->unit ? options->unit : "examples");
    report->tensorboard_directory = memory_copy_string(options->tensorboard_directory);
    report->perplexity = NAN;
    pthread_mutex_init(&report->board_lock, NULL);
    pthread_mutex_init(&report->mutex, NULL);
    fill_identity(&report->status, options);
    pace_start(&report->pace, clock_monotonic_ns());
    const struct status_server_options server = {.address = options->http_address,
                                                 .port = (uint16_t)options->http_port,
                                                 .complete = options->complete_status,
                                                 .is_live = options->is_live};
    if (options->http_port >= 0 && status_server_start(&server, &report->server, error) < 0) {
        report_free(report);
        return -1;
    }
    open_tensorboard(report);
    *ret_report = report;
    return 0;
}

void report_free(struct report *report)
{
    if (report->server)
        status_server_free(report->server);
    if (report->board)
        close_board(report, FREE_PATIENCE_MS);
    free(report->unit);
    pthread_mutex_destroy(&report->mutex);
    pthread_mutex_destroy(&report->board_lock);
    free(report->tensorboard_directory);
    free(report);
}

/* ---- the status document */

static void publish(struct report *report)
{
    int64_t now_ns = clock_monotonic_ns();
    report->status.updated_at_ms = clock_now_ms();
    report->status.straggler_seconds =
        *report->status.straggler_role ? (now_ns - report->straggler_since_ns) / 1000000000 : STATUS_UNKNOWN;
    report->status.goodput = pace_goodput(&report->pace, now_ns);
    if (report->server)
        status_server_publish(report->server, &report->status);
}

static void set_metric(struct status_document *status, const char *name, double value, int64_t step)
{
    if (isfinite(value))
        status_document_set_metric(status, name, value, step);
}

static double metric(const struct status_document *status, const char *name)
{
    const struct status_metric *found = status_document_metric(status, name);
    return found ? found->value : NAN;
}

/* The operator may have read the status before the last step, evaluation or checkpoint, or
 * never. */
static void leave_status(const struct report *report)
{
    SCOPED_BUFFER text = BUFFER_INIT(STATUS_DOCUMENT_MAX);
    if (status_document_print(&report->status, &text, NULL) == 0)
        termination_leave_status(buffer_text(&text), text.length);
}

void report_phase(struct report *report, enum status_phase phase, const char *message)
{
    struct status_document *status = &report->status;
    const char *text = message ? message : "";
    pthread_mutex_lock(&report->mutex);
    bool changed = status->phase != phase || strcmp(status->message, text) != 0;
    status->phase = phase;
    snprintf(status->message, sizeof status->message, "%s", text);
    publish(report);
    if (phase == STATUS_DONE)
        leave_status(report);
    pthread_mutex_unlock(&report->mutex);
    if (changed && message)
        report_say(report, "%s", message);
}

void report_get_status(struct report *report, struct status_document *ret_status)
{
    SCOPED_LOCK(&report->mutex);
    *ret_status = report->status;
}

void report_completed(struct report *report, const struct status_document *last)
{
    struct status_document *status = &report->status;
    pthread_mutex_lock(&report->mutex);
    status->step = last->step;
    status->total_steps = last->total_steps;
    status->data_epoch = last->data_epoch;
    status->last_checkpoint_step = last->last_checkpoint_step;
    memcpy(status->metrics, last->metrics, sizeof status->metrics);
    status->metric_count = last->metric_count;
    pthread_mutex_unlock(&report->mutex);
    report_say(report, "this job is complete: its last checkpoint is of the final step");
    report_phase(report, STATUS_DONE, NULL);
}

/* ---- TensorBoard */

/* Prints without holding board_lock: stdout may be slow, and a process that leaves needs the
 * lock. */
static void end_board(struct report *report, struct tensorboard *board, const struct error *cause)
{
    report_warn(report, "the TensorBoard log ends here: %s", cause->message);
    tensorboard_free(board, 0);
}

static void tell_of_lacks(struct report *report, bool lacks_events)
{
    if (lacks_events && !report->lacks_events)
        report_warn(report,
                    "the disk is too slow for the TensorBoard log: events are being dropped (training goes on)");
    report->lacks_events = lacks_events;
}

static int flush_when_due(struct report *report, struct error *error)
{
    if (clock_monotonic_ns() - report->flush_ns < FLUSH_INTERVAL_NS)
        return 0;
    report->flush_ns = clock_monotonic_ns();
    return tensorboard_flush(report->board, error);
}

static void append_scalars(struct report *report, int64_t step, const struct tensorboard_scalar *scalars,
                           unsigned count)
{
    struct error cause = ERROR_INIT;
    struct tensorboard *ended = NULL;
    pthread_mutex_lock(&report->board_lock);
    if (report->board != NULL &&
        (tensorboard_append(report->board, step, scalars, count, &cause) < 0 || flush_when_due(report, &cause) < 0)) {
        ended = report->board;
        report->board = NULL;
    }
    bool lacks_events = report->board != NULL && tensorboard_left_out(report->board) > 0;
    pthread_mutex_unlock(&report->board_lock);
    if (ended != NULL)
        end_board(report, ended, &cause);
    tell_of_lacks(report, lacks_events);
}

void report_flush(struct report *report)
{
    int64_t left_out = 0;
    bool is_there = true;
    pthread_mutex_lock(&report->board_lock);
    if (report->board != NULL) {
        left_out = tensorboard_left_out(report->board);
        is_there = tensorboard_settle(report->board, FLUSH_PATIENCE_MS);
    }
    pthread_mutex_unlock(&report->board_lock);
    warn_of_lacks(report, left_out, is_there);
}

/* ---- steps */

static bool line_is_due(struct report *report, const struct step_report *step, int64_t now)
{
    if (!report->chief)
        return false;
    bool edge = step->step == 1 || step->step == step->total_steps;
    if (!edge && now - report->line_ns < LINE_INTERVAL_NS)
        return false;
    report->line_ns = now;
    return true;
}

static void update_status(struct report *report, const struct step_report *step)
{
    struct status_document *status = &report->status;
    status->phase = STATUS_TRAINING;
    status->message[0] = '\0';
    status->step = step->step;
    status->total_steps = step->total_steps;
    status->data_epoch = step->data_epoch;
    status->examples_per_second = step->examples_per_second;
    status->seconds_remaining = step->seconds_remaining;
    set_metric(status, METRIC_LOSS, step->loss, step->step);
}

void report_peak(struct report *report, double flops_per_example, double peak_flops)
{
    report->flops_per_example = flops_per_example;
    report->peak_flops = peak_flops;
}

static double utilisation(const struct report *report, const struct step_report *step)
{
    double peak = report->peak_flops * step->devices;
    return peak > 0 ? step->examples_per_second * report->flops_per_example / peak : 0;
}

static void append_step(struct report *report, const struct step_report *step)
{
    struct tensorboard_scalar scalars[7] = {
        {"train/loss", step->loss},
        {"train/learning_rate", step->learning_rate},
        {"train/examples_per_second", step->examples_per_second},
    };
    unsigned count = 3;
    if (isfinite(step->gradient_norm))
        scalars[count++] = (struct tensorboard_scalar){"train/gradient_norm", step->gradient_norm};
    if (step->utilisation > 0)
        scalars[count++] = (struct tensorboard_scalar){"train/mfu", step->utilisation};
    if (step->loss_scale > 0) {
        scalars[count++] = (struct tensorboard_scalar){"train/loss_scale", (double)step->loss_scale};
        scalars[count++] = (struct tensorboard_scalar){"train/skipped_steps", (double)step->skipped_steps};
    }
    append_scalars(report, step->step, scalars, count);
}

void report_step(struct report *report, struct step_report step, int64_t examples, int64_t step_ns)
{
    int64_t steps = step.steps > 0 ? step.steps : 1;
    pace_add(&report->pace, step.step, step_ns, steps, examples);
    sparkline_add(&report->losses, step.loss);
    step.milliseconds = (double)step_ns / 1e6 / (double)steps;
    step.examples_per_second = report->pace.examples_per_second;
    step.utilisation = utilisation(report, &step);
    step.seconds_remaining = pace_seconds_remaining(&report->pace, step.total_steps - step.step);
    step.unit = report->unit;
    pthread_mutex_lock(&report->mutex);
    update_status(report, &step);
    publish(report);
    pthread_mutex_unlock(&report->mutex);
    append_step(report, &step);
    if (!line_is_due(report, &step, clock_monotonic_ns()))
        return;
    char line[STEP_LINE_MAX];
    step_line_format(&step, report->format, line);
    puts(line);
    fflush(stdout);
}

void report_best(struct report *report, int64_t step, double loss, double accuracy, double rmse)
{
    pthread_mutex_lock(&report->mutex);
    status_document_remove_metric(&report->status, METRIC_BEST_LOSS);
    status_document_remove_metric(&report->status, METRIC_BEST_ACCURACY);
    status_document_remove_metric(&report->status, METRIC_BEST_RMSE);
    set_metric(&report->status, METRIC_BEST_LOSS, loss, step);
    set_metric(&report->status, METRIC_BEST_ACCURACY, accuracy, step);
    set_metric(&report->status, METRIC_BEST_RMSE, rmse, step);
    publish(report);
    pthread_mutex_unlock(&report->mutex);
}

void report_evaluation(struct report *report, int64_t step, double loss, double accuracy, double perplexity,
                       double rmse)
{
    report->perplexity = perplexity;
    pthread_mutex_lock(&report->mutex);
    set_metric(&report->status, METRIC_VALIDATION_LOSS, loss, step);
    set_metric(&report->status, METRIC_VALIDATION_ACCURACY, accuracy, step);
    set_metric(&report->status, METRIC_VALIDATION_RMSE, rmse, step);
    publish(report);
    pthread_mutex_unlock(&report->mutex);
    const struct tensorboard_scalar scalars[] = {{"validation/loss", loss},
                                                 isfinite(rmse)
                                                     ? (struct tensorboard_scalar){"validation/rmse", rmse}
                                                     : (struct tensorboard_scalar){"validation/accuracy", accuracy}};
    append_scalars(report, step, scalars, isfinite(accuracy) || isfinite(rmse) ? 2 : 1);
    if (!report->chief)
        return;
    if (isfinite(accuracy))
        report_say(report, "validation after step %lld: loss %.4f, accuracy %.2f %%", (long long)step, loss,
                   100 * accuracy);
    else if (!isnan(perplexity))
        report_say(report, "validation after step %lld: loss %.4f, perplexity %.2f", (long long)step, loss, perplexity);
    else if (isfinite(rmse))
        report_say(report, "validation after step %lld: loss %.4f, RMSE %.6g", (long long)step, loss, rmse);
    else
        report_say(report, "validation after step %lld: loss %.4f", (long long)step, loss);
}

void report_checkpoint(struct report *report, int64_t committed_step)
{
    SCOPED_LOCK(&report->mutex);
    if (report->status.last_checkpoint_step != committed_step) {
        report->status.last_checkpoint_step = committed_step;
        publish(report);
    }
}

void report_straggler(struct report *report, const char *role, int64_t index, int64_t own_ns, int64_t due_ns)
{
    struct status_document *status = &report->status;
    SCOPED_LOCK(&report->mutex);
    bool is_same = role && strcmp(status->straggler_role, role) == 0 && status->straggler_index == index;
    if (!is_same)
        report->straggler_since_ns = clock_monotonic_ns();
    snprintf(status->straggler_role, sizeof status->straggler_role, "%s", role ? role : "");
    status->straggler_index = role ? index : STATUS_UNKNOWN;
    status->straggler_ms = role ? (double)own_ns / 1e6 : STATUS_UNKNOWN;
    status->straggler_due_ms = role ? (double)due_ns / 1e6 : STATUS_UNKNOWN;
}

/* ERROR_NO_SPACE may also mean memory: only the system's error number shows that the volume is
 * full. */
static enum save_failure save_failure_of(const struct error *cause)
{
    if (cause == NULL)
        return SAVE_FINE;
    return cause->os_error == ENOSPC || cause->os_error == EDQUOT ? SAVE_VOLUME_FULL : SAVE_FAILED;
}

void report_save(struct report *report, const struct error *cause)
{
    struct status_document *status = &report->status;
    pthread_mutex_lock(&report->mutex);
    int64_t before = status->failed_saves > 0 ? status->failed_saves : 0;
    status->failed_saves = cause ? before + 1 : 0;
    status->save_failure = save_failure_of(cause);
    snprintf(status->save_message, sizeof status->save_message, "%.250s", cause ? cause->message : "");
    publish(report);
    pthread_mutex_unlock(&report->mutex);
    if (cause)
        report_warn(report, "a checkpoint could not be saved (training goes on): %s", cause->message);
    else if (before > 0)
        report_say(report, "checkpoints are saved again");
}

static bool saved_line_is_due(const struct report *report, int64_t step, int64_t now)
{
    if (!report->chief)
        return false;
    if (report->saved_line_ns == 0 || now - report->saved_line_ns >= SAVED_LINE_INTERVAL_NS)
        return true;
    return step == report->status.total_steps && step != report->saved_line_step;
}

void report_saved(struct report *report, int64_t step, int64_t bytes, int64_t ns)
{
    int64_t now = clock_monotonic_ns();
    if (!saved_line_is_due(report, step, now))
        return;
    report->saved_line_ns = now;
    report->saved_line_step = step;
    bool is_small = bytes < 1000000;
    report_say(report, "checkpoint of step %lld: %.1f %s in %.2f s", (long long)step,
               (double)bytes / (is_small ? 1e3 : 1e6), is_small ? "kB" : "MB", (double)ns / 1e9);
}

/* ---- bytes sent */

void report_traffic(struct report *report, int64_t bytes, int64_t steps)
{
    if (bytes == 0 || steps == 0)
        return;
    SCOPED_LOCK(&report->mutex);
    set_metric(&report->status, METRIC_BYTES_SENT, round((double)bytes / (double)steps), report->status.step);
}

void report_updates_lost(struct report *report, int64_t updates)
{
    SCOPED_LOCK(&report->mutex);
    set_metric(&report->status, METRIC_UPDATES_LOST, (double)updates, report->status.step);
}

void report_replicas_missing(struct report *report, unsigned count)
{
    SCOPED_LOCK(&report->mutex);
    set_metric(&report->status, METRIC_REPLICAS_MISSING, count, report->status.step);
}

void report_traffic_summary(struct report *report)
{
    double bytes = metric(&report->status, METRIC_BYTES_SENT);
    if (isfinite(bytes))
        report_say(report, "sent %.0f bytes a step to the rest of the crew", bytes);
}

/* ---- the end */

static void say_metrics(struct report *report)
{
    double loss = metric(&report->status, METRIC_VALIDATION_LOSS);
    double accuracy = metric(&report->status, METRIC_VALIDATION_ACCURACY);
    double rmse = metric(&report->status, METRIC_VALIDATION_RMSE);
    if (isfinite(accuracy))
        report_say(report, "held-out examples: accuracy %.2f %%, loss %.4f", 100 * accuracy, loss);
    else if (isfinite(loss) && !isnan(report->perplexity))
        report_say(report, "held-out examples: loss %.4f, perplexity %.2f", loss, report->perplexity);
    else if (isfinite(rmse))
        report_say(report, "held-out examples: loss %.4f, RMSE %.6g in the labels' unit", loss, rmse);
    else if (isfinite(loss))
        report_say(report, "held-out examples: loss %.4f", loss);
}

void report_summary(struct report *report, const char *checkpoint_directory, const char *export_path)
{
    char curve[3 * SPARKLINE_WIDTH + 1], duration[24];
    int64_t now = clock_monotonic_ns();
    sparkline_print(&report->losses, SPARKLINE_WIDTH, curve, sizeof curve);
    clock_format_duration((now - report->pace.started_ns) / 1000000, duration, sizeof duration);
    say_metrics(report);
    if (curve[0])
        report_say(report, "loss %s", curve);
    if (report->pace.examples > 0)
        report_say(report, "trained %lld %s in %.3f s of steps", (long long)report->pace.examples, report->unit,
                   (double)report->pace.stepping_ns / 1e9);
    report_say(report, "goodput %.1f %% of %s", 100 * pace_goodput(&report->pace, now), duration);
    if (checkpoint_directory)
        report_say(report, "checkpoints  %s", checkpoint_directory);
    if (report->board)
        report_say(report, "TensorBoard  %s", report->tensorboard_directory);
    if (export_path)
        report_say(report, "weights      %s", export_path);
}
