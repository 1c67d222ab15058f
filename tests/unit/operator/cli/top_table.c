/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/top_table.h"

#include "job_json.h"

static void take(struct top_row *row, const char *name, int step, const char *loss, const char *rate)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "{'metadata':{'name':'%s','uid':'u'},'status':{'conditions':[{'type':'Running','status':'True'}],'readySummary'"
        ":'2/2','progress':{'step':%d,"
        "'totalSteps':400,'examplesPerSecond':'%s','secondsRemaining':90,'metrics':[{'name':'loss','value':'%s'}]}}}",
        name, step, rate, loss);
    SCOPED_JSON *job = json_of(text);
    top_row_take(row, job);
}

Test(top_table, the_fastest_first_with_the_curve_of_its_loss)
{
    struct top_row rows[2] = {{.job = NULL}};
    take(&rows[0], "slow", 10, "2.5", "99.5");
    take(&rows[1], "fast", 100, "1", "12345.6");
    take(&rows[1], "fast", 200, "0.1", "12345.6");
    take(&rows[1], "fast", 200, "0.1", "12345.6");
    top_table_sort(rows, 2);
    SCOPED_BUFFER text = BUFFER_INIT(TOP_TEXT_MAX);
    top_table_print(rows, 2, 100, false, &text);
    cr_expect_str_eq(buffer_text(&text), "NAME  STATE        READY    DONE   EXAMPLES/S     LEFT      LOSS\n"
                                         "fast  Running        2/2    50 %       12,346      90s    0.1000  █▁\n"
                                         "slow  Running        2/2     2 %          100      90s    2.5000  ▁\n");
    buffer_clear(&text);
    top_table_print(rows, 1, 20, false, &text);
    cr_expect_str_eq(buffer_text(&text), "NAME  STATE        R\nfast  Running       \n");
    top_row_release(&rows[0]);
    top_row_release(&rows[1]);
}

Test(top_table, keeps_the_newest_losses)
{
    struct top_row row = {.job = NULL};
    for (int step = 0; step < 3 * TOP_LOSSES_MAX; step++)
        take(&row, "long", step, "1.5", "1");
    cr_expect_eq(row.loss_count, TOP_LOSSES_MAX);
    top_row_release(&row);
}
