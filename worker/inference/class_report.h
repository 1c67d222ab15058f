/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects how well a classifier does on held-out examples, for --predict all --json: how many examples of each class were classified as each
 * class (the confusion matrix), and the examples whose true class got the lowest probability. Does no I/O.
 */
#ifndef COXSWAIN_INFERENCE_CLASS_REPORT_H
#define COXSWAIN_INFERENCE_CLASS_REPORT_H

#include "common/json.h"
#include "worker/model/graph.h"

#define CLASS_REPORT_CLASSES_MAX 100 /* with more classes there is no matrix, because it would be too large to read */
#define CLASS_REPORT_WORST_MAX 24

struct judged_example {
    int64_t number;
    int64_t class, given; /* the true class, and the most probable one */
    double probability;   /* of the class that was given */
    double loss;          /* -log of the true class's probability; INFINITY if that is 0 or not a number */
};

/* Initialise with class_report_init, release with class_report_release. */
struct class_report {
    int64_t classes;
    int64_t *confusion; /* [true class][given class]; NULL: too many classes */
    struct judged_example worst[CLASS_REPORT_WORST_MAX];
    unsigned worst_count; /* the worst first; of equal ones the one that came first */
};

void class_report_init(struct class_report *report, int64_t classes);
void class_report_release(struct class_report *report);

/* Takes the scores of one example, one for each class. `meaning`: OUTPUT_LOGITS or OUTPUT_PROBABILITIES. A true class that does not
 * exist is ignored. */
void class_report_add(struct class_report *report, int64_t number, int64_t class, const float *scores,
                      enum output_meaning meaning);

/* Sets "confusion", [[count…]…], and "worst", [{"example","class","given","probability","loss"}…]; a loss that is INFINITY is null. */
void class_report_set(const struct class_report *report, struct json *document);

#endif
