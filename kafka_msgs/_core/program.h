/* Programs: the column of each field of a message in a table, for each version. native.py creates programs.
 *
 * A program is read from tuples once and never changes, so any number of threads may run it. The checks in this file
 * protect the memory of the tables: each column has the kind that its values need, and each struct fills all columns
 * below its own exactly once. The meaning of the fields is outside the scope of this file.
 */
#ifndef KAFKA_MSGS_PROGRAM_H
#define KAFKA_MSGS_PROGRAM_H

#include <Python.h>
#include <stdint.h>

#include "column.h"
#include "objects.h"
#include "ops.h"
#include "plan.h"

/* The start of a row: the version prefix `prefix`, followed by the struct `root`. */
typedef struct {
    int prefix;
    int too_deep; /* deeper than the budget: every decode fails */
    const Struct *root;
} Form;

typedef struct {
    PyObject_HEAD
    Column *shape; /* an empty table */
    int32_t *parents;
    Py_ssize_t struct_count, form_count;
    Struct *structs;
    Form *forms;
    int selective;            /* some fields have no column: every encode is refused */
    int prefixed;             /* rows begin with an int16 that chooses the form; otherwise there is one form */
    long long elements, room; /* the decode budget of a row */
    PyObject *allocate;       /* makes memory for tables */
} Program;

static int refuse_program(const char *what) {
    PyErr_Format(PyExc_ValueError, "not %s of a program", what);
    return -1;
}

/* Whether a column can take the values of an op. */
static int takes(const Column *column, int code) {
    return column->kind == COLUMN_KIND[code] && column->width == COLUMN_WIDTH[code];
}

/* Checks that a column is a child of a struct's and of the right kind, or no column at all. */
static int check_column(const Program *self, const Struct *owner, Py_ssize_t column, int code) {
    if (column == 0) return 0;
    if (code == OP_SKIP || column < 0 || column >= self->shape->span || self->parents[column] != owner->home ||
        !takes(&self->shape[column], code))
        return refuse_program("a column");
    return 0;
}

/* The place is the column number, and the last number is the number of the default struct. */
static int load_op(void *program, Struct *owner, PyObject *spec, Op *op) {
    Program *self = program;
    PyObject *column, *initial;
    Py_ssize_t sub;
    int empty;
    if (read_op(spec, op, &sub, &column, &empty) < 0) return -1;
    op->place = PyLong_AsLong(column);
    if (op->place == -1 && PyErr_Occurred()) return -1;
    if (check_column(self, owner, op->place, op->code) < 0) return -1;
    if (sub >= 0 && (op->sub = find_sub(self->structs, self->struct_count, owner, sub)) == NULL) return -1;
    if (op->place == 0) self->selective = 1;
    initial = op->initial;
    if (op->place == 0 || initial == Py_None || op->code == OP_ARRAY) return 0;
    if (op->code == OP_STRUCT)
        return (op->empty = find_sub(self->structs, self->struct_count, owner, empty)) == NULL ? -1 : 0;
    if (!PyBytes_Check(initial) || (FIXED_SIZE[op->code] && PyBytes_GET_SIZE(initial) != FIXED_SIZE[op->code]))
        return refuse_program("a constant");
    return 0;
}

/* Checks an invariant of reading and writing the values of an op: the structs of elements and of defaults, which
 * consist only of constants, have the op's column. */
static int check_value(const Program *self, const Op *op, int is_absent) {
    const Struct *sub = op->sub, *empty = op->empty;
    Py_ssize_t home = op->place == 0 ? -1 : op->place + (op->code == OP_ARRAY);
    int is_struct = op->code == OP_STRUCT || (op->code == OP_ARRAY && op->item_code == OP_STRUCT);
    if (!is_absent && is_struct && (sub == NULL || sub->home != home)) return refuse_program("a struct");
    if (empty != NULL &&
        (empty->home != home || empty->ops->label != OP_END || empty->tagged->label != OP_END || empty->unknown))
        return refuse_program("a constant");
    if (!is_absent && op->code == OP_ARRAY && op->place != 0 && !takes(&self->shape[home], op->item_code))
        return refuse_program("a list");
    return 0;
}

/* Checks the ops of a struct, and that each column below its own is filled in once: no index of it may stay as the memory
 * was. Fields of fixed size that are not wanted are skipped. */
