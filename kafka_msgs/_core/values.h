/* Sealed classes: message classes whose instances the core creates, compares, hashes and frees. See values.c. */
#ifndef KAFKA_MSGS_VALUES_H
#define KAFKA_MSGS_VALUES_H

#include <Python.h>
#include <stddef.h>

#include "core.h"
#include "objects.h"

#define CACHED_CODECS 16 /* of a class: of 8 versions with the default options, and of 8 with others */

typedef struct {
    PyObject *name, *initial; /* owned; the name is interned */
    Py_ssize_t offset;
} Field;

typedef struct {
    Py_ssize_t version;
    PyObject *options, *codec; /* owned; NULL for the default options, and for an entry that is not in use */
} CachedCodec;

/* The layout of a class. The class holds its layout as an attribute, and the layout holds the class; the garbage
 * collector tracks both references. The class is sealed as long as its layout lives. */
typedef struct {
    PyObject_HEAD
    PyMethodDef none;   /* an empty list: tp_methods of the class, which is NULL otherwise, points here */
    PyTypeObject *type; /* owned */
    unsigned tag;       /* the version tag of the class at the last check that it can stay sealed */
    int temporary;      /* the class may be collected before the process ends, so its instances are tracked */
    CoreState *core;    /* borrowed from the module, which the type of layouts keeps alive */
    Py_ssize_t count;
    Field *fields;                     /* in the order of the definition */
    CachedCodec codecs[CACHED_CODECS]; /* by the lowest bits of the version, and whether options are given */
    destructor dealloc;                /* this and the next two: the original slots of the class */
    richcmpfunc compare;
    hashfunc hash;
} Layout;

void value_dealloc(PyObject *self);

/* Returns the layout of a sealed class, borrowed; NULL for other classes. */
static inline Layout *layout_of(PyTypeObject *type) {
    if (type->tp_dealloc != value_dealloc) return NULL;
    return (Layout *)((char *)type->tp_methods - offsetof(Layout, none));
}

/* Returns whether a class and its bases are defined in Python, as `other` is: allocation alone creates an instance. */
static inline int consists_of_slots(const PyTypeObject *type, const PyTypeObject *other) {
    while (type != &PyBaseObject_Type && (type->tp_dealloc == other->tp_dealloc || type->tp_dealloc == value_dealloc))
        type = type->tp_base;
    return type == &PyBaseObject_Type;
}

static inline int is_temporary(PyTypeObject *type) {
    return layout_of(type) == NULL || layout_of(type)->temporary;
}

static inline size_t slot_count(PyTypeObject *type) {
    return (size_t)(type->tp_basicsize - (Py_ssize_t)sizeof(PyObject)) / sizeof(PyObject *);
}

/* Creates an instance of a class with slots, like new_instance; sealed classes reuse recycled memory. */
static inline PyObject *new_value(ValuesState *state, PyTypeObject *type) {
    size_t slots = slot_count(type);
    if (type->tp_dealloc != value_dealloc || slots >= FREE_SIZES || state->free[slots] == NULL)
        return new_instance(type);
    PyObject *object = state->free[slots], **link = (PyObject **)(object + 1);
    state->free[slots] = *link;
    state->room[slots]++;
    *link = NULL; /* as all other slots are */
    return PyObject_Init(object, type);
}

#endif
