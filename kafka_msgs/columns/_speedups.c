/* The C core of columns: from bytes into Arrow's buffers, with no Python object a row and without the GIL.
 *
 * What it owns: the walk over binary columns by the codec's plans (lowered to tuples by native.py), and the one over the
 * records of batches; _column.h is where both put what they find. It knows nothing of Arrow's types or arrays: it gives
 * buffers, which native.py makes arrays of. It accepts and refuses the same bytes as the other forms and says nothing
 * about why: a malformed row becomes null and its number is told, a malformed batch leaves no trace. Deleting this file
 * leaves a library that works.
 *
 * Sections: 1 buffers, 2 programs, 3 decoding, 4 the Program type, 5 records, 6 the module.
 *
 * Conventions. Functions returning Status touch no Python object and need no GIL; others give -1 or NULL with an
 * exception set. Programs never change once made, so any number of threads may run one. Every read is preceded by a
 * check of the form `end - p < n`, which cannot overflow.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "../codec/_bytes.h"
#include "../codec/_lengths.h"
#include "../codec/_ops.h"
#include "../records/_walk.h"
#include "_column.h"
#include "_utf8.h"

typedef struct {
    PyTypeObject *buffer_type;
} State;

static struct PyModuleDef module_def;

/* ------------------------------------------------------------------------------------------------- 1 Buffers */

/* Memory of a column, for others to read as long as they keep this object. */
typedef struct {
    PyObject_HEAD
    void *memory;
    Py_ssize_t size;
} Buffer;

static int buffer_get(Buffer *self, Py_buffer *view, int flags) {
    return PyBuffer_FillInfo(view, (PyObject *)self, self->memory, self->size, 1, flags);
}

static void buffer_dealloc(Buffer *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyMem_RawFree(self->memory);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, "Memory that was filled in by the C core; it can only be read."},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_bf_getbuffer, buffer_get},
    {0, NULL},
};

