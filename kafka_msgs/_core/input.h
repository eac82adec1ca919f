/* Arrow input columns: the unchanged buffers of arrays, possibly slices, and functions that read their values.
 *
 * Only the sizes of the buffers are trusted. Loading checks that the buffers hold the declared number of values;
 * offsets are checked at each use. Values are read in place, at any alignment.
 */
#ifndef KAFKA_MSGS_INPUT_H
#define KAFKA_MSGS_INPUT_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "column.h"
#include "objects.h"

typedef struct {
    unsigned char kind;
    signed char width;   /* bytes of a number, or of an offset; negative for numbers with a sign, and for maps */
    unsigned char plain; /* the width of the column, if the numbers match it and none is null; otherwise 0 */
    int64_t mask;        /* of indexes: 0 for a single repeated value */
    int64_t offset;      /* of the first value in bitmaps; `offsets` and `data` begin with it */
    int64_t length;
    int64_t limit; /* upper bound of the offsets: the bytes of a text, the elements of a list */
    const unsigned char *valid, *offsets, *data;
} Input;

static int refuse_input(void) {
    return refuse(PyExc_ValueError, "the buffers do not hold as many rows");
}

/* Returns whether the buffers hold all values. */
static int is_covered(const Input *input, const Py_buffer *held) {
    int64_t end = input->offset + input->length, width = abs(input->width);
    int is_width = width == 4 || width == 8 || (input->kind == COLUMN_FIXED && (width == 1 || width == 2));
    if (input->valid != NULL && held[VALID].len < (Py_ssize_t)bitmap_size(end)) return 0;
    if (input->kind == COLUMN_BITS) return held[DATA].len >= (Py_ssize_t)bitmap_size(end);
    if (input->kind == COLUMN_FIXED) return is_width && held[DATA].len / width >= end;
    return input->kind == COLUMN_STRUCT || (is_width && (end == 0 || held[OFFSETS].len / width > end));
}

/* Reads (width, repeated, offset, length, validity, offsets, data) of a column; `repeated` marks a single value for all
 * rows. Returns -1 with an exception. Even then the buffers are held until their release. */
static int load_input(Input *input, Py_buffer *held, const Column *column, PyObject *spec) {
    const int64_t most = PY_SSIZE_T_MAX / 32;
    long long offset, length;
    int width, repeated;
    if (!PyArg_ParseTuple(spec, "ipLLz*z*z*", &width, &repeated, &offset, &length, &held[VALID], &held[OFFSETS],
                          &held[DATA]))
        return -1;
    *input = (Input){.kind = column->kind,
                     .width = (signed char)(width < -8 || width > 8 ? 0 : width),
                     .mask = repeated ? 0 : -1,
                     .offset = offset,
                     .length = length,
                     .limit = held[DATA].len,
                     .valid = held[VALID].buf,
                     .offsets = held[OFFSETS].buf,
                     .data = held[DATA].buf == NULL ? (const unsigned char *)"" : held[DATA].buf};
    if (offset < 0 || length < repeated || offset > most || length > most || !is_covered(input, held))
        return refuse_input();
    if (input->kind == COLUMN_FIXED && input->valid == NULL && width == -column->width) input->plain = column->width;
    if (input->offsets != NULL) input->offsets += offset * abs(input->width);
    if (input->kind == COLUMN_FIXED) input->data += offset * abs(input->width);
    return 0;
}

static inline int bit_at(const unsigned char *bits, int64_t at) {
    return bits[at >> 3] >> (at & 7) & 1;
}

/* Returns the position of an index's value in an input; the functions below take this position. */
static inline int64_t place_of(const Input *input, int64_t index) {
    return index & input->mask;
}

static inline int is_null(const Input *input, int64_t at) {
    return input->valid != NULL && !bit_at(input->valid, input->offset + at);
}

static inline int64_t offset_at(const Input *input, int64_t at) {
    int64_t wide;
    int32_t narrow;
    if (input->width == 8) {
        memcpy(&wide, input->offsets + at * 8, 8);
        return wide;
    }
    memcpy(&narrow, input->offsets + at * 4, 4);
    return narrow;
}

/* Text and lists: returns the size of a value, and its start; -1 if it is outside of the content. */
static inline int64_t range_at(const Input *input, int64_t at, int64_t *start) {
    int64_t stop = offset_at(input, at + 1);
    *start = offset_at(input, at);
    return *start < 0 || stop < *start || stop > input->limit ? -1 : stop - *start;
}

/* Reads the bits of a number of 1, 2, 4 or 8 bytes. */
static inline uint64_t bits_at(const Input *input, int64_t at, int width) {
    const unsigned char *data = input->data + at * width;
    uint64_t eight;
    uint32_t four;
    uint16_t two;
    if (width == 8) return *(uint64_t *)memcpy(&eight, data, 8);
    if (width == 4) return *(uint32_t *)memcpy(&four, data, 4);
    if (width == 2) return *(uint16_t *)memcpy(&two, data, 2);
    return *data;
}

/* Reads a number; 0 if it has more than 64 bits with its sign. */
static inline int number_at(const Input *input, int64_t at, int64_t *value) {
    int is_signed = input->width < 0, size = abs(input->width), rest = 64 - 8 * size;
    uint64_t bits = bits_at(input, at, size);
    *value = is_signed ? (int64_t)(bits << rest) >> rest : (int64_t)bits;
    return is_signed || *value >= 0;
}

#endif
