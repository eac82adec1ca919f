/* Sealed classes: C versions of the methods that attrs and schema.py add to message classes.
 *
 * A class is sealed when it is created: `Layout` replaces the slots of the type, and restores them at its end. Only
 * speed changes. The fast versions leave unexpected arguments to the class itself, which raises the errors.
 *
 * The garbage collector tracks an instance only if a cycle could pass through it, see `in_cycle`.
 *
 * Without the GIL, a class whose layout is in use by another thread stays sealed: only the fast call of the class ends,
 * see `retire`.
 *
 * Sections: 1 making values, 2 comparing and hashing, 3 freeing, 4 layouts, 5 what the module keeps.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "compat.h"
#include "values.h"

/* -------------------------------------------------------------------------------------------------- 1 Making values */

/* Returns whether a cycle could pass through a value. Numbers, text and UUIDs hold no references; an untracked tuple or
 * value holds only objects that need no tracking. */
static inline int in_cycle(const CoreState *core, PyObject *value) {
    PyTypeObject *type = Py_TYPE(value);
    if (!PyType_IS_GC(type) || value == core->codec.empty_tuple || type == core->codec.uuid_type) return 0;
    return (!PyTuple_CheckExact(value) && layout_of(type) == NULL) || PyObject_GC_IsTracked(value);
}

/* Finds a field by its name; arguments are mostly in the order of the fields, so the search starts with `next`. */
static const Field *find_field(const Layout *layout, const Field *next, PyObject *name) {
    const Field *end = layout->fields + layout->count;
    for (const Field *field = next; field < end; field++)
        if (field->name == name) return field;
    for (const Field *field = layout->fields; field < next; field++)
        if (field->name == name) return field;
    for (const Field *field = layout->fields; field < end; field++)
        if (PyUnicode_Check(name) && PyUnicode_Compare(field->name, name) == 0) return field;
    return NULL;
}

/* Fills the slots that keyword arguments name; returns 0 without an exception if one names no field, or one twice. */
static int fill_given(const Layout *layout, PyObject *self, PyObject *const *args, PyObject *names) {
    const Field *next = layout->fields;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        const Field *field = find_field(layout, next, PyTuple_GET_ITEM(names, i));
        if (field == NULL || *slot_of(self, field->offset) != NULL) return 0;
        *slot_of(self, field->offset) = Py_NewRef(args[i]);
        next = field + 1;
    }
    return 1;
}

/* Fills the remaining slots from another instance, or with the defaults; returns 0 if `other` also has an empty
 * slot. */
static int fill_rest(const Layout *layout, PyObject *self, PyObject *other) {
    int cyclic = layout->temporary;
    for (const Field *field = layout->fields; field < layout->fields + layout->count; field++) {
        PyObject **slot = slot_of(self, field->offset);
        if (*slot == NULL) *slot = Py_XNewRef(other == NULL ? field->initial : *slot_of(other, field->offset));
        if (*slot == NULL) return 0;
        cyclic |= in_cycle(layout->core, *slot);
    }
    if (cyclic) PyObject_GC_Track(self);
    return 1;
}

/* Creates an instance; NULL without an exception if the arguments are invalid. Here and below, a reference protects the
 * layout in use: foreign code may run, and could unseal the class. */
static PyObject *make_value(Layout *layout, PyObject *other, PyObject *const *args, PyObject *names) {
    PyObject *held = HELD(layout);
    PyObject *self = new_value(&layout->core->values, layout->type);
    if (self != NULL && (!fill_given(layout, self, args, names) || !fill_rest(layout, self, other))) Py_CLEAR(self);
    Py_XDECREF(held);
    return self;
}

/* Calls the function that would run without the core. */
static PyObject *call_class(PyObject *type, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *call = PyObject_GetAttrString((PyObject *)&PyType_Type, "__call__"), *result = NULL;
    PyObject *bound = call == NULL ? NULL : PyMethod_New(call, type);
    if (bound != NULL) result = PyObject_Vectorcall(bound, args, (size_t)count, names);
    Py_XDECREF(call);
    Py_XDECREF(bound);
    return result;
}

static void retire(Layout *self);

