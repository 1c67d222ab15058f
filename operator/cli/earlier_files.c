/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/cli/earlier_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contract/checkpoint_layout.h"
#include "common/contract/state_directory.h"
#include "common/memory.h"

#define VOLUMES_TEXT_MAX 4096

/* scandir's, in the order of their names; `ret_names` is released with names_free. */
static int names_read(const char *directory, struct dirent ***ret_names)
{
    int count = scandir(directory, ret_names, NULL, alphasort);
    if (count < 0)
        *ret_names = NULL;
    return count < 0 ? 0 : count;
}

static void names_free(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static void append_claims(const char *directory, const char *name_space, struct buffer *out)
{
    SCOPED_FREE char *path = memory_format("%s/%s", directory, name_space);
    struct dirent **claims;
    int count = names_read(path, &claims);
    for (int i = 0; i < count; i++) {
        if (claims[i]->d_name[0] != '.')
            buffer_format(out, "%s%s/%s", out->length > 0 ? ", " : "", name_space, claims[i]->d_name);
    }
    names_free(claims, count);
}

void earlier_volumes(const char *state, struct buffer *out)
{
    SCOPED_FREE char *directory = memory_format("%s/" STATE_VOLUMES, state);
    struct dirent **spaces;
    int count = names_read(directory, &spaces);
    for (int i = 0; i < count; i++) {
        if (spaces[i]->d_name[0] != '.')
            append_claims(directory, spaces[i]->d_name, out);
    }
    names_free(spaces, count);
}

bool earlier_volumes_are_several(const char *state)
{
    SCOPED_BUFFER names = BUFFER_INIT(VOLUMES_TEXT_MAX);
    earlier_volumes(state, &names);
    return strchr(buffer_text(&names), ',') != NULL;
}

int64_t earlier_checkpoint(const char *checkpoints)
{
    struct dirent **names;
    int64_t newest = -1;
    int count = names_read(checkpoints, &names);
    for (int i = 0; i < count; i++) {
        long long step, attempt, incarnation;
        if (sscanf(names[i]->d_name, CHECKPOINT_DIRECTORY_FORMAT, &step, &attempt, &incarnation) == 3 && step > newest)
            newest = step;
    }
    names_free(names, count);
    return newest;
}
