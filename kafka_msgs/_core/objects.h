/* Helpers of the C extensions for Python objects: slots of attrs classes, and attributes of modules. */
#ifndef KAFKA_MSGS_OBJECTS_H
#define KAFKA_MSGS_OBJECTS_H

#include <Python.h>
#include <structmember.h>

static inline PyObject **slot_of(PyObject *object, Py_ssize_t offset) {
    return (PyObject **)((char *)object + offset);
}

/* Returns the offset that a member descriptor of exactly `type` (or of a base) reads and writes; -1 if it is not one. */
static inline Py_ssize_t slot_offset(PyObject *descriptor, PyTypeObject *type) {
    if (Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
        PyMemberDescrObject *member = (PyMemberDescrObject *)descriptor;
        Py_ssize_t offset = member->d_member->offset;
        if (PyType_IsSubtype(type, PyDescr_TYPE(descriptor)) && member->d_member->type == T_OBJECT_EX &&
            offset >= (Py_ssize_t)sizeof(PyObject) && offset + (Py_ssize_t)sizeof(PyObject *) <= type->tp_basicsize) {
            return offset;
        }
    }
    PyErr_Format(PyExc_TypeError, "%R is not a slot of %R", descriptor, type);
    return -1;
}

/* Returns the offset of the slot that `type` has under a name; -1 without one. */
static inline Py_ssize_t named_slot(PyTypeObject *type, const char *name) {
    PyObject *descriptor = PyObject_GetAttrString((PyObject *)type, name);
    Py_ssize_t offset = descriptor == NULL ? -1 : slot_offset(descriptor, type);
    Py_XDECREF(descriptor);
    return offset;
}

/* Creates an instance without __init__: all slots are NULL, and the cyclic garbage collector does not track it. Only
 * for frozen classes that hold only leaves, tuples and each other, so that no cycle can pass through them. */
static inline PyObject *new_instance(PyTypeObject *type) {
    PyObject *object = PyObject_GC_New(PyObject, type);
    if (object != NULL) {
        PyObject **slot = (PyObject **)(object + 1), **end = (PyObject **)((char *)object + type->tp_basicsize);
        while (slot < end)
            *slot++ = NULL;
    }
    return object;
}

/* Returns a view of some bytes of an object that contains only bytes. The view keeps the object alive. */
static inline PyObject *view_of(PyObject *object, Py_ssize_t at, Py_ssize_t size) {
    PyObject *whole = PyMemoryView_FromObject(object);
    PyObject *view = whole == NULL ? NULL : PySequence_GetSlice(whole, at, at + size);
    Py_XDECREF(whole);
    return view;
}

static inline int refuse(PyObject *exception, const char *reason) {
    PyErr_SetString(exception, reason);
    return -1;
}

static inline int no_memory(void) {
    PyErr_NoMemory();
    return -1;
}

/* Returns memory for one item more than `count`, all zero; NULL with an exception. */
static inline void *new_items(Py_ssize_t count, size_t size) {
    void *items = PyMem_Calloc((size_t)count + 1, size);
    if (items == NULL) PyErr_NoMemory();
    return items;
}

/* Frees the memory of an instance that holds no more references. */
static inline void free_instance(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Frees an instance of a garbage-collected type of the core: clears it, then frees its memory. */
static inline void dealloc_tracked(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Py_TYPE(self)->tp_clear(self);
    free_instance(self);
}

/* For the collector: visits references that stand side by side. */
static inline int visit_all(PyObject *const *first, size_t count, visitproc visit, void *arg) {
    for (size_t i = 0; i < count; i++)
        Py_VISIT(first[i]);
    return 0;
}

static inline void clear_all(PyObject **first, size_t count) {
    for (size_t i = 0; i < count; i++)
        Py_CLEAR(first[i]);
}

/* Sorts the arguments of a call by parameter. The first `positional` parameters accept positional arguments; NULL
 * entries are not parameters. Returns 0 if an argument is unexpected, or its parameter already has an argument. */
static inline int sort_arguments(PyObject *const *parameters, int total, int positional, PyObject *const *args,
                                 Py_ssize_t count, PyObject *names, PyObject **sorted) {
    Py_ssize_t given = 0;
    for (int i = 0; i < positional && given < count; i++)
        if (parameters[i] != NULL) sorted[i] = args[given++];
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        int at = 0;
        while (at < total && parameters[at] != name)
            at++;
        for (int j = 0; at == total && j < total; j++) /* a name that was made at run time */
            if (parameters[j] != NULL && PyUnicode_Compare(parameters[j], name) == 0) at = j;
        if (at == total || sorted[at] != NULL) return 0;
        sorted[at] = args[count + i];
    }
    return given == count;
}

static inline PyObject *import_attribute(const char *module_name, const char *name) {
    PyObject *module = PyImport_ImportModule(module_name);
    PyObject *value = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    Py_XDECREF(module);
    return value;
}

#endif
