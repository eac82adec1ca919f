/* Columns in C: from bytes into Arrow's buffers, without a Python object for each row and without the GIL.
 *
 * It owns the walk over binary columns by the codec's plans (native.py lowers them to tuples), and the walk over the
 * records of batches. Both put values into the columns of column.h. It does not know Arrow's types or arrays: it returns
 * buffers, and native.py makes arrays of them. It accepts and refuses the same bytes as the other forms, and does not
 * explain a refusal. A malformed row becomes null, and its number is reported. A malformed batch adds nothing.
 *
 * Sections: 1 decoding, 2 the Program type, 3 records.
 *
 * Conventions. Functions returning Status touch no Python object and need no GIL; others give -1 or NULL with an
 * exception set. Programs never change once made, so any number of threads may run one. Every read is preceded by a
 * check of the form `end - p < n`, which cannot overflow.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "bytes.h"
#include "column.h"
#include "core.h"
#include "lengths.h"
#include "ops.h"
#include "program.h"
#include "utf8.h"
#include "walk.h"

/* ------------------------------------------------------------------------------------------------ 1 Decoding */

/* Where values come from and go to. The functions that read take a place `p` and return the one behind what they read;
 * NULL where something is wrong, which is that the bytes are malformed unless `status` was set. */
typedef struct {
    const unsigned char *end; /* shrinks to the end of a tagged field while that is read */
    Table *table;
    Column *columns;        /* the table's */
    int64_t elements, room; /* what is left of the budget */
    Status status;
} Reader;

typedef const unsigned char *Place;

/* Goes on at a place unless something was wrong. */
static inline Place then(Reader *r, Status status, Place p) {
    if (status == DONE) return p;
    r->status = status;
    return NULL;
}

/* Returns the 8 hexadecimal digits of an int, all made at once, as bytes from the highest to the lowest. */
static inline uint64_t hex_digits(uint32_t value) {
    uint64_t digits = (uint64_t)(value >> 16) << 32 | (value & 0xFFFF);
    digits = (digits & 0xFF000000FF00) << 8 | (digits & 0xFF000000FF);
    digits = (digits & 0xF000F000F000F0) << 4 | (digits & 0xF000F000F000F);
    uint64_t letters = (digits + 0x0606060606060606) >> 4 & 0x0101010101010101;
    return digits + 0x3030303030303030 + letters * ('a' - '0' - 10);
}

static inline void put_uuid(Column *column, int64_t index, Place raw) {
    int32_t at = column->offsets[index];
    unsigned char *text = column->data + at; /* reserved with the index */
    uint64_t second = hex_digits(load32(raw + 4)), third = hex_digits(load32(raw + 8));
    store64(text, hex_digits(load32(raw)));
    store32(text + 9, (uint32_t)(second >> 32));
    store32(text + 14, (uint32_t)second);
    store32(text + 19, (uint32_t)(third >> 32));
    store32(text + 24, (uint32_t)third);
    store64(text + 28, hex_digits(load32(raw + 12)));
    text[8] = text[13] = text[18] = text[23] = '-';
    column->offsets[index + 1] = at + UUID_TEXT;
}

/* Puts the value of a fixed-size op; its bytes are known to be there. */
static inline void put_fixed(Column *column, int code, int64_t index, Place p) {
    switch (code) {
    case OP_BOOL:
        put_bit(column, index, *p != 0);
        break;
    case OP_INT8:
        column->data[index] = *p;
        break;
    case OP_INT16:
        ((uint16_t *)column->data)[index] = load16(p);
        break;
    case OP_UINT16:
        ((uint32_t *)column->data)[index] = load16(p);
        break;
    case OP_INT32:
        ((uint32_t *)column->data)[index] = load32(p);
        break;
    case OP_UINT32:
        ((uint64_t *)column->data)[index] = load32(p);
        break;
    case OP_UUID:
        put_uuid(column, index, p);
        break;
    default:
        ((uint64_t *)column->data)[index] = load64(p); /* int64 and float64 */
    }
}

