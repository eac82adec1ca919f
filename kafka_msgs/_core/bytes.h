/* Big-endian integers in bytes that are known to be there, or reserved. */
#ifndef KAFKA_MSGS_BYTES_H
#define KAFKA_MSGS_BYTES_H

#include <stddef.h>
#include <stdint.h>

static inline uint16_t load16(const unsigned char *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load64(const unsigned char *p) {
    return (uint64_t)load32(p) << 32 | load32(p + 4);
}

static inline void store16(unsigned char *p, uint16_t value) {
    p[0] = (unsigned char)(value >> 8);
    p[1] = (unsigned char)value;
}

static inline void store32(unsigned char *p, uint32_t value) {
    store16(p, (uint16_t)(value >> 16));
    store16(p + 2, (uint16_t)value);
}

static inline void store64(unsigned char *p, uint64_t value) {
    store32(p, (uint32_t)(value >> 32));
    store32(p + 4, (uint32_t)value);
}

/* Loads an unsigned varint of at most `bits` bits; returns the position after it, or NULL if it is longer or cut
 * off. */
static inline const unsigned char *load_varint(const unsigned char *p, const unsigned char *end, int bits,
                                               uint64_t *value) {
    uint64_t result = 0;
    for (int shift = 0; shift < bits; shift += 7) {
        if (end - p < 1) return NULL;
        uint64_t byte = *p++, low = byte & 0x7F;
        if (bits - shift < 7 && low >> (bits - shift)) return NULL;
        result |= low << shift;
        if (byte < 0x80) {
            *value = result;
            return p;
        }
    }
    return NULL;
}

/* Stores an unsigned varint and returns the position after it. */
static inline unsigned char *store_varint(unsigned char *p, uint64_t value) {
    for (; value > 0x7F; value >>= 7)
        *p++ = (unsigned char)(value | 0x80);
    *p++ = (unsigned char)value;
    return p;
}

/* Stores the lowest `size` bytes of a number. */
static inline unsigned char *store_number(unsigned char *p, int size, int64_t value) {
    for (int i = size - 1; i >= 0; i--, value >>= 8)
        p[i] = (unsigned char)value;
    return p + size;
}

#endif
