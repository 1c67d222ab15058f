/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the environment of a child process: that of this process, with some variables set to other values.
 */
#ifndef COXSWAIN_COMMON_CHILD_ENVIRONMENT_H
#define COXSWAIN_COMMON_CHILD_ENVIRONMENT_H

/* Returns the environment for posix_spawn. `variables` ends with NULL; each is "NAME=VALUE" and takes the place of a variable of that name.
 * The strings are not copied: they belong to the caller and to this process' environment. Release the array alone, with free(). */
char **child_environment(char *const *variables) __attribute__((returns_nonnull));

#endif
