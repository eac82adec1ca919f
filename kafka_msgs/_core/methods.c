/* encode, decode and read of message classes: from the class and the version straight to the codec.
 *
 * A method wraps the Python method, and calls it in all unusual cases, such as a class that is not sealed or invalid
 * arguments. It caches codecs in the layout of the class.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "compat.h"
#include "values.h"

enum { OWNER, DATA, VERSION, OFFSET, OPTIONS, PARAMETERS };

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function; /* the method in Python */
    PyObject *dict;
    int verb;
    PyObject *names[PARAMETERS]; /* of parameters, interned; NULL for missing parameters */
} Method;

static inline CachedCodec *entry_of(Layout *layout, int64_t version, PyObject *options) {
    return &layout->codecs[(version * 2 + (options != NULL)) % CACHED_CODECS];
}

/* Caches a codec for the next call. Without the GIL the first codec of an entry stays: other threads may be using
 * it. */
static void keep_codec(Layout *layout, int64_t version, PyObject *options, PyObject *codec) {
    CachedCodec *entry = entry_of(layout, version, options);
    Py_BEGIN_CRITICAL_SECTION(layout);
    CachedCodec old = *entry;
    if (HAS_GIL || old.codec == NULL) {
        entry->version = (Py_ssize_t)version;
        entry->options = Py_XNewRef(options);
        STORE_RELEASE(entry->codec, Py_NewRef(codec));
        Py_XDECREF(old.options);
        Py_XDECREF(old.codec);
    }
    Py_END_CRITICAL_SECTION();
}

/* Returns the core's codec for a class, a version and options; NULL if none exists, possibly without an exception.
 * `*held` is the reference that keeps the codec alive, a new reference or NULL. */
static PyObject *find_codec(Layout *layout, PyObject *version, PyObject *options, PyObject **held) {
    int64_t number;
    if (!PyLong_CheckExact(version) || !compact_long(version, &number) || number < 0) return NULL;
    CachedCodec *entry = entry_of(layout, number, options);
    PyObject *known = LOAD_ACQUIRE(entry->codec);
    if (known != NULL && entry->version == number && entry->options == options) {
        *held = HELD(known);
        return known;
    }
    PyObject *find = import_attribute("kafka_msgs.codec", "codec_for");
    PyObject *found = find == NULL ? NULL : PyObject_CallFunctionObjArgs(find, layout->type, version, options, NULL);
    PyObject *codec = found == NULL ? NULL : codec_of(found);
    Py_XDECREF(find);
    Py_XDECREF(found);
    if (codec != NULL) keep_codec(layout, number, options, codec);
    return *held = codec;
}

static PyObject *method_call(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names) {
    Method *self = (Method *)callable;
    PyObject *bound[PARAMETERS] = {NULL}, *result = NULL, *codec = NULL, *held = NULL;
    Layout *layout = NULL;
    if (sort_arguments(self->names, PARAMETERS, OPTIONS, args, PyVectorcall_NARGS(flags), names, bound) &&
        bound[OWNER] != NULL && bound[VERSION] != NULL && (self->names[DATA] == NULL || bound[DATA] != NULL)) {
        PyObject *type = self->verb == CODEC_ENCODE ? (PyObject *)Py_TYPE(bound[OWNER]) : bound[OWNER];
        if (PyType_Check(type)) layout = layout_of((PyTypeObject *)type);
    }
    if (layout != NULL) {
        PyObject *held_layout = HELD(layout);
        codec = find_codec(layout, bound[VERSION], bound[OPTIONS], &held);
        Py_XDECREF(held_layout);
    }
    if (codec == NULL) return PyErr_Occurred() ? NULL : PyObject_Vectorcall(self->function, args, flags, names);
    result = codec_run(codec, self->verb, bound[self->verb == CODEC_ENCODE ? OWNER : DATA], bound[OFFSET]);
    Py_XDECREF(held);
    return result;
}

/* Method(function, verb, names): names contains the parameter names of self or cls, data, version, offset and options,
 * or None. */
static PyObject *method_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *function, *names[PARAMETERS];
    int verb;
    if (!PyArg_ParseTuple(args, "Oi(OOOOO)", &function, &verb, &names[OWNER], &names[DATA], &names[VERSION],
                          &names[OFFSET], &names[OPTIONS]))
        return NULL;
    if (verb < CODEC_ENCODE || verb > CODEC_READ || (verb == CODEC_ENCODE) == PyUnicode_CheckExact(names[DATA]))
        return PyErr_Format(PyExc_ValueError, "not a method with these parameters");
    Method *self = (Method *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->call = method_call;
    self->function = Py_NewRef(function);
    self->verb = verb;
    for (int i = 0; i < PARAMETERS; i++) {
        if (!PyUnicode_CheckExact(names[i])) continue;
        self->names[i] = Py_NewRef(names[i]);
        PyUnicode_InternInPlace(&self->names[i]);
    }
    return (PyObject *)self;
}

static PyObject *method_bind(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type)) {
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

/* Pickles find a method by its name, as they find functions. */
static PyObject *method_reduce(PyObject *self, PyObject *Py_UNUSED(ignored)) {
    return PyObject_GetAttrString(self, "__qualname__");
}

static int method_traverse(Method *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->function);
    Py_VISIT(self->dict);
    return 0;
}

static int method_clear(Method *self) {
    Py_CLEAR(self->function);
    Py_CLEAR(self->dict);
    for (int i = 0; i < PARAMETERS; i++)
        Py_CLEAR(self->names[i]);
    return 0;
}

static PyMemberDef method_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Method, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Method, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef method_attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef method_methods[] = {
    {"__reduce__", method_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot method_slots[] = {
    {Py_tp_new, method_new},         {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, method_bind},  {Py_tp_traverse, method_traverse},
    {Py_tp_clear, method_clear},     {Py_tp_dealloc, dealloc_tracked},
    {Py_tp_members, method_members}, {Py_tp_getset, method_attributes},
    {Py_tp_methods, method_methods}, {0, NULL},
};

int methods_add(PyObject *module) {
    unsigned flags = Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    return core_add_type(module, CORE_NAME ".Method", sizeof(Method), flags, method_slots, NULL) == NULL ? -1 : 0;
}
