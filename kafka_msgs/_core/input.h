/* Arrow columns that are read: the buffers of arrays as they came, which may be slices, and what a value in them is.
 *
 * Nothing is known of the buffers but their sizes. Loading checks that they hold as many values as are said to be there;
 * offsets are checked where they are used. Values are read where they lie, which may be at any address.
 */
#ifndef KAFKA_MSGS_INPUT_H
#define KAFKA_MSGS_INPUT_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "column.h"
#include "objects.h"

typedef struct {
    unsigned char kind;
    signed char width; /* bytes of a number, or of an offset; negative for signed numbers, and for maps */
    int64_t mask;      /* of indexes: 0 where one value stands for all */
    int64_t offset, length;
    int64_t limit; /* where offsets end at the latest: the bytes of a text, the elements of a list */
    const unsigned char *valid, *offsets, *data;
    Py_buffer memory[MEMORIES];
} Input;

static int refuse_input(void) {
    return refuse(PyExc_ValueError, "the buffers do not hold as many rows");
}

static void free_input(Input *input) {
    for (int which = 0; which < MEMORIES; which++)
        PyBuffer_Release(&input->memory[which]);
}

/* Whether the buffers hold the values. */
static int is_covered(const Input *input) {
    const Py_buffer *memory = input->memory;
    int64_t end = input->offset + input->length, width = input->width < 0 ? -input->width : input->width;
    int is_width = width == 4 || width == 8 || (input->kind == COLUMN_FIXED && (width == 1 || width == 2));
    if (input->valid != NULL && memory[VALID].len < (Py_ssize_t)bitmap_size(end)) return 0;
    if (input->kind == COLUMN_BITS) return memory[DATA].len >= (Py_ssize_t)bitmap_size(end);
    if (input->kind == COLUMN_FIXED) return is_width && memory[DATA].len / width >= end;
    return input->kind == COLUMN_STRUCT || (is_width && (end == 0 || memory[OFFSETS].len / width > end));
}

/* Reads (width, whether one value stands for all, offset, length, validity, offsets, data); -1 with an exception. The
 * buffers are held until free_input, in any case. */
static int load_input(Input *input, int kind, PyObject *spec) {
    const int64_t most = PY_SSIZE_T_MAX / 32;
    Py_buffer *memory = input->memory;
    long long offset, length;
    int width, repeated;
    if (!PyArg_ParseTuple(spec, "ipLLz*z*z*", &width, &repeated, &offset, &length, &memory[VALID], &memory[OFFSETS],
                          &memory[DATA]))
        return -1;
    input->kind = (unsigned char)kind;
    input->width = (signed char)(width < -8 || width > 8 ? 0 : width);
    input->mask = repeated ? 0 : -1;
    input->offset = offset;
    input->length = length;
    input->limit = memory[DATA].len;
    input->valid = memory[VALID].buf;
    input->offsets = memory[OFFSETS].buf;
    input->data = memory[DATA].buf == NULL ? (const unsigned char *)"" : memory[DATA].buf;
    if (offset < 0 || length < repeated || offset > most || length > most || !is_covered(input)) return refuse_input();
    return 0;
}

/* Where the value of an index is in the buffers. */
static inline int64_t place_of(const Input *input, int64_t index) {
    return input->offset + (index & input->mask);
}

static inline int bit_at(const unsigned char *bits, int64_t at) {
    return bits[at >> 3] >> (at & 7) & 1;
}

static inline int is_null(const Input *input, int64_t at) {
    return input->valid != NULL && !bit_at(input->valid, at);
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

/* Text and lists: returns the size of a value, and where it starts; -1 if it is not within the content. */
static inline int64_t range_at(const Input *input, int64_t at, int64_t *start) {
    int64_t stop = offset_at(input, at + 1);
    *start = offset_at(input, at);
    return *start < 0 || stop < *start || stop > input->limit ? -1 : stop - *start;
}

/* Reads an integer; 0 if it has more than 64 bits with its sign. */
static inline int int_at(const Input *input, int64_t at, int64_t *value) {
    int is_signed = input->width < 0, size = is_signed ? -input->width : input->width, rest = 64 - 8 * size;
    const unsigned char *data = input->data + at * size;
    uint64_t raw = *data;
    uint32_t four;
    uint16_t two;
    if (size == 8) {
        memcpy(&raw, data, 8);
    } else if (size == 4) {
        memcpy(&four, data, 4);
        raw = four;
    } else if (size == 2) {
        memcpy(&two, data, 2);
        raw = two;
    }
    *value = is_signed ? (int64_t)(raw << rest) >> rest : (int64_t)raw;
    return is_signed || *value >= 0;
}

#endif
