/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/contract/labels.h"
#include "operator/cli/access.h"
#include "operator/cli/cluster.h"
#include "operator/cli/command.h"
#include "operator/cli/job_condition.h"
#include "operator/cli/job_table.h"
#include "operator/kube/informer.h"

#define LOOK_MS 1000

#define NAMES_MAX 1000

static const struct command_usage usage = {
    .text =
        "usage: cox get [NAME…] [options]\n"
        "\n"
        "Lists training jobs with their state, progress and results. With names, only those jobs. If no cluster is\n"
        "configured, lists those of this machine.\n"
        "\n"
        "  -o, --output FORM      wide (strategy, throughput, time left), json, yaml or name\n"
        "  -A, --all-namespaces   list jobs of all namespaces\n"
        "  -l, --selector TEXT    list jobs with these labels, such as team=vision\n"
        "  -w, --watch            then print a line for each change, until interrupted\n"
        "\n"
        "Exit code: 0 done, 1 a name does not exist or the cluster did not answer, 2 wrong usage, 130 interrupted.\n",
    .options = "oAlws",
    .names_min = 0,
    .names_max = NAMES_MAX,
    .lists_runs = true};

static int jobs_find(struct cluster *cluster, const struct command_line *line, struct json **ret_jobs,
                     struct error *error)
{
    struct kube_resource jobs = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL};
    if (line->name_count == 0)
        return cluster_list(cluster, jobs, line->all_namespaces ? NULL : cluster->name_space, line->selector, ret_jobs,
                            error);
    struct json *found = json_new_array();
    for (int i = 0; i < line->name_count; i++) {
        struct resource_path path = cluster_job_path(cluster, line->names[i]);
        struct json *job;
        if (cluster_get(cluster, &path, &job, error) < 0) {
            json_free(found);
            return -1;
        }
        json_append(found, job);
    }
    *ret_jobs = found;
    return 0;
}

/* ---------------------------------------------------------------- watch */

struct watch {
    const struct command_line *line;
    struct job_table table;
    bool begun;
};

static bool is_asked_for(const struct command_line *line, const struct json *job)
{
    for (int i = 0; i < line->name_count; i++)
        if (strcmp(line->names[i], json_string_at(job, "metadata.name", "")) == 0)
            return true;
    return line->name_count == 0;
}

static void show(struct watch *watch, const struct json *job)
{
    SCOPED_BUFFER text = BUFFER_INIT(65536);
    int64_t now_ms = clock_now_ms();
    if (!is_asked_for(watch->line, job))
        return;
    job_table_measure(&watch->table, job, now_ms);
    if (!watch->begun)
        job_table_print_head(&watch->table, &text);
    watch->begun = true;
    job_table_print(&watch->table, job, now_ms, &text);
    fputs(buffer_text(&text), stdout);
    fflush(stdout);
}

static void added(void *context, const char *key, const void *item)
{
    (void)key;
    show(context, item);
}

static void changed(void *context, const char *key, const void *old, const void *item)
{
    (void)key;
    (void)old;
    show(context, item);
}

static int watch_jobs(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    struct watch watch = {.line = line};
    job_table_init(&watch.table, line->output == OUTPUT_WIDE, line->all_namespaces);
    struct informer_options options = {
        .resource = {API_GROUP, API_VERSION, TRAINING_JOB_PLURAL},
        .name_space = line->all_namespaces ? NULL : cluster->name_space,
        .label_selector = line->selector,
        .parse = informer_item_copy,
        .item_free = informer_item_free,
        .on_added = added,
        .on_changed = changed,
        .context = &watch,
    };
    struct informer *informer = informer_start(cluster->client, &options);
    struct access access = {0};
    int status = 0;
    while (status >= 0 && !cluster->interrupted) {
        status = event_loop_turn(cluster->loop, LOOK_MS, error);
        if (status >= 0)
            status = access_check(&access, informer, clock_now_ms(), error);
    }
    informer_free(informer);
    return status < 0 ? -1 : 0;
}

/* ---------------------------------------------------------------- the command */

static int list_jobs(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    SCOPED_JSON *jobs = NULL;
    SCOPED_BUFFER text = BUFFER_INIT(CLUSTER_ANSWER_MAX);
    if (jobs_find(cluster, line, &jobs, error) < 0)
        return -1;
    bool as_it_is = line->output != OUTPUT_TABLE && line->output != OUTPUT_WIDE;
    for (struct json *job = json_first(jobs); cluster->kept && !as_it_is && job; job = json_next(job))
        job_mark_interrupted(job, cluster->again);
    if (jobs_print(jobs, line, line->name_count == 1, clock_now_ms(), &text, error) < 0)
        return -1;
    if (json_count(jobs) == 0 && line->output <= OUTPUT_WIDE)
        fprintf(stderr, "no training jobs%s%s\n", line->all_namespaces ? "" : " in namespace ",
                line->all_namespaces ? "" : cluster->name_space);
    else
        fputs(buffer_text(&text), stdout);
    return 0;
}

static int get(struct cluster *cluster, const struct command_line *line, struct error *error)
{
    return line->watch ? watch_jobs(cluster, line, error) : list_jobs(cluster, line, error);
}

int command_get(int count, char **words)
{
    return command_in_cluster(count, words, &usage, get);
}
