/* Shared declarations of the core: the module state, and the functions that add each part to the module.
 *
 * The core is a single module, so either all of its parts are available or none. module.c assembles it from values.c,
 * methods.c, codec.c, records.c, columns.c and log.c. The codec depends on the values, and the methods depend on the
 * values and the codec. A module object owns all state, so each interpreter has a separate state, shared by its
 * threads. The GIL guards the state, including the memos. Without the GIL there are no memos, and shared data never
 * changes, is published as compat.h describes, or is guarded by the lock of its object.
 *
 * The core only adds speed: without the extension the library behaves identically.
 */
#ifndef KAFKA_MSGS_CORE_H
#define KAFKA_MSGS_CORE_H

#include <Python.h>
#include <stdint.h>

#define CORE_NAME "kafka_msgs._core.extension"

/* ----------------------------------------------------------------------------------------------------- values.c */

#define FREE_SIZES 32 /* instances of so many slots and more are not kept when they are freed */

#if defined(__SANITIZE_ADDRESS__) || defined(Py_GIL_DISABLED)
#define FREE_BYTES 0 /* what was freed stays visible as such; without the GIL each thread has free memory of its own */
#else
#define FREE_BYTES (128 * 1024) /* at most, for each number of slots */
#endif

typedef struct {
    PyObject *free[FREE_SIZES]; /* memory of freed instances by their number of slots, linked through the first slot */
    int room[FREE_SIZES];       /* how many more are kept */
} ValuesState;

int values_add(PyObject *module, ValuesState *state);
void values_forget(ValuesState *state);
int methods_add(PyObject *module);

/* ------------------------------------------------------------------------------------------------------ codec.c */

#define LEAST_INT      -5  /* of the ints that CPython keeps, up to 256 */
#define SMALL_INTS     262 /* so many */
#define CODEC_OBJECTS  (8 + SMALL_INTS)
#define INT_MEMO       256 /* entries; ints above CPython's own cache that repeat, such as ids and epochs */
#define TUPLE_MEMO     64  /* entries; short int32 arrays that repeat, such as replicas */
#define TUPLE_MEMO_MAX 7   /* the most elements of such an array */

typedef struct {
    int64_t key;
    PyObject *value; /* owned, or NULL */
} IntEntry;

typedef struct {
    Py_ssize_t count; /* 0 when the entry is not in use */
    uint32_t words[TUPLE_MEMO_MAX];
    PyObject *value; /* owned, or NULL */
} TupleEntry;

typedef struct {
    ValuesState *values;     /* of the same module */
    Py_ssize_t uuid_int;     /* offset of UUID.int */
    Py_ssize_t uuid_is_safe; /* offset of UUID.is_safe */
    union {
        struct {
            PyObject *malformed; /* the exception that means: let the reference explain */
            PyTypeObject *uuid_type;
            PyObject *uuid_unknown; /* SafeUUID.unknown */
            PyObject *zero_uuid, *empty_tuple, *empty_str, *empty_bytes, *empty_view, *small[SMALL_INTS];
        };
        PyObject *owned[CODEC_OBJECTS]; /* all of these */
    };
    IntEntry ints[INT_MEMO];
    TupleEntry tuples[TUPLE_MEMO];
} CodecState;

enum { CODEC_ENCODE, CODEC_DECODE, CODEC_READ };

/* Returns the core's part of a codec in Python, a new reference; NULL without an exception if it has none. */
PyObject *codec_of(PyObject *codec);

/* Does what the function of a codec does; the offset, which only reading has, may be NULL. */
PyObject *codec_run(PyObject *codec, int verb, PyObject *subject, PyObject *offset);

int codec_add(PyObject *module, CodecState *state);
void codec_forget(CodecState *state);

/* ---------------------------------------------------------------------------------------------------- records.c */

enum { ARGUMENTS = 5, /* that append takes for a record */ RECORDS_OBJECTS = 6 + ARGUMENTS };

typedef union {
    struct {
        PyTypeObject *storage_type;
        PyTypeObject *record_type;                       /* a subclass that adds nothing; NULL until it is bound */
        PyTypeObject *placed_storage_type, *placed_type; /* the same for records with topic and partition */
        PyObject *empty_tuple;
        PyObject *checked;          /* the function that makes arguments exact, or raises; NULL until it is bound */
        PyObject *names[ARGUMENTS]; /* of append's arguments */
    };
    PyObject *owned[RECORDS_OBJECTS]; /* all of these */
} RecordsState;

int records_add(PyObject *module, RecordsState *state);

/* ------------------------------------------------------------------------------------------- columns.c and log.c */

int columns_add(PyObject *module);
int log_add(PyObject *module);

/* ----------------------------------------------------------------------------------------------------- module.c */

typedef struct {
    ValuesState values;
    CodecState codec;
    RecordsState records;
} CoreState;

extern struct PyModuleDef core_module;

/* Returns the state of the module that made a type, or a base of it; NULL with an exception. */
static inline CoreState *core_of_type(PyTypeObject *type) {
    PyObject *module = PyType_GetModuleByDef(type, &core_module);
    return module == NULL ? NULL : PyModule_GetState(module);
}

static inline CoreState *core_of_module(PyObject *module) {
    return PyModule_GetState(module);
}

/* Makes a type, of a base or NULL, and adds it to the module, which keeps it alive; returns it, borrowed, or NULL with an
 * exception. */
static inline PyTypeObject *core_add_type(PyObject *module, const char *name, size_t size, unsigned flags,
                                          PyType_Slot *slots, PyTypeObject *base) {
    PyType_Spec spec = {name, (int)size, 0, Py_TPFLAGS_DEFAULT | flags, slots};
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, (PyObject *)base);
    if (type == NULL) return NULL;
    int failed = PyModule_AddType(module, (PyTypeObject *)type);
    Py_DECREF(type);
    return failed ? NULL : (PyTypeObject *)type;
}

#endif
