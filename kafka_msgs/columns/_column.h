/* Arrow columns that grow: a table of them in memory of our own, filled in without the GIL.
 *
 * A table is an array of columns in preorder: a struct's fields, or a list's item, come right behind it, each followed by
 * what stands below itself; the first column is the struct of everything. Maps are lists of structs, as in Arrow.
 *
 * There is no length that grows with each value. Whoever fills in a table knows the index: that of the row, or that of
 * the element, which the offsets of the list tell. Every column takes exactly one value at each index, and indexes
 * ascend, so values of fixed size go where they belong, text goes where the text of the index before ended, and to take
 * a row back only its nulls must be taken back. What is written at an index must have been reserved before.
 *
 * Functions that can fail return DONE or another status; only memory and the size of 32-bit offsets can run out.
 */
#ifndef KAFKA_MSGS_COLUMN_H
#define KAFKA_MSGS_COLUMN_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

typedef enum {
    DONE,
    MALFORMED, /* the input is not what it should be */
    NO_MEMORY,
    FULL, /* a column would need offsets of more than 32 bits */
} Status;

typedef enum { COLUMN_BITS, COLUMN_FIXED, COLUMN_TEXT, COLUMN_LIST, COLUMN_STRUCT } Kind;

typedef struct {
    unsigned char kind;
    unsigned char width; /* bytes of a value of fixed size; bytes of text that are reserved with each index */
    int32_t span;        /* how many columns this one and those below it are */
    int64_t capacity;    /* indexes that are reserved */
    int64_t room;        /* text: bytes that are reserved */
    int64_t nulls;
    int64_t null_end;     /* behind the last null */
    unsigned char *valid; /* bitmap; NULL while nothing is null; bits from null_end on are set */
    int32_t *offsets;     /* text and lists: where each index starts, and behind the last one its end */
    unsigned char *data;
} Column;

#define MAX_OFFSET INT32_MAX

static inline int has_offsets(const Column *column) {
    return column->kind == COLUMN_TEXT || column->kind == COLUMN_LIST;
}

/* The next column that has the same indexes: those below a list have the indexes of its elements. */
static inline Column *next_alike(Column *column) {
    return column + (column->kind == COLUMN_LIST ? column->span : 1);
}

static inline size_t bitmap_size(int64_t count) {
    return (size_t)(count + 7) / 8;
}

/* Makes `*memory` hold at least `size` bytes; what it holds stays. */
static inline Status resize(void *memory, size_t size) {
    void *old, *grown;
    memcpy(&old, memory, sizeof(old));
    grown = PyMem_RawRealloc(old, size);
    if (grown == NULL) return NO_MEMORY;
    memcpy(memory, &grown, sizeof(grown));
    return DONE;
}

static inline Status reserve_text(Column *column, int64_t room) {
    if (room <= column->room) return DONE;
    if (room > MAX_OFFSET) return FULL;
    room = room < column->room * 2 ? column->room * 2 : room;
    if (room > MAX_OFFSET) room = MAX_OFFSET;
    if (resize(&column->data, (size_t)room) != DONE) return NO_MEMORY;
    column->room = room;
    return DONE;
}

static Status grow_bitmap(Column *column, int64_t from, int64_t capacity) {
    if (resize(&column->valid, bitmap_size(capacity)) != DONE) return NO_MEMORY;
    memset(column->valid + bitmap_size(from), 0xFF, bitmap_size(capacity) - bitmap_size(from));
    return DONE;
}

static Status grow_column(Column *column, int64_t count) {
    int64_t capacity = count < column->capacity * 2 ? column->capacity * 2 : count;
    Status status = DONE;
    if (count > MAX_OFFSET) return FULL;
    if (column->valid != NULL) status = grow_bitmap(column, column->capacity, capacity);
    if (status == DONE && has_offsets(column)) {
        status = resize(&column->offsets, ((size_t)capacity + 1) * sizeof(int32_t));
        if (status == DONE && column->capacity == 0) column->offsets[0] = 0;
    }
    if (status == DONE && column->kind == COLUMN_FIXED)
        status = resize(&column->data, (size_t)capacity * column->width);
    if (status == DONE && column->kind == COLUMN_BITS) status = resize(&column->data, bitmap_size(capacity));
    if (status == DONE) column->capacity = capacity;
    return status;
}

