/* Columns in C: from bytes into Arrow's buffers, without a Python object for each row and without the GIL.
 *
 * This file implements the walk over binary columns by the codec's plans (native.py lowers them to tuples), and the
 * walk over the records of batches. Both walks put values into the columns of column.h. The file is independent of
 * Arrow's types and arrays: it returns buffers, and native.py builds arrays from them. It accepts and refuses the same
 * bytes as the other implementations, and does not explain a refusal. A malformed row becomes null, with the location
 * of its fault. A malformed batch adds no rows.
 *
 * Sections: 1 decoding, 2 encoding, 3 the Program type, 4 records.
 *
 * Conventions. Functions returning Status touch no Python object and need no GIL; all other functions return -1 or NULL
 * with an exception set. Programs never change after creation, so any number of threads may run one. A check of the
 * form `end - p < n`, which cannot overflow, precedes every read.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "bytes.h"
#include "column.h"
#include "compat.h"
#include "core.h"
#include "fault.h"
#include "input.h"
#include "lengths.h"
#include "ops.h"
#include "program.h"
#include "utf8.h"
#include "walk.h"

/* ------------------------------------------------------------------------------------------------ 1 Decoding */

/* The source and the destination of decoded values. Functions that read take a position `p` and return the position
 * after the value, or NULL on failure: the bytes are malformed unless `status` is set. For malformed bytes `at` is the
 * start of the malformed value, the budget is reset to its value there, and each level traces its step. */
typedef struct {
    const unsigned char *end; /* shrinks to the end of a tagged field while that is read */
    const unsigned char *start, *at;
    Fault *fault;
    Table *table;
    Column *columns;        /* the table's */
    int64_t elements, room; /* the remaining budget */
    Status status;
} Reader;

typedef const unsigned char *Place;

/* Goes on at a place unless something was wrong. */
static inline Place then(Reader *r, Status status, Place p) {
    if (status == DONE) return p;
    r->status = status;
    return NULL;
}

/* Stops at the start of a malformed value. */
static Py_NO_INLINE Place back(Reader *r, Place start) {
    r->at = start;
    return NULL;
}

/* Stops at a malformed field of a struct. */
static Py_NO_INLINE Place field_failed(Reader *r, Place start, Py_ssize_t step) {
    trace(&r->fault->trail, step);
    return back(r, start);
}

/* Fails at a tag, with `left` tags to read after the tag `last`. */
static Py_NO_INLINE Place tag_failed(Reader *r, Place start, uint32_t left, int64_t last) {
    trace_tag(r->fault, AT_TAG, left, last, TAG_SECTION);
    return back(r, start);
}

/* Stops in a tagged value of `size` bytes, or at its end `p` if it is complete. */
static Py_NO_INLINE Place tagged_failed(Reader *r, Place p, Place start, uint32_t size, Py_ssize_t step) {
    if (p == NULL) return field_failed(r, r->at, step);
    trace_tag(r->fault, AFTER_TAGGED, start - r->start, size, step);
    return back(r, p);
}

/* Returns the 8 hexadecimal digits of an int, computed in parallel, as bytes from the highest to the lowest. */
static inline uint64_t hex_digits(uint32_t value) {
    uint64_t digits = (uint64_t)(value >> 16) << 32 | (value & 0xFFFF);
    digits = (digits & 0xFF000000FF00) << 8 | (digits & 0xFF000000FF);
    digits = (digits & 0xF000F000F000F0) << 4 | (digits & 0xF000F000F000F);
    uint64_t letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
    return digits + 0x3030303030303030 + letters * ('a' - '0' - 10);
}

static inline void put_uuid(Column *column, int64_t index, Place raw) {
    unsigned char *text = column->data + column->end; /* reserved with the index */
    uint64_t second = hex_digits(load32(raw + 4)), third = hex_digits(load32(raw + 8));
    store64(text, hex_digits(load32(raw)));
    store32(text + 9, (uint32_t)(second >> 32));
    store32(text + 14, (uint32_t)second);
    store32(text + 19, (uint32_t)(third >> 32));
    store32(text + 24, (uint32_t)third);
    store64(text + 28, hex_digits(load32(raw + 12)));
    text[8] = text[13] = text[18] = text[23] = '-';
    column->offsets[index + 1] = (int32_t)(column->end += UUID_TEXT);
}

/* Puts a number, which may be smaller on the wire. */
static inline void put_number(Column *column, int64_t index, int64_t value) {
    if (column->width == 8)
        ((int64_t *)column->data)[index] = value;
    else if (column->width == 4)
        ((int32_t *)column->data)[index] = (int32_t)value;
    else if (column->width == 2)
        ((int16_t *)column->data)[index] = (int16_t)value;
    else
        column->data[index] = (unsigned char)value;
}

/* Puts the value of a fixed-size op; its bytes are known to be there. */
static inline void put_fixed(Column *column, int code, int64_t index, Place p) {
    if (code == OP_INT64 || code == OP_FLOAT64)
        ((uint64_t *)column->data)[index] = load64(p);
    else if (code == OP_INT32)
        ((uint32_t *)column->data)[index] = load32(p);
    else if (code == OP_INT16)
        ((uint16_t *)column->data)[index] = load16(p);
    else if (code == OP_BOOL)
        put_bit(column, index, *p != 0);
    else if (code == OP_UUID)
        put_uuid(column, index, p);
    else
        put_number(column, index, load_number(code, p));
}

/* Puts the value of a field that is not in the bytes. */
static Status put_initial(Table *table, const Op *op, int64_t index) {
    Column *column = table->columns + op->place;
    Status status = DONE;
    if (op->place == 0) return DONE;
    if (op->initial == Py_None) return put_null(table, column, index);
    if (op->code == OP_STRUCT) {
        for (const Op *field = op->empty->absent; field->label != OP_END && status == DONE; field++)
            status = put_initial(table, field, index);
    } else if (op->code == OP_ARRAY) {
        put_empty(column, index);
    } else {
        Place raw = (Place)PyBytes_AS_STRING(op->initial);
        if (FIXED_SIZE[op->code])
            put_fixed(column, op->code, index, raw);
        else
            status = put_text(table, column, index, raw, PyBytes_GET_SIZE(op->initial));
    }
    return status;
}

/* Puts null, if a column is wanted. */
static inline Place skip_null(Reader *r, Place p, int32_t column, int64_t index) {
    return column == 0 ? p : then(r, put_null(r->table, r->columns + column, index), p);
}

/* Reads a string, bytes or records. */
static inline Place read_sized(Reader *r, Place p, int code, int flags, int32_t column, int64_t index) {
    Py_ssize_t size;
    Place start = p;
    p = take_length(p, r->end, code, flags, &size);
    if (p == NULL) return back(r, start);
    if (size < 0) return skip_null(r, p, column, index);
    if (size > r->end - p || size > r->room || (code == OP_STRING && (size > MAX_STRING || !is_utf8(p, p + size))))
        return back(r, start);
    r->room -= size;
    return column == 0 ? p + size : then(r, put_text(r->table, r->columns + column, index, p, size), p + size);
}