static PyType_Spec buffer_spec = {
    .name = "kafka_msgs.columns._speedups.Buffer",
    .basicsize = sizeof(Buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots,
};

/* Makes a Buffer of `*memory`, which it takes over, cut to `size`; None of no memory. */
static PyObject *take_buffer(State *state, void *memory, size_t size) {
    void *owned, *cut, *none = NULL;
    memcpy(&owned, memory, sizeof(owned));
    if (owned == NULL) Py_RETURN_NONE;
    Buffer *buffer = PyObject_New(Buffer, state->buffer_type);
    if (buffer == NULL) return NULL;
    cut = PyMem_RawRealloc(owned, size ? size : 1);
    buffer->memory = cut == NULL ? owned : cut;
    buffer->size = (Py_ssize_t)size;
    memcpy(memory, &none, sizeof(none));
    return (PyObject *)buffer;
}

/* Returns (length, nulls, validity, offsets, data) of a column, taking its memory. */
static PyObject *take_column(State *state, Column *column, int64_t length) {
    size_t size = 0;
    if (column->kind == COLUMN_FIXED) size = (size_t)length * column->width;
    if (column->kind == COLUMN_BITS) size = bitmap_size(length);
    if (column->kind == COLUMN_TEXT) size = (size_t)column->offsets[length];
    PyObject *offsets = take_buffer(state, &column->offsets, ((size_t)length + 1) * sizeof(int32_t));
    PyObject *valid = take_buffer(state, &column->valid, bitmap_size(length));
    PyObject *data = take_buffer(state, &column->data, size);
    if (offsets != NULL && valid != NULL && data != NULL)
        return Py_BuildValue("(LLNNN)", (long long)length, (long long)column->nulls, valid, offsets, data);
    Py_XDECREF(offsets);
    Py_XDECREF(valid);
    Py_XDECREF(data);
    return NULL;
}

/* Appends what `take_column` gives of a column and of each below it. */
static int take_columns(State *state, Column *column, int64_t length, PyObject *taken) {
    for (Column *end = column + column->span; column < end; column = next_alike(column)) {
        int64_t below = column->kind == COLUMN_LIST ? column->offsets[length] : 0;
        PyObject *one = take_column(state, column, length);
        int failed = one == NULL ? -1 : PyList_Append(taken, one);
        Py_XDECREF(one);
        if (failed || (column->kind == COLUMN_LIST && take_columns(state, column + 1, below, taken) < 0)) return -1;
    }
    return 0;
}

/* Returns the list of all columns with `length` values each, in preorder, and frees the table. */
static PyObject *finish_columns(State *state, Column *columns, int64_t length) {
    PyObject *taken = PyList_New(0);
    if (taken != NULL && take_columns(state, columns, length, taken) < 0) Py_CLEAR(taken);
    free_columns(columns);
    return taken;
}

/* ------------------------------------------------------------------------------------------------ 2 Programs */

/* Pseudo-ops: bytes that are known to be there and not wanted, and what stands behind the last op of every struct. */
enum { OP_SKIP = OP_STRUCT + 1, OP_END };

#define UUID_TEXT 36 /* bytes of a UUID in hexadecimal, with its hyphens */

struct Struct;

/* The value that a field has where it is not in the bytes. */
typedef struct {
    unsigned char code;
    int32_t column;           /* 0: none */
    int null;                 /* else what `raw` holds, or what `sub` says, or an empty array */
    PyObject *raw;            /* bytes as on the wire, without a length; owned, NULL for arrays and structs */
    const struct Struct *sub; /* structs: it has absent fields only */
} Constant;

typedef struct {
    unsigned char code, flags;
    unsigned char item_code, item_flags; /* arrays: how an element is written */
    int32_t column;                      /* where the value goes; 0, which is the root, for nowhere */
    uint32_t tag;
    Py_ssize_t size;          /* arrays: the least size of an element; OP_SKIP: bytes */
    Py_ssize_t run;           /* bytes of the fixed-size values that follow, up to the next op that is not */
    const struct Struct *sub; /* structs and arrays of structs; borrowed from the program */
    Constant initial;         /* tagged fields: the default */
} Op;

typedef struct Struct {
    int32_t home;    /* the column whose children its values are; -1: none is wanted */
    int32_t unknown; /* the column of unknown tagged fields, 0 for none */
    int flexible;
    Py_ssize_t op_count, tagged_count, absent_count, inactive_count;
    Op *ops;        /* positional */
    Py_ssize_t run; /* bytes of the fixed-size values that the struct begins with */
    Op *tagged;     /* in ascending order of tag */
    Constant *absent;
    uint32_t *inactive; /* declared tags that are not valid at this version */
} Struct;

/* Where the bytes of a row begin: behind `prefix` with the struct `root`. */
typedef struct {
    int prefix;
    int too_deep; /* deeper than the budget: nothing can be decoded */
    const Struct *root;
} Form;

typedef struct {
    PyObject_HEAD
    Column *shape; /* an empty table */
    int32_t *parents;
    Py_ssize_t struct_count, form_count;
    Struct *structs;
    Form *forms;
    int prefixed;           /* rows begin with an int16 that chooses the form; otherwise there is one form */
    int64_t elements, room; /* the decode budget of a row */
} Program;

static int refuse_program(const char *what) {
    PyErr_Format(PyExc_ValueError, "not %s of a program", what);
    return -1;
}

static void *new_items(Py_ssize_t count, size_t size) {
    void *items = PyMem_Calloc((size_t)count + 1, size);
    if (items == NULL) PyErr_NoMemory();
    return items;
}

/* Whether a column can take the values of an op. */
static int takes(const Column *column, int code) {
    static const unsigned char width[] = {0, 1, 2, 4, 8, 4, 8, 8}; /* unsigned ones are kept in the next larger int */
    if (code == OP_BOOL) return column->kind == COLUMN_BITS;
    if (code < OP_UUID) return column->kind == COLUMN_FIXED && column->width == width[code];
    if (code < OP_ARRAY) return column->kind == COLUMN_TEXT && column->width == (code == OP_UUID ? UUID_TEXT : 0);
    return column->kind == (code == OP_ARRAY ? COLUMN_LIST : COLUMN_STRUCT);
}

/* Checks that a column is a child of a struct's and of the right kind, or no column at all. */
static int check_column(const Program *self, const Struct *owner, int column, int code) {
    if (column == 0) return 0;
    if (column < 0 || column >= self->shape->span || self->parents[column] != owner->home ||
        !takes(&self->shape[column], code))
        return refuse_program("a column");
    return 0;
}

/* Returns the struct of a number above that of its owner, so that none contains itself; NULL with an exception. */
static const Struct *find_sub(const Program *self, const Struct *owner, Py_ssize_t number, int32_t home) {
    if (number > owner - self->structs && number < self->struct_count && self->structs[number].home == home)
        return &self->structs[number];
    refuse_program("a struct");
    return NULL;
}

/* Reads (code, column, null, bytes or None, struct number). */
static int load_constant(const Program *self, const Struct *owner, PyObject *spec, Constant *target) {
    int code, column;
    Py_ssize_t sub;
    PyObject *raw;
    if (!PyArg_ParseTuple(spec, "iipOn", &code, &column, &target->null, &raw, &sub)) return -1;
    if (code < 0 || code > OP_STRUCT || check_column(self, owner, column, code) < 0)
        return refuse_program("a constant");
    target->code = (unsigned char)code;
    target->column = column;
    if (column == 0 || target->null || code == OP_ARRAY) return 0;
    if (code == OP_STRUCT) {
        target->sub = find_sub(self, owner, sub, column);
        return target->sub == NULL ? -1 : 0;
    }
    if (!PyBytes_Check(raw) || (FIXED_SIZE[code] && PyBytes_GET_SIZE(raw) != FIXED_SIZE[code]))
        return refuse_program("a constant");
    target->raw = Py_NewRef(raw);
    return 0;
}

/* Reads (code, flags, item code, item flags, item's least size or bytes to skip, struct number, column, tag,
 * constant). */
static int load_op(const Program *self, const Struct *owner, PyObject *spec, Op *op) {
    int code, flags, item_code, item_flags, column;
    Py_ssize_t size, sub;
    unsigned int tag;
    PyObject *initial;
    if (!PyArg_ParseTuple(spec, "iiiinniIO", &code, &flags, &item_code, &item_flags, &size, &sub, &column, &tag,
                          &initial))
        return -1;
    if (code < 0 || code > OP_SKIP || item_code < 0 || item_code > OP_STRUCT || item_code == OP_ARRAY || size < 1 ||
        size < FIXED_SIZE[item_code] || (code == OP_SKIP && column != 0))
        return refuse_program("an op");
    if (check_column(self, owner, column, code) < 0) return -1;
    int32_t home = column == 0 ? -1 : column;
    if (code == OP_ARRAY && column != 0) {
        home = column + 1;
        if (!takes(&self->shape[home], item_code)) return refuse_program("a list");
    }
    if (code == OP_STRUCT || (code == OP_ARRAY && item_code == OP_STRUCT)) {
        op->sub = find_sub(self, owner, sub, home);
        if (op->sub == NULL) return -1;
    }
    op->code = (unsigned char)code;
    op->flags = (unsigned char)flags;
    op->item_code = (unsigned char)item_code;
    op->item_flags = (unsigned char)item_flags;
    op->column = column;
    op->tag = tag;
    op->size = size;
    return initial == Py_None ? 0 : load_constant(self, owner, initial, &op->initial);
}

/* The bytes of an op that always takes as many; 0 for the others. */
static inline Py_ssize_t fixed_size(const Op *op) {
    return op->code == OP_SKIP ? op->size : FIXED_SIZE[op->code];
}

/* Fills in the positional ops and the runs of fixed-size ones among them: each is checked for at once. */
static int load_steps(const Program *self, Struct *target, PyObject *steps) {
    Py_ssize_t count = PyTuple_GET_SIZE(steps);
    Py_ssize_t *run = &target->run;
    target->ops = new_items(count, sizeof(Op));
    if (target->ops == NULL) return -1;
    for (; target->op_count < count; target->op_count++) {
        Op *op = &target->ops[target->op_count];
        if (load_op(self, target, PyTuple_GET_ITEM(steps, target->op_count), op) < 0) return -1;
        if (fixed_size(op))
            *run += fixed_size(op);
        else
            run = &op->run;
    }
    target->ops[count].code = OP_END;
    return 0;
}

static int load_tagged(const Program *self, Struct *target, PyObject *tagged) {
    Py_ssize_t count = PyTuple_GET_SIZE(tagged);
    target->tagged = new_items(count, sizeof(Op));
    if (target->tagged == NULL) return -1;
    for (; target->tagged_count < count; target->tagged_count++) {
        Op *op = &target->tagged[target->tagged_count];
        if (load_op(self, target, PyTuple_GET_ITEM(tagged, target->tagged_count), op) < 0) return -1;
        if (op->code == OP_SKIP || op->initial.column != op->column || op->initial.code != op->code)
            return refuse_program("a tagged field");
    }
    return 0;
}

static int load_absent(const Program *self, Struct *target, PyObject *absent) {
    Py_ssize_t count = PyTuple_GET_SIZE(absent);
    target->absent = new_items(count, sizeof(Constant));
    if (target->absent == NULL) return -1;
    for (; target->absent_count < count; target->absent_count++) {
        Constant *constant = &target->absent[target->absent_count];
        if (load_constant(self, target, PyTuple_GET_ITEM(absent, target->absent_count), constant) < 0) return -1;
    }
    return 0;
}

static int load_inactive(Struct *target, PyObject *inactive) {
    Py_ssize_t count = PyTuple_GET_SIZE(inactive);
    target->inactive = new_items(count, sizeof(uint32_t));
    if (target->inactive == NULL) return -1;
    for (; target->inactive_count < count; target->inactive_count++) {
        unsigned long tag = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(inactive, target->inactive_count));
        if (tag == (unsigned long)-1 && PyErr_Occurred()) return -1;
        target->inactive[target->inactive_count] = (uint32_t)tag;
    }
    return 0;
}

