/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the syntax of Kubernetes resource quantities ("500m", "1.5Gi", "2e3"), so that the embedded API server refuses the same pods as
 * kube-apiserver.
 */
#ifndef COXSWAIN_STANDALONE_QUANTITY_TEXT_H
#define COXSWAIN_STANDALONE_QUANTITY_TEXT_H

/* Returns kube-apiserver's message if the text is not a quantity, else NULL. */
const char *quantity_text_flaw(const char *text);

#endif
