/* SPDX-License-Identifier: Apache-2.0
 *
 * A text to learn from when nothing can be downloaded: this project's own
 * documents and headers, one after the other.
 */
#ifndef COXSWAIN_CLI_CORPUS_H
#define COXSWAIN_CLI_CORPUS_H

#include "common/error.h"

#define CORPUS_FILE "corpus.txt"
#define CORPUS_MAX (4 * 1024 * 1024)

/* Writes <directory>/corpus.txt from the text below `sources`: always the same bytes for the same sources. */
int corpus_write(const char *sources, const char *directory, struct error *error);

#endif
