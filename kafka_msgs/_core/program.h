/* Programs: where each field of a message goes in a table, at each of its versions. native.py makes them.
 *
 * A program is read from tuples once and never changes, so any number of threads may run it. What is checked here is all
 * that the memory of the tables depends on: that each column is of the kind that its values need, and that each struct
 * fills in all columns below its own, once. What the fields mean is not known here.
 */
#ifndef KAFKA_MSGS_PROGRAM_H
#define KAFKA_MSGS_PROGRAM_H

#include <Python.h>
#include <stdint.h>

#include "column.h"
#include "objects.h"
#include "ops.h"

/* A pseudo-op behind the last op of every struct. */
#define OP_END (OP_SKIP + 1)

struct Struct;

/* The value that a field has where it is not in the bytes. */
typedef struct {
    unsigned char code;
    int32_t column;           /* 0: none */
    int null;                 /* else what `raw` holds, or what `sub` says, or an empty array */
    int ignorable;            /* whether encoding drops another value, where the field is not in the bytes */
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
    PyObject *allocate;     /* makes memory for tables */
} Program;

static int refuse_program(const char *what) {
    PyErr_Format(PyExc_ValueError, "not %s of a program", what);
    return -1;
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

/* Reads (code, column, null, ignorable, bytes or None, struct number). */
static int load_constant(const Program *self, const Struct *owner, PyObject *spec, Constant *target) {
    int code, column;
    Py_ssize_t sub;
    PyObject *raw;
    if (!PyArg_ParseTuple(spec, "iippOn", &code, &column, &target->null, &target->ignorable, &raw, &sub)) return -1;
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
        load_absent(self, target, absent) < 0 || load_numbers(inactive, &target->inactive, &target->inactive_count) < 0)
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

static int is_constant(const Constant *constant) {
    const Struct *sub = constant->sub;
    return sub == NULL || (sub->op_count == 0 && sub->tagged_count == 0 && sub->unknown == 0);
}

/* Checks that structs that are defaults are made of constants alone. */
static int check_constants(const Program *self) {
    for (const Struct *s = self->structs; s < self->structs + self->struct_count; s++) {
        for (Py_ssize_t i = 0; i < s->absent_count; i++)
            if (!is_constant(&s->absent[i])) return refuse_program("a constant");
        for (Py_ssize_t i = 0; i < s->tagged_count; i++)
            if (!is_constant(&s->tagged[i].initial)) return refuse_program("a constant");
    }
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
    Py_CLEAR(self->allocate);
    PyMem_Free(self->structs);
    PyMem_Free(self->forms);
    PyMem_Free(self->parents);
    PyMem_Free(self->shape);
}

#endif