/* Puts the value that a field has where it is not in the bytes. */
static Status put_constant(Table *table, const Constant *constant, int64_t index) {
    Column *column = table->columns + constant->column;
    Status status = DONE;
    if (constant->column == 0) return DONE;
    if (constant->null) return put_null(table, column, index);
    if (constant->sub != NULL) {
        for (Py_ssize_t i = 0; i < constant->sub->absent_count && status == DONE; i++)
            status = put_constant(table, &constant->sub->absent[i], index);
    } else if (constant->raw == NULL) {
        put_empty(column, index);
    } else {
        Place raw = (Place)PyBytes_AS_STRING(constant->raw);
        if (FIXED_SIZE[constant->code])
            put_fixed(column, constant->code, index, raw);
        else
            status = put_text(table, column, index, raw, PyBytes_GET_SIZE(constant->raw));
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
    p = take_length(p, r->end, code == OP_STRING ? 2 : 4, flags, &size);
    if (p == NULL) return NULL;
    if (size < 0) return skip_null(r, p, column, index);
    if (size > r->end - p || (r->room -= size) < 0) return NULL;
    if (code == OP_STRING && (size > MAX_STRING || !is_utf8(p, p + size))) return NULL;
    return column == 0 ? p + size : then(r, put_text(r->table, r->columns + column, index, p, size), p + size);
}

static Place read_struct(Reader *r, Place p, const Struct *s, int64_t index);

/* Reads the elements of an array; the bytes that they take at least are known to be there. */
static Place read_items(Reader *r, Place p, const Op *op, int64_t count, int64_t first) {
    Py_ssize_t size = FIXED_SIZE[op->item_code];
    int32_t column = op->column == 0 ? 0 : op->column + 1;
    if (size) {
        for (int64_t i = 0; column != 0 && i < count; i++)
            put_fixed(r->columns + column, op->item_code, first + i, p + i * size);
        return p + count * size;
    }
    for (int64_t i = first; i < first + count && p != NULL; i++)
        p = op->item_code == OP_STRUCT ? read_struct(r, p, op->sub, i)
                                       : read_sized(r, p, op->item_code, op->item_flags, column, i);
    return p;
}

static Place read_array(Reader *r, Place p, const Op *op, int64_t index) {
    Py_ssize_t count;
    int64_t first = 0;
    p = take_length(p, r->end, 4, op->flags, &count);
    if (p == NULL) return NULL;
    if (count < 0) return skip_null(r, p, op->column, index);
    if (count > (r->end - p) / op->size || (r->elements -= count) < 0) return NULL;
    if (op->column != 0) p = then(r, put_list(r->table, r->columns + op->column, index, count, &first), p);
    return p == NULL ? NULL : read_items(r, p, op, count, first);
}

static Place read_nullable_struct(Reader *r, Place p, const Op *op, int64_t index) {
    int present;
    if (op->flags & COMPACT) {
        uint32_t marker;
        p = take_uvarint(p, r->end, &marker);
        if (p == NULL) return NULL;
        present = (int32_t)marker > 0; /* as Kafka reads it */
    } else {
        if (p >= r->end) return NULL;
        present = (int8_t)*p++ >= 0;
    }
    return present ? read_struct(r, p, op->sub, index) : skip_null(r, p, op->column, index);
}

/* Reads a value that is not of fixed size. */
static inline Place read_value(Reader *r, Place p, const Op *op, int64_t index) {
    if (op->code == OP_ARRAY) return read_array(r, p, op, index);
    if (op->code != OP_STRUCT) return read_sized(r, p, op->code, op->flags, op->column, index);
    return op->flags & NULLABLE ? read_nullable_struct(r, p, op, index) : read_struct(r, p, op->sub, index);
}

/* Reads a known tagged field, which must take exactly the bytes it declares. */
static inline Place read_tagged(Reader *r, Place p, const Op *op, int64_t index, uint32_t size) {
    Place outer = r->end, stop = p + size;
    Py_ssize_t fixed = FIXED_SIZE[op->code];
    if (fixed) {
        if (size != (uint32_t)fixed) return NULL;
        if (op->column != 0) put_fixed(r->columns + op->column, op->code, index, p);
        return stop;
    }
    r->end = stop;
    p = read_value(r, p, op, index);
    r->end = outer;
    return p == stop ? stop : NULL;
}

static int is_inactive(const Struct *s, uint32_t tag) {
    for (Py_ssize_t i = 0; i < s->inactive_count; i++)
        if (s->inactive[i] == tag) return 1;
    return 0;
}

/* Keeps an unknown tag as the next entry of the map at an index, whose end grows with each. */
static Place read_unknown_tag(Reader *r, Place p, const Struct *s, int64_t index, uint32_t tag, uint32_t size) {
    if (--r->elements < 0 || (r->room -= size) < 0) return NULL;
    if (s->unknown == 0) return p + size;
    Column *map = r->columns + s->unknown, *tags = map + 2, *contents = map + 3;
    int64_t entry = map->offsets[index + 1];
    Status status = entry == MAX_OFFSET ? FULL : reserve(r->table, map + 1, entry + 1);
    if (status != DONE) return then(r, status, p);
    ((uint32_t *)tags->data)[entry] = tag;
    map->offsets[index + 1]++;
    return then(r, put_text(r->table, contents, entry, p, size), p + size);
}

/* Reads the tags of a section, and puts the defaults of the fields that are not among them. */
static inline Place read_tags(Reader *r, Place p, const Struct *s, int64_t index, uint32_t count) {
    const Op *next = s->tagged, *end = next + s->tagged_count;
    int64_t last = -1;
    for (uint32_t i = 0; i < count && p != NULL; i++) {
        uint32_t tag, size;
        p = take_uvarint(p, r->end, &tag);
        if (p != NULL) p = take_uvarint(p, r->end, &size);
        if (p == NULL || tag <= last || tag > MAX_TAG || size > (size_t)(r->end - p)) return NULL;
        last = tag;
        for (; next < end && next->tag < tag && p != NULL; next++)
            p = then(r, put_constant(r->table, &next->initial, index), p);
        if (p == NULL) return NULL;
        if (next < end && next->tag == tag)
            p = read_tagged(r, p, next++, index, size);
        else
            p = is_inactive(s, tag) ? NULL : read_unknown_tag(r, p, s, index, tag, size);
    }
    for (; next < end && p != NULL; next++)
        p = then(r, put_constant(r->table, &next->initial, index), p);
    return p;
}

static inline Place read_tag_section(Reader *r, Place p, const Struct *s, int64_t index) {
    uint32_t count = 0;
    if (s->flexible) p = take_uvarint(p, r->end, &count);
    if (count > MAX_TAGS) p = NULL;
    if (s->unknown == 0) return p == NULL ? NULL : read_tags(r, p, s, index, count);
    Column *map = r->columns + s->unknown;
    put_empty(map, index);
    if (p != NULL) p = read_tags(r, p, s, index, count);
    if (p == NULL || map->offsets[index + 1] != map->offsets[index]) return p;
    return then(r, mark_null(r->table, map, index), p);
}

static Place read_struct(Reader *r, Place p, const Struct *s, int64_t index) {
    if (r->end - p < s->run) return NULL;
    for (const Op *op = s->ops; op->code != OP_END; op++) {
        if (op->code <= OP_UUID) {
            put_fixed(r->columns + op->column, op->code, index, p);
            p += FIXED_SIZE[op->code];
        } else if (op->code == OP_SKIP) {
            p += op->size;
        } else {
            p = read_value(r, p, op, index);
            if (p == NULL || r->end - p < op->run) return NULL;
        }
    }
    for (Py_ssize_t i = 0; i < s->absent_count && p != NULL; i++)
        p = then(r, put_constant(r->table, &s->absent[i], index), p);
    return p == NULL ? NULL : read_tag_section(r, p, s, index);
}

/* Some rows of a binary column, and where they go. */
typedef struct {
    const Program *program;
    Table table;
    const unsigned char *offsets; /* int32 or, when `wide`, int64; as they lie in memory */
    int wide;
    const unsigned char *data;
    int64_t size;               /* of the data */
    const unsigned char *valid; /* bitmap, or NULL */
    int64_t offset, count;      /* the rows: those behind `offset` in the buffers */
    int64_t *bad;               /* rows that are malformed */
    Py_ssize_t bad_count, bad_room;
} Run;

#define MOST_ROWS (1 << 25) /* at once: as many UUIDs fit into one column */

static inline int64_t row_start(const Run *run, int64_t row) {
    int64_t wide;
    int32_t narrow;
    if (run->wide) {
        memcpy(&wide, run->offsets + row * 8, 8);
        return wide;
    }
    memcpy(&narrow, run->offsets + row * 4, 4);
    return narrow;
}

static const Form *find_form(const Program *program, int prefix) {
    for (Py_ssize_t i = 0; i < program->form_count; i++)
        if (program->forms[i].prefix == prefix) return &program->forms[i];
    return NULL;
}

static inline Status decode_row(Run *run, Place p, Place end, int64_t row) {
    const Program *program = run->program;
    const Form *form = program->forms;
    if (program->prefixed) {
        if (end - p < 2) return MALFORMED;
        form = find_form(program, (int16_t)load16(p));
        p += 2;
    }
    if (form == NULL || form->too_deep) return MALFORMED;
    Reader reader = {end, &run->table, run->table.columns, program->elements, program->room, MALFORMED};
    p = read_struct(&reader, p, form->root, row);
    return p == NULL ? reader.status : p == end ? DONE : MALFORMED;
}

static Status note_bad_row(Run *run, int64_t row) {
    if (run->bad_count == run->bad_room) {
        Py_ssize_t room = run->bad_room ? run->bad_room * 2 : 64;
        int64_t *bad = PyMem_RawRealloc(run->bad, (size_t)room * sizeof(int64_t));
        if (bad == NULL) return NO_MEMORY;
        run->bad = bad;
        run->bad_room = room;
    }
    run->bad[run->bad_count++] = row;
    return DONE;
}

/* Decodes rows until all are done or the columns are full; `*row` counts those that are done. MALFORMED: the offsets of
 * the rows are. */
static Status decode_rows(Run *run, int64_t *row) {
    Table *table = &run->table;
    Status status = DONE;
    for (; *row < run->count && status == DONE; ++*row) {
        int64_t number = run->offset + *row;
        if (run->valid != NULL && !(run->valid[number >> 3] >> (number & 7) & 1)) {
            status = put_null(table, table->columns, *row);
            continue;
        }
        int64_t start = row_start(run, number), stop = row_start(run, number + 1);
        if (start < 0 || stop < start || stop > run->size) return MALFORMED;
        status = decode_row(run, run->data + start, run->data + stop, *row);
        if (status == DONE) continue;
        if (status == NO_MEMORY) return NO_MEMORY;
        take_back(table->columns, *row);
        if (status == FULL) return DONE;
        status = note_bad_row(run, *row);
        if (status == DONE) status = put_null(table, table->columns, *row);
    }
    return status;
}

/* --------------------------------------------------------------------------------------- 2 The Program type */

/* Program(columns, structs, forms, prefixed, elements, room, allocate): native.py makes these. */
static int program_init(Program *self, PyObject *args, PyObject *kwargs) {
    PyObject *columns, *structs, *forms, *allocate;
    long long elements, room;
    if (self->shape != NULL || (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)) {
        PyErr_SetString(PyExc_TypeError, "a program is made once, of positional arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!O!O!pLLO", &PyTuple_Type, &columns, &PyTuple_Type, &structs, &PyTuple_Type, &forms,
                          &self->prefixed, &elements, &room, &allocate))
        return -1;
    self->elements = elements;
    self->room = room;
    self->allocate = Py_NewRef(allocate);
    if (load_columns(self, columns) < 0 || load_structs(self, structs) < 0 || check_constants(self) < 0) return -1;
    return load_forms(self, forms);
}

static void program_dealloc(Program *self) {
    PyTypeObject *type = Py_TYPE(self);
    free_program(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* Checks that the buffers hold the rows. */
static int check_buffers(const Run *run, const Py_buffer *offsets, const Py_buffer *valid) {
    int64_t width = run->wide ? 8 : 4, end = run->offset + run->count;
    if (run->offset < 0 || run->count < 0 || run->offset > PY_SSIZE_T_MAX / 16 || run->count > PY_SSIZE_T_MAX / 16 ||
        (run->count > 0 && offsets->len / width < end + 1) ||
        (valid->buf != NULL && valid->len < (Py_ssize_t)bitmap_size(end))) {
        PyErr_SetString(PyExc_ValueError, "the buffers do not hold as many rows");
        return -1;
    }
    return 0;
}

static PyObject *raise_status(Status status) {
    if (status == NO_MEMORY) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    PyErr_SetString(PyExc_ValueError, "the offsets of the rows are not ascending or not within the data");
    return NULL;
}

static PyObject *bad_rows(const Run *run) {
    PyObject *rows = PyList_New(run->bad_count);
    for (Py_ssize_t i = 0; rows != NULL && i < run->bad_count; i++) {
        PyObject *row = PyLong_FromLongLong(run->bad[i]);
        if (row == NULL)
            Py_CLEAR(rows);
        else
            PyList_SET_ITEM(rows, i, row);
    }
    return rows;
}

/* Runs the program over the rows and returns (rows done, bad rows, columns). */
static PyObject *run_program(Run *run) {
    int64_t done = 0;
    if (run->count > MOST_ROWS) run->count = MOST_ROWS;
    if (new_table(&run->table, run->program->shape, run->program->allocate, run->count) < 0) return NULL;
    run->table.thread = PyEval_SaveThread();
    Status status = decode_rows(run, &done);
    PyEval_RestoreThread(run->table.thread);
    if (status != DONE) {
        free_table(&run->table);
        return raise_status(status);
    }
    PyObject *columns = finish_table(&run->table, done);
    PyObject *rows = columns == NULL ? NULL : bad_rows(run);
    if (rows == NULL) {
        Py_XDECREF(columns);
        return NULL;
    }
    return Py_BuildValue("(LNN)", (long long)done, rows, columns);
}

/* decode(validity, offsets, data, offset, count, wide): the buffers of an array, of which the first may be None. */
static PyObject *program_decode(Program *self, PyObject *args) {
    Py_buffer offsets, data, valid;
    long long offset, count;
    Run run = {.program = self};
    if (self->form_count == 0) {
        PyErr_SetString(PyExc_TypeError, "the program was not initialised");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "z*z*z*LLp:decode", &valid, &offsets, &data, &offset, &count, &run.wide)) return NULL;
    run.offsets = offsets.buf;
    run.data = data.buf == NULL ? (Place) "" : data.buf;
    run.size = data.len;
    run.valid = valid.buf;
    run.offset = offset;
    run.count = count;
    PyObject *result = check_buffers(&run, &offsets, &valid) < 0 ? NULL : run_program(&run);
    PyMem_RawFree(run.bad);
    PyBuffer_Release(&offsets);
    PyBuffer_Release(&data);
    PyBuffer_Release(&valid);
    return result;
}

static PyMethodDef program_methods[] = {
    {"decode", (PyCFunction)program_decode, METH_VARARGS,
     "Decode rows of a binary column; return how many, which of them are bad, and the columns."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "Decodes the rows of binary columns into columns, by the plans of a message."},
    {Py_tp_init, program_init},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = CORE_NAME ".ColumnProgram",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = program_slots,
};

/* ------------------------------------------------------------------------------------------------- 3 Records */

/* Each part's columns, in preorder. */
static const struct {
    unsigned char kind, width, span;
} PART_COLUMNS[RECORD_COLUMN_COUNT][4] = {
    [RECORD_COLUMN_OFFSET] = {{COLUMN_FIXED, 8, 1}},
    [RECORD_COLUMN_TIMESTAMP] = {{COLUMN_FIXED, 8, 1}},
    [RECORD_COLUMN_KEY] = {{COLUMN_TEXT, 0, 1}},
    [RECORD_COLUMN_VALUE] = {{COLUMN_TEXT, 0, 1}},
    [RECORD_COLUMN_HEADERS] = {{COLUMN_LIST, 0, 4}, {COLUMN_STRUCT, 0, 3}, {COLUMN_TEXT, 0, 1}, {COLUMN_TEXT, 0, 1}},
    [RECORD_COLUMN_BATCH] = {{COLUMN_FIXED, 4, 1}},
};

typedef struct {
    PyObject_HEAD
    int32_t wanted[RECORD_COLUMN_COUNT]; /* where each column of records is, 0 for nowhere */
    Column shape[1 + RECORD_COLUMN_COUNT + 3];
    PyObject *allocate;
    Table table; /* its columns are NULL before they are made */
    int busy;    /* a thread is appending */
    int64_t rows;
    int32_t batches;
} RecordColumns;

/* A batch: the place of its records, and the facts of its header about all of them. */
typedef struct {
    const unsigned char *p, *end;
    int64_t count, base_offset, base_timestamp;
    int appended; /* whether base_timestamp is that of each record */
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

/* Reserves what a batch needs at the most, of which values are the most, mostly. */
static Status reserve_batch(RecordColumns *self, const Source *source) {
    Column *values = self->table.columns + self->wanted[RECORD_COLUMN_VALUE];
    Status status = reserve(&self->table, self->table.columns, self->rows + source->count);
    if (status != DONE || self->wanted[RECORD_COLUMN_VALUE] == 0) return status;
    int64_t room = values->offsets[self->rows] + (source->end - source->p);
    return reserve_text(&self->table, values, room < MAX_OFFSET ? room : MAX_OFFSET);
}

/* Where the numbers of the first record of a batch go; NULL if they are not wanted. */
static void *first_number(const RecordColumns *self, int part) {
    const Column *column = self->table.columns + self->wanted[part];
    return self->wanted[part] == 0 ? NULL : column->data + self->rows * column->width;
}

/* Puts records for which the numbers' places are reserved. */
static Status put_reserved(RecordColumns *self, const Source *source) {
    const int32_t *wanted = self->wanted;
    int64_t *offsets = first_number(self, RECORD_COLUMN_OFFSET),
            *timestamps = first_number(self, RECORD_COLUMN_TIMESTAMP);
    int32_t *batches = first_number(self, RECORD_COLUMN_BATCH);
    int64_t times = source->appended ? 0 : -1; /* which bits of a record's own time count */
    uint64_t beyond = 0;
    Place p = source->p;
    for (int64_t i = 0; i < source->count; i++) {
        Status status = DONE;
        WalkRecord record;
        p = walk_record(p, source->end, &record);
        if (p == NULL) return MALFORMED;
        if (offsets != NULL) offsets[i] = add_number(source->base_offset, record.offset_delta, &beyond);
        if (timestamps != NULL)
            timestamps[i] = add_number(source->base_timestamp, record.timestamp_delta & times, &beyond);
        if (batches != NULL) batches[i] = self->batches;
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

static Status put_records(RecordColumns *self, const Source *source) {
    Status status = reserve_batch(self, source);
    return status == DONE ? put_reserved(self, source) : status;
}

/* Puts the records of a batch without the GIL, or nothing. */
static Status append_batch(RecordColumns *self, const Source *source) {
    self->busy = 1;
    self->table.thread = PyEval_SaveThread();
    Status status = put_records(self, source);
    if (status != DONE) take_back(self->table.columns, self->rows);
    PyEval_RestoreThread(self->table.thread);
    self->busy = 0;
    if (status == DONE) {
        self->rows += source->count;
        self->batches++;
    }
    return status;
}

/* Makes the table for `count` records, if there is none; -1 with an exception, if it cannot be used either. */
static int start_table(RecordColumns *self, int64_t count) {
    if (self->allocate == NULL || self->busy) {
        PyErr_SetString(PyExc_RuntimeError, "the columns were not initialised, or another thread is appending");
        return -1;
    }
    if (self->table.columns != NULL) return 0;
    self->busy = 1; /* other threads run meanwhile */
    int failed = new_table(&self->table, self->shape, self->allocate, count);
    self->busy = 0;
    return failed;
}

static PyObject *append_checked(RecordColumns *self, const Source *source) {
    if (source->count > (source->end - source->p) / WALK_SMALLEST) Py_RETURN_FALSE;
    if (start_table(self, source->count) < 0) return NULL;
    Status status = append_batch(self, source);
    if (status == FULL) PyErr_SetString(PyExc_OverflowError, "the columns would hold more than 2 GiB");
    if (status == NO_MEMORY) return raise_status(status);
    return status == FULL ? NULL : PyBool_FromLong(status == DONE);
}

/* append(body, at, end, count, base_offset, base_timestamp, append_timestamp). */
static PyObject *records_append(RecordColumns *self, PyObject *args) {
    Py_buffer body;
    Py_ssize_t at, end;
    long long count, base_offset, base_timestamp;
    PyObject *appended, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*nnLLLO:append", &body, &at, &end, &count, &base_offset, &base_timestamp, &appended))
        return NULL;
    if (appended != Py_None) base_timestamp = PyLong_AsLongLong(appended);
    if (at < 0 || end < at || end > body.len || count < 0)
        PyErr_SetString(PyExc_ValueError, "the records are not within the buffer");
    if (!PyErr_Occurred()) {
        Place start = body.buf;
        Source source = {start + at, start + end, count, base_offset, base_timestamp, appended != Py_None};
        result = append_checked(self, &source);
    }
    PyBuffer_Release(&body);
    return result;
}

static PyObject *records_finish(RecordColumns *self, PyObject *Py_UNUSED(unused)) {
    if (start_table(self, 0) < 0) return NULL;
    Table full = self->table;
    int64_t rows = self->rows;
    memset(&self->table, 0, sizeof(Table));
    self->rows = self->batches = 0;
    return finish_table(&full, rows);
}

static int add_part(RecordColumns *self, const char *name) {
    for (int part = 0; part < RECORD_COLUMN_COUNT; part++) {
        if (strcmp(name, RECORD_COLUMN_NAMES[part]) != 0 || self->wanted[part] != 0) continue;
        int32_t first = self->shape[0].span;
        self->wanted[part] = first;
        self->shape[0].span += PART_COLUMNS[part][0].span;
        for (int i = 0; i < PART_COLUMNS[part][0].span; i++) {
            self->shape[first + i].kind = PART_COLUMNS[part][i].kind;
            self->shape[first + i].width = PART_COLUMNS[part][i].width;
            self->shape[first + i].span = PART_COLUMNS[part][i].span;
        }
        return 0;
    }
    PyErr_Format(PyExc_ValueError, "records have no further column %s", name);
    return -1;
}

/* RecordColumns(names, allocate). */
static int records_init(RecordColumns *self, PyObject *args, PyObject *kwargs) {
    PyObject *names, *allocate;
    if (self->allocate != NULL || (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)) {
        PyErr_SetString(PyExc_TypeError, "columns are made once, of positional arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &names, &allocate)) return -1;
    self->shape[0].kind = COLUMN_STRUCT;
    self->shape[0].span = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (name == NULL || add_part(self, name) < 0) return -1;
    }
    self->allocate = Py_NewRef(allocate);
    return 0;
}

static void records_dealloc(RecordColumns *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->table.columns != NULL) free_table(&self->table);
    Py_XDECREF(self->allocate);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMethodDef records_methods[] = {
    {"append", (PyCFunction)records_append, METH_VARARGS, "Add the records of a batch; return whether they are sound."},
    {"finish", (PyCFunction)records_finish, METH_NOARGS, "Return the columns, and start anew."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot records_slots[] = {
    {Py_tp_doc, "Collects the records of batches, batch after batch, as columns."},
    {Py_tp_init, records_init},
    {Py_tp_dealloc, records_dealloc},
    {Py_tp_methods, records_methods},
    {0, NULL},
};

static PyType_Spec records_spec = {
    .name = CORE_NAME ".RecordColumns",
    .basicsize = sizeof(RecordColumns),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = records_slots,
};

int columns_add(PyObject *module) {
    return core_add_type(module, &program_spec) == NULL || core_add_type(module, &records_spec) == NULL ? -1 : 0;
}