/* Whether a changed class still constructs as it did when it was sealed; if not, it is unsealed. */
static Py_NO_INLINE int recheck(Layout *layout) {
    PyTypeObject *type = layout->type;
    PyObject *held = HELD(layout);
    unsigned tag = LOAD_LOOSE(type->tp_version_tag); /* before the check: other threads may change the class */
    PyObject *check = import_attribute("kafka_msgs.instances.sealing", "is_still_sealed");
    PyObject *found = check == NULL ? NULL : PyObject_CallOneArg(check, (PyObject *)type);
    int sealed = found == NULL ? -1 : PyObject_IsTrue(found);
    if (sealed == 1) STORE_LOOSE(layout->tag, tag);
    if (sealed == 0) retire(layout);
    Py_XDECREF(check);
    Py_XDECREF(found);
    Py_XDECREF(held);
    return sealed;
}

static inline int is_sealed(Layout *layout) {
    unsigned tag = LOAD_LOOSE(layout->type->tp_version_tag); /* changes with any attribute of the class or of a base */
    return tag != 0 && tag == LOAD_LOOSE(layout->tag) ? 1 : recheck(layout);
}

static PyObject *construct(PyObject *type, PyObject *const *args, size_t flags, PyObject *names) {
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    Layout *layout = layout_of((PyTypeObject *)type);
    int sealed = is_sealed(layout);
    if (sealed < 0) return NULL;
    PyObject *self = count == 0 && sealed ? make_value(layout, NULL, args, names) : NULL;
    return self != NULL || PyErr_Occurred() ? self : call_class(type, args, count, names);
}

static PyObject *evolve(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Layout *layout = count == 1 ? layout_of(Py_TYPE(args[0])) : NULL;
    PyObject *made = layout != NULL && is_sealed(layout) == 1 ? make_value(layout, args[0], args + 1, names) : NULL;
    if (made != NULL || PyErr_Occurred()) return made;
    PyObject *slower = import_attribute("attrs", "evolve");
    if (slower != NULL) made = PyObject_Vectorcall(slower, args, (size_t)count, names);
    Py_XDECREF(slower);
    return made;
}

/* ------------------------------------------------------------------------------------------ 2 Comparing and hashing */

/* Returns the comparison key of a value: for UUIDs the number, as in the methods of the UUID class. */
static inline PyObject *compared(const CoreState *core, PyObject *value) {
    if (!Py_IS_TYPE(value, core->codec.uuid_type)) return value;
    PyObject *number = *slot_of(value, core->codec.uuid_int);
    return number == NULL ? value : number;
}

/* Returns whether a value always equals itself. A float may not, nor may a value that holds a float. */
static inline int equals_itself(PyObject *value) {
    return PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyTuple_CheckExact(value) || value == Py_None ||
           PyBytes_CheckExact(value) || PyBool_Check(value);
}

/* Returns the content of a field, a new reference; an empty slot raises the same error as the attribute. */
static inline PyObject *content(const Layout *layout, PyObject *self, const Field *field) {
    PyObject *value = *slot_of(self, field->offset);
    return value == NULL ? PyObject_GetAttr(self, field->name) : Py_NewRef(compared(layout->core, value));
}

static int fields_equal(const Layout *layout, PyObject *self, PyObject *other, const Field *field) {
    PyObject *left = content(layout, self, field);
    PyObject *right = left == NULL ? NULL : content(layout, other, field);
    PyObject *same = right == NULL ? NULL : PyObject_RichCompare(left, right, Py_EQ);
    int equal = same == NULL ? -1 : PyObject_IsTrue(same);
    Py_XDECREF(left);
    Py_XDECREF(right);
    Py_XDECREF(same);
    return equal;
}

static PyObject *value_compare(PyObject *self, PyObject *other, int op) {
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(self) != Py_TYPE(other)) Py_RETURN_NOTIMPLEMENTED;
    Layout *layout = layout_of(Py_TYPE(self));
    int equal = 1;
    PyObject *held = HELD(layout);
    for (const Field *field = layout->fields; field < layout->fields + layout->count && equal == 1; field++) {
        PyObject *value = *slot_of(self, field->offset);
        if (value == *slot_of(other, field->offset) && value != NULL && equals_itself(value)) continue;
        equal = fields_equal(layout, self, other, field);
    }
    Py_XDECREF(held);
    return equal < 0 ? NULL : PyBool_FromLong(equal == (op == Py_EQ));
}

