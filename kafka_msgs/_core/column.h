/* Arrow columns that grow: a table of them, filled in without the GIL.
 *
 * A table is an array of columns in preorder: after a struct come its fields, and after a list its item, each followed
 * by the columns below it. The first column is the struct of everything. Maps are lists of structs, as in Arrow.
 *
 * The columns do not count their values. The caller that fills a table passes the index: the index of the row, or of
 * the element, taken from the offsets of the list. Every column takes exactly one value at each index, and indexes
 * ascend. So a value of fixed size has a fixed position, and text starts at the end of the previous text. To roll back
 * a row, only its nulls must be rolled back. Memory for an index must be reserved before anything is written there.
 *
 * The memory belongs to Python objects with writable buffers. A Python function allocates them: Arrow buffers, from
 * Arrow's memory pool. The table takes the GIL only for that. Other code may write into that memory, so the core reads
 * nothing critical back from it.
 */
#ifndef KAFKA_MSGS_COLUMN_H
#define KAFKA_MSGS_COLUMN_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "layouts.h"
#include "objects.h"

typedef enum {
    DONE,
    MALFORMED, /* the input is invalid */
    NO_MEMORY, /* or another exception of the allocation function, which is then set */
    FULL,      /* a column would need offsets of more than 32 bits */
    BROKEN,    /* the offsets of an array do not ascend, or exceed its content */
} Status;

enum { VALID, OFFSETS, DATA, MEMORIES };

typedef struct {
    unsigned char kind;
    unsigned char width; /* bytes of a value of fixed size; bytes of text that are reserved with each index */
    int32_t span;        /* the number of columns: this one and its descendants */
    int64_t capacity;    /* indexes that are reserved */
    int64_t room;        /* text: bytes that are reserved */
    int64_t end;         /* text and lists: the start of the value after the last one */
    int64_t nulls;
    int64_t null_end; /* after the last null */
    union {
        struct {
            unsigned char *valid; /* bitmap; NULL without nulls; bits from null_end on are set */
            int32_t *offsets;     /* text and lists: the start of each index, then the end of the last one */
            unsigned char *data;
        };
        void *starts[MEMORIES]; /* all of these */
    };
} Column;

typedef struct {
    Column *columns;
    Py_buffer (*memory)[MEMORIES]; /* of each column; its obj is NULL without a buffer */
    PyObject *allocate;            /* given a size, returns an object with a writable buffer of that size; owned */
    PyThreadState *thread;         /* the one that fills in the table, while it is without the GIL */
} Table;

#define MAX_OFFSET INT32_MAX
_Static_assert(UUID_TEXT <= UINT8_MAX, "it is the width of a column");

static inline int has_offsets(const Column *column) {
    return column->kind == COLUMN_TEXT || column->kind == COLUMN_LIST;
}

/* The next column with the same indexes: columns below a list have the indexes of its elements. */
static inline Column *next_alike(Column *column) {
    return column + (column->kind == COLUMN_LIST ? column->span : 1);
}

static inline size_t bitmap_size(int64_t count) {
    return (size_t)(count + 7) / 8;
}

/* Returns the size in bytes of `count` values of fixed size; 0 for columns without a fixed size. */
static inline size_t fixed_bytes(const Column *column, int64_t count) {
    if (column->kind == COLUMN_BITS) return bitmap_size(count);
    return column->kind == COLUMN_FIXED ? (size_t)count * column->width : 0;
}