static int check_struct(const Program *self, const Struct *s) {
    const Op *lists[] = {s->ops, s->tagged, s->absent};
    unsigned char *filled = new_items(self->shape->span, 1);
    if (filled == NULL) return -1;
    int failed = 0;
    for (int which = 0; which < 3; which++)
        for (const Op *op = lists[which]; op->label != OP_END && !failed; op++) {
            int misplaced = which ? op->code == OP_SKIP : op->place == 0 && op->code <= OP_UUID;
            filled[op->place] = filled[op->place] ? 2 : 1;
            failed = misplaced ? refuse_program("a field") : check_value(self, op, which == 2);
        }
    filled[s->unknown] = filled[s->unknown] ? 2 : 1;
    for (int32_t i = s->home + 1; s->home >= 0 && i < s->home + self->shape[s->home].span && !failed; i++)
        if (self->parents[i] == s->home && filled[i] != 1) failed = refuse_program("the fields");
    PyMem_Free(filled);
    return failed;
}

/* Whether columns shaped like a map stand at a place: a list of structs of an int32 and a text. */
static int is_map(const Program *self, int32_t column) {
    const Column *map = &self->shape[column];
    return map->kind == COLUMN_LIST && map->span == 4 && map[1].kind == COLUMN_STRUCT && takes(&map[2], OP_INT32) &&
           takes(&map[3], OP_BYTES);
}

/* Reads (home, unknown tags' column, flexible, steps, tagged, absent, inactive tags). */
static int load_struct(Program *self, PyObject *spec, Struct *target) {
    int home, unknown;
    PyObject *steps, *tagged, *absent, *inactive;
    if (!PyArg_ParseTuple(spec, "iipO!O!O!O!", &home, &unknown, &target->flexible, &PyTuple_Type, &steps, &PyTuple_Type,
                          &tagged, &PyTuple_Type, &absent, &PyTuple_Type, &inactive))
        return -1;
    if (home < -1 || home >= self->shape->span || (home >= 0 && self->shape[home].kind != COLUMN_STRUCT))
        return refuse_program("a struct");
    target->home = home;
    if (check_column(self, target, unknown, OP_ARRAY) < 0) return -1;
    if (unknown != 0 && !is_map(self, unknown)) return refuse_program("a map");
    target->unknown = unknown;
    return load_fields(self, load_op, target, steps, tagged, absent, inactive);
}

static int load_structs(Program *self, PyObject *specs) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    self->structs = new_items(count, sizeof(Struct));
    if (self->structs == NULL) return -1;
    self->struct_count = count;
    for (Py_ssize_t i = 0; i < count; i++)
        if (load_struct(self, PyTuple_GET_ITEM(specs, i), &self->structs[i]) < 0) return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (check_struct(self, &self->structs[i]) < 0) return -1;
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

/* Records the parent of a column, after the parents of all columns before it; -1 if the column does not fit into its
 * parent. A list has one child column; other columns except structs have none. */
static int load_parent(Program *self, int32_t number) {
    const Column *shape = self->shape, *column = &shape[number];
    int32_t parent = number - 1;
    while (number > 0 && parent + shape[parent].span <= number)
        parent = self->parents[parent];
    self->parents[number] = parent;
    if (column->kind == COLUMN_LIST ? column->span < 2 : column->kind != COLUMN_STRUCT && column->span > 1) return -1;
    if (number == 0) return 0;
    int32_t left = parent + shape[parent].span - number; /* columns that the parent has from here on */
    if (shape[parent].kind == COLUMN_LIST && (number > parent + 1 || column->span < left)) return -1;
    return column->span > left ? -1 : 0;
}

/* Reads (kind, width, span) of each column. The first one is the struct of all. */
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
            (i == 0 && (kind != COLUMN_STRUCT || span != count)))
            return refuse_program("a column");
        self->shape[i] = (Column){.kind = (unsigned char)kind, .width = (unsigned char)width, .span = span};
        if (load_parent(self, (int32_t)i) < 0) return refuse_program("a column");
    }
    return 0;
}

static void program_dealloc(Program *self) {
    clear_structs(&self->structs, &self->struct_count);
    Py_CLEAR(self->allocate);
    PyMem_Free(self->forms);
    PyMem_Free(self->parents);
    PyMem_Free(self->shape);
    free_instance((PyObject *)self);
}

#endif