/* Reserves the indexes below `count` in a column and in all others that have the same indexes. */
static Status reserve(Column *column, int64_t count) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        if (count > column->capacity) {
            Status status = grow_column(column, count);
            if (status != DONE) return status;
        }
        if (column->kind == COLUMN_TEXT && column->width) {
            Status status = reserve_text(column, count * column->width);
            if (status != DONE) return status;
        }
    }
    return DONE;
}

static Status mark_null(Column *column, int64_t index) {
    if (column->valid == NULL && grow_bitmap(column, 0, column->capacity) != DONE) return NO_MEMORY;
    column->valid[index >> 3] &= (unsigned char)~(1 << (index & 7));
    column->null_end = index + 1;
    column->nulls++;
    return DONE;
}

static inline void put_bit(Column *column, int64_t index, int bit) {
    unsigned char *byte = column->data + (index >> 3);
    int shift = index & 7, below = (1 << shift) - 1; /* the bits that are written already */
    *byte = (unsigned char)((shift ? *byte & below : 0) | bit << shift);
}

/* Text and lists: puts what is empty. */
static inline void put_empty(Column *column, int64_t index) {
    column->offsets[index + 1] = column->offsets[index];
}

/* Puts null; below a null struct all is null. */
static Status put_null(Column *column, int64_t index) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        if (mark_null(column, index) != DONE) return NO_MEMORY;
        if (has_offsets(column)) put_empty(column, index);
        if (column->kind == COLUMN_FIXED) memset(column->data + index * column->width, 0, column->width);
        if (column->kind == COLUMN_BITS) put_bit(column, index, 0);
    }
    return DONE;
}

static inline Status put_text(Column *column, int64_t index, const unsigned char *content, int64_t size) {
    int64_t at = column->offsets[index];
    if (column->room - at < size) {
        Status status = reserve_text(column, at + size);
        if (status != DONE) return status;
    }
    memcpy(column->data + at, content, (size_t)size);
    column->offsets[index + 1] = (int32_t)(at + size);
    return DONE;
}

/* Lists: gives the list at an index `count` elements and reserves them; `*first` is the index of the first. */
static inline Status put_list(Column *column, int64_t index, int64_t count, int64_t *first) {
    *first = column->offsets[index];
    if (count > MAX_OFFSET - *first) return FULL;
    column->offsets[index + 1] = (int32_t)(*first + count);
    return reserve(column + 1, *first + count);
}

/* Makes a column and all below it what it was before anything was put at `index` or behind it. */
static void take_back(Column *column, int64_t index) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        for (int64_t i = index; i < column->null_end; i++) {
            unsigned char *byte = column->valid + (i >> 3), bit = (unsigned char)(1 << (i & 7));
            column->nulls -= !(*byte & bit);
            *byte |= bit;
        }
        if (column->null_end > index) column->null_end = index;
        if (column->kind == COLUMN_LIST) take_back(column + 1, column->offsets[index]);
    }
}

static void free_columns(Column *columns) {
    for (int32_t i = 0, count = columns->span; i < count; i++) {
        PyMem_RawFree(columns[i].valid);
        PyMem_RawFree(columns[i].offsets);
        PyMem_RawFree(columns[i].data);
    }
    PyMem_RawFree(columns);
}

/* Makes an empty table of the shape of another; NULL without memory. */
static Column *new_columns(const Column *shape) {
    Column *columns = PyMem_RawCalloc((size_t)shape->span, sizeof(Column));
    if (columns == NULL) return NULL;
    for (int32_t i = 0; i < shape->span; i++) {
        columns[i].kind = shape[i].kind;
        columns[i].width = shape[i].width;
        columns[i].span = shape[i].span;
    }
    for (int32_t i = 0; i < shape->span; i++) {
        if (reserve(&columns[i], 8) != DONE) {
            free_columns(columns);
            return NULL;
        }
    }
    return columns;
}

#endif