static Place read_struct(Reader *r, Place p, const Struct *s, int64_t index);

/* Reads the elements of an array; the bytes that they take at least are known to be there. */
static Place read_items(Reader *r, Place p, const Op *op, int64_t count, int64_t first) {
    Py_ssize_t size = FIXED_SIZE[op->item_code];
    int32_t column = op->place == 0 ? 0 : op->place + 1;
    if (size) {
        for (int64_t i = 0; column != 0 && i < count; i++)
            put_fixed(r->columns + column, op->item_code, first + i, p + i * size);
        return p + count * size;
    }
    for (int64_t i = 0; i < count && p != NULL; i++) {
        p = op->item_code == OP_STRUCT ? read_struct(r, p, op->sub, first + i)
                                       : read_sized(r, p, op->item_code, op->item_flags, column, first + i);
        if (p == NULL) trace(&r->fault->trail, (Py_ssize_t)i);
    }
    return p;
}

static Place read_array(Reader *r, Place p, const Op *op, int64_t index) {
    Py_ssize_t count;
    int64_t first = 0;
    Place start = p;
    p = take_length(p, r->end, OP_ARRAY, op->flags, &count);
    if (p == NULL) return back(r, start);
    if (count < 0) return skip_null(r, p, op->place, index);
    if (count > (r->end - p) / op->size || count > r->elements) return back(r, start);
    r->elements -= count;
    if (op->place != 0) p = then(r, put_list(r->table, r->columns + op->place, index, count, &first), p);
    return p == NULL ? NULL : read_items(r, p, op, count, first);
}

/* Reads a value that is not of fixed size. */
static inline Place read_value(Reader *r, Place p, const Op *op, int64_t index) {
    int present = 1;
    Place start = p;
    if (op->code == OP_ARRAY) return read_array(r, p, op, index);
    if (op->code != OP_STRUCT) return read_sized(r, p, op->code, op->flags, op->place, index);
    if (op->flags & NULLABLE) p = take_marker(p, r->end, op->flags, &present);
    if (p == NULL) return back(r, start);
    return present ? read_struct(r, p, op->sub, index) : skip_null(r, p, op->place, index);
}

/* Reads a known tagged field, which must take exactly the bytes it declares. */
static inline Place read_tagged(Reader *r, Place p, const Struct *s, const Op *op, int64_t index, uint32_t size) {
    Place outer = r->end, start = p, stop = p + size;
    Py_ssize_t fixed = FIXED_SIZE[op->code];
    r->end = stop;
    if (fixed && size < fixed) {
        p = back(r, p);
    } else if (fixed) {
        if (op->place != 0) put_fixed(r->columns + op->place, op->code, index, p);
        p += fixed;
    } else {
        p = read_value(r, p, op, index);
    }
    if (p != stop) return tagged_failed(r, p, start, size, -1 - (op - s->tagged));
    r->end = outer;
    return stop;
}

/* Appends an unknown tag to the map at an index, whose end grows with each entry. */
static Place read_unknown_tag(Reader *r, Place p, const Struct *s, int64_t index, uint32_t tag, uint32_t size) {
    r->elements--;
    r->room -= size;
    if (s->unknown == 0) return p + size;
    Column *map = r->columns + s->unknown, *tags = map + 2, *contents = map + 3;
    int64_t entry = map->end;
    Status status = entry == MAX_OFFSET ? FULL : reserve(r->table, map + 1, entry + 1);
    if (status != DONE) return then(r, status, p);
    ((uint32_t *)tags->data)[entry] = tag;
    map->offsets[index + 1] = (int32_t)++map->end;
    return then(r, put_text(r->table, contents, entry, p, size), p + size);
}

/* Reads the tags of a section, and puts the defaults of the fields that are not among them. */
static inline Place read_tags(Reader *r, Place p, const Struct *s, int64_t index, uint32_t count) {
    const Op *next = s->tagged;
    int64_t last = -1;
    for (uint32_t left = count; left > 0 && p != NULL; left--) {
        Place start = p, size_at;
        int64_t before = last;
        uint32_t size = 0;
        p = take_tag(p, r->end, &last, &size_at, &size);
        if (p == NULL) return tag_failed(r, start, left, before);
        for (; next->label != OP_END && next->tag < last && p != NULL; next++)
            p = then(r, put_initial(r->table, next, index), p);
        if (p == NULL) return NULL;
        if (next->label != OP_END && next->tag == last)
            p = read_tagged(r, p, s, next++, index, size);
        else if (is_inactive(s, last) || r->elements < 1 || r->room < size)
            return tag_failed(r, start, left, before);
        else
            p = read_unknown_tag(r, p, s, index, (uint32_t)last, size);
    }
    for (; next->label != OP_END && p != NULL; next++)
        p = then(r, put_initial(r->table, next, index), p);
    return p;
}

static inline Place read_tag_section(Reader *r, Place p, const Struct *s, int64_t index) {
    uint32_t count = 0;
    Place start = p;
    if (s->flexible) p = take_uvarint(p, r->end, &count);
    if (p == NULL || count > MAX_TAGS || count > (r->end - p) / 2) return field_failed(r, start, TAG_SECTION);
    if (s->unknown == 0) return read_tags(r, p, s, index, count);
    Column *map = r->columns + s->unknown;
    int64_t first = map->end;
    put_empty(map, index);
    p = read_tags(r, p, s, index, count);
    if (p == NULL || map->end != first) return p;
    return then(r, mark_null(r->table, map, index), p);
}

static Place read_struct(Reader *r, Place p, const Struct *s, int64_t index) {
    const Op *op = s->ops;
    if (r->end - p < s->run) return field_failed(r, p, op->tag);
    for (; op->label != OP_END; op++) {
        if (op->code < FIXED_OPS) {
            put_fixed(r->columns + op->place, op->code, index, p);
            p += FIXED_SIZE[op->code];
        } else if (op->code == OP_SKIP) {
            p += op->size;
        } else {
            p = read_value(r, p, op, index);
            if (p == NULL) return field_failed(r, r->at, op->tag);
            if (r->end - p < op->run) return field_failed(r, p, op[1].tag);
        }
    }
    for (op = s->absent; op->label != OP_END && p != NULL; op++)
        p = then(r, put_initial(r->table, op, index), p);
    return p == NULL ? NULL : read_tag_section(r, p, s, index);
}

