/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets a scripted server play an S3 server with the bucket "runs". The client's credentials are in the environment, and it repeats requests
 * for 1.5 s.
 */
#ifndef COXSWAIN_TESTS_S3_SERVER_H
#define COXSWAIN_TESTS_S3_SERVER_H

#include <criterion/criterion.h>

#include "common/memory.h"
#include "common/s3_client.h"
#include "tests/unit/scripted_server.h"

static inline struct s3_client *s3_server_connect(const struct scripted_server *server)
{
    struct error error = ERROR_INIT;
    struct s3_client *client = NULL;
    SCOPED_FREE char *endpoint = memory_format("http://127.0.0.1:%d", server->port);
    struct s3_options options = {.endpoint = endpoint, .bucket = "runs", .patience_ms = 1500};
    cr_assert_eq(s3_client_new(&options, &client, &error), 0, "%s", error.message);
    return client;
}

/* End with s3_client_free and scripted_server_stop. */
static inline struct s3_client *s3_server_start(struct scripted_server *server, scripted_handler *handler)
{
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    unsetenv("AWS_SESSION_TOKEN");
    scripted_server_start(server, handler, NULL);
    return s3_server_connect(server);
}

#endif
