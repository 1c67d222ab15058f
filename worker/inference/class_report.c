/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/inference/class_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "worker/inference/predict.h"

void class_report_init(struct class_report *report, int64_t classes)
{
    *report = (struct class_report){.classes = classes};
    if (classes <= CLASS_REPORT_CLASSES_MAX)
        report->confusion = memory_allocate((size_t)(classes * classes), sizeof *report->confusion);
}

void class_report_release(struct class_report *report)
{
    free(report->confusion);
    report->confusion = NULL;
}

static double loss_of(const struct class_report *report, int64_t class, const float *scores,
                      enum output_meaning meaning)
{
    double maximum = -INFINITY, sum = 0;
    for (int64_t i = 0; i < report->classes; i++)
        maximum = fmax(maximum, (double)scores[i]);
    for (int64_t i = 0; i < report->classes; i++)
        sum += exp((double)scores[i] - maximum);
    double loss = meaning == OUTPUT_LOGITS ? log(sum) + maximum - (double)scores[class] : -log((double)scores[class]);
    return isfinite(loss) ? loss : INFINITY;
}

void class_report_add(struct class_report *report, int64_t number, int64_t class, const float *scores,
                      enum output_meaning meaning)
{
    struct prediction best;
    if (class < 0 || class >= report->classes)
        return;
    predict_rank(scores, report->classes, meaning, &best, 1);
    if (report->confusion)
        report->confusion[class * report->classes + best.class]++;
    struct judged_example example = {number, class, best.class, best.probability,
                                     loss_of(report, class, scores, meaning)};
    unsigned place = report->worst_count;
    while (place > 0 && example.loss > report->worst[place - 1].loss)
        place--;
    if (place == CLASS_REPORT_WORST_MAX)
        return;
    report->worst_count += report->worst_count < CLASS_REPORT_WORST_MAX;
    memmove(&report->worst[place + 1], &report->worst[place],
            (report->worst_count - place - 1) * sizeof *report->worst);
    report->worst[place] = example;
}

static struct json *number_or_null(double number)
{
    return isfinite(number) ? json_new_number(number) : json_new_null();
}

void class_report_set(const struct class_report *report, struct json *document)
{
    struct json *matrix = report->confusion ? json_set_array(document, "confusion") : NULL;
    for (int64_t class = 0; matrix && class < report->classes; class ++) {
        struct json *row = json_append(matrix, json_new_array());
        for (int64_t given = 0; given < report->classes; given++)
            json_append(row, json_new_integer(report->confusion[class * report->classes + given]));
    }
    struct json *worst = json_set_array(document, "worst");
    for (unsigned i = 0; i < report->worst_count; i++) {
        const struct judged_example *example = &report->worst[i];
        struct json *row = json_append(worst, json_new_object());
        json_set_integer(row, "example", example->number);
        json_set_integer(row, "class", example->class);
        json_set_integer(row, "given", example->given);
        json_set(row, "probability", number_or_null(example->probability));
        json_set(row, "loss", number_or_null(example->loss));
    }
}
