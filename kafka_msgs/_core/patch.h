/* Edits of single fields: edit functions replace the selected values, and all other bytes are copied unchanged.
 *
 * This file is a part of codec.c. The program covers a part of a plan: its ops mark the values to skip and the values
 * to edit, and the remaining ops lead to the edited values. Edits run foreign code; the call holds the codec, the bytes
 * and the edits meanwhile.
 */
#ifndef KAFKA_MSGS_PATCH_H
#define KAFKA_MSGS_PATCH_H

typedef struct {
    Reader reader;
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
static int edit_value(Patch *t, const Op *op) {
    const unsigned char *start = t->reader.p;
    PyObject *old = decode_any(&t->reader, op);
    if (old == NULL) return -1;
    t->doing = EDITING;
    PyObject *edit = PyTuple_GetItem(t->edits, abs(op->edit) - 1);
    PyObject *value = edit == NULL ? NULL : PyObject_CallOneArg(edit, old);
    int failed = value == NULL ? -1 : 0;
    if (!failed && value != old) {
        t->doing = WRITING;
        t->at = start;
        failed = copy_until(t, start) < 0 ? -1 : encode_any(&t->writer, op, value);
        if (failed) t->refused = Py_NewRef(value);
        t->copied = t->reader.p;
        t->changed = 1;
    }
    if (!failed) t->doing = READING;
    Py_XDECREF(value);
    Py_DECREF(old);
    return failed;
}

static int patch_struct(Patch *t, const Struct *s);

static int patch_array(Patch *t, const Op *op) {
    Op item = {.code = op->item_code, .flags = op->item_flags, .sub = op->sub, .edit = op->edit};
    Py_ssize_t count;
    if (read_count(&t->reader, op, &count) < 0) return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (op->edit ? edit_value(t, &item) < 0 : patch_struct(t, op->sub) < 0)
            return trace(&t->reader.fault->trail, i);
    return 0;
}

static int patch_value(Patch *t, const Op *op) {
    Reader *r = &t->reader;
    int present;
    if (op->edit > 0) return edit_value(t, op);
    if (op->label == OP_PASS || (op->sub == NULL && op->edit == 0)) {
        const unsigned char *p = pass_value(r, r->p, op);
        if (p == NULL) return malformed(r->state);
        r->p = p;
        return 0;
    }
    if (op->code == OP_ARRAY) return patch_array(t, op);
    if (read_marker(r, op, &present) < 0) return -1;
    return present ? patch_struct(t, op->sub) : 0;
}

/* Patches a tagged field up to `stop`. Its size is rewritten if its value changes. */
static int patch_tagged(Patch *t, const Struct *s, const Op *op, const unsigned char *stop) {
    Reader *r = &t->reader;
    const unsigned char *outer = r->end, *size_at = r->size_at, *start = r->p;
    int changed = t->changed;
    if (copy_until(t, size_at) < 0 || reserve(&t->writer, 1) < 0) return -1;
    size_t place = written(t);
    t->writer.p++;
    t->copied = r->p;
    t->changed = 0;
    r->end = stop;
    int failed = patch_value(t, op);
    if (failed || r->p != stop) return tagged_failed(r, s, op, start, stop, !failed);
    r->end = outer;
    if (t->changed) return copy_until(t, stop) < 0 ? -1 : write_before(&t->writer, place, written(t) - place - 1);
    t->writer.p = t->writer.start + place;
    t->copied = size_at;
    t->changed = changed;
    return 0;
}

static int patch_tags(Patch *t, const Struct *s) {
    Reader *r = &t->reader;
    int64_t last = -1;
    uint32_t count, size;
    const Op *op;
    if (read_tag_count(r, &count) < 0) return -1;
    for (; count > 0; count--) {
        const unsigned char *start = r->p;
        int64_t before = last;
        if (read_tag(r, s, &last, &op, &size) < 0) return tag_failed(r, start, count, before);
        if (op == NULL || op->label == OP_PASS)
            r->p += size;
        else if (patch_tagged(t, s, op, r->p + size) < 0)
            return -1;
    }
    return 0;
}

static int patch_struct(Patch *t, const Struct *s) {
    for (const Op *op = s->ops; op->label != OP_END; op++)
        if (patch_value(t, op) < 0) return trace(&t->reader.fault->trail, op - s->ops);
    return s->flexible ? patch_tags(t, s) : 0;
}

/* Returns the patched bytes; NULL with an exception, with the failed activity in `doing`. */
static PyObject *patched(Patch *t, const Struct *root) {
    Reader *r = &t->reader;
    t->copied = r->start;
    if ((r->codec->too_deep ? malformed(r->state) : patch_struct(t, root)) < 0) return NULL;
    if (!t->changed) return Py_NewRef(r->source);
    size_t size = written(t), rest = (size_t)(r->start + PyBytes_GET_SIZE(r->source) - t->copied);
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(size + rest));
    if (result == NULL) return NULL;
    memcpy(PyBytes_AS_STRING(result), t->writer.start, size);
    memcpy(PyBytes_AS_STRING(result) + size, t->copied, rest);
    return result;
}

#endif
