/* Plans, as the codec and the columns execute them: structs, and an op for each of their fields.
 *
 * Python lowers plans to tuples. This file reads and checks everything that determines the bytes. The `LoadOp` of the
 * codec or of the columns decides the destination of the values: attributes or columns.
 */
#ifndef KAFKA_MSGS_PLAN_H
#define KAFKA_MSGS_PLAN_H

#include <Python.h>
#include <stdint.h>

#include "objects.h"
#include "ops.h"

/* Labels of ops, and where they lead: a value of fixed size, and three fixed sizes with separate code; an int64 right
 * after another one; a value with a length or a marker; a value with a compact length; an array of int32 with a compact
 * length that is not nullable, which is frequent in Kafka's messages; a skipped value; and the end, after the last op of
 * every list. */
/* clang-format off */
#define EACH_LABEL(X)                                                                                                  \
    X(OP_FIXED, fixed) X(OP_SHORT, int16) X(OP_INT, int32) X(OP_LONG, int64) X(OP_NEXT_LONG, next_int64)               \
    X(OP_SIZED, sized) X(OP_COMPACT, compact) X(OP_IDS, ids) X(OP_PASS, pass) X(OP_END, end)
/* clang-format on */
#define NUMBER(number, name) number,
enum { EACH_LABEL(NUMBER) };

struct Struct;

typedef struct {
    unsigned char code, flags, label;
    unsigned char item_code, item_flags; /* arrays: how an element is written */
    unsigned char ignorable;             /* whether encoding drops the value of a field that the version lacks */
    uint32_t tag;
    int edit;                 /* the number of the edit of the value, negative for that of each element; 0 for none */
    Py_ssize_t place;         /* the offset of the attribute in the object, or the number of the column, 0 for none */
    Py_ssize_t size;          /* arrays: the least size of an element; OP_SKIP: bytes */
    Py_ssize_t run;           /* bytes of the fixed-size values that follow, up to the next op that is not */
    const struct Struct *sub; /* structs and arrays of structs; borrowed from the program */
    union {
        const struct Struct *empty; /* columns: the default of a struct, which has absent fields only */
        PyObject *nothing;          /* the codec: the empty string, bytes or tuple; borrowed */
    };
    PyObject *initial; /* the default, in columns as bytes without a length; owned */
} Op;

typedef struct Struct {
    PyTypeObject *type; /* owned, NULL in columns */
    int32_t home;       /* the column whose children its values are; -1: none is wanted */
    int flexible;
    int partial;        /* unknown tagged fields are passed over */
    int tracked;        /* the collector knows the instances: the class may go, and refer to them */
    int comparable;     /* the class is sealed, and has no floats, which need not equal themselves */
    int depth;          /* how many structs contain each other down to here */
    Py_ssize_t unknown; /* the place of unknown tagged fields */
    Py_ssize_t run;     /* bytes of the fixed-size values that the struct begins with */
    Op *ops;            /* positional; NULL before loading, like the other lists */
    Op *tagged;         /* in ascending order of tag */
    Op *absent;         /* fields that this version lacks, as they would be written at a version that has them */
    uint32_t *inactive; /* declared tags that are not valid at this version, followed by UINT32_MAX */
} Struct;

#define MAX_DEPTH 1000 /* of structs in each other: each takes some of the stack */

/* Returns a struct by its number, which must exceed its owner's so that no struct contains itself; NULL with an
 * exception. */
static const Struct *find_sub(Struct *structs, Py_ssize_t count, const Struct *owner, Py_ssize_t number) {
    if (number <= owner - structs || number >= count || owner->depth >= MAX_DEPTH) {
        PyErr_SetString(PyExc_ValueError, "not a struct of a program");
        return NULL;
    }
    if (structs[number].depth <= owner->depth) structs[number].depth = owner->depth + 1;
    return &structs[number];
}

/* Whether a budget is one. */
static int check_budget(long long elements, long long room) {
    return elements < 0 || room < 0 ? refuse(PyExc_ValueError, "a budget is not negative") : 0;
}

typedef int LoadOp(void *program, Struct *owner, PyObject *spec, Op *op);

/* Reads (code, flags, item code, item flags, item's least size or bytes to skip, struct index, tag, default, ignorable,
 * place, a number); what the last two and the struct are is not checked. */