/* Whether columns shaped like a map stand at a place: a list of structs of an int32 and a text. */
static int is_map(const Program *self, int32_t column) {
    const Column *map = &self->shape[column];
    return map->kind == COLUMN_LIST && map->span == 4 && map[1].kind == COLUMN_STRUCT && takes(&map[2], OP_INT32) &&
           takes(&map[3], OP_BYTES);
}

/* Checks that each column below a struct's is filled in once: no index of it may stay as the memory was. */
static int check_complete(const Program *self, const Struct *s) {
    if (s->home < 0) return 0;
    unsigned char *filled = new_items(self->shape->span, 1);
    if (filled == NULL) return -1;
    for (Py_ssize_t i = 0; i < s->op_count; i++)
        filled[s->ops[i].column]++;
    for (Py_ssize_t i = 0; i < s->tagged_count; i++)
        filled[s->tagged[i].column]++;
    for (Py_ssize_t i = 0; i < s->absent_count; i++)
        filled[s->absent[i].column]++;
    filled[s->unknown]++;
    int failed = 0;
    for (int32_t i = s->home + 1; i < s->home + self->shape[s->home].span && !failed; i++)
        if (self->parents[i] == s->home && filled[i] != 1) failed = refuse_program("the fields");
    PyMem_Free(filled);
    return failed;
}

