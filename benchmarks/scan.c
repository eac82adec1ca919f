/* Walks the bytes of a message according to a plan without creating objects: the minimum work of decoding. Checks
 * bounds, lengths, nulls and the order of tags, but not UTF-8 or the content of tagged fields.
 *
 * An op is five numbers: code, flags, element code, element flags, index of the nested struct; code -1 ends a struct, and
 * its flags state whether a tag section follows. scan.py generates the ops from a plan. */
#include <stddef.h>
#include <stdint.h>

#include "ops.h"

enum { FIELDS = 5 };

typedef struct {
    const unsigned char *p, *end;
    const int32_t *ops, *starts;
} Scan;

static int scan_struct(Scan *s, int32_t index);

static int uvarint(Scan *s, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        if (s->p >= s->end) return -1;
        unsigned char byte = *s->p++;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return *value > UINT32_MAX ? -1 : 0;
    }
    return -1;
}

/* Reads a length; -1 is a null that the flags allow, -2 is an error. */
static int64_t length_of(Scan *s, int32_t code, int32_t flags) {
    int64_t length;
    if (flags & COMPACT) {
        uint64_t value;
        if (uvarint(s, &value) < 0) return -2;
        length = (int64_t)value - 1;
    } else {
        ptrdiff_t size = code == OP_STRING ? 2 : 4;
        if (s->end - s->p < size) return -2;
        uint32_t value = 0;
        for (ptrdiff_t i = 0; i < size; i++)
            value = value << 8 | s->p[i];
        length = size == 2 ? (int16_t)value : (int32_t)value;
        s->p += size;
    }
    return length < -1 || (length == -1 && !(flags & NULLABLE)) ? -2 : length;
}

static int skip(Scan *s, int64_t size) {
    if (size < 0 || s->end - s->p < size) return -1;
    s->p += size;
    return 0;
}

static int scan_sized(Scan *s, int32_t code, int32_t flags) {
    int64_t length = length_of(s, code, flags);
    if (length == -1) return 0;
    return length < 0 || (code == OP_STRING && length > MAX_STRING) ? -1 : skip(s, length);
}

static int scan_array(Scan *s, const int32_t *op) {
    int64_t count = length_of(s, OP_ARRAY, op[1]);
    if (count < 0) return count == -1 ? 0 : -1;
    if (count > s->end - s->p) return -1;
    if (FIXED_SIZE[op[2]]) return skip(s, count * FIXED_SIZE[op[2]]);
    for (int64_t i = 0; i < count; i++)
        if (op[2] == OP_STRUCT ? scan_struct(s, op[4]) : scan_sized(s, op[2], op[3])) return -1;
    return 0;
}

static int scan_tags(Scan *s) {
    uint64_t count, tag, size;
    int64_t last = -1;
    if (uvarint(s, &count) < 0) return -1;
    for (; count > 0; count--) {
        if (uvarint(s, &tag) < 0 || uvarint(s, &size) < 0 || (int64_t)tag <= last || tag > MAX_TAG) return -1;
        if (skip(s, (int64_t)size) < 0) return -1;
        last = (int64_t)tag;
    }
    return 0;
}

static int scan_nested(Scan *s, const int32_t *op) {
    if (!(op[1] & NULLABLE)) return scan_struct(s, op[4]);
    if (s->p >= s->end) return -1;
    return (int8_t)*s->p++ < 0 ? 0 : scan_struct(s, op[4]);
}

static int scan_struct(Scan *s, int32_t index) {
    const int32_t *op = s->ops + (ptrdiff_t)FIELDS * s->starts[index];
    for (; op[0] >= 0; op += FIELDS) {
        int wrong = FIXED_SIZE[op[0]]    ? skip(s, FIXED_SIZE[op[0]])
                    : op[0] == OP_ARRAY  ? scan_array(s, op)
                    : op[0] == OP_STRUCT ? scan_nested(s, op)
                                         : scan_sized(s, op[0], op[1]);
        if (wrong) return -1;
    }
    return op[1] ? scan_tags(s) : 0;
}

/* Returns whether the bytes are exactly one message. */
int scan(const int32_t *ops, const int32_t *starts, const unsigned char *data, ptrdiff_t size) {
    Scan s = {data, data + size, ops, starts};
    return scan_struct(&s, 0) == 0 && s.p == s.end;
}
