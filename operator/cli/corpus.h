/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the text that `cox demo` trains on if the handwritten digits cannot be downloaded: the example
 * manifests, documents and headers of Coxswain's source tree, one after another.
 */
#ifndef COXSWAIN_CLI_CORPUS_H
#define COXSWAIN_CLI_CORPUS_H

#include "common/error.h"

#define CORPUS_FILE "corpus.txt"
#define CORPUS_MAX (4 * 1024 * 1024)

/* Writes <directory>/corpus.txt from the source tree `sources`. The same sources always give the same bytes. */
int corpus_write(const char *sources, const char *directory, struct error *error);

#endif