/* A run over some rows, and its destination. */
typedef struct Run {
    const Program *program;
    Status (*step)(struct Run *, int64_t row); /* the function for each row that is not null */
    Table table;
    Table faults;  /* one column, created for the first malformed row: fault locations, as stored by keep_fault */
    int64_t bad;   /* how many faults there are */
    Input *inputs; /* the input: a binary column; or the program's columns, followed by the forms' numbers */
    Py_buffer (*held)[MEMORIES]; /* their buffers */
    long long first, count;      /* `count` rows from `first` on */
    const Form *form;            /* of the row before */
    int prefix;                  /* whether each encoded row begins with the number of its form */
} Run;

#define FAULT_NUMBERS 7         /* of a fault, without its trail */
#define MOST_ROWS     (1 << 25) /* at once: as many UUIDs fit into one column */
_Static_assert((int64_t)MOST_ROWS *UUID_TEXT <= MAX_OFFSET, "offsets of so many rows have 32 bits");

/* Returns the form of a version prefix, often the form of the previous row; NULL if none matches. */
static inline const Form *find_form(Run *run, int64_t prefix) {
    const Form *form = run->program->forms, *end = form + run->program->form_count;
    if (run->form != NULL && run->form->prefix == prefix) return run->form;
    while (form < end && form->prefix != prefix)
        form++;
    return run->form = form == end ? NULL : form;
}

static const Column BYTES = {.kind = COLUMN_TEXT, .width = 1, .span = 1};

/* Stores the steps from the root to the fault of a row, followed by the other fields of the reference's FaultLocation;
 * an unknown position is -1. Returns MALFORMED on success. */
static Status keep_fault(Run *run, const Reader *r) {
    const Fault *fault = r->fault;
    Table *faults = &run->faults;
    int is_known = r->at != NULL && fault->trail.count <= MAX_TRAIL, count = 0;
    int64_t raw[MAX_TRAIL + FAULT_NUMBERS];
    for (int i = fault->trail.count; i > 0 && is_known; i--)
        raw[count++] = fault->trail.steps[i - 1];
    raw[count++] = is_known ? r->at - r->start : -1;
    raw[count++] = r->end - r->start;
    raw[count++] = r->elements;
    raw[count++] = r->room;
    raw[count++] = fault->kind;
    raw[count++] = fault->first;
    raw[count++] = fault->second;
    if (faults->columns == NULL) {
        PyEval_RestoreThread(run->table.thread);
        int failed = new_table(faults, &BYTES, run->program->allocate, 0);
        run->table.thread = PyEval_SaveThread();
        if (failed) return NO_MEMORY;
    }
    faults->thread = run->table.thread;
    Status status = reserve(faults, faults->columns, run->bad + 1);
    if (status == DONE) status = put_text(faults, faults->columns, run->bad++, (Place)raw, 8 * count);
    return status == DONE ? MALFORMED : status;
}

static Status decode_row(Run *run, int64_t row) {
    const Program *program = run->program;
    const Form *form = program->forms;
    int64_t start, size = range_at(run->inputs, place_of(run->inputs, run->first + row), &start);
    if (size < 0) return BROKEN;
    Place p = run->inputs->data + start, end = p + size;
    Fault fault;
    Reader r = {end, p, NULL, &fault, &run->table, run->table.columns, program->elements, program->room, MALFORMED};
    start_fault(&fault);
    if (program->prefixed) {
        form = size < 2 ? NULL : find_form(run, (int16_t)load16(p));
        p += 2;
    }
    if (form != NULL && !form->too_deep) {
        p = read_struct(&r, p, form->root, row);
        if (p == end) return DONE;
        if (p != NULL) r.at = p;
    }
    return r.status == MALFORMED ? keep_fault(run, &r) : r.status;
}