/* Reads (home, unknown tags' column, flexible, steps, tagged, absent, inactive tags); homes are known already. */
static int load_struct(Program *self, PyObject *spec, Struct *target) {
    int home, unknown;
    PyObject *steps, *tagged, *absent, *inactive;
    if (!PyArg_ParseTuple(spec, "iipO!O!O!O!", &home, &unknown, &target->flexible, &PyTuple_Type, &steps, &PyTuple_Type,
                          &tagged, &PyTuple_Type, &absent, &PyTuple_Type, &inactive))
        return -1;
    if (check_column(self, target, unknown, OP_ARRAY) < 0) return -1;
    if (unknown != 0 && !is_map(self, unknown)) return refuse_program("a map");
    target->unknown = unknown;
    if (load_steps(self, target, steps) < 0 || load_tagged(self, target, tagged) < 0 ||
        load_absent(self, target, absent) < 0 || load_inactive(target, inactive) < 0)
        return -1;
    return check_complete(self, target);
}

static int load_home(const Program *self, PyObject *spec, Struct *target) {
    if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) < 1) return refuse_program("a struct");
    long home = PyLong_AsLong(PyTuple_GET_ITEM(spec, 0));
    if (home == -1 && PyErr_Occurred()) return -1;
    if (home < -1 || home >= self->shape->span || (home >= 0 && self->shape[home].kind != COLUMN_STRUCT))
        return refuse_program("a struct");
    target->home = (int32_t)home;
    return 0;
}

static int load_structs(Program *self, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    self->structs = new_items(count, sizeof(Struct));
    if (self->structs == NULL) return -1;
    self->struct_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (load_home(self, PyTuple_GET_ITEM(specs, i), &self->structs[i]) < 0) return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (load_struct(self, PyTuple_GET_ITEM(specs, i), &self->structs[i]) < 0) return -1;
    return 0;
}

/* Reads (prefix, too deep, struct number) of each form. */
static int load_forms(Program *self, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    self->forms = new_items(count, sizeof(Form));
    if (self->forms == NULL) return -1;
    if (count < 1 || (!self->prefixed && count != 1)) return refuse_program("the forms");
    for (; self->form_count < count; self->form_count++) {
        Form *form = &self->forms[self->form_count];
        Py_ssize_t number;
        PyObject *spec = PyTuple_GET_ITEM(specs, self->form_count);
        if (!PyArg_ParseTuple(spec, "ipn", &form->prefix, &form->too_deep, &number)) return -1;
        if (number < 0 || number >= self->struct_count || self->structs[number].home != 0)
            return refuse_program("a form");
        form->root = &self->structs[number];
    }
    return 0;
}

/* Notes the parent of each column from `first` on that is below it; the root's is none. */
static int load_parents(Program *self, int32_t first) {
    const Column *column = &self->shape[first];
    int32_t end = first + column->span, children = 0;
    for (int32_t child = first + 1; child < end; child += self->shape[child].span, children++) {
        if (self->shape[child].span > end - child) return refuse_program("a column");
        self->parents[child] = first;
        if (load_parents(self, child) < 0) return -1;
    }
    if (column->kind == COLUMN_LIST ? children != 1 : column->kind != COLUMN_STRUCT && children != 0)
        return refuse_program("a column");
    return 0;
}

