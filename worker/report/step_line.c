/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/step_line.h"

#include <math.h>
#include <stdio.h>

#include "common/buffer.h"
#include "common/clock.h"
#include "common/json.h"

static int digits(int64_t number)
{
    int count = 1;
    while (number >= 10) {
        number /= 10;
        count++;
    }
    return count;
}

static void format_text(const struct step_report *report, char text[STEP_LINE_MAX])
{
    char norm[32] = "", scale[48] = "", used[32] = "", left[32] = "", duration[24];
    if (isfinite(report->gradient_norm))
        snprintf(norm, sizeof norm, "  |g| %-7.3g", report->gradient_norm);
    if (report->loss_scale > 0)
        snprintf(scale, sizeof scale, "  scale %lld%s", (long long)report->loss_scale,
                 report->skipped ? " (skipped)" : "");
    if (report->utilisation > 0)
        snprintf(used, sizeof used, "  MFU %.1f %%", 100 * report->utilisation);
    if (report->seconds_remaining >= 0) {
        clock_format_duration(report->seconds_remaining * 1000, duration, sizeof duration);
        snprintf(left, sizeof left, "  %s left", duration);
    }
    snprintf(text, STEP_LINE_MAX, "step %*lld/%lld  loss %-7.4f%s%s  lr %.2e  %.1f ms  %.0f %s/s%s%s",
             digits(report->total_steps), (long long)report->step, (long long)report->total_steps, report->loss, norm,
             scale, report->learning_rate, report->milliseconds, report->examples_per_second, report->unit, used, left);
}

static void format_json(const struct step_report *report, char text[STEP_LINE_MAX])
{
    SCOPED_JSON *line = json_new_object();
    SCOPED_BUFFER printed = BUFFER_INIT(STEP_LINE_MAX - 1);
    json_set_integer(line, "step", report->step);
    json_set_integer(line, "totalSteps", report->total_steps);
    json_set_integer(line, "dataEpoch", report->data_epoch);
    if (isfinite(report->loss))
        json_set_number(line, "loss", report->loss);
    if (isfinite(report->gradient_norm))
        json_set_number(line, "gradientNorm", report->gradient_norm);
    if (report->loss_scale > 0)
        json_set_integer(line, "lossScale", report->loss_scale);
    if (report->skipped)
        json_set_boolean(line, "skipped", true);
    json_set_number(line, "learningRate", report->learning_rate);
    json_set_number(line, "milliseconds", report->milliseconds);
    json_set_number(line, "examplesPerSecond", report->examples_per_second);
    if (report->utilisation > 0)
        json_set_number(line, "mfu", report->utilisation);
    if (report->seconds_remaining >= 0)
        json_set_integer(line, "secondsRemaining", report->seconds_remaining);
    /* These few numbers always fit. */
    json_print(line, &printed, NULL);
    snprintf(text, STEP_LINE_MAX, "%s", buffer_text(&printed));
}

void step_line_format(const struct step_report *report, enum log_format format, char text[STEP_LINE_MAX])
{
    if (format == LOG_JSON)
        format_json(report, text);
    else
        format_text(report, text);
}