/* Moves the content of a column to larger memory. */
static Status grow_memory(Table *table, Column *column, int which, size_t size) {
    Py_buffer *held = &table->memory[column - table->columns][which], grown;
    Status status = NO_MEMORY;
    PyEval_RestoreThread(table->thread);
    PyObject *owner = PyObject_CallFunction(table->allocate, "n", (Py_ssize_t)size);
    if (owner != NULL && PyObject_GetBuffer(owner, &grown, PyBUF_WRITABLE) == 0) {
        if ((size_t)grown.len < size || (uintptr_t)grown.buf % sizeof(uint64_t) != 0) {
            PyErr_SetString(PyExc_ValueError, "memory of another size or alignment than asked for");
            PyBuffer_Release(&grown);
        } else {
            if (held->obj != NULL) memmove(grown.buf, held->buf, (size_t)held->len < size ? (size_t)held->len : size);
            PyBuffer_Release(held);
            *held = grown;
            column->starts[which] = grown.buf;
            status = DONE;
        }
    }
    Py_XDECREF(owner);
    table->thread = PyEval_SaveThread();
    return status;
}

/* Reserves bytes of text. */
static inline Status reserve_text(Table *table, Column *column, int64_t room) {
    if (room <= column->room) return DONE;
    if (room > MAX_OFFSET) return FULL;
    if (room < column->room * 2) room = column->room * 2 < MAX_OFFSET ? column->room * 2 : MAX_OFFSET;
    Status status = grow_memory(table, column, DATA, (size_t)room);
    if (status == DONE) column->room = room;
    return status;
}

static Status grow_bitmap(Table *table, Column *column, int64_t from, int64_t capacity) {
    Status status = grow_memory(table, column, VALID, bitmap_size(capacity));
    if (status == DONE) memset(column->valid + bitmap_size(from), 0xFF, bitmap_size(capacity) - bitmap_size(from));
    return status;
}

static Status grow_column(Table *table, Column *column, int64_t count) {
    int64_t capacity = count < column->capacity * 2 ? column->capacity * 2 : count;
    size_t size = fixed_bytes(column, capacity), offsets = has_offsets(column) ? (size_t)capacity + 1 : 0;
    Status status = count > MAX_OFFSET ? FULL : DONE;
    if (status == DONE && column->valid != NULL) status = grow_bitmap(table, column, column->capacity, capacity);
    if (status == DONE && offsets) status = grow_memory(table, column, OFFSETS, offsets * sizeof(int32_t));
    if (status == DONE && size) status = grow_memory(table, column, DATA, size);
    if (status != DONE) return status;
    if (offsets && column->capacity == 0) column->offsets[0] = 0;
    column->capacity = capacity;
    return DONE;
}

/* Reserves the indexes below `count` in a column and in all other columns with the same indexes. */
static Status reserve(Table *table, Column *column, int64_t count) {
    Status status = DONE;
    for (Column *end = column + column->span; column < end && status == DONE; column = next_alike(column)) {
        if (count > column->capacity) status = grow_column(table, column, count);
        if (status == DONE && column->kind == COLUMN_TEXT && column->width)
            status = reserve_text(table, column, count * column->width);
    }
    return status;
}

static inline Status mark_null(Table *table, Column *column, int64_t index) {
    if (column->valid == NULL && grow_bitmap(table, column, 0, column->capacity) != DONE) return NO_MEMORY;
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

/* Text and lists: puts an empty value. */
static inline void put_empty(Column *column, int64_t index) {
    column->offsets[index + 1] = (int32_t)column->end;
}

/* Puts null; below a null struct all is null. */
static Status put_null(Table *table, Column *column, int64_t index) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        if (mark_null(table, column, index) != DONE) return NO_MEMORY;
        if (has_offsets(column)) put_empty(column, index);
        if (column->kind == COLUMN_FIXED) memset(column->data + index * column->width, 0, column->width);
        if (column->kind == COLUMN_BITS) put_bit(column, index, 0);
    }
    return DONE;
}

static inline Status put_text(Table *table, Column *column, int64_t index, const unsigned char *content, int64_t size) {
    int64_t at = column->end;
    if (column->room - at < size) {
        Status status = reserve_text(table, column, at + size);
        if (status != DONE) return status;
    }
    if (size > 0) memcpy(column->data + at, content, (size_t)size);
    column->offsets[index + 1] = (int32_t)(column->end = at + size);
    return DONE;
}

