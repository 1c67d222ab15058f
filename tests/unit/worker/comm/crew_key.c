/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_key.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "worker/comm/frame.h"

#define KEY "0123456789abcdef"

Test(crew_key, a_proof_serves_for_what_it_was_made_for)
{
    unsigned char proof[CREW_PROOF_BYTES];
    crew_key_set(KEY, strlen(KEY));
    crew_key_prove("rpc", "join", 4, proof);
    cr_assert(crew_key_accepts("rpc", "join", 4, proof));
    cr_assert_not(crew_key_accepts("rpc", "push", 4, proof));
    cr_assert_not(crew_key_accepts("greeting", "join", 4, proof));
    crew_key_set("another key, as long", 20);
    cr_assert_not(crew_key_accepts("rpc", "join", 4, proof));
}

Test(crew_key, a_process_without_a_key_demands_none)
{
    unsigned char proof[CREW_PROOF_BYTES];
    cr_assert_not(crew_key_is_set());
    crew_key_prove("rpc", "join", 4, proof);
    cr_assert(crew_key_accepts("rpc", "join", 4, proof));
    crew_key_set(KEY, strlen(KEY));
    cr_assert_not(crew_key_accepts("rpc", "join", 4, proof), "zeros are no proof");
}

Test(crew_key, a_greeting_without_the_key_is_refused)
{
    struct greeting greeting = {.size = 2, .rank = 1}, back;
    struct opening opening = {0};
    struct error error = ERROR_INIT;
    crew_key_set(KEY, strlen(KEY));
    cr_assert_eq(greeting_encode(&greeting, &opening, NULL), 0);
    cr_assert_eq(greeting_decode(&opening, &back, NULL), 0);
    crew_key_set(NULL, 0);
    cr_assert_eq(greeting_encode(&greeting, &opening, NULL), 0);
    crew_key_set(KEY, strlen(KEY));
    cr_assert_eq(greeting_decode(&opening, &back, &error), -1);
    cr_assert_eq(error.kind, ERROR_FORBIDDEN);
}

static int load(const char *path, size_t length, struct error *error)
{
    char bytes[CREW_KEY_MAX + 1];
    memset(bytes, 'k', sizeof bytes);
    FILE *file = fopen(path, "w");
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
    return crew_key_load(path, error);
}

Test(crew_key, files_of_a_wrong_size_are_refused)
{
    char path[] = "/tmp/coxswain-key-XXXXXX";
    close(mkstemp(path));
    struct error error = ERROR_INIT;
    int good = load(path, CREW_KEY_MIN, NULL);
    int little = load(path, CREW_KEY_MIN - 1, &error), much = load(path, CREW_KEY_MAX + 1, &error);
    unlink(path);
    cr_assert_eq(good, 0);
    cr_assert(little < 0 && much < 0 && error.kind == ERROR_INVALID);
    cr_assert_eq(crew_key_load(path, &error), -1, "the file is gone");
}