static int read_op(PyObject *spec, Op *op, Py_ssize_t *sub, PyObject **place, int *number) {
    int code, flags, item_code, item_flags, ignorable;
    PyObject *initial;
    if (!PyArg_ParseTuple(spec, "iiiinnIOpOi", &code, &flags, &item_code, &item_flags, &op->size, sub, &op->tag,
                          &initial, &ignorable, place, number))
        return -1;
    if (code < 0 || code > OP_SKIP || item_code < 0 || item_code > OP_STRUCT || item_code == OP_ARRAY || op->size < 1 ||
        op->size > MAX_LENGTH || op->size < FIXED_SIZE[item_code])
        return refuse(PyExc_ValueError, "not an op of a plan");
    op->code = (unsigned char)code;
    op->label = code == OP_INT16   ? OP_SHORT
                : code == OP_INT32 ? OP_INT
                : code == OP_INT64 ? OP_LONG
                : code < FIXED_OPS ? OP_FIXED
                                   : OP_SIZED;
    op->flags = (unsigned char)flags;
    op->item_code = (unsigned char)item_code;
    op->item_flags = (unsigned char)item_flags;
    op->ignorable = (unsigned char)ignorable;
    op->initial = Py_NewRef(initial);
    return 0;
}

static int load_ops(void *program, LoadOp *load_op, Struct *owner, PyObject *specs, Op **ops) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    *ops = new_items(count, sizeof(Op));
    for (Py_ssize_t i = 0; *ops != NULL && i <= count; i++)
        (*ops)[i].label = OP_END; /* at which loading stopped, too */
    for (Py_ssize_t i = 0; *ops != NULL && i < count; i++)
        if (load_op(program, owner, PyTuple_GET_ITEM(specs, i), *ops + i) < 0) return -1;
    return *ops == NULL ? -1 : 0;
}

/* Reads a tuple of tags. */
static int load_tags(PyObject *specs, uint32_t **tags) {
    Py_ssize_t count = PyTuple_GET_SIZE(specs);
    *tags = new_items(count, sizeof(uint32_t));
    for (Py_ssize_t i = 0; *tags != NULL && i < count; i++)
        (*tags)[i] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(specs, i));
    if (*tags != NULL) (*tags)[count] = UINT32_MAX;
    return PyErr_Occurred() ? -1 : 0;
}

/* Fills in the fields of a struct, and the runs of fixed-size values among them: each is checked for or reserved at once. */
static int load_fields(void *program, LoadOp *load_op, Struct *target, PyObject *steps, PyObject *tagged,
                       PyObject *absent, PyObject *inactive) {
    if (load_ops(program, load_op, target, steps, &target->ops) < 0 ||
        load_ops(program, load_op, target, tagged, &target->tagged) < 0 ||
        load_ops(program, load_op, target, absent, &target->absent) < 0)
        return -1;
    Py_ssize_t *run = &target->run;
    int label = OP_END; /* of the op before */
    for (Op *op = target->ops; op->label != OP_END; label = op++->label) {
        if (op->label == OP_LONG && (label == OP_LONG || label == OP_NEXT_LONG)) op->label = OP_NEXT_LONG;
        if (op->code == OP_SKIP || FIXED_SIZE[op->code])
            *run += op->code == OP_SKIP ? op->size : FIXED_SIZE[op->code];
        else
            run = &op->run;
    }
    return load_tags(inactive, &target->inactive);
}

static void clear_ops(Op *ops) {
    for (Op *op = ops; ops != NULL && op->label != OP_END; op++)
        Py_CLEAR(op->initial);
    PyMem_Free(ops);
}

static void clear_structs(Struct **structs, Py_ssize_t *count) {
    for (; *count > 0; --*count) {
        Struct *each = *structs + *count - 1;
        clear_ops(each->ops);
        clear_ops(each->tagged);
        clear_ops(each->absent);
        PyMem_Free(each->inactive);
        Py_CLEAR(each->type);
    }
    PyMem_Free(*structs);
    *structs = NULL;
}

/* Returns the field of a tag; NULL if the schema does not define the tag at this version. */
static inline const Op *find_tag(const Struct *s, int64_t tag) {
    const Op *op = s->tagged;
    while (op->label != OP_END && op->tag != tag)
        op++;
    return op->label == OP_END ? NULL : op;
}

static inline int is_inactive(const Struct *s, int64_t tag) {
    const uint32_t *inactive = s->inactive;
    while (*inactive != UINT32_MAX && *inactive != tag)
        inactive++;
    return *inactive == tag;
}

#endif
