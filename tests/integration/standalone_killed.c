/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole process under SIGKILL: a write that was answered is there after the next start, and what a watch told of too.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/memory.h"
#include "operator/kube/client.h"
#include "operator/kube/informer.h"

TestSuite(standalone_killed, .timeout = 120);

#define ROUNDS 5
#define WRITES 400
#define IN_FLIGHT 16

struct scene {
    char directory[64];
    struct event_loop *loop;
    struct kube_client *client;
    struct informer *informer;
    pid_t server;
    int round, started, acknowledged, deadly; /* killed at the answer of this number */
    bool written[ROUNDS][WRITES];
    bool told[ROUNDS][WRITES];
    int left, lost;
};

/* ---- the process ---- */

static void start_server(struct scene *scene)
{
    const char *build = getenv("BUILD");
    SCOPED_FREE char *program = memory_format("%s/coxswain-standalone", build ? build : "build");
    SCOPED_FREE char *log = memory_format("%s/log", scene->directory);
    scene->server = fork();
    if (scene->server == 0) {
        if (freopen(log, "a", stderr))
            execl(program, program, "--no-node", "--crd", "deploy/crd", "--state", scene->directory, (char *)NULL);
        _exit(127);
    }
    cr_assert_gt(scene->server, 0);
}

static void wait_ready(const struct scene *scene, const char *kubeconfig)
{
    while (access(kubeconfig, R_OK) != 0) {
        int status;
        cr_assert_eq(waitpid(scene->server, &status, WNOHANG), 0, "the server ended before it was ready");
        usleep(5000);
    }
}

static void connect_client(struct scene *scene)
{
    struct error error = ERROR_INIT;
    SCOPED_FREE char *path = memory_format("%s/kubeconfig", scene->directory);
    wait_ready(scene, path);
    SCOPED(kube_config_release) struct kube_config config = {0};
    cr_assert_eq(kube_config_load(path, NULL, &config, &error), 0, "%s", error.message);
    cr_assert_eq(kube_client_new(scene->loop, &config, NULL, &scene->client, &error), 0, "%s", error.message);
    unlink(path); /* the next start's appearance tells that it serves */
}

static void kill_server(struct scene *scene)
{
    if (scene->server <= 0)
        return;
    kill(scene->server, SIGKILL);
    waitpid(scene->server, NULL, 0);
    scene->server = 0;
}

/* ---- writes ---- */

struct write {
    struct scene *scene;
    int number;
};

static void write_more(struct scene *scene);

static void on_written(void *context, const struct kube_answer *answer)
{
    struct write *write = context;
    struct scene *scene = write->scene;
    scene->left--;
    if (answer->error == NULL) {
        scene->written[scene->round][write->number] = true;
        if (++scene->acknowledged == scene->deadly)
            kill_server(scene);
    }
    free(write);
    write_more(scene);
}

static struct resource_path path_of(const char *name)
{
    return (struct resource_path){.resource = KUBE_CONFIG_MAPS, .name_space = "default", .name = name};
}

static void write_one(struct scene *scene)
{
    struct resource_path path = path_of(NULL);
    struct write *write = memory_allocate(1, sizeof *write);
    *write = (struct write){scene, scene->started++};
    SCOPED_FREE char *name = memory_format("w-%d-%d", scene->round, write->number);
    SCOPED_JSON *object = json_new_object();
    json_set_string(json_set_object(object, "metadata"), "name", name);
    scene->left++;
    kube_client_create(scene->client, &path, object,
                       &(struct kube_call_options){.tries_max = 1, .answered = on_written, .context = write});
}

static void write_more(struct scene *scene)
{
    while (scene->server > 0 && scene->left < IN_FLIGHT && scene->started < WRITES)
        write_one(scene);
}

/* ---- what the watch tells ---- */

static void *parse_nothing(void *context, const struct json *object)
{
    (void)context, (void)object;
    return memory_allocate(1, 1);
}

static void on_told(void *context, const char *key, const void *item)
{
    struct scene *scene = context;
    int round, number;
    (void)item;
    if (sscanf(key, "default/w-%d-%d", &round, &number) == 2)
        scene->told[round][number] = true;
}

static void watch(struct scene *scene)
{
    scene->informer = informer_start(scene->client, &(struct informer_options){.resource = KUBE_CONFIG_MAPS,
                                                                               .name_space = "default",
                                                                               .parse = parse_nothing,
                                                                               .item_free = free,
                                                                               .on_added = on_told,
                                                                               .context = scene});
    while (!informer_synced(scene->informer))
        cr_assert_eq(event_loop_turn(scene->loop, -1, NULL), 0);
}

/* ---- what is left ---- */

static void on_read(void *context, const struct kube_answer *answer)
{
    struct scene *scene = context;
    scene->left--;
    scene->lost += answer->error != NULL;
}

static void read_back(struct scene *scene)
{
    scene->lost = 0;
    for (int i = 0; i <= scene->round; i++)
        for (int j = 0; j < WRITES; j++) {
            SCOPED_FREE char *name = memory_format("w-%d-%d", i, j);
            struct resource_path path = path_of(name);
            if (!scene->written[i][j] && !scene->told[i][j])
                continue;
            scene->left++;
            kube_client_get(scene->client, &path, &(struct kube_call_options){.answered = on_read, .context = scene});
        }
    while (scene->left > 0)
        cr_assert_eq(event_loop_turn(scene->loop, -1, NULL), 0);
    cr_expect_eq(scene->lost, 0, "round %d: %d of the acknowledged writes are gone", scene->round, scene->lost);
}

static void play_round(struct scene *scene)
{
    scene->started = scene->acknowledged = 0;
    scene->deadly = 1 + (int)(arc4random_uniform(WRITES / 2));
    start_server(scene);
    connect_client(scene);
    watch(scene);
    write_more(scene);
    while (scene->left > 0)
        cr_assert_eq(event_loop_turn(scene->loop, -1, NULL), 0);
    cr_assert_eq(scene->server, 0, "the server was not killed");
    informer_free(scene->informer);
    kube_client_free(scene->client);
    start_server(scene);
    connect_client(scene);
    read_back(scene);
    kube_client_free(scene->client);
    kill_server(scene);
}

Test(standalone_killed, acknowledged_writes_survive)
{
    struct error error = ERROR_INIT;
    struct scene scene = {.directory = "/tmp/coxswain-kill-XXXXXX"};
    cr_assert_not_null(mkdtemp(scene.directory));
    cr_assert_eq(event_loop_new(&scene.loop, &error), 0, "%s", error.message);
    for (scene.round = 0; scene.round < ROUNDS; scene.round++)
        play_round(&scene);
    event_loop_free(scene.loop);
    SCOPED_FREE char *remove = memory_format("rm -rf %s", scene.directory);
    cr_expect_eq(system(remove), 0);
}
