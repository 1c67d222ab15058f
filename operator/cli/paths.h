/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds files on this machine for the commands of `cox`: the programs installed beside this one, the examples
 * shipped with them, and the user's directories (XDG). Also quotes and abbreviates paths that are shown to
 * the user.
 */
#ifndef COXSWAIN_CLI_PATHS_H
#define COXSWAIN_CLI_PATHS_H

#include "common/buffer.h"

/* All results are released with free(), except that of path_of_this_program. */

/* Returns ${<variable>:-$HOME/<otherwise>}/coxswain. A variable that is not an absolute path is
 * ignored. */
char *path_user_directory(const char *variable, const char *otherwise);
/* Returns the path of a program beside this executable; if there is none, its name, to be found in
 * PATH. */
char *path_of_program(const char *name);
/* deploy/examples/<name>: beside the build directory, or installed (../share/coxswain/examples).
 * ERROR_NOT_FOUND. */
int path_of_example(const char *name, char **ret_path, struct error *error);
/* Returns this program's name as it was called, for commands that are shown to the user. Do not
 * free it. */
const char *path_of_this_program(void);
/* Quotes a word for a shell if it needs quotes. */
char *path_for_shell(const char *word);
/* Returns the path as it is found from any directory; it need not exist. */
char *path_absolute(const char *path);
/* Appends " <option> <value>" to a shell's command; NULL: nothing. */
void path_append_option(struct buffer *command, const char *option, const char *value);
/* Returns the source repository that contains this executable, otherwise the current directory if
 * it is one, otherwise NULL. */
char *path_of_sources(void);

/* Abbreviates the home directory to "~" for display. */
char *path_for_people(const char *path);

#endif
