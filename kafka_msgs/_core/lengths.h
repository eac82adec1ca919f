/* Unsigned varints and lengths in raw bytes, without Python objects.
 *
 * The take functions read from a position `p` up to `end`, and return the position after the bytes that they read, or
 * NULL for malformed bytes. The store functions write at a position with enough room.
 */
#ifndef KAFKA_MSGS_LENGTHS_H
#define KAFKA_MSGS_LENGTHS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bytes.h"
#include "layouts.h"
#include "ops.h"

/* Loads the number of an integer op. */
static inline int64_t load_number(int code, const unsigned char *p) {
    int rest = 64 - 8 * FIXED_SIZE[code];
    uint64_t bits = 0;
    for (int i = 0; i < FIXED_SIZE[code]; i++)
        bits = bits << 8 | p[i];
    return LOWEST[code] < 0 ? (int64_t)(bits << rest) >> rest : (int64_t)bits;
}

_Static_assert(sizeof LOWEST == sizeof HIGHEST && sizeof LOWEST == sizeof FIXED_SIZE * sizeof *LOWEST, "one an op");
_Static_assert(-1 >> 1 == -1 && (int32_t)UINT32_MAX == -1, "two's complement, arithmetic shifts");

static inline const unsigned char *take_uvarint(const unsigned char *p, const unsigned char *end, uint32_t *value) {
    uint64_t wide = 0;
    if (p < end && *p < 0x80)
        wide = *p++;
    else
        p = load_varint(p, end, 32, &wide);
    *value = (uint32_t)wide;
    return p;
}

/* Takes the length or count of an op's value; -1 is a null that the flags allow. All other negative lengths are refused,
 * and lengths that would become negative. */
static inline const unsigned char *take_length(const unsigned char *p, const unsigned char *end, int code, int flags,
                                               ptrdiff_t *length) {
    if (flags & COMPACT) {
        uint32_t value;
        p = take_uvarint(p, end, &value);
        if (p == NULL || (sizeof(ptrdiff_t) == 4 && value > INT32_MAX)) return NULL;
        *length = (ptrdiff_t)value - 1;
        if (value > 0) return p;
    } else {
        int size = LENGTH_SIZE[code];
        if (end - p < size) return NULL;
        *length = size == 2 ? (int16_t)load16(p) : (int32_t)load32(p);
        p += size;
    }
    return *length < -1 || (*length == -1 && !(flags & NULLABLE)) ? NULL : p;
}

/* Stores a length or count as `take_length` takes it; -1 is null. */
static inline unsigned char *store_length(unsigned char *p, int code, int flags, ptrdiff_t length) {
    if (flags & COMPACT) return store_varint(p, (uint32_t)(length + 1));
    return store_number(p, LENGTH_SIZE[code], length);
}

/* Stores a number in the byte reserved for it at `p`. A longer number moves the following bytes, up to `end`, by
 * up to 4 bytes; the caller provides the room after the end. Returns the new end. */
static inline unsigned char *store_before(unsigned char *p, unsigned char *end, uint32_t number) {
    unsigned char raw[5];
    ptrdiff_t extra = store_varint(raw, number) - raw - 1;
    if (extra) memmove(p + 1 + extra, p + 1, (size_t)(end - p - 1));
    for (ptrdiff_t i = 0; i <= extra; i++)
        p[i] = raw[i];
    return end + extra;
}

/* Takes a tag above the last one, and the size of its value; fails if the input is shorter than the value. */
static inline const unsigned char *take_tag(const unsigned char *p, const unsigned char *end, int64_t *last,
                                            const unsigned char **size_at, uint32_t *size) {
    uint32_t tag;
    *size_at = p = take_uvarint(p, end, &tag);
    if (p != NULL) p = take_uvarint(p, end, size);
    if (p == NULL || tag <= *last || tag > MAX_TAG || *size > (size_t)(end - p)) return NULL;
    *last = tag;
    return p;
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
