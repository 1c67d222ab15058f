/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/comm/crew_key.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/memory.h"
#include "common/scope.h"

static struct {
    unsigned char bytes[CREW_KEY_MAX];
    size_t length;
} crew_key;

void crew_key_set(const void *bytes, size_t length)
{
    crew_key.length = length;
    if (length > 0)
        memcpy(crew_key.bytes, bytes, length);
}

int crew_key_load(const char *path, struct error *error)
{
    unsigned char bytes[CREW_KEY_MAX + 1];
    SCOPED_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, bytes, sizeof(bytes));
    if (length < 0)
        return error_set_errno(error, "read the crew's key %s", path);
    if (length < CREW_KEY_MIN || length > CREW_KEY_MAX)
        return error_set(error, ERROR_INVALID, "the crew's key %s must have %d to %d bytes", path, CREW_KEY_MIN,
                         CREW_KEY_MAX);
    crew_key_set(bytes, (size_t)length);
    return 0;
}

bool crew_key_is_set(void)
{
    return crew_key.length > 0;
}

void crew_key_prove(const char *purpose, const void *bytes, size_t length, unsigned char ret_proof[CREW_PROOF_BYTES])
{
    memset(ret_proof, 0, CREW_PROOF_BYTES);
    if (!crew_key_is_set())
        return;
    size_t head = strlen(purpose) + 1; /* its end separates the two */
    SCOPED_FREE char *message = memory_allocate(head + length, 1);
    memcpy(message, purpose, head);
    memcpy(message + head, bytes, length);
    hmac_sha256(crew_key.bytes, crew_key.length, message, head + length, ret_proof);
}

bool crew_key_accepts(const char *purpose, const void *bytes, size_t length,
                      const unsigned char proof[CREW_PROOF_BYTES])
{
    unsigned char wanted[CREW_PROOF_BYTES];
    crew_key_prove(purpose, bytes, length, wanted);
    return !crew_key_is_set() || hmac_equal(wanted, proof);
}