/* Processes rows until all are done or the columns are full; `*row` counts the processed rows. Bad rows become null. */
static Status do_rows(Run *run, int64_t *row) {
    Table *table = &run->table;
    Status status = DONE;
    for (; *row < run->count && status == DONE; ++*row) {
        int null = is_null(run->inputs, place_of(run->inputs, run->first + *row));
        if (!null) status = run->step(run, *row);
        if (status == NO_MEMORY || status == BROKEN) return status;
        if (status != DONE) take_back(table->columns, *row);
        if (status == FULL) return DONE;
        if (null || status == MALFORMED) status = put_null(table, table->columns, *row);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------------ 2 Encoding */

/* The source and the destination of encoded values. Functions that write take a spot `p` and return the spot after the
 * written bytes, or NULL on failure: the value is invalid for its field unless `status` is set. Refusing a row is
 * always safe: the Python implementation then encodes the row, or raises the error. */
typedef struct {
    const Input *inputs;
    Table *table;             /* of one column, the bytes */
    const unsigned char *end; /* of the reserved bytes */
    int64_t row, rows;        /* which row is written, of how many */
    Status status;
} Writer;

typedef unsigned char *Spot;

static Spot fail(Writer *w, Status status) {
    w->status = status;
    return NULL;
}

static inline int64_t distance(const Writer *w, Spot p) {
    return p - w->table->columns->data;
}

/* Reserves bytes, plus the average row size so far for each following row, but at most 8 times the current size. */
static Spot more_room(Writer *w, Spot p, int64_t size) {
    Column *bytes = w->table->columns;
    int64_t at = distance(w, p), room = at + size, most = bytes->room < MAX_OFFSET / 8 ? bytes->room * 8 : MAX_OFFSET;
    double likely = (double)room / (double)(w->row + 1) * (double)w->rows;
    if (room > bytes->room && likely > (double)room) room = likely < (double)most ? (int64_t)likely : most;
    Status status = reserve_text(w->table, bytes, room < at + size ? at + size : room);
    if (status != DONE) return fail(w, status);
    w->end = bytes->data + bytes->room;
    return bytes->data + at;
}

/* Reserves bytes. The written bytes may move; the returned spot is the new one. */
static inline Spot room_for(Writer *w, Spot p, int64_t size) {
    return w->end - p >= size ? p : more_room(w, p, size);
}

/* Maps a hexadecimal digit to 16 plus its value, and all other characters to 0. */
static const unsigned char HEX[256] = {['0'] = 16, 17, 18, 19, 20, 21,         22, 23, 24, 25, ['A'] = 26,
                                       27,         28, 29, 30, 31, ['a'] = 26, 27, 28, 29, 30, 31};

/* Writes a UUID from its 36 characters. */
static inline Spot write_uuid(Writer *w, Spot p, const Input *input, int64_t at) {
    static const unsigned char pairs[] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
    int64_t start, size = range_at(input, at, &start);
    const unsigned char *text = input->data + start;
    unsigned char all = 16;
    if (size < 0) return fail(w, BROKEN);
    if (size != UUID_TEXT) return NULL;
    for (int i = 0; i < 16; i++) {
        unsigned char high = HEX[text[pairs[i]]], low = HEX[text[pairs[i] + 1]];
        all &= high & low;
        p[i] = (unsigned char)(high << 4 | (low & 15));
    }
    return all == 0 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' ? NULL : p + 16;
}

/* Writes a value of a fixed-size op that needs a check. */
static Spot write_checked(Writer *w, Spot p, int code, const Input *input, int64_t at) {
    int64_t value;
    if (is_null(input, at)) return NULL;
    if (code == OP_UUID) return write_uuid(w, p, input, at);
    if (code == OP_BOOL) {
        *p = (unsigned char)bit_at(input->data, input->offset + at);
        return p + 1;
    }
    if (!number_at(input, at, &value) || value < LOWEST[code] || value > HIGHEST[code]) return NULL;
    return store_number(p, FIXED_SIZE[code], value);
}

/* Writes the value of a fixed-size op into reserved room. */
static inline Spot write_fixed(Writer *w, Spot p, int code, const Input *input, int64_t index) {
    int64_t at = place_of(input, index);
    int size = FIXED_SIZE[code];
    if (input->plain != size) return write_checked(w, p, code, input, at);
    if (size == 8)
        store64(p, bits_at(input, at, 8));
    else if (size == 4)
        store32(p, (uint32_t)bits_at(input, at, 4));
    else if (size == 2)
        store16(p, (uint16_t)bits_at(input, at, 2));
    else
        *p = (unsigned char)bits_at(input, at, 1);
    return p + size;
}

/* Writes the length of a null. */
static Spot write_null(Writer *w, Spot p, int code, int flags) {
    if (!(flags & NULLABLE)) return NULL;
    p = room_for(w, p, 4);
    return p == NULL ? NULL : store_length(p, code, flags, -1);
}

#define SHORT 16 /* texts of so many bytes are copied as one */

/* Writes a string, bytes or records. */
static inline Spot write_sized(Writer *w, Spot p, int code, int flags, const Input *input, int64_t index) {
    int64_t at = place_of(input, index), start, size;
    if (is_null(input, at)) return write_null(w, p, code, flags);
    size = range_at(input, at, &start);
    if (size < 0) return fail(w, BROKEN);
    const unsigned char *content = input->data + start;
    if (code == OP_STRING ? size > MAX_STRING || !is_utf8(content, content + size) : size > MAX_LENGTH) return NULL;
    p = room_for(w, p, 5 + size + SHORT);
    if (p == NULL) return NULL;
    p = store_length(p, code, flags, size);
    if (size <= SHORT && input->limit - start >= SHORT)
        memcpy(p, content, SHORT);
    else
        memcpy(p, content, (size_t)size);
    return p + size;
}

static Spot write_struct(Writer *w, Spot p, const Struct *s, int64_t index);

static Spot write_array(Writer *w, Spot p, const Op *op, int64_t index) {
    const Input *list = w->inputs + op->place, *items = list + 1;
    int64_t at = place_of(list, index), first, count;
    int fixed = FIXED_SIZE[op->item_code];
    if (is_null(list, at)) return write_null(w, p, OP_ARRAY, op->flags);
    count = range_at(list, at, &first);
    if (count < 0) return fail(w, BROKEN);
    if (count > MAX_LENGTH) return NULL;
    p = room_for(w, p, 5 + count * fixed);
    if (p == NULL) return NULL;
    p = store_length(p, OP_ARRAY, op->flags, count);
    for (int64_t i = first; i < first + count && p != NULL; i++)
        if (fixed)
            p = write_fixed(w, p, op->item_code, items, i);
        else if (op->item_code != OP_STRUCT)
            p = write_sized(w, p, op->item_code, op->item_flags, items, i);
        else
            p = is_null(items, place_of(items, i)) ? NULL : write_struct(w, p, op->sub, i);
    return p;
}

/* Writes a value that is not of fixed size. */
static inline Spot write_value(Writer *w, Spot p, const Op *op, int64_t index) {
    const Input *input = w->inputs + op->place;
    if (op->code == OP_ARRAY) return write_array(w, p, op, index);
    if (op->code != OP_STRUCT) return write_sized(w, p, op->code, op->flags, input, index);
    if (is_null(input, place_of(input, index))) return write_null(w, p, OP_STRUCT, op->flags);
    if (op->flags & NULLABLE) {
        p = room_for(w, p, 1);
        if (p == NULL) return NULL;
        *p++ = 1; /* the marker, an int8 or a varint */
    }
    return write_struct(w, p, op->sub, place_of(input, index));
}

/* Returns whether written bytes equal a default of fixed size; floats are compared as numbers. */
static Py_NO_INLINE int is_same(const Op *op, const unsigned char *raw) {
    if (op->initial == Py_None) return 0;
    const unsigned char *expected = (const unsigned char *)PyBytes_AS_STRING(op->initial);
    if (op->code == OP_UUID) return memcmp(raw, expected, 16) == 0;
    if (op->code != OP_FLOAT64) return memcmp(raw, expected, FIXED_SIZE[op->code]) == 0;
    return PyFloat_Unpack8((const char *)raw, 0) == PyFloat_Unpack8((const char *)expected, 0);
}

/* Returns whether a value is the default of its field. The only default struct is the one with all defaults. */
static int is_default(Writer *w, const Op *op, int64_t index) {
    const Input *input = w->inputs + op->place;
    int64_t at = place_of(input, index), start, size;
    unsigned char raw[16];
    int null = is_null(input, at);
    if (input->kind == COLUMN_LIST && input->width < 0) return null || range_at(input, at, &start) == 0;
    if (null || op->initial == Py_None) return null == (op->initial == Py_None);
    if (op->code == OP_ARRAY) return range_at(input, at, &start) == 0;
    if (op->code == OP_STRUCT) {
        for (const Op *field = op->empty->absent; field->label != OP_END; field++)
            if (!is_default(w, field, index & input->mask)) return 0;
        return 1;
    }
    if (FIXED_SIZE[op->code]) return write_fixed(w, raw, op->code, input, index) != NULL && is_same(op, raw);
    size = range_at(input, at, &start);
    return size == PyBytes_GET_SIZE(op->initial) &&
           memcmp(input->data + start, PyBytes_AS_STRING(op->initial), (size_t)size) == 0;
}

/* Writes a varint into the byte reserved `at` bytes from the start; a longer varint moves the following bytes up. */
static inline Spot fill_in(Writer *w, Spot p, int64_t at, int64_t value) {
    if (value > 0x7F) p = room_for(w, p, 4);
    if (p == NULL || value > 0x7F)
        return p == NULL ? NULL : store_before(w->table->columns->data + at, p, (uint32_t)value);
    w->table->columns->data[at] = (unsigned char)value;
    return p;
}

/* Writes a tagged field, and counts it, unless it has its default. */
static Spot write_tagged(Writer *w, Spot p, const Op *op, int64_t index, int64_t *known) {
    int fixed = FIXED_SIZE[op->code];
    if (!fixed && is_default(w, op, index)) return p;
    p = room_for(w, p, 5 + 1 + 16);
    if (p == NULL) return NULL;
    Spot start = p;
    p = store_varint(p, op->tag);
    int64_t at = distance(w, p);
    *p++ = (unsigned char)fixed;
    p = fixed ? write_fixed(w, p, op->code, w->inputs + op->place, index) : write_value(w, p, op, index);
    if (p == NULL) return NULL;
    if (fixed && is_same(op, p - fixed)) return start;
    ++*known;
    return fixed ? p : fill_in(w, p, at, distance(w, p) - at - 1);
}

/* Writes the entries of a map of unknown tags, which must ascend. */
static Spot write_unknown_tags(Writer *w, Spot p, const Struct *s, int64_t first, int64_t count) {
    const Input *tags = w->inputs + s->unknown + 2, *contents = tags + 1;
    int64_t tag, last = -1, start;
    for (int64_t i = first; i < first + count; i++, last = tag) {
        int64_t at = place_of(tags, i);
        if (is_null(tags, at) || !number_at(tags, at, &tag) || tag <= last || tag > MAX_TAG || find_tag(s, tag) ||
            is_inactive(s, tag))
            return NULL;
        at = place_of(contents, i);
        if (is_null(contents, at)) return NULL;
        int64_t size = range_at(contents, at, &start);
        if (size < 0) return fail(w, BROKEN);
        p = room_for(w, p, 10 + size);
        if (p == NULL) return NULL;
        p = store_varint(store_varint(p, (uint64_t)tag), (uint64_t)size);
        if (size > 0) memcpy(p, contents->data + start, (size_t)size);
        p += size;
    }
    return p;
}

static Spot write_tags(Writer *w, Spot p, const Struct *s, int64_t index) {
    const Input *map = w->inputs + s->unknown;
    int64_t first = 0, unknown = 0, known = 0, at = place_of(map, index);
    if (s->unknown != 0 && !is_null(map, at)) unknown = range_at(map, at, &first);
    if (unknown < 0) return fail(w, BROKEN);
    if (!s->flexible) return unknown == 0 ? p : NULL;
    p = room_for(w, p, 1);
    if (p == NULL) return NULL;
    int64_t start = distance(w, p++);
    for (const Op *op = s->tagged; op->label != OP_END && p != NULL; op++)
        p = write_tagged(w, p, op, index, &known);
    if (p == NULL || known + unknown > MAX_TAGS) return NULL;
    p = write_unknown_tags(w, p, s, first, unknown);
    return p == NULL ? NULL : fill_in(w, p, start, known + unknown);
}

static Spot write_struct(Writer *w, Spot p, const Struct *s, int64_t index) {
    p = room_for(w, p, s->run);
    for (const Op *op = s->ops; op->label != OP_END && p != NULL; op++) {
        if (op->code < FIXED_OPS) {
            p = write_fixed(w, p, op->code, w->inputs + op->place, index);
        } else {
            p = write_value(w, p, op, index);
            if (p != NULL) p = room_for(w, p, op->run);
        }
    }
    for (const Op *op = s->absent; op->label != OP_END && p != NULL; op++)
        if (!op->ignorable && !is_default(w, op, index)) return NULL;
    return p == NULL ? NULL : write_tags(w, p, s, index);
}

/* Returns the form that a row is written in; NULL without one. */
static inline const Form *form_of(Run *run, int64_t index) {
    const Input *numbers = run->inputs + run->program->shape->span;
    int64_t at = place_of(numbers, index), number;
    if (run->form != NULL && numbers->mask == 0) return run->form;
    return is_null(numbers, at) || !number_at(numbers, at, &number) ? NULL : find_form(run, number);
}

static Status encode_row(Run *run, int64_t row) {
    Column *bytes = run->table.columns;
    Writer w = {run->inputs, &run->table, bytes->data + bytes->room, row, run->count, MALFORMED};
    const Form *form = form_of(run, run->first + row);
    if (form == NULL || run->program->selective) return MALFORMED;
    Spot p = room_for(&w, bytes->data + bytes->end, 2);
    if (p != NULL && run->prefix) {
        store16(p, (uint16_t)form->prefix);
        p += 2;
    }
    if (p != NULL) p = write_struct(&w, p, form->root, place_of(run->inputs, run->first + row));
    if (p == NULL) return w.status;
    bytes->offsets[row + 1] = (int32_t)(bytes->end = distance(&w, p));
    return DONE;
}

/* --------------------------------------------------------------------------------------- 3 The Program type */

/* Program(columns, structs, forms, prefixed, elements, room, allocate): native.py creates programs. */
static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *columns, *structs, *forms;
    Program *self = (Program *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    int failed = !PyArg_ParseTuple(args, "O!O!O!pLLO", &PyTuple_Type, &columns, &PyTuple_Type, &structs, &PyTuple_Type,
                                   &forms, &self->prefixed, &self->elements, &self->room, &self->allocate);
    Py_XINCREF(self->allocate);
    if (failed || check_budget(self->elements, self->room) < 0 || load_columns(self, columns) < 0 ||
        load_structs(self, structs) < 0 || load_forms(self, forms) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyObject *raise_status(Status status) {
    if (status == NO_MEMORY) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    return PyErr_Format(PyExc_ValueError, "the offsets of the rows are not ascending or not within the data");
}

/* Processes the rows without the GIL, and returns the columns of the processed rows. */
static PyObject *do_run(Run *run, const Column *shape) {
    int64_t done = 0;
    if (run->count > MOST_ROWS) run->count = MOST_ROWS;
    if (new_table(&run->table, shape, run->program->allocate, run->count) < 0) return NULL;
    run->table.thread = PyEval_SaveThread();
    Status status = do_rows(run, &done);
    PyEval_RestoreThread(run->table.thread);
    if (status == DONE) return finish_table(&run->table, done);
    free_table(&run->table);
    return raise_status(status);
}

/* Sets the element limits of lists; -1 with an exception if a field has fewer values than its struct. */
static int join_inputs(const Program *self, Input *inputs) {
    for (int32_t i = 1; i < self->shape->span; i++) {
        Input *above = &inputs[self->parents[i]];
        if (above->kind == COLUMN_LIST)
            above->limit = inputs[i].length;
        else if (inputs[i].mask && inputs[i].length < above->length)
            return refuse_input();
    }
    return 0;
}

/* Loads the inputs of a run, one for each column of `from`; the numbers of the forms may be NULL. */
static int load_inputs(Run *run, const Column *from, PyObject *specs, PyObject *numbers) {
    static const Column number = {.kind = COLUMN_FIXED};
    int32_t count = from->span;
    Input *inputs = run->inputs;
    if (PyTuple_GET_SIZE(specs) != count) return refuse_input();
    for (int32_t i = 0; i < count; i++)
        if (load_input(&inputs[i], run->held[i], &from[i], PyTuple_GET_ITEM(specs, i)) < 0) return -1;
    if (run->first < 0 || run->count < 0 || run->first > inputs->length - run->count) return refuse_input();
    if (numbers == NULL) return 0;
    if (load_input(&inputs[count], run->held[count], &number, numbers) < 0 || join_inputs(run->program, inputs) < 0)
        return -1;
    return inputs[count].mask && inputs[count].length < inputs->length ? refuse_input() : 0;
}

/* Loads the inputs of a run and does it; the numbers of the forms may be NULL. */
static PyObject *load_and_run(Run *run, const Column *from, PyObject *specs, PyObject *numbers, const Column *to) {
    PyObject *result = NULL;
    run->inputs = new_items(from->span, sizeof(Input));
    run->held = new_items(from->span, sizeof(*run->held));
    if (run->inputs != NULL && run->held != NULL && load_inputs(run, from, specs, numbers) == 0)
        result = do_run(run, to);
    for (int32_t i = 0; run->held != NULL && i <= from->span; i++)
        for (int which = 0; which < MEMORIES; which++)
            PyBuffer_Release(&run->held[i][which]);
    PyMem_Free(run->held);
    PyMem_Free(run->inputs);
    return result;
}

/* decode((column,), first, count): a binary column, and which of its rows. */
static PyObject *program_decode(Program *self, PyObject *args) {
    Run run = {.program = self, .step = decode_row};
    PyObject *specs;
    if (!PyArg_ParseTuple(args, "O!LL:decode", &PyTuple_Type, &specs, &run.first, &run.count)) return NULL;
    PyObject *columns = load_and_run(&run, &BYTES, specs, NULL, self->shape);
    if (columns != NULL && run.faults.columns != NULL)
        return Py_BuildValue("(NN)", columns, finish_table(&run.faults, run.bad));
    free_table(&run.faults);
    return columns == NULL ? NULL : Py_BuildValue("(N[])", columns);
}

/* encode(columns, first, count, numbers, prefix): all columns of the program, and the number of each row's form. */
static PyObject *program_encode(Program *self, PyObject *args) {
    Run run = {.program = self, .step = encode_row};
    PyObject *specs, *numbers;
    if (!PyArg_ParseTuple(args, "O!LLOp:encode", &PyTuple_Type, &specs, &run.first, &run.count, &numbers, &run.prefix))
        return NULL;
    return load_and_run(&run, self->shape, specs, numbers, &BYTES);
}

static PyMethodDef program_methods[] = {
    {"decode", (PyCFunction)program_decode, METH_VARARGS,
     "Decode rows of a binary column; return columns of as many as fit, with null for malformed rows, and the column "
     "of "
     "their fault locations."},
    {"encode", (PyCFunction)program_encode, METH_VARARGS,
     "Encode rows of columns; return the column of bytes of as many as fit, with null for rows that are refused."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "Decodes binary columns into columns and encodes these, by the plans of a message."},
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

/* ------------------------------------------------------------------------------------------------- 4 Records */

/* The columns of each part, in preorder. Columns of batch header fields have an op, and a position in the header. */
static const struct {
    unsigned char kind, width, span, op, at;
} PART_COLUMNS[RECORD_COLUMN_COUNT][4] = {
    [RECORD_COLUMN_OFFSET] = {{COLUMN_FIXED, 8, 1}},
    [RECORD_COLUMN_TIMESTAMP] = {{COLUMN_FIXED, 8, 1}},
    [RECORD_COLUMN_KEY] = {{COLUMN_TEXT, 0, 1}},
    [RECORD_COLUMN_VALUE] = {{COLUMN_TEXT, 0, 1}},
    [RECORD_COLUMN_HEADERS] = {{COLUMN_LIST, 0, 4}, {COLUMN_STRUCT, 0, 3}, {COLUMN_TEXT, 0, 1}, {COLUMN_TEXT, 0, 1}},
    [RECORD_COLUMN_POSITION] = {{COLUMN_FIXED, 8, 1}},
    [RECORD_COLUMN_BASE_OFFSET] = {{COLUMN_FIXED, 8, 1, OP_INT64, BASE_OFFSET_AT}},
    [RECORD_COLUMN_SIZE] = {{COLUMN_FIXED, 4, 1, OP_INT32, SIZE_AT}},
    [RECORD_COLUMN_LEADER_EPOCH] = {{COLUMN_FIXED, 4, 1, OP_INT32, LEADER_EPOCH_AT}},
    [RECORD_COLUMN_MAGIC] = {{COLUMN_FIXED, 1, 1, OP_INT8, MAGIC_AT}},
    [RECORD_COLUMN_ATTRIBUTES] = {{COLUMN_FIXED, 2, 1, OP_INT16, ATTRIBUTES_AT}},
    [RECORD_COLUMN_PRODUCER_ID] = {{COLUMN_FIXED, 8, 1, OP_INT64, PRODUCER_ID_AT}},
    [RECORD_COLUMN_PRODUCER_EPOCH] = {{COLUMN_FIXED, 2, 1, OP_INT16, PRODUCER_EPOCH_AT}},
    [RECORD_COLUMN_BASE_SEQUENCE] = {{COLUMN_FIXED, 4, 1, OP_INT32, BASE_SEQUENCE_AT}},
};

_Static_assert(sizeof(long long) == sizeof(int64_t), "numbers of Python's arguments are those of columns");
_Static_assert(COUNT_AT + sizeof(int32_t) == HEADER_SIZE, "each field is in the header");

typedef struct {
    PyObject_HEAD
    int32_t wanted[RECORD_COLUMN_COUNT]; /* the index of each column of records, 0 if unwanted */
    Column shape[1 + RECORD_COLUMN_COUNT + 3];
    PyObject *allocate;
    Table table;          /* its columns are NULL before they are made */
    int unread;           /* only headers are read, and these say how many rows there are */
    int busy;             /* a thread is appending */
    long long rows, size; /* the size counts the bytes of the records, without headers */
} RecordColumns;

/* A run of consecutive batches, and the limits at which to stop. */
typedef struct {
    PyObject *data;       /* the owner of the bytes; borrowed */
    Place start;          /* the byte at position 0 */
    Py_ssize_t at, end;   /* of the batches not added yet */
    long long shift;      /* added to a place to get the position */
    long long elements;   /* records and headers that a batch may have */
    long long rows, size; /* at which the columns are full */
    Py_buffer body;       /* the records of the batch at `at` if they are compressed; its obj is NULL for none */
} Batches;

/* A batch: its header, and the place of its records. */
typedef struct {
    Place header, p, end;
    int64_t count, position;
} Source;

static inline Status put_payload(Table *table, int32_t column, int64_t index, Place content, int32_t size) {
    Column *target = table->columns + column;
    return content == NULL ? put_null(table, target, index) : put_text(table, target, index, content, size);
}

/* Puts the headers of a record; a name that is not UTF-8 has no place in a column of strings. */
static Status put_headers(Table *table, int32_t column, int64_t index, const WalkRecord *record) {
    Place p = record->headers;
    int64_t first = 0;
    if (column == 0) return walk_headers(record) < 0 ? MALFORMED : DONE;
    Status status = put_list(table, table->columns + column, index, record->header_count, &first);
    for (int64_t i = first; i < first + record->header_count && status == DONE; i++) {
        WalkHeader header;
        p = walk_header(p, record->end, &header);
        if (p == NULL || !is_utf8(header.name, header.name + header.name_size)) return MALFORMED;
        status = put_payload(table, column + 2, i, header.name, header.name_size);
        if (status == DONE) status = put_payload(table, column + 3, i, header.value, header.value_size);
    }
    return status == DONE && p != record->end ? MALFORMED : status;
}

/* Adds to one of a batch's numbers; the highest bit of `beyond` is set if a sum needs more than 64 bits. */
static inline int64_t add_number(int64_t base, int64_t delta, uint64_t *beyond) {
    uint64_t sum = (uint64_t)base + (uint64_t)delta;
    *beyond |= ((uint64_t)base ^ sum) & ((uint64_t)delta ^ sum);
    return (int64_t)sum;
}

/* Reserves the maximum memory that a batch can need; values mostly need the largest part. */
static Status reserve_batch(RecordColumns *self, const Source *source) {
    Column *values = self->table.columns + self->wanted[RECORD_COLUMN_VALUE];
    Status status = reserve(&self->table, self->table.columns, self->rows + source->count);
    if (status != DONE || self->wanted[RECORD_COLUMN_VALUE] == 0) return status;
    int64_t room = values->end + (source->end - source->p);
    return reserve_text(&self->table, values, room < MAX_OFFSET ? room : MAX_OFFSET);
}

/* Returns the destination of the first record's numbers; NULL if the column is not wanted. */
static void *first_number(const RecordColumns *self, int part) {
    const Column *column = self->table.columns + self->wanted[part];
    return self->wanted[part] == 0 ? NULL : column->data + self->rows * column->width;
}

/* Puts the fields of a batch's header and its position, which each of its records has. */
static void put_fields(RecordColumns *self, const Source *source) {
    for (int part = RECORD_COLUMN_POSITION; part < RECORD_COLUMN_COUNT; part++) {
        Column *column = self->table.columns + self->wanted[part];
        for (int64_t i = self->rows; self->wanted[part] && i < self->rows + source->count; i++)
            if (part == RECORD_COLUMN_POSITION)
                ((int64_t *)column->data)[i] = source->position;
            else
                put_fixed(column, PART_COLUMNS[part]->op, i, source->header + PART_COLUMNS[part]->at);
    }
}

/* Puts records for which the numbers' places are reserved. */
static Status put_reserved(RecordColumns *self, const Source *source) {
    const int32_t *wanted = self->wanted;
    int64_t *offsets = first_number(self, RECORD_COLUMN_OFFSET),
            *timestamps = first_number(self, RECORD_COLUMN_TIMESTAMP);
    int appended = load16(source->header + ATTRIBUTES_AT) & LOG_APPEND_TIME;
    int64_t times = appended ? 0 : -1; /* which bits of a record's own time count */
    int64_t base_offset = (int64_t)load64(source->header + BASE_OFFSET_AT);
    int64_t base_time = (int64_t)load64(source->header + (appended ? MAX_TIMESTAMP_AT : BASE_TIMESTAMP_AT));
    uint64_t beyond = 0;
    Place p = source->p;
    for (int64_t i = 0; i < source->count; i++) {
        Status status = DONE;
        WalkRecord record;
        p = walk_record(p, source->end, &record);
        if (p == NULL) return MALFORMED;
        if (offsets != NULL) offsets[i] = add_number(base_offset, record.offset_delta, &beyond);
        if (timestamps != NULL) timestamps[i] = add_number(base_time, record.timestamp_delta & times, &beyond);
        if (wanted[RECORD_COLUMN_KEY])
            status = put_payload(&self->table, wanted[RECORD_COLUMN_KEY], self->rows + i, record.key, record.key_size);
        if (wanted[RECORD_COLUMN_VALUE] && status == DONE)
            status =
                put_payload(&self->table, wanted[RECORD_COLUMN_VALUE], self->rows + i, record.value, record.value_size);
        if ((wanted[RECORD_COLUMN_HEADERS] || record.header_count) && status == DONE)
            status = put_headers(&self->table, wanted[RECORD_COLUMN_HEADERS], self->rows + i, &record);
        if (status != DONE) return status;
    }
    return p != source->end || beyond >> 63 ? MALFORMED : DONE;
}

/* Adds a complete batch or nothing. An unread buffer trusts the record count in the header of a compressed batch. */
static Status put_batch(RecordColumns *self, const Source *source, int compressed, int64_t elements) {
    int64_t most = self->unread && compressed ? INT32_MAX : (source->end - source->p) / WALK_SMALLEST;
    if (source->count < 0 || source->count > elements || source->count > most) return MALFORMED;
    if (!self->unread && walk_exceeds(source->p, source->end, source->count, elements)) return MALFORMED;
    Status status = reserve_batch(self, source);
    if (status == DONE && !self->unread) status = put_reserved(self, source);
    if (status == DONE) put_fields(self, source);
    if (status != DONE) return take_back(self->table.columns, self->rows), status;
    STORE_LOOSE(self->rows, self->rows + source->count);
    STORE_LOOSE(self->size, self->size + (source->end - source->p));
    return DONE;
}

/* The size of the next batch; 0 if there is none, or the columns are full. */
static Py_ssize_t next_batch(const RecordColumns *self, const Batches *run) {
    if (self->rows >= run->rows || self->size >= run->size) return 0;
    return walk_batch(run->start + run->at, run->end - run->at);
}

/* Returns whether the records of a batch are compressed and must be read. */
static int is_packed(const RecordColumns *self, Place header) {
    return !self->unread && load16(header + ATTRIBUTES_AT) & CODEC_MASK && load32(header + COUNT_AT);
}

/* Puts batches without the GIL, up to a compressed one that is not the first. */
static Status put_run(RecordColumns *self, Batches *run) {
    Py_ssize_t size;
    Status status = DONE;
    int first = 1;
    for (; status == DONE && (size = next_batch(self, run)) != 0; first = 0) {
        Place header = run->start + run->at;
        int packed = is_packed(self, header);
        if (packed && !first) break;
        Source source = {header, header + HEADER_SIZE, header + size, (int32_t)load32(header + COUNT_AT),
                         (int64_t)((uint64_t)run->at + (uint64_t)run->shift)};
        if (packed) {
            source.p = run->body.buf;
            source.end = source.p + run->body.len;
        } else if (source.count == 0) {
            source.end = source.p; /* the bytes after the header are ignored */
        }
        status = put_batch(self, &source, load16(header + ATTRIBUTES_AT) & CODEC_MASK, run->elements);
        if (status == DONE) run->at += size;
    }
    return status;
}

/* Calls `unpack` for the records of the next batch if they are compressed. */
static Status unpack_next(RecordColumns *self, Batches *run, PyObject *unpack) {
    Place header = run->start + run->at;
    if (!is_packed(self, header)) return DONE;
    Py_ssize_t size = walk_batch(header, run->end - run->at) - HEADER_SIZE;
    PyObject *view = view_of(run->data, run->at + HEADER_SIZE, size), *found = NULL;
    if (view != NULL) found = PyObject_CallFunction(unpack, "iO", load16(header + ATTRIBUTES_AT) & CODEC_MASK, view);
    Py_XDECREF(view);
    Status status = found == NULL ? NO_MEMORY : found == Py_None ? MALFORMED : DONE;
    if (status == DONE && PyObject_GetBuffer(found, &run->body, PyBUF_SIMPLE) < 0) status = NO_MEMORY;
    Py_XDECREF(found);
    return status;
}

/* Adds batches; returns the status at the end. */
static Status append_run(RecordColumns *self, Batches *run, PyObject *unpack) {
    Status status = DONE;
    while (status == DONE && next_batch(self, run) != 0) {
        status = unpack_next(self, run, unpack);
        if (status == DONE) {
            self->table.thread = PyEval_SaveThread();
            status = put_run(self, run);
            PyEval_RestoreThread(self->table.thread);
        }
        PyBuffer_Release(&run->body);
    }
    return status;
}

/* Acquires the table, and creates it if necessary; -1 with an exception if that fails or another caller holds it. Other
 * threads and foreign code can run until `leave_table`, so it can be acquired only once. */
static int take_table(RecordColumns *self) {
    if (SET_FLAG(self->busy)) return refuse(PyExc_RuntimeError, "another thread is appending");
    if (self->table.columns != NULL || new_table(&self->table, self->shape, self->allocate, 0) == 0) return 0;
    STORE_RELEASE(self->busy, 0);
    return -1;
}

static void leave_table(RecordColumns *self) {
    STORE_RELEASE(self->busy, 0);
}

/* append(data, at, end, shift, elements, rows, size, unpack). */
static PyObject *records_append(RecordColumns *self, PyObject *args) {
    Py_buffer data;
    PyObject *unpack;
    Status status = NO_MEMORY;
    Batches run = {.at = 0};
    if (!PyArg_ParseTuple(args, "y*nnLLLLO:append", &data, &run.at, &run.end, &run.shift, &run.elements, &run.rows,
                          &run.size, &unpack))
        return NULL;
    run.data = data.obj;
    run.start = data.buf;
    if (run.at < 0 || run.end < run.at || run.end > data.len)
        PyErr_SetString(PyExc_ValueError, "the batches are not within the buffer");
    else if (take_table(self) == 0) {
        status = append_run(self, &run, unpack);
        leave_table(self);
    }
    PyBuffer_Release(&data);
    return status == NO_MEMORY ? raise_status(status) : PyLong_FromSsize_t(run.at);
}

static PyObject *records_finish(RecordColumns *self, PyObject *Py_UNUSED(unused)) {
    if (take_table(self) < 0) return NULL;
    Table full = self->table;
    int64_t rows = self->rows;
    memset(&self->table, 0, sizeof(Table));
    STORE_LOOSE(self->rows, 0);
    STORE_LOOSE(self->size, 0);
    leave_table(self);
    return finish_table(&full, rows);
}

/* Adds the columns of a part, given by its number, to the shape. */
static int add_part(RecordColumns *self, PyObject *number) {
    long part = PyLong_AsLong(number);
    if (part == -1 && PyErr_Occurred()) return -1;
    if (part < 0 || part >= RECORD_COLUMN_COUNT || self->wanted[part] != 0)
        return refuse(PyExc_ValueError, "records have no further column of this number");
    int32_t first = self->wanted[part] = self->shape[0].span;
    self->shape[0].span += PART_COLUMNS[part][0].span;
    for (int i = 0; i < PART_COLUMNS[part][0].span; i++)
        self->shape[first + i] = (Column){.kind = PART_COLUMNS[part][i].kind,
                                          .width = PART_COLUMNS[part][i].width,
                                          .span = PART_COLUMNS[part][i].span};
    return 0;
}

/* RecordColumns(numbers, allocate, unread). */
static PyObject *records_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *numbers;
    RecordColumns *self = (RecordColumns *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    int failed = !PyArg_ParseTuple(args, "O!Op", &PyTuple_Type, &numbers, &self->allocate, &self->unread);
    Py_XINCREF(self->allocate);
    self->shape[0] = (Column){.kind = COLUMN_STRUCT, .span = 1};
    for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(numbers); i++)
        failed = add_part(self, PyTuple_GET_ITEM(numbers, i));
    if (failed) Py_CLEAR(self);
    return (PyObject *)self;
}

static void records_dealloc(RecordColumns *self) {
    if (self->table.columns != NULL) free_table(&self->table);
    Py_XDECREF(self->allocate);
    free_instance((PyObject *)self);
}

static PyMethodDef records_methods[] = {
    {"append", (PyCFunction)records_append, METH_VARARGS,
     "Add the records of batches after each other; return where one starts that was not added."},
    {"finish", (PyCFunction)records_finish, METH_NOARGS, "Return the columns, and start anew."},
    {NULL, NULL, 0, NULL},
};

/* Reads a number that another thread may be changing. */
static PyObject *records_number(RecordColumns *self, void *rows) {
    return PyLong_FromLongLong(rows != NULL ? LOAD_LOOSE(self->rows) : LOAD_LOOSE(self->size));
}

static PyGetSetDef records_numbers[] = {
    {"rows", (getter)records_number, NULL, NULL, "rows"},
    {"size", (getter)records_number, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot records_slots[] = {
    {Py_tp_doc, "Collects the records of batches, batch after batch, as columns."},
    {Py_tp_new, records_new},
    {Py_tp_dealloc, records_dealloc},
    {Py_tp_methods, records_methods},
    {Py_tp_getset, records_numbers},
    {0, NULL},
};

int columns_add(PyObject *module) {
    if (!core_add_type(module, CORE_NAME ".ColumnProgram", sizeof(Program), 0, program_slots, NULL)) return -1;
    return core_add_type(module, CORE_NAME ".RecordColumns", sizeof(RecordColumns), 0, records_slots, NULL) ? 0 : -1;
}
