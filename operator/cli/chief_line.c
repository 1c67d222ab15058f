/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/chief_line.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool chief_line_step(const char *line, struct chief_step *ret_step)
{
    long long step, total;
    double loss;
    if (sscanf(line, "step %lld/%lld loss %lf", &step, &total, &loss) != 3)
        return false;
    *ret_step = (struct chief_step){step, total, loss};
    return true;
}

bool chief_line_validation(const char *line, struct chief_validation *ret_validation)
{
    long long step;
    double loss, accuracy, rmse;
    int found = sscanf(line, "validation after step %lld: loss %lf, accuracy %lf", &step, &loss, &accuracy);
    bool has_rmse = sscanf(line, "validation after step %*d: loss %*f, RMSE %lf", &rmse) == 1;
    if (found < 2)
        return false;
    *ret_validation = (struct chief_validation){step, loss, found == 3 ? accuracy / 100 : NAN, has_rmse ? rmse : NAN};
    return true;
}

bool chief_line_rate(const char *line, double *ret_rate, char ret_unit[CHIEF_UNIT_MAX])
{
    const char *after = strstr(line, " ms  ");
    double rate;
    char unit[CHIEF_UNIT_MAX];
    if (!after || sscanf(after + 5, "%lf %31[a-z]/s", &rate, unit) != 2)
        return false;
    *ret_rate = rate;
    memcpy(ret_unit, unit, sizeof unit);
    return true;
}

bool chief_line_trained(const char *line, int64_t *ret_examples, double *ret_seconds)
{
    long long examples;
    double seconds;
    int end = 0;
    if (sscanf(line, "trained %lld %*31[a-z] in %lf s of steps%n", &examples, &seconds, &end) != 2 || end == 0 ||
        examples <= 0 || !(seconds > 0))
        return false;
    *ret_examples = examples;
    *ret_seconds = seconds;
    return true;
}

bool chief_line_whole_again(const char *line, int64_t *ret_step)
{
    long long step;
    double seconds;
    if (sscanf(line, "the crew is whole again: step %lld done %lf s", &step, &seconds) != 2)
        return false;
    *ret_step = step;
    return true;
}

bool chief_line_checkpoint(const char *line, int64_t *ret_step)
{
    long long step;
    double size;
    if (sscanf(line, "checkpoint of step %lld: %lf", &step, &size) != 2)
        return false;
    *ret_step = step;
    return true;
}

bool chief_line_resumes(const char *line, int64_t *ret_step)
{
    long long step;
    if (sscanf(line, "resumes from the checkpoint of step %lld", &step) != 1)
        return false;
    *ret_step = step;
    return true;
}

/* In milliseconds; a year and more is none. */
static bool is_duration(double ms)
{
    return ms >= 0 && ms < 3e10;
}

bool chief_line_pace(const char *line, struct chief_pace *ret_pace)
{
    struct chief_pace pace = {.count = 0};
    long long step;
    int at = 0, length;
    if (sscanf(line, "pace of the crew to step %lld: %lf ms a step; own parts%n", &step, &pace.step_ms, &at) != 2 ||
        at == 0)
        return false;
    for (line += at; pace.count < CHIEF_MEMBERS_MAX; line += length) {
        char role[9];
        unsigned index;
        double own_ms;
        length = 0;
        if (sscanf(line, " %8[a-z] %5u %lf ms%n", role, &index, &own_ms, &length) != 3 || length == 0 ||
            !is_duration(own_ms))
            break;
        snprintf(pace.members[pace.count].name, CHIEF_MEMBER_NAME_MAX, "%s %u", role, index);
        pace.members[pace.count++].own_ms = own_ms;
        length += line[length] == ',';
    }
    pace.step = step;
    if (pace.count == 0 || step < 0 || !is_duration(pace.step_ms))
        return false;
    *ret_pace = pace;
    return true;
}
