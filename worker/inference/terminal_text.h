/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes that nobody has vetted, on a terminal: text in UTF-8 passes, what would
 * steer the terminal (the control characters of ISO 6429, U+0000-U+001F but for
 * lines and tabs, U+007F-U+009F, the latter also as lone bytes) becomes a
 * question mark. Lone bytes of Latin-1's text pass as well.
 */
#ifndef COXSWAIN_INFERENCE_TERMINAL_TEXT_H
#define COXSWAIN_INFERENCE_TERMINAL_TEXT_H

/* What came before; zeros at the beginning. */
struct terminal_text {
    unsigned char last;
    int due; /* bytes that a character begun in UTF-8 still lacks */
};

/* What to print in the byte's place: itself, or a question mark. */
unsigned char terminal_text_next(struct terminal_text *text, unsigned char byte);

#endif
