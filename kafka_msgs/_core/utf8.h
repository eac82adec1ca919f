/* UTF-8 validation as strict as CPython's decoder: no surrogates, overlong forms, or code points above U+10FFFF. */
#ifndef KAFKA_MSGS_UTF8_H
#define KAFKA_MSGS_UTF8_H

#include <stdint.h>
#include <string.h>

/* Returns the size of the character at `p`, which is not ASCII; 0 if there is no character. */
static inline int utf8_size(const unsigned char *p, const unsigned char *end) {
    int size = *p >= 0xF0 ? 4 : *p >= 0xE0 ? 3 : 2;
    unsigned char low = 0x80, high = 0xBF; /* bounds of the second byte */
    if (*p < 0xC2 || *p > 0xF4 || end - p < size) return 0;
    if (*p == 0xE0) low = 0xA0;
    if (*p == 0xED) high = 0x9F;
    if (*p == 0xF0) low = 0x90;
    if (*p == 0xF4) high = 0x8F;
    if (p[1] < low || p[1] > high) return 0;
    for (int i = 2; i < size; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    return size;
}

/* Returns whether bytes are ASCII. The last word overlaps, which avoids a remainder of unpredictable length. */
static inline int is_ascii(const unsigned char *p, const unsigned char *end) {
    uint64_t seen = 0, word = 0;
    uint32_t half = 0;
    if (end - p >= 8) {
        for (const unsigned char *last = end - 8; p < last; p += 8) {
            memcpy(&word, p, 8);
            seen |= word;
        }
        memcpy(&word, end - 8, 8);
    } else if (end - p >= 4) {
        memcpy(&word, p, 4);
        memcpy(&half, end - 4, 4);
    } else {
        while (p < end)
            seen |= *p++;
    }
    return !((seen | word | half) & 0x8080808080808080u);
}

static inline int is_utf8(const unsigned char *p, const unsigned char *end) {
    if (is_ascii(p, end)) return 1;
    while (p < end) {
        int size = *p < 0x80 ? 1 : utf8_size(p, end);
        if (size == 0) return 0;
        p += size;
    }
    return 1;
}

#endif
