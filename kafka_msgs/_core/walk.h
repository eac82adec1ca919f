/* The layout of one record of a magic 2 batch, as places in the bytes: no Python object is read or made here.
 *
 * All C code that reads records includes this file, with or without the GIL. It accepts and refuses the same bytes as
 * the Python form of the loop. It does not explain a refusal: `record.explain` does.
 *
 * Every function takes a place `p` and the `end` before which it must stay, and returns the place after the bytes that it
 * read, or NULL if the bytes are malformed. Every read is preceded by a check of the form `end - p < n`.
 *
 *     if (count > (end - p) / WALK_SMALLEST) refuse;     // before anything is allocated for so many
 *     WalkRecord record;
 *     for (int32_t i = 0; i < count; i++) {
 *         p = walk_record(p, end, &record);
 *         if (p == NULL) refuse;
 *         if (walk_headers(&record) < 0) refuse;         // or each by walk_header, up to exactly record.end
 *     }
 *     if (p != end) refuse;
 */
#ifndef KAFKA_MSGS_WALK_H
#define KAFKA_MSGS_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "layouts.h"

#define WALK_SMALLEST        7 /* bytes of a record: each of its parts has one at least */
#define WALK_SMALLEST_HEADER 2 /* bytes of a header */

typedef struct {
    const unsigned char *key, *value; /* NULL for null */
    const unsigned char *headers;     /* the first header, for walk_header */
    const unsigned char *end;         /* of the record, and so of its last header */
    int64_t timestamp_delta;          /* milliseconds after the batch's base timestamp */
    int32_t offset_delta;             /* after the batch's base offset; may be negative, as the deltas of Kafka may */
    int32_t key_size, value_size;     /* -1 for null */
    int32_t header_count;             /* at most the bytes that are left for them */
} WalkRecord;

typedef struct {
    const unsigned char *name, *value; /* value is NULL for null; a name that is not UTF-8 is accepted */
    int32_t name_size, value_size;     /* value_size is -1 for null */
} WalkHeader;

/* Reads a zig-zag varint of at most `bits` bits; most sizes and deltas take one byte or two. */
static inline const unsigned char *walk_zigzag(const unsigned char *p, const unsigned char *end, int bits,
                                               int64_t *value) {
    uint64_t raw;
    if (end - p >= 1 && p[0] < 0x80) {
        raw = *p++;
    } else if (end - p >= 2 && p[1] < 0x80) {
        raw = (uint64_t)(p[0] & 0x7F) | (uint64_t)p[1] << 7;
        p += 2;
    } else {
        p = load_varint(p, end, bits, &raw);
        if (p == NULL) return NULL;
    }
    *value = (int64_t)(raw >> 1 ^ (0 - (raw & 1)));
    return p;
}

static inline const unsigned char *walk_varint(const unsigned char *p, const unsigned char *end, int32_t *value) {
    int64_t wide = 0;
    p = walk_zigzag(p, end, 32, &wide);
    *value = (int32_t)wide;
    return p;
}

/* Reads a size and the bytes that it counts; size -1 is null, and `content` is then NULL. */
static inline const unsigned char *walk_payload(const unsigned char *p, const unsigned char *end,
                                                const unsigned char **content, int32_t *size) {
    p = walk_varint(p, end, size);
    if (p == NULL) return NULL;
    if (*size < 0) {
        *content = NULL;
        return *size == -1 ? p : NULL;
    }
    if (*size > end - p) return NULL;
    *content = p;
    return p + *size;
}

/* Reads one header; a name must not be null. */
static inline const unsigned char *walk_header(const unsigned char *p, const unsigned char *end, WalkHeader *header) {
    p = walk_payload(p, end, &header->name, &header->name_size);
    if (p == NULL || header->name_size < 0) return NULL;
    return walk_payload(p, end, &header->value, &header->value_size);
}

/* Reads one record up to its headers and returns the place of the next one. Without headers the record is known to be
 * whole; with headers it is when walk_header, `header_count` times, ends at exactly `end`. */
static inline const unsigned char *walk_record(const unsigned char *p, const unsigned char *end, WalkRecord *record) {
    int32_t size;
    p = walk_varint(p, end, &size);
    if (p == NULL || size < 1 || size > end - p) return NULL;
    const unsigned char *stop = p + size;
    p++; /* attributes of a record: no bit has a meaning yet */
    if ((p = walk_zigzag(p, stop, 64, &record->timestamp_delta)) == NULL ||
        (p = walk_varint(p, stop, &record->offset_delta)) == NULL ||
        (p = walk_payload(p, stop, &record->key, &record->key_size)) == NULL ||
        (p = walk_payload(p, stop, &record->value, &record->value_size)) == NULL ||
        (p = walk_varint(p, stop, &record->header_count)) == NULL)
        return NULL;
    if (record->header_count < 0 || record->header_count > stop - p) return NULL;
    if (record->header_count == 0 && p != stop) return NULL;
    record->headers = p;
    record->end = stop;
    return stop;
}

/* Checks the headers of a record without keeping them. Returns 0, or -1 if they do not match the record. */
static inline int walk_headers(const WalkRecord *record) {
    const unsigned char *p = record->headers;
    WalkHeader header;
    for (int32_t i = 0; i < record->header_count; i++) {
        p = walk_header(p, record->end, &header);
        if (p == NULL) return -1;
    }
    return p == record->end ? 0 : -1;
}

/* Returns the size of the magic 2 batch that starts at a position with `left` bytes; 0 if it is missing or
 * incomplete. */
static inline ptrdiff_t walk_batch(const unsigned char *p, ptrdiff_t left) {
    if (left < HEADER_SIZE || p[MAGIC_AT] != 2) return 0;
    int32_t stated = (int32_t)load32(p + SIZE_AT);
    if (stated < HEADER_SIZE - SIZE_AND_OFFSET || stated > left - SIZE_AND_OFFSET) return 0;
    return (ptrdiff_t)stated + SIZE_AND_OFFSET;
}

/* Returns whether `count` records have more than `limit` elements (records and headers together). Returns 0 for bytes
 * that are not records, because reading reports them. Scans the bytes only if they can hold so many elements. */
static inline int walk_exceeds(const unsigned char *p, const unsigned char *end, int64_t count, int64_t limit) {
    if (count < 0 || count > (end - p) / WALK_SMALLEST) return 0;
    int64_t room = limit - count;
    if (room < 0 || (end - p - WALK_SMALLEST * count) / WALK_SMALLEST_HEADER <= room) return room < 0;
    WalkRecord record;
    for (int64_t i = 0; i < count && room >= 0; i++) {
        p = walk_record(p, end, &record);
        if (p == NULL) return 0;
        room -= record.header_count;
    }
    return room < 0;
}

#endif
