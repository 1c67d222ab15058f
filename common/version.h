/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the version of this release. Every program prints it for --version, and a worker's error names it if another worker speaks
 * another version of the protocol.
 */
#ifndef COXSWAIN_COMMON_VERSION_H
#define COXSWAIN_COMMON_VERSION_H

#define COXSWAIN_VERSION "0.1.0"

#endif
