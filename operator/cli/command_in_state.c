/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/contract/state_directory.h"
#include "common/event_loop.h"
#include "common/memory.h"
#include "operator/cli/command.h"
#include "operator/cli/command_line.h"
#include "operator/cli/control_plane.h"
#include "operator/cli/run_list.h"

/* Takes from the record what the line leaves out: the namespace, and the name where one is needed. */
static bool complete(const char *title, struct command_line *line, struct run_record *record, char **name)
{
    struct error error = ERROR_INIT;
    bool known = run_record_read(line->state, record, &error) == 0;
    line->again = known ? record->command : NULL;
    if (known && !line->name_space)
        line->name_space = record->name_space;
    if (!line->lacks_name)
        return true;
    if (!known) {
        fprintf(stderr, "%s: %s; name the job\n", title, error.message);
        return false;
    }
    *name = record->name;
    line->names = name;
    line->name_count = 1;
    return true;
}

/* A run that goes on has a control plane. Only if it has none, one is started, or shared with another command that reads. */
static int run_in(const char *title, struct command_line *line, command_action *live, command_action *kept)
{
    struct control_plane *plane = NULL;
    struct event_loop *loop = NULL;
    struct error error = ERROR_INIT;
    SCOPED_FREE char *kubeconfig = memory_format("%s/" STATE_KUBECONFIG, line->state);
    int code = EXIT_FAILURE;
    line->kubeconfig = kubeconfig;
    int started = event_loop_new(&loop, &error);
    if (started == 0)
        started = control_plane_read(loop, line->state, &plane, &error);
    if (plane) {
        line->kept = true;
        line->watch = line->follow = false; /* nothing changes any more */
        code = command_run_in_cluster(title, line, kept);
    } else if (started == 0)
        code = command_run_in_cluster(title, line, live);
    else
        fprintf(stderr, "%s: %s\n", title, error.message);
    if (plane)
        control_plane_end(plane);
    if (loop)
        event_loop_free(loop);
    return code;
}

int command_run_in_state(const char *title, struct command_line *line, command_action *live, command_action *kept)
{
    SCOPED(run_record_release) struct run_record record;
    struct error error = ERROR_INIT;
    char *name = NULL;
    run_record_init(&record);
    if (line->kubeconfig || line->context) {
        fprintf(stderr,
                "%s: --state names a run on this machine, --kubeconfig and --context a cluster: give one of them\n",
                title);
        return EXIT_USAGE;
    }
    SCOPED_FREE char *state = run_state_directory(line->state, &error);
    if (!state) {
        fprintf(stderr, "%s: --state: %s\n", title, error.message);
        return EXIT_FAILURE;
    }
    line->state = state;
    return complete(title, line, &record, &name) ? run_in(title, line, live, kept) : EXIT_FAILURE;
}
