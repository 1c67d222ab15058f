/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/controller/execute/log_report.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/log_pattern.h"

#define PATTERNS_MAX 4

/* What is read, as words "name=value …", then step, total and epoch. */
static const struct {
    const char *what, *patterns[PATTERNS_MAX], *log, *words;
} cases[] = {
    {"one pattern",
     {"step (?<step>\\d+) loss (?<loss>\\S+)"},
     "step 1 loss 2.5\nstep 2 loss 1.5\n",
     "loss=1.5@2 step=2"},
    {"the newest value of each",
     {"loss (?<loss>\\S+)", "acc (?<acc>\\S+)"},
     "loss 3\nacc 0.5\nloss 2\n",
     "loss=2@0 acc=0.5@0"},
    {"the newest of several patterns",
     {"loss (?<loss>\\S+)", "Loss: (?<loss>\\S+)"},
     "Loss: 3\nloss 2\nLoss: 1\nother\n",
     "loss=1@0"},
    {"the newest though its pattern comes first", {"a (?<l>\\d)", "b (?<l>\\d)"}, "b 1\na 2\n", "l=2@0"},
    {"a progress bar",
     {"(?<step>\\d+)/(?<totalSteps>\\d+) \\["},
     " 10%|█ | 1/10 [00:00<?]\r 50%|██ | 5/10 [00:01<00:01]",
     "step=5 of 10"},
    {"its bar, not that of an evaluation",
     {"(?<step>\\d+)/(?<totalSteps>\\d+) \\[[^\\]]*\\] *$"},
     " 50%|##  | 200/400 [00:03<00:02, 80it/s]\n\r  0%|    | 0/4 [00:00<?, ?it/s]\x1b[A\n\r100%|####| 4/4 "
     "[00:00<00:00, 9it/s]\x1b[A\n",
     "step=200 of 400"},
    {"what Transformers prints",
     {"'(?:loss|train_loss)': '?(?<loss>[0-9.e+-]+)", "'epoch': '?(?<epoch>[0-9.]+)"},
     "{'loss': 2.3, 'grad_norm': 1.1, 'learning_rate': 4e-05, 'epoch': 0.52}\n{'loss': 1.9, 'epoch': 1.04}\n",
     "loss=1.9@0 epoch=1"},
    {"no numbers", {"loss (?<loss>\\S+)"}, "loss nan\nloss inf\nloss 1e999\nloss 1.2.3\n", ""},
    {"the last number before", {"loss (?<loss>\\S+)"}, "loss 0.5\nloss nan\n", "loss=0.5@0"},
    {"steps below zero", {"step (?<step>-?\\d+)"}, "step -3\n", ""},
    {"a metric that is older than the step",
     {"val (?<val>\\S+)", "step (?<step>\\d+)"},
     "step 100\nval 0.5\nstep 101\nstep 102\n",
     "val=0.5@100 step=102"},
    {"a step behind its metric",
     {"loss (?<loss>\\S+) step (?<step>\\d+)"},
     "loss 2 step 7\nloss 1 step 8\n",
     "loss=1@8 step=8"},
    {"a metric of step 0 is of no use later",
     {"step (?<step>\\d+)", "val (?<val>\\S+)"},
     "step 0 val 9\nstep 5\n",
     "step=5"},
    {"but before the first step", {"step (?<step>\\d+)", "val (?<val>\\S+)"}, "step 0 val 9\n", "val=9@0 step=0"},
    {"a metric before any step", {"val (?<val>\\S+)", "step (?<step>\\d+)"}, "val 1\nstep 5\n", "step=5"},
    {"nothing", {"loss (?<loss>\\S+)"}, "", ""},
};

static void words_of(const struct status_document *report, struct buffer *words)
{
    for (unsigned i = 0; i < report->metric_count; i++)
        buffer_format(words, "%s%s=%g@%lld", words->length ? " " : "", report->metrics[i].name,
                      report->metrics[i].value, (long long)report->metrics[i].step);
    if (report->step != STATUS_UNKNOWN)
        buffer_format(words, "%sstep=%lld", words->length ? " " : "", (long long)report->step);
    if (report->total_steps != STATUS_UNKNOWN)
        buffer_format(words, " of %lld", (long long)report->total_steps);
    if (report->data_epoch != STATUS_UNKNOWN)
        buffer_format(words, "%sepoch=%lld", words->length ? " " : "", (long long)report->data_epoch);
}

Test(log_report, reads_the_newest_values)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error error = ERROR_INIT;
        struct status_document report;
        int64_t work;
        SCOPED_BUFFER words = BUFFER_INIT(1024);
        unsigned count = 0;
        while (count < PATTERNS_MAX && cases[i].patterns[count])
            count++;
        cr_expect_eq(
            log_report_read(cases[i].patterns, count, cases[i].log, strlen(cases[i].log), &report, &work, &error), 0,
            "%s: %s", cases[i].what, error.message);
        words_of(&report, &words);
        cr_expect_str_eq(buffer_text(&words), cases[i].words, "%s: %s", cases[i].what, buffer_text(&words));
    }
}

Test(log_report, keeps_sixteen_metrics)
{
    const char *patterns[] = {"(?<a>1)(?<b>1)(?<c>1)(?<d>1)(?<e>1)(?<f>1)(?<g>1)(?<h>1)(?<i>1)(?<j>1)",
                              "(?<k>1)(?<l>1)(?<m>1)(?<n>1)(?<o>1)(?<p>1)(?<q>1)(?<r>1)"};
    struct status_document report;
    int64_t work;
    cr_assert_eq(log_report_read(patterns, 2, "1111111111", 10, &report, &work, NULL), 0);
    cr_expect_eq(report.metric_count, STATUS_METRICS_MAX);
}

Test(log_report, is_empty_where_a_search_takes_too_much_work)
{
    const char *patterns[] = {"loss (?<loss>\\d)", "(?<a>(x+x+)+[yz])"};
    const char *log = "loss 4\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n";
    struct error error = ERROR_INIT;
    struct status_document report;
    int64_t work;
    cr_assert_eq(log_report_read(patterns, 2, log, strlen(log), &report, &work, &error), -1);
    cr_expect_eq(work, LOG_WORK_MAX);
    cr_expect_str_eq(
        error.message,
        "progress.logPatterns[1]: searching the log takes too long; simplify this pattern or those before it");
    cr_expect_eq(report.metric_count, 0);
}

/* What can be printed in two minutes by two progress bars. */
Test(log_report, a_log_full_of_progress_bars_is_no_trouble)
{
    const char *patterns[] = {"(?<step>\\d+)/(?<totalSteps>\\d+) \\[[^\\]]*\\] *$", "'loss': '?(?<loss>[0-9.e+-]+)",
                              "'eval_loss': '?(?<validationLoss>[0-9.e+-]+)"};
    struct error error = ERROR_INIT;
    struct status_document report;
    int64_t work;
    SCOPED_BUFFER log = BUFFER_INIT(65536);
    for (int i = 1000; log.length < 65000; i++)
        buffer_format(&log, " 50%%|##### | %d/100000 [00:03<00:02, 80.48it/s]%s", i,
                      i % 9 ? "\r" : "\n{'loss': '2.5', 'epoch': 1}\n");
    cr_assert_eq(log_report_read(patterns, 3, log.data, log.length, &report, &work, &error), 0, "%s", error.message);
    cr_expect_lt(work, LOG_WORK_MAX / 12, "it is read every five seconds (log_reader.c)");
    cr_expect_gt(report.step, 1500);
    cr_expect_eq(report.metric_count, 1);
}
