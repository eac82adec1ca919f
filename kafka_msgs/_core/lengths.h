/* Unsigned varints and lengths, as places in bytes: no Python object is read or made here.
 *
 * Every function takes a place `p` and the `end` before which it must stay, and returns the place after the bytes that it
 * read, or NULL if they are malformed.
 */
#ifndef KAFKA_MSGS_LENGTHS_H
#define KAFKA_MSGS_LENGTHS_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "layouts.h"

static inline const unsigned char *take_long_uvarint(const unsigned char *p, const unsigned char *end,
                                                     uint32_t *value) {
    uint64_t result = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (p >= end) return NULL;
        unsigned char byte = *p++;
        result |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *value = (uint32_t)result;
            return result > UINT32_MAX ? NULL : p;
        }
    }
    return NULL;
}

static inline const unsigned char *take_uvarint(const unsigned char *p, const unsigned char *end, uint32_t *value) {
    if (p < end && *p < 0x80) {
        *value = *p;
        return p + 1;
    }
    return take_long_uvarint(p, end, value);
}

/* Takes a length or count, of `size` bytes (2 or 4) where it is not compact; -1 is a null that the flags allow. Anything
 * else negative is refused, and what would turn negative. */
static inline const unsigned char *take_length(const unsigned char *p, const unsigned char *end, int size, int flags,
                                               ptrdiff_t *length) {
    if (flags & COMPACT) {
        uint32_t value;
        p = take_uvarint(p, end, &value);
        if (p == NULL || (sizeof(ptrdiff_t) == 4 && value > INT32_MAX)) return NULL;
        *length = (ptrdiff_t)value - 1;
        if (value > 0) return p;
    } else {
        if (end - p < size) return NULL;
        *length = size == 2 ? (int16_t)load16(p) : (int32_t)load32(p);
        p += size;
    }
    return *length < -1 || (*length == -1 && !(flags & NULLABLE)) ? NULL : p;
}

/* Takes the marker in front of a nullable struct, as Kafka reads it. */
static inline const unsigned char *take_marker(const unsigned char *p, const unsigned char *end, int flags,
                                               int *present) {
    uint32_t marker;
    if (flags & COMPACT) {
        p = take_uvarint(p, end, &marker);
        *present = p != NULL && (int32_t)marker > 0;
        return p;
    }
    if (p >= end) return NULL;
    *present = (int8_t)*p >= 0;
    return p + 1;
}

#endif
