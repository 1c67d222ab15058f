/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_COMMON_VERSION_H
#define COXSWAIN_COMMON_VERSION_H

/* The release, as every program's --version says it. */
#define COXSWAIN_VERSION "0.1.0"

#endif