/* Reads (kind, width, span) of each column. */
static int load_columns(Program *self, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    if (count < 1 || count > 1 << 20) return refuse_program("the columns");
    self->parents = new_items(count, sizeof(int32_t));
    self->shape = new_items(count, sizeof(Column));
    if (self->parents == NULL || self->shape == NULL) return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        int kind, width, span;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(specs, i), "iii", &kind, &width, &span)) return -1;
        if (kind < COLUMN_BITS || kind > COLUMN_STRUCT || width < 0 || width > UUID_TEXT || span < 1 ||
            span > count - i)
            return refuse_program("a column");
        self->shape[i].kind = (unsigned char)kind;
        self->shape[i].width = (unsigned char)width;
        self->shape[i].span = span;
    }
    if (self->shape[0].kind != COLUMN_STRUCT || self->shape[0].span != count) return refuse_program("the columns");
    self->parents[0] = -1;
    return load_parents(self, 0);
}

/* Frees ops, the one at which loading stopped included. */
static void free_ops(Op *ops, Py_ssize_t count) {
    for (Py_ssize_t i = 0; ops != NULL && i <= count; i++)
        Py_CLEAR(ops[i].initial.raw);
    PyMem_Free(ops);
}

static void free_constants(Constant *constants, Py_ssize_t count) {
    for (Py_ssize_t i = 0; constants != NULL && i < count; i++)
        Py_CLEAR(constants[i].raw);
    PyMem_Free(constants);
}

static void free_program(Program *self) {
    for (Py_ssize_t i = 0; i < self->struct_count; i++) {
        free_ops(self->structs[i].ops, self->structs[i].op_count);
        free_ops(self->structs[i].tagged, self->structs[i].tagged_count);
        free_constants(self->structs[i].absent, self->structs[i].absent_count);
        PyMem_Free(self->structs[i].inactive);
    }
    PyMem_Free(self->structs);
    PyMem_Free(self->forms);
    PyMem_Free(self->parents);
    PyMem_Free(self->shape);
}

/* ------------------------------------------------------------------------------------------------ 3 Decoding */

/* Where values come from and go to. The functions that read take a place `p` and return the one behind what they read;
 * NULL where something is wrong, which is that the bytes are malformed unless `status` was set. */
typedef struct {
    const unsigned char *end; /* shrinks to the end of a tagged field while that is read */
    Column *columns;
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
static Status put_constant(Column *columns, const Constant *constant, int64_t index) {
    Column *column = columns + constant->column;
    Status status = DONE;
    if (constant->column == 0) return DONE;
    if (constant->null) return put_null(column, index);
    if (constant->sub != NULL) {
        for (Py_ssize_t i = 0; i < constant->sub->absent_count && status == DONE; i++)
            status = put_constant(columns, &constant->sub->absent[i], index);
    } else if (constant->raw == NULL) {
        put_empty(column, index);
    } else {
        Place raw = (Place)PyBytes_AS_STRING(constant->raw);
        if (FIXED_SIZE[constant->code])
            put_fixed(column, constant->code, index, raw);
        else
            status = put_text(column, index, raw, PyBytes_GET_SIZE(constant->raw));
    }
    return status;
}

/* Puts null, if a column is wanted. */
static inline Place skip_null(Reader *r, Place p, int32_t column, int64_t index) {
    return column == 0 ? p : then(r, put_null(r->columns + column, index), p);
}

/* Reads a string, bytes or records. */
static inline Place read_sized(Reader *r, Place p, int code, int flags, int32_t column, int64_t index) {
    Py_ssize_t size;
    p = take_length(p, r->end, code == OP_STRING ? 2 : 4, flags, &size);
    if (p == NULL) return NULL;
    if (size < 0) return skip_null(r, p, column, index);
    if (size > r->end - p || (r->room -= size) < 0) return NULL;
    if (code == OP_STRING && (size > MAX_STRING || !is_utf8(p, p + size))) return NULL;
    return column == 0 ? p + size : then(r, put_text(r->columns + column, index, p, size), p + size);
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
    if (op->column != 0) p = then(r, put_list(r->columns + op->column, index, count, &first), p);
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
    Status status = entry == MAX_OFFSET ? FULL : reserve(map + 1, entry + 1);
    if (status != DONE) return then(r, status, p);
    ((uint32_t *)tags->data)[entry] = tag;
    map->offsets[index + 1]++;
    return then(r, put_text(contents, entry, p, size), p + size);
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
            p = then(r, put_constant(r->columns, &next->initial, index), p);
        if (p == NULL) return NULL;
        if (next < end && next->tag == tag)
            p = read_tagged(r, p, next++, index, size);
        else
            p = is_inactive(s, tag) ? NULL : read_unknown_tag(r, p, s, index, tag, size);
    }
    for (; next < end && p != NULL; next++)
        p = then(r, put_constant(r->columns, &next->initial, index), p);
    return p;
}

