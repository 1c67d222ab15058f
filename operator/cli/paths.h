/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds files on this machine: the programs installed beside this one, the examples shipped with
 * them, and the user's directories (XDG).
 */
#ifndef COXSWAIN_CLI_PATHS_H
#define COXSWAIN_CLI_PATHS_H

#include "common/error.h"

/* All results: release with free(). */

/* ${<variable>:-$HOME/<otherwise>}/coxswain. */
char *path_user_directory(const char *variable, const char *otherwise);
/* A program beside this executable; its bare name when there is none. */
char *path_of_program(const char *name);
/* deploy/examples/<name>: beside the build directory, or installed (../share/coxswain/examples).
 * ERROR_NOT_FOUND. */
int path_of_example(const char *name, char **ret_path, struct error *error);
/* This program as it was called, for a command that a person may type. */
const char *path_of_this_program(void);
/* A word as a shell reads it: in quotes where it needs them. */
char *path_for_shell(const char *word);
/* The repository that this executable was built in, or NULL. */
char *path_of_sources(void);

/* "~/…" for what lies in the home directory: for people. */
char *path_for_people(const char *path);

#endif
