/* Edits of single fields: edit functions replace the selected values, and all other bytes are copied unchanged.
 *
 * This file is a part of codec.c, whose functions that pass over values come here for the values to edit. The program
 * covers a part of a plan: its ops mark the values to skip and the values to edit, and the remaining ops lead to the
 * edited values. Edits run foreign code; the call holds the codec, the bytes and the edits meanwhile.
 */
#ifndef KAFKA_MSGS_PATCH_H
#define KAFKA_MSGS_PATCH_H

typedef struct {
    Reader reader; /* the first member: functions of the reader find the patch there */
    Writer writer;
    PyObject *edits;             /* functions from value to value, a tuple; borrowed */
    const unsigned char *copied; /* all bytes before it have been written */
    int changed;
    enum { READING, EDITING, WRITING } doing; /* the failed activity */
    const unsigned char *at;                  /* the position of the refused value */
    PyObject *refused;                        /* the refused value; owned */
} Patch;

static inline size_t written(const Patch *t) {
    return (size_t)(t->writer.p - t->writer.start);
}

/* Copies the bytes up to a place. */
static int copy_until(Patch *t, const unsigned char *place) {
    size_t size = (size_t)(place - t->copied);
    if (reserve(&t->writer, size) < 0) return -1;
    memcpy(t->writer.p, t->copied, size);
    t->writer.p += size;
    t->copied = place;
    return 0;
}

/* Reads a value, and writes the result of its edit; the same object means that the value is unchanged. */
static Py_NO_INLINE const unsigned char *edit_value(Reader *r, const unsigned char *p, const Op *op) {
    Patch *t = (Patch *)r;
    r->p = p;
    PyObject *old = decode_any(r, op);
    if (old == NULL) return NULL;
    t->doing = EDITING;
    PyObject *edit = PyTuple_GetItem(t->edits, abs(op->edit) - 1);
    PyObject *value = edit == NULL ? NULL : PyObject_CallOneArg(edit, old);
    int failed = value == NULL ? -1 : 0;
    if (!failed && value != old) {
        t->doing = WRITING;
        t->at = p;
        failed = copy_until(t, p) < 0 ? -1 : encode_any(&t->writer, op, value);
        if (failed) t->refused = Py_NewRef(value);
        t->copied = r->p;
        t->changed = 1;
    }
    if (!failed) t->doing = READING;
    Py_XDECREF(value);
    Py_DECREF(old);
    return failed ? NULL : r->p;
}

/* Patches a tagged field of `size` bytes. Its size is rewritten if its value changes. */
static int patch_tagged(Reader *r, const Struct *s, const Op *op, uint32_t size) {
    Patch *t = (Patch *)r;
    const unsigned char *outer = r->end, *size_at = r->size_at, *start = r->p, *stop = start + size, *p;
    int changed = t->changed;
    if (copy_until(t, size_at) < 0 || reserve(&t->writer, 1) < 0) return -1;
    size_t place = written(t);
    t->writer.p++;
    t->copied = start;
    t->changed = 0;
    r->end = stop;
    p = pass_value(r, start, op);
    if (p != NULL) r->p = p;
    if (p != stop) return tagged_failed(r, s, op, start, stop, p != NULL);
    r->end = outer;
    if (t->changed) return copy_until(t, stop) < 0 ? -1 : write_before(&t->writer, place, written(t) - place - 1);
    t->writer.p = t->writer.start + place;
    t->copied = size_at;
    t->changed = changed;
    return 0;
}

/* Returns the patched bytes; NULL with an exception, with the failed activity in `doing`. */
static PyObject *patched(Patch *t, const Struct *root) {
    Reader *r = &t->reader;
    t->copied = r->start;
    if (r->codec->too_deep || pass_struct(r, r->p, root) == NULL) return PyErr_Occurred() ? NULL : no_value(r->state);
    if (!t->changed) return Py_NewRef(r->source);
    size_t size = written(t), rest = (size_t)(r->start + PyBytes_GET_SIZE(r->source) - t->copied);
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size + rest));
    if (result == NULL) return NULL;
    memcpy(PyBytes_AS_STRING(result), t->writer.start, size);
    memcpy(PyBytes_AS_STRING(result) + size, t->copied, rest);
    return result;
}

#endif