/* Lists: sets the length of the list at an index to `count` and reserves its elements; `*first` is the first index. */
static inline Status put_list(Table *table, Column *column, int64_t index, int64_t count, int64_t *first) {
    *first = column->end;
    if (count > MAX_OFFSET - *first) return FULL;
    column->offsets[index + 1] = (int32_t)(column->end = *first + count);
    return reserve(table, column + 1, *first + count);
}

/* Rolls back a column and all columns below it to the state before any value at `index` or after it. */
static void take_back(Column *column, int64_t index) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        for (int64_t i = index; i < column->null_end; i++) {
            unsigned char *byte = column->valid + (i >> 3), bit = (unsigned char)(1 << (i & 7));
            column->nulls -= !(*byte & bit);
            *byte |= bit;
        }
        if (column->null_end > index) column->null_end = index;
        if (!has_offsets(column)) continue;
        int64_t found = column->offsets[index], most = column->width == UUID_TEXT ? index * UUID_TEXT : column->end;
        if (most > column->end) most = column->end;
        column->end = found < 0 || found > most ? most : found;
        if (column->kind == COLUMN_LIST) take_back(column + 1, column->end);
    }
}

/* Lets go of all that a table holds. */
static void free_table(Table *table) {
    for (int32_t i = 0; table->memory != NULL && table->columns != NULL && i < table->columns->span; i++)
        for (int which = 0; which < MEMORIES; which++)
            PyBuffer_Release(&table->memory[i][which]);
    PyMem_Free(table->memory);
    PyMem_Free(table->columns);
    Py_CLEAR(table->allocate);
    table->memory = NULL;
    table->columns = NULL;
}

/* Creates an empty table with the shape of a first column and its descendants, with `count` indexes reserved; -1 with
 * an exception. */
static int new_table(Table *table, const Column *shape, PyObject *allocate, int64_t count) {
    Status status;
    table->allocate = Py_NewRef(allocate);
    table->columns = new_items(shape->span, sizeof(Column));
    table->memory = new_items(shape->span, sizeof(*table->memory));
    if (table->columns == NULL || table->memory == NULL) {
        free_table(table);
        return -1;
    }
    memcpy(table->columns, shape, (size_t)shape->span * sizeof(Column));
    table->thread = PyEval_SaveThread();
    status = reserve(table, table->columns, count < 8 ? 8 : count);
    for (int32_t i = 0; i < shape->span && status == DONE; i++)
        status = reserve(table, &table->columns[i], 8);
    PyEval_RestoreThread(table->thread);
    if (status == DONE) return 0;
    free_table(table);
    return status == FULL ? refuse(PyExc_OverflowError, "more values than a column can have") : -1;
}

/* Appends (length, nulls, validity, offsets, data, bytes of data) of a column and of each below it to a list. */
static int list_columns(const Table *table, Column *column, int64_t length, PyObject *list) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        PyObject *owners[MEMORIES];
        for (int which = 0; which < MEMORIES; which++) {
            owners[which] = table->memory[column - table->columns][which].obj;
            if (owners[which] == NULL) owners[which] = Py_None;
        }
        int64_t size = column->kind == COLUMN_TEXT ? column->end : (int64_t)fixed_bytes(column, length);
        PyObject *one = Py_BuildValue("(LLOOOL)", (long long)length, (long long)column->nulls, owners[VALID],
                                      owners[OFFSETS], owners[DATA], (long long)size);
        int failed = one == NULL ? -1 : PyList_Append(list, one);
        Py_XDECREF(one);
        if (failed) return -1;
        if (column->kind == COLUMN_LIST && list_columns(table, column + 1, column->end, list) < 0) return -1;
    }
    return 0;
}

/* Returns the list of all columns with `length` values each, in preorder, and lets go of the table. */
static PyObject *finish_table(Table *table, int64_t length) {
    PyObject *list = PyList_New(0);
    if (list != NULL && list_columns(table, table->columns, length, list) < 0) Py_CLEAR(list);
    free_table(table);
    return list;
}

#endif