/* Combines the hashes of the class and of all fields, as CPython's tuples do. */
static Py_hash_t value_hash(PyObject *self) {
    Layout *layout = layout_of(Py_TYPE(self));
    Py_uhash_t hash = (Py_uhash_t)layout->type >> 4;
    if (Py_EnterRecursiveCall(" while hashing a message")) return -1;
    PyObject *held = HELD(layout);
    for (const Field *field = layout->fields; field < layout->fields + layout->count; field++) {
        PyObject *value = content(layout, self, field);
        Py_hash_t lane = value == NULL ? -1 : PyObject_Hash(value);
        Py_XDECREF(value);
        if (lane == -1) {
            hash = (Py_uhash_t)-1;
            break;
        }
        uint64_t mixed = (uint64_t)hash + (uint64_t)lane * 0xC2B2AE3D27D4EB4Fu;
        hash = (Py_uhash_t)((mixed << 31 | mixed >> 33) * 0x9E3779B185EBCA87u);
        if (hash == (Py_uhash_t)-1) hash = 1546275796;
    }
    Py_XDECREF(held);
    Py_LeaveRecursiveCall();
    return (Py_hash_t)hash;
}

/* -------------------------------------------------------------------------------------------------------- 3 Freeing */

/* Recycles or frees the memory of an instance whose slots are empty. */
static void give_back(PyObject *self, PyTypeObject *sealed) {
    PyTypeObject *type = Py_TYPE(self);
    Layout *layout = layout_of(sealed); /* NULL if code that ran meanwhile unsealed the class */
    size_t slots = slot_count(sealed);
    ValuesState *state = layout == NULL ? NULL : &layout->core->values;
    if (state != NULL && type == sealed && slots < FREE_SIZES && state->room[slots] > 0) {
        *(PyObject **)(self + 1) = state->free[slots];
        state->free[slots] = self;
        state->room[slots]--;
    } else {
        type->tp_free(self);
    }
    Py_DECREF(type);
}

/* Clears the remaining slots, whose values might free further values: CPython's trashcan limits the depth. */
static void release_deep(PyObject *self, PyTypeObject *sealed) {
    Py_TRASHCAN_BEGIN(self, value_dealloc) PyObject **slot = (PyObject **)(self + 1);
    for (PyObject **end = slot + slot_count(sealed); slot < end; slot++)
        Py_CLEAR(*slot);
    give_back(self, sealed);
    Py_TRASHCAN_END
}

/* Frees an instance of a sealed class, or the part that it has in an instance of a subclass, of which CPython took care. */
void value_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self), *sealed = type;
    while (sealed->tp_dealloc != value_dealloc)
        sealed = sealed->tp_base;
    PyObject_GC_UnTrack(self);
    PyObject **slot = (PyObject **)(self + 1), **end = slot + slot_count(sealed);
    int deep = 0;
    for (; slot < end; slot++) {
        PyObject *value = *slot;
        if (value == NULL) continue;
        if (Py_REFCNT(value) == 1 && PyType_IS_GC(Py_TYPE(value)) && type == sealed) {
            deep = 1;
        } else {
            *slot = NULL;
            Py_DECREF(value);
        }
    }
    if (deep)
        release_deep(self, sealed);
    else
        give_back(self, sealed);
}

/* -------------------------------------------------------------------------------------------------------- 4 Layouts */

/* Reads (name, default) of each field, and finds its slot. All slots of the class must be fields: only these are
 * compared, and only these can hold anything. */
static int load_fields(Layout *self, PyObject *fields) {
    Py_ssize_t count = PyTuple_GET_SIZE(fields);
    self->fields = new_items(count, sizeof(Field));
    if (self->fields == NULL) return -1;
    for (; self->count < count; self->count++) {
        Field *field = &self->fields[self->count];
        PyObject *name, *initial;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(fields, self->count), "UO", &name, &initial)) return -1;
        const char *text = PyUnicode_AsUTF8(name);
        field->offset = text == NULL ? -1 : named_slot(self->type, text);
        if (field->offset < 0) return -1;
        for (const Field *other = self->fields; other < field; other++)
            if (other->offset == field->offset) return refuse(PyExc_TypeError, "two fields in one slot");
        field->name = Py_NewRef(name);
        field->initial = Py_NewRef(initial);
        PyUnicode_InternInPlace(&field->name);
    }
    return 0;
}

