/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the text of a Kubernetes resource quantity ("500m", "1.5Gi", "2e3"), which a real API server parses when a client writes a pod.
 */
#ifndef COXSWAIN_STANDALONE_QUANTITY_TEXT_H
#define COXSWAIN_STANDALONE_QUANTITY_TEXT_H

/* Returns why the text is no quantity, in the words of kube-apiserver; NULL: it is one. */
const char *quantity_text_flaw(const char *text);

#endif
