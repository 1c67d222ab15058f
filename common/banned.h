/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes calls of risky libc functions fail to compile. The Makefile includes this header in front of every C file of the project; the
 * compiler's message says what to use instead.
 */
#ifndef COXSWAIN_COMMON_BANNED_H
#define COXSWAIN_COMMON_BANNED_H

/* Their headers must be seen before the names are poisoned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#undef strcpy
#define strcpy(...) banned_use_memcpy_or_buffer_append
#undef strncpy
#define strncpy(...) banned_use_snprintf_or_memcpy
#undef strcat
#define strcat(...) banned_use_buffer_append
#undef strncat
#define strncat(...) banned_use_buffer_append
#undef sprintf
#define sprintf(...) banned_use_snprintf_or_buffer_format
#undef vsprintf
#define vsprintf(...) banned_use_vsnprintf
#undef strtok
#define strtok(...) banned_use_strcspn
#undef atoi
#define atoi(...) banned_use_strtol
#undef atol
#define atol(...) banned_use_strtol
#undef atoll
#define atoll(...) banned_use_strtoll
#undef atof
#define atof(...) banned_use_strtod
#undef gets
#define gets(...) banned_use_fgets
#undef gmtime
#define gmtime(...) banned_use_gmtime_r
#undef localtime
#define localtime(...) banned_use_localtime_r
#undef ctime
#define ctime(...) banned_use_strftime
#undef asctime
#define asctime(...) banned_use_strftime

#endif