/* Layout(class, fields, temporary=False): seals the class. */
static PyObject *layout_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *sealed, *fields;
    CoreState *core = core_of_type(type);
    int temporary = 0;
    if (core == NULL || !PyArg_ParseTuple(args, "O!O!|p", &PyType_Type, &sealed, &PyTuple_Type, &fields, &temporary))
        return NULL;
    PyTypeObject *target = (PyTypeObject *)sealed;
    if (!(target->tp_flags & Py_TPFLAGS_HEAPTYPE) || !PyType_IS_GC(target) || target->tp_itemsize != 0 ||
        target->tp_dictoffset != 0 || target->tp_weaklistoffset != 0 || target->tp_finalize != NULL ||
        target->tp_del != NULL || target->tp_new != PyBaseObject_Type.tp_new || target->tp_methods != NULL ||
        PyTuple_GET_SIZE(fields) < 1 || slot_count(target) != (size_t)PyTuple_GET_SIZE(fields)) {
        return PyErr_Format(PyExc_TypeError, "%R is not a class to seal", sealed);
    }
    Layout *self = (Layout *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->core = core;
    self->temporary = temporary;
    self->type = (PyTypeObject *)Py_NewRef(sealed);
    if (load_fields(self, fields) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    self->dealloc = target->tp_dealloc;
    self->compare = target->tp_richcompare;
    self->hash = target->tp_hash;
    target->tp_methods = &self->none;
    target->tp_dealloc = value_dealloc;
    target->tp_richcompare = value_compare;
    target->tp_hash = value_hash;
    target->tp_vectorcall = construct;
    PyType_Modified(target);
    return (PyObject *)self;
}

/* Restores the original slots of the class, except for slots changed since. No other thread uses the class
 * meanwhile. */
static void unseal(Layout *self) {
    PyTypeObject *type = self->type;
    if (type == NULL || layout_of(type) != self) return;
    type->tp_methods = NULL;
    type->tp_dealloc = self->dealloc;
    type->tp_vectorcall = NULL;
    if (type->tp_richcompare == value_compare) type->tp_richcompare = self->compare;
    if (type->tp_hash == value_hash) type->tp_hash = self->hash;
    PyType_Modified(type);
}

/* Retires the layout of a class that is no longer plain. Without the GIL, other threads may be using its instances, so
 * only the fast call ends; CPython itself has replaced the slots that the class now overrides. */
static void retire(Layout *self) {
    if (HAS_GIL)
        unseal(self);
    else
        STORE_LOOSE(self->type->tp_vectorcall, NULL);
}

static int layout_traverse(Layout *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->type);
    for (Py_ssize_t i = 0; i < self->count; i++)
        Py_VISIT(self->fields[i].initial);
    for (int i = 0; i < CACHED_CODECS; i++) {
        Py_VISIT(self->codecs[i].options);
        Py_VISIT(self->codecs[i].codec);
    }
    return 0;
}

static int layout_clear(Layout *self) {
    unseal(self);
    for (int i = 0; i < CACHED_CODECS; i++) {
        Py_CLEAR(self->codecs[i].options);
        Py_CLEAR(self->codecs[i].codec);
    }
    for (; self->count > 0; self->count--) {
        Py_CLEAR(self->fields[self->count - 1].name);
        Py_CLEAR(self->fields[self->count - 1].initial);
    }
    PyMem_Free(self->fields);
    self->fields = NULL;
    Py_CLEAR(self->type);
    return 0;
}

static PyType_Slot layout_slots[] = {
    {Py_tp_doc, "What the core knows about a class, which is sealed for as long as this lives."},
    {Py_tp_new, layout_new},
    {Py_tp_traverse, layout_traverse},
    {Py_tp_clear, layout_clear},
    {Py_tp_dealloc, dealloc_tracked},
    {0, NULL},
};

/* ---------------------------------------------------------------------------------------- 5 What the module keeps */

static PyMethodDef functions[] = {
    {"evolve", (PyCFunction)(void (*)(void))evolve, METH_FASTCALL | METH_KEYWORDS,
     "evolve($module, value, /, **changes)\n--\n\nReturn a copy of a value with some of its fields changed."},
    {NULL, NULL, 0, NULL},
};

int values_add(PyObject *module, ValuesState *state) {
    for (size_t slots = 1; slots < FREE_SIZES; slots++)
        state->room[slots] = FREE_BYTES / (int)(sizeof(PyObject) + slots * sizeof(PyObject *));
    if (PyModule_AddFunctions(module, functions) < 0) return -1;
    return core_add_type(module, CORE_NAME ".Layout", sizeof(Layout), Py_TPFLAGS_HAVE_GC, layout_slots, NULL) ? 0 : -1;
}

/* Frees the recycled memory, and stops recycling. CPython reads the type to find the start of the memory. The class may
 * no longer exist, so a permanent type with the same head replaces it. */
void values_forget(ValuesState *state) {
    for (size_t slots = 1; slots < FREE_SIZES; slots++) {
        state->room[slots] = 0;
        while (state->free[slots] != NULL) {
            PyObject *object = state->free[slots];
            state->free[slots] = *(PyObject **)(object + 1);
            Py_SET_TYPE(object, &PyTuple_Type);
            PyObject_GC_Del(object);
        }
    }
}