static inline Place read_tag_section(Reader *r, Place p, const Struct *s, int64_t index) {
    uint32_t count = 0;
    if (s->flexible) p = take_uvarint(p, r->end, &count);
    if (s->unknown == 0) return p == NULL ? NULL : read_tags(r, p, s, index, count);
    Column *map = r->columns + s->unknown;
    put_empty(map, index);
    if (p != NULL) p = read_tags(r, p, s, index, count);
    if (p == NULL || map->offsets[index + 1] != map->offsets[index]) return p;
    return then(r, mark_null(map, index), p);
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
        p = then(r, put_constant(r->columns, &s->absent[i], index), p);
    return p == NULL ? NULL : read_tag_section(r, p, s, index);
}

/* Some rows of a binary column, and where they go. */
typedef struct {
    const Program *program;
    Column *columns;
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

static inline Status decode_row(const Run *run, const unsigned char *p, const unsigned char *end, int64_t row) {
    const Program *program = run->program;
    const Form *form = program->forms;
    if (program->prefixed) {
        if (end - p < 2) return MALFORMED;
        form = find_form(program, (int16_t)load16(p));
        p += 2;
    }
    if (form == NULL || form->too_deep) return MALFORMED;
    Reader reader = {end, run->columns, program->elements, program->room, MALFORMED};
    p = read_struct(&reader, p, form->root, row);
    return p == NULL ? reader.status : p == end ? DONE : MALFORMED;
}

static Status note_bad_row(Run *run, int64_t row) {
    if (run->bad_count == run->bad_room) {
        Py_ssize_t room = run->bad_room ? run->bad_room * 2 : 64;
        if (resize(&run->bad, (size_t)room * sizeof(int64_t)) != DONE) return NO_MEMORY;
        run->bad_room = room;
    }
    run->bad[run->bad_count++] = row;
    return DONE;
}

/* Decodes rows until all are done or the columns are full; `*row` counts those that are done. MALFORMED: the offsets of
 * the rows are. */
static Status decode_rows(Run *run, int64_t *row) {
    int64_t count = run->count < MOST_ROWS ? run->count : MOST_ROWS;
    Status status = reserve(run->columns, count);
    for (; *row < count && status == DONE; ++*row) {
        int64_t number = run->offset + *row;
        if (run->valid != NULL && !(run->valid[number >> 3] >> (number & 7) & 1)) {
            status = put_null(run->columns, *row);
            continue;
        }
        int64_t start = row_start(run, number), stop = row_start(run, number + 1);
        if (start < 0 || stop < start || stop > run->size) return MALFORMED;
        status = decode_row(run, run->data + start, run->data + stop, *row);
        if (status == DONE) continue;
        take_back(run->columns, *row);
        if (status == FULL) return DONE;
        if (status == NO_MEMORY || note_bad_row(run, *row) != DONE) return NO_MEMORY;
        status = put_null(run->columns, *row);
    }
    return status;
}

/* --------------------------------------------------------------------------------------- 4 The Program type */

/* Program(columns, structs, forms, prefixed, elements, room): native.py makes these. */
static int program_init(Program *self, PyObject *args, PyObject *kwargs) {
    PyObject *columns, *structs, *forms;
    long long elements, room;
    if (self->shape != NULL || (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)) {
        PyErr_SetString(PyExc_TypeError, "a program is made once, of positional arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!O!O!pLL", &PyTuple_Type, &columns, &PyTuple_Type, &structs, &PyTuple_Type, &forms,
                          &self->prefixed, &elements, &room))
        return -1;
    self->elements = elements;
    self->room = room;
    if (load_columns(self, columns) < 0 || load_structs(self, structs) < 0) return -1;
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
    if (status == NO_MEMORY) return PyErr_NoMemory();
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
static PyObject *program_run(State *state, Run *run) {
    int64_t done = 0;
    Status status;
    run->columns = new_columns(run->program->shape);
    if (run->columns == NULL) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS;
    status = decode_rows(run, &done);
    Py_END_ALLOW_THREADS;
    if (status != DONE) {
        free_columns(run->columns);
        return raise_status(status);
    }
    PyObject *columns = finish_columns(state, run->columns, done);
    PyObject *rows = columns == NULL ? NULL : bad_rows(run);
    if (rows == NULL) {
        Py_XDECREF(columns);
        return NULL;
    }
    return Py_BuildValue("(LNN)", (long long)done, rows, columns);
}

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
    run.data = data.buf;
    run.size = data.len;
    run.valid = valid.buf;
    run.offset = offset;
    run.count = count;
    PyObject *result = NULL;
    if (check_buffers(&run, &offsets, &valid) == 0) result = program_run(PyType_GetModuleState(Py_TYPE(self)), &run);
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
    .name = "kafka_msgs.columns._speedups.Program",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = program_slots,
};

/* ------------------------------------------------------------------------------------------------- 5 Records */

/* What a record has, in the order of its columns; the values of `wanted` say where each column is, 0 for nowhere. */
enum { OFFSET, TIMESTAMP, KEY, VALUE, HEADERS, BATCH, PARTS };

static const char *const PART_NAMES[PARTS] = {"offset", "timestamp", "key", "value", "headers", "batch"};

/* Each part's columns, in preorder. */
static const struct {
    unsigned char kind, width, span;
} PART_COLUMNS[PARTS][4] = {
    [OFFSET] = {{COLUMN_FIXED, 8, 1}},
    [TIMESTAMP] = {{COLUMN_FIXED, 8, 1}},
    [KEY] = {{COLUMN_TEXT, 0, 1}},
    [VALUE] = {{COLUMN_TEXT, 0, 1}},
    [HEADERS] = {{COLUMN_LIST, 0, 4}, {COLUMN_STRUCT, 0, 3}, {COLUMN_TEXT, 0, 1}, {COLUMN_TEXT, 0, 1}},
    [BATCH] = {{COLUMN_FIXED, 4, 1}},
};

typedef struct {
    PyObject_HEAD
    int32_t wanted[PARTS];
    Column shape[1 + PARTS + 3]; /* an empty table */
    Column *columns;             /* NULL while there is nothing, or while one thread has it */
    int64_t rows;
    int32_t batches;
} RecordColumns;

/* A batch: where its records are, and what its header says of them all. */
typedef struct {
    const unsigned char *p, *end;
    int64_t count, base_offset, base_timestamp;
    int appended; /* whether base_timestamp is that of each record */
} Source;

static Status put_payload(Column *columns, int32_t column, int64_t index, const unsigned char *content, int32_t size) {
    if (column == 0) return DONE;
    return content == NULL ? put_null(columns + column, index) : put_text(columns + column, index, content, size);
}

/* Puts the headers of a record; a name that is not UTF-8 has no place in a column of strings. */
static Status put_headers(Column *columns, int32_t column, int64_t index, const WalkRecord *record) {
    const unsigned char *p = record->headers;
    int64_t first = 0;
    if (column == 0) return walk_headers(record) < 0 ? MALFORMED : DONE;
    Status status = put_list(columns + column, index, record->header_count, &first);
    for (int64_t i = first; i < first + record->header_count && status == DONE; i++) {
        WalkHeader header;
        p = walk_header(p, record->end, &header);
        if (p == NULL || !is_utf8(header.name, header.name + header.name_size)) return MALFORMED;
        status = put_payload(columns, column + 2, i, header.name, header.name_size);
        if (status == DONE) status = put_payload(columns, column + 3, i, header.value, header.value_size);
    }
    return status == DONE && record->header_count > 0 && p != record->end ? MALFORMED : status;
}

/* Adds within 64 bits; what lies beyond them has no place in a column. */
static inline Status put_sum(Column *columns, int32_t column, int64_t index, int64_t base, int64_t delta) {
    if (column == 0) return DONE;
    if (delta > 0 ? base > INT64_MAX - delta : base < INT64_MIN - delta) return MALFORMED;
    ((int64_t *)columns[column].data)[index] = base + delta;
    return DONE;
}

static Status put_record(const RecordColumns *self, Column *columns, int64_t index, const Source *source,
                         const WalkRecord *record) {
    const int32_t *wanted = self->wanted;
    int64_t delta = source->appended ? 0 : record->timestamp_delta;
    Status status = put_sum(columns, wanted[OFFSET], index, source->base_offset, record->offset_delta);
    if (status == DONE) status = put_sum(columns, wanted[TIMESTAMP], index, source->base_timestamp, delta);
    if (status == DONE) status = put_payload(columns, wanted[KEY], index, record->key, record->key_size);
    if (status == DONE) status = put_payload(columns, wanted[VALUE], index, record->value, record->value_size);
    if (status == DONE) status = put_headers(columns, wanted[HEADERS], index, record);
    if (wanted[BATCH] != 0) ((int32_t *)columns[wanted[BATCH]].data)[index] = self->batches;
    return status;
}

static Status put_records(const RecordColumns *self, Column *columns, const Source *source) {
    const unsigned char *p = source->p;
    if (source->count > source->end - p) return MALFORMED;
    Status status = reserve(columns, self->rows + source->count);
    for (int64_t i = 0; i < source->count && status == DONE; i++) {
        WalkRecord record;
        p = walk_record(p, source->end, &record);
        status = p == NULL ? MALFORMED : put_record(self, columns, self->rows + i, source, &record);
    }
    return status == DONE && p != source->end ? MALFORMED : status;
}

static PyObject *raise_busy(void) {
    PyErr_SetString(PyExc_RuntimeError, "records are being appended by another thread");
    return NULL;
}

/* append(body, at, end, count, base_offset, base_timestamp, append_timestamp): see the stub. */
static PyObject *records_append(RecordColumns *self, PyObject *args) {
    Py_buffer body;
    Py_ssize_t at, end;
    long long count, base_offset, base_timestamp;
    PyObject *appended;
    if (!PyArg_ParseTuple(args, "y*nnLLLO:append", &body, &at, &end, &count, &base_offset, &base_timestamp, &appended))
        return NULL;
    PyObject *result = NULL;
    Column *columns = self->columns;
    Source source = {body.buf, body.buf, count, base_offset, base_timestamp, appended != Py_None};
    if (source.appended) source.base_timestamp = PyLong_AsLongLong(appended);
    if (source.appended && source.base_timestamp == -1 && PyErr_Occurred()) goto done;
    if (at < 0 || end < at || end > body.len || count < 0) {
        PyErr_SetString(PyExc_ValueError, "the records are not within the buffer");
        goto done;
    }
    if (columns == NULL) {
        raise_busy();
        goto done;
    }
    source.p += at;
    source.end += end;
    Status status;
    self->columns = NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = put_records(self, columns, &source);
    if (status != DONE) take_back(columns, self->rows);
    Py_END_ALLOW_THREADS;
    self->columns = columns;
    if (status == DONE) {
        self->rows += count;
        self->batches++;
    }
    if (status == FULL) PyErr_SetString(PyExc_OverflowError, "the columns would hold more than 2 GiB");
    if (status == NO_MEMORY) PyErr_NoMemory();
    if (status == DONE || status == MALFORMED) result = PyBool_FromLong(status == DONE);
done:
    PyBuffer_Release(&body);
    return result;
}

static PyObject *records_finish(RecordColumns *self, PyObject *Py_UNUSED(unused)) {
    Column *full = self->columns, *columns = new_columns(self->shape);
    int64_t rows = self->rows;
    if (columns == NULL) return PyErr_NoMemory();
    if (full == NULL) {
        free_columns(columns);
        return raise_busy();
    }
    self->columns = columns;
    self->rows = self->batches = 0;
    return finish_columns(PyType_GetModuleState(Py_TYPE(self)), full, rows);
}

static int add_part(RecordColumns *self, const char *name) {
    for (int part = 0; part < PARTS; part++) {
        if (strcmp(name, PART_NAMES[part]) != 0 || self->wanted[part] != 0) continue;
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

static int records_init(RecordColumns *self, PyObject *args, PyObject *kwargs) {
    PyObject *names;
    if (self->columns != NULL || (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0)) {
        PyErr_SetString(PyExc_TypeError, "the columns are made once, of a tuple of names");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &names)) return -1;
    self->shape[0].kind = COLUMN_STRUCT;
    self->shape[0].span = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        const char *name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i));
        if (name == NULL || add_part(self, name) < 0) return -1;
    }
    self->columns = new_columns(self->shape);
    if (self->columns != NULL) return 0;
    PyErr_NoMemory();
    return -1;
}

static void records_dealloc(RecordColumns *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (self->columns != NULL) free_columns(self->columns);
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
    .name = "kafka_msgs.columns._speedups.RecordColumns",
    .basicsize = sizeof(RecordColumns),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = records_slots,
};

/* ---------------------------------------------------------------------------------------------- 6 The module */

static int add_type(PyObject *module, PyType_Spec *spec) {
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int failed = type == NULL ? -1 : PyModule_AddType(module, (PyTypeObject *)type);
    Py_XDECREF(type);
    return failed;
}

static int module_exec(PyObject *module) {
    State *state = PyModule_GetState(module);
    state->buffer_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &buffer_spec, NULL);
    if (state->buffer_type == NULL || add_type(module, &program_spec) < 0) return -1;
    return add_type(module, &records_spec);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    State *state = PyModule_GetState(module);
    Py_VISIT(state->buffer_type);
    return 0;
}

static int module_clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->buffer_type);
    return 0;
}

static void module_free(void *module) {
    module_clear((PyObject *)module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_USED}, /* one RecordColumns may be asked by two threads */
#endif
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "kafka_msgs.columns._speedups",
    .m_doc = "The C core of columns.",
    .m_size = sizeof(State),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__speedups(void) {
    return PyModuleDef_Init(&module_def);
}
