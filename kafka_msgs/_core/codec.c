/* The codec in C: executes plans, from bytes into the slots of attrs classes and back.
 *
 * Its only purpose is speed. It reads the same plans as the other executors (native.py lowers them to tuples), and
 * accepts and refuses the same inputs. It does not explain a refusal: it records the location of the fault while the
 * calls return. The reference interpreter then resumes at that location and raises the error.
 *
 * Sections: 1 programs, 2 reading bytes, 3 passing over values, 4 decoding, 5 writing bytes, 6 encoding, 7 the Codec
 * type, 8 what the module keeps. patch.h contains the edits of single fields.
 *
 * Conventions. Functions returning PyObject * return a new reference, or NULL with an exception set. Functions
 * returning int return 0, or -1 with an exception set. Pointers into programs are borrowed: a codec keeps its program
 * alive, and the call keeps the codec alive. A check of the form `end - p < n`, which cannot overflow, precedes every
 * read.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "bytes.h"
#include "compat.h"
#include "core.h"
#include "fault.h"
#include "lengths.h"
#include "objects.h"
#include "ops.h"
#include "plan.h"
#include "utf8.h"
#include "values.h"

_Static_assert(sizeof FIXED_SIZE == OP_STRUCT + 1 && OP_SKIP == OP_STRUCT + 1, "ops are numbered without gaps");
_Static_assert(MAX_TAG < UINT32_MAX, "UINT32_MAX ends a list of tags");
_Static_assert(MAX_LENGTH == INT32_MAX && MAX_STRING == INT16_MAX, "lengths fit their bytes");
_Static_assert(INT_MEMO == 1 << (64 - 56) && TUPLE_MEMO == 1 << (64 - 58), "hashes are shifted to indexes");
_Static_assert(sizeof(PyObject) % sizeof(PyObject *) == 0, "slots follow the head of an object");
_Static_assert(offsetof(CodecState, small) == offsetof(CodecState, owned[CODEC_OBJECTS - SMALL_INTS]), "owned is all");

/* ------------------------------------------------------------------------------------------------ 1 Programs */

/* Jumps to the label of an op. With computed gotos every op has a separate jump, which helps branch prediction. Without
 * them the labels are compared in order. */
#ifdef __GNUC__
#define DISPATCH(op)          goto *labels[(op)->label]
#define ADDRESS(number, name) &&name,
#define LABELS(op)                                                                                                     \
    static const void *const labels[] = {EACH_LABEL(ADDRESS)};                                                         \
    DISPATCH(op)
#else
#define DISPATCH(op)                                                                                                   \
    (void)(op);                                                                                                        \
    goto dispatch
#define JUMP(number, name)                                                                                             \
    if (op->label == number) goto name;
#define LABELS(op)                                                                                                     \
    dispatch:                                                                                                          \
    EACH_LABEL(JUMP)
#endif

typedef struct {
    PyObject_HEAD
    CodecState *state; /* borrowed from the module, which the type keeps alive */
    Py_ssize_t struct_count;
    Struct *structs;          /* the root is the first */
    long long elements, room; /* the decode budget */
    int too_deep;             /* deeper than the budget: every decode fails */
    int views;                /* zero-copy fields become memoryviews */
    Py_ssize_t hint;          /* size of the last encoded message */
    const char *handler;      /* for strings, NULL for strict */
    union {
        struct {
            PyObject *errors;                                          /* a str that has the handler, or None */
            PyObject *encode_failure, *decode_failure, *trailing_data; /* return the exception with the fault */
        };
        PyObject *owned[4]; /* all of these */
    };
} Codec;

_Static_assert(offsetof(Codec, trailing_data) == offsetof(Codec, owned[3]), "owned is all");

static int malformed(CodecState *state) {
    PyErr_SetNone(state->malformed);
    return -1;
}

static PyObject *no_value(CodecState *state) {
    malformed(state);
    return NULL;
}

static int load_op(void *codec, Struct *owner, PyObject *spec, Op *op) {
    Codec *self = codec;
    PyObject *descriptor;
    Py_ssize_t sub;
    if (read_op(spec, op, &sub, &descriptor, &op->edit) < 0) return -1;
    if (op->code == OP_SKIP || ((op->code == OP_STRUCT || op->item_code == OP_STRUCT) && sub < 0) ||
        op->edit < -INT16_MAX || op->edit > INT16_MAX || (op->edit < 0 && op->code != OP_ARRAY))
        return refuse(PyExc_ValueError, "not an op of a plan");
    op->place = slot_offset(descriptor, owner->type);
    if (op->place < 0) return -1;
    if (op->flags & COMPACT && op->code != OP_STRUCT && !(op->flags & ZERO_COPY && self->views)) {
        CodecState *state = self->state;
        op->label = op->item_code == OP_INT32 && op->flags == COMPACT ? OP_IDS : OP_COMPACT;
        op->nothing = op->code == OP_ARRAY    ? state->empty_tuple
                      : op->code == OP_STRING ? state->empty_str
                                              : state->empty_bytes;
    }
    if (op->flags & SKIPPED) op->label = OP_PASS;
    if (op->code == OP_FLOAT64) owner->comparable = 0;
    return sub >= 0 && (op->sub = find_sub(self->structs, self->struct_count, owner, sub)) == NULL ? -1 : 0;
}

/* Reads (class, unknown_tagged_fields descriptor, flexible, partial, steps, tagged, absent, inactive tags). */
static int load_struct(Codec *self, PyObject *spec, Struct *target) {
    PyObject *type, *unknown, *steps, *tagged, *absent, *inactive;
    if (!PyArg_ParseTuple(spec, "O!OppO!O!O!O!", &PyType_Type, &type, &unknown, &target->flexible, &target->partial,
                          &PyTuple_Type, &steps, &PyTuple_Type, &tagged, &PyTuple_Type, &absent, &PyTuple_Type,
                          &inactive))
        return -1;
    target->type = (PyTypeObject *)Py_NewRef(type);
    if (!consists_of_slots(target->type, self->state->uuid_type)) {
        PyErr_Format(PyExc_TypeError, "%R is not a class with slots", type);
        return -1;
    }
    target->comparable = layout_of(target->type) != NULL;
    target->tracked = is_temporary(target->type);
    target->unknown = slot_offset(unknown, target->type);
    return target->unknown < 0 ? -1 : load_fields(self, load_op, target, steps, tagged, absent, inactive);
}

/* ------------------------------------------------------------------------------------------- 2 Reading bytes */

#define CHUNK         1024  /* elements that an array is made with at first */
#define ITEMS_AT_ONCE 16384 /* elements that are made, in 1 to 2 ms, before other threads may run */

typedef struct {
    const unsigned char *p, *end; /* end shrinks to the end of a tagged field while that is read */
    const unsigned char *start;
    const unsigned char *size_at; /* position of the last tag's size */
    CodecState *state;
    const Codec *codec;
    PyObject *source;       /* the bytes object that `start` points into; borrowed */
    PyObject *view;         /* of all of it, made for the first view of a part; owned, or NULL */
    int64_t elements, room; /* the remaining budget */
    int items;              /* decoded since other threads could run, roughly */
    int patching;           /* this is a part of a Patch */
    const TupleEntry *last; /* the memo of the last short int32 array, any entry at first */
    Fault fault;
} Reader;

/* A function that fails to read a value leaves the reader and the budget as they were before the value: there the reference
 * resumes. */

/* Returns to the start of a value that cannot be read. */
static Py_NO_INLINE const unsigned char *back(Reader *r, const unsigned char *start) {
    r->p = start;
    return NULL;
}

/* Goes back to an unreadable tag, with `left` tags to read after the tag `last`. */
static Py_NO_INLINE int tag_failed(Reader *r, const unsigned char *start, uint32_t left, int64_t last) {
    r->p = start;
    return trace_tag(&r->fault, AT_TAG, left, last, TAG_SECTION);
}

/* Records that a tagged value failed, or, if it is complete, that it does not end at `stop`. */
static Py_NO_INLINE int tagged_failed(Reader *r, const Struct *s, const Op *op, const unsigned char *start,
                                      const unsigned char *stop, int complete) {
    Py_ssize_t step = -1 - (op - s->tagged);
    if (!complete) return trace(&r->fault.trail, step);
    malformed(r->state);
    return trace_tag(&r->fault, AFTER_TAGGED, start - r->start, stop - start, step);
}

/* ------------------------------------------------------------------------------------- 3 Passing over values */

/* These take the start of a value and return its end. They read only lengths, and create no objects, except for values
 * to edit. If the bytes are malformed they return NULL, and the reader is at the start of the malformed value. */

static const unsigned char *pass_struct(Reader *r, const unsigned char *p, const Struct *s);
static const unsigned char *edit_value(Reader *r, const unsigned char *p, const Op *op);
static int patch_tagged(Reader *r, const Struct *s, const Op *op, uint32_t size);
static int decode_tag_section(Reader *r, const Struct *s, PyObject *object);

static inline const unsigned char *pass_sized(Reader *r, const unsigned char *p, int code, int flags) {
    Py_ssize_t length;
    const unsigned char *start = p;
    p = take_length(p, r->end, code, flags, &length);
    if (p != NULL && length < 0) return p;
    if (p == NULL || length > r->end - p || (code == OP_STRING && length > MAX_STRING)) return back(r, start);
    return p + length;
}

static inline const unsigned char *pass_value(Reader *r, const unsigned char *p, const Op *op);

static const unsigned char *pass_array(Reader *r, const unsigned char *p, const Op *op) {
    Py_ssize_t count, size = FIXED_SIZE[op->item_code];
    const unsigned char *start = p;
    p = take_length(p, r->end, OP_ARRAY, op->flags, &count);
    if (p != NULL && count < 0) return p;
    if (p == NULL || count > (r->end - p) / op->size || r->elements < count) return back(r, start);
    r->elements -= count;
    if (size && op->edit == 0) return p + count * size;
    Op item = {.code = op->item_code, .flags = op->item_flags, .sub = op->sub, .edit = -op->edit};
    for (Py_ssize_t i = 0; i < count; i++) {
        p = pass_value(r, p, &item);
        if (p == NULL) {
            trace(&r->fault.trail, i);
            return NULL;
        }
    }
    return p;
}

static inline const unsigned char *pass_value(Reader *r, const unsigned char *p, const Op *op) {
    Py_ssize_t size = FIXED_SIZE[op->code];
    int present = 1;
    const unsigned char *start = p;
    if (op->edit > 0) return edit_value(r, p, op);
    if (size) return r->end - p < size ? back(r, start) : p + size;
    if (op->code == OP_ARRAY) return pass_array(r, p, op);
    if (op->code != OP_STRUCT) return pass_sized(r, p, op->code, op->flags);
    if (op->flags & NULLABLE) p = take_marker(p, r->end, op->flags, &present);
    if (p == NULL) return back(r, start);
    return present ? pass_struct(r, p, op->sub) : p;
}

/* Tagged fields include their sizes, so all of their values are skipped in the same way. */
static const unsigned char *pass_tags(Reader *r, const unsigned char *p, const Struct *s) {
    if (p < r->end && *p == 0) return p + 1;
    r->p = p;
    return decode_tag_section(r, s, NULL) < 0 ? NULL : r->p;
}

/* Where the bytes end within a run of fixed fields, each field is checked: edits of the fields before the end are made. */
static const unsigned char *pass_struct(Reader *r, const unsigned char *p, const Struct *s) {
    int cut = r->end - p < s->run;
    for (const Op *op = s->ops; op->label != OP_END; op++) {
        if (op->code < FIXED_OPS && op->edit == 0 && !cut) {
            p += FIXED_SIZE[op->code];
            continue;
        }
        p = pass_value(r, p, op);
        if (p == NULL) {
            trace(&r->fault.trail, op - s->ops);
            return NULL;
        }
        if (r->end - p < op->run) cut = 1;
    }
    return s->flexible ? pass_tags(r, p, s) : p;
}

/* ------------------------------------------------------------------------------------------------ 4 Decoding */

static PyObject *decode_struct(Reader *r, const Struct *s);

/* Creates an int, and remembers it. */
static Py_NO_INLINE PyObject *make_large_int(IntEntry *entry, int64_t value) {
    PyObject *made = PyLong_FromLongLong(value);
    if (HAS_GIL && made != NULL) {
        PyObject *old = entry->value;
        entry->key = value;
        entry->value = Py_NewRef(made);
        Py_XDECREF(old);
    }
    return made;
}

/* Creates an int, or returns an equal int that CPython keeps or that was created recently. */
static inline PyObject *make_int(CodecState *state, int64_t value) {
    if ((uint64_t)(value - LEAST_INT) < SMALL_INTS) return Py_NewRef(state->small[value - LEAST_INT]);
    IntEntry *entry = &state->ints[((uint64_t)value * 0x9E3779B97F4A7C15u) >> 56];
    if (HAS_GIL && entry->key == value && entry->value != NULL) return Py_NewRef(entry->value);
    return make_large_int(entry, value);
}

static PyObject *make_uuid(CodecState *state, const unsigned char *raw) {
    static const unsigned char zero[16] = {0};
    if (memcmp(raw, zero, 16) == 0) return Py_NewRef(state->zero_uuid);
    PyObject *uuid = new_instance(state->uuid_type);
    if (uuid == NULL) return NULL;
    *slot_of(uuid, state->uuid_is_safe) = Py_NewRef(state->uuid_unknown);
    *slot_of(uuid, state->uuid_int) = long_from_16_bytes(raw);
    if (*slot_of(uuid, state->uuid_int) == NULL) Py_CLEAR(uuid);
    return uuid;
}

/* Creates the value of a fixed-size op; the caller has checked that its bytes exist. */
static inline PyObject *make_fixed(CodecState *state, int code, const unsigned char *p) {
    if (code == OP_INT32) return make_int(state, (int32_t)load32(p));
    if (code == OP_INT64) return PyLong_FromLongLong((int64_t)load64(p)); /* offsets and times rarely repeat */
    if (code == OP_INT16) return make_int(state, (int16_t)load16(p));
    if (code == OP_BOOL) return Py_NewRef(*p ? Py_True : Py_False);
    if (code == OP_UUID) return make_uuid(state, p);
    if (code == OP_FLOAT64) return PyFloat_FromDouble(PyFloat_Unpack8((const char *)p, 0));
    return make_int(state, load_number(code, p));
}

/* Creates the last string passed over, with CPython's decoder; goes back to the start of a string that is malformed. */
static Py_NO_INLINE PyObject *decode_text(Reader *r, const unsigned char *start, Py_ssize_t length) {
    if (length == 0) return Py_NewRef(r->state->empty_str);
    PyObject *text = PyUnicode_DecodeUTF8((const char *)r->p - length, length, r->codec->handler);
    if (text != NULL) return text;
    r->p = start;
    r->room += length;
    return NULL;
}

/* Creates the last string passed over; most strings are ASCII, which CPython's decoder handles more slowly. */
static inline PyObject *make_text(Reader *r, const unsigned char *start, Py_ssize_t length) {
    const unsigned char *end = r->p, *first = end - length;
    if (length < 2 || !is_ascii(first, end)) return decode_text(r, start, length);
    PyObject *text = PyUnicode_New(length, 0x7F);
    if (text != NULL) memcpy(PyUnicode_1BYTE_DATA(text), first, (size_t)length);
    return text;
}

/* Creates a view of source bytes; an empty view does not keep the source alive. */
static Py_NO_INLINE PyObject *make_view(Reader *r, const unsigned char *first, Py_ssize_t length) {
    if (length == 0) return PyMemoryView_FromObject(r->state->empty_view);
    if (r->view == NULL && (r->view = PyMemoryView_FromObject(r->source)) == NULL) return NULL;
    return PySequence_GetSlice(r->view, first - r->start, first - r->start + length);
}

static PyObject *decode_sized(Reader *r, int code, int flags) {
    const unsigned char *start = r->p, *first;
    Py_ssize_t length;
    first = take_length(start, r->end, code, flags, &length);
    if (first == NULL || length > r->end - first || length > r->room || (code == OP_STRING && length > MAX_STRING))
        return no_value(r->state);
    r->p = first;
    if (length < 0) Py_RETURN_NONE;
    r->p += length;
    r->room -= length;
    if (code == OP_STRING) return make_text(r, start, length);
    if (flags & ZERO_COPY && r->codec->views) return make_view(r, first, length);
    return PyBytes_FromStringAndSize((const char *)first, length);
}

/* Reads one element of an array; fixed-size ones are known to be there. */
static inline PyObject *decode_item(Reader *r, const Op *op) {
    if (op->item_code == OP_STRUCT) return decode_struct(r, op->sub);
    Py_ssize_t size = FIXED_SIZE[op->item_code];
    if (size == 0) return decode_sized(r, op->item_code, op->item_flags);
    r->p += size;
    return make_fixed(r->state, op->item_code, r->p - size);
}

/* Counts values before they are created, and sometimes lets other threads run, as Python does between bytecodes: other
 * threads cannot reach the unfinished objects. */
static inline void count_items(Reader *r, Py_ssize_t count) {
    r->items += (int)count; /* CHUNK at most */
    if (r->items < ITEMS_AT_ONCE) return;
    r->items = 0;
    Py_BEGIN_ALLOW_THREADS;
    Py_END_ALLOW_THREADS;
}

/* Reads `count` elements into a tuple that grows while reading, so that a count alone allocates little. */
static PyObject *decode_items(Reader *r, const Op *op, Py_ssize_t count) {
    Py_ssize_t size = count < CHUNK ? count : CHUNK, counted = size;
    PyObject *items = PyTuple_New(size);
    count_items(r, size);
    for (Py_ssize_t i = 0; items != NULL && i < count; i++) {
        if (i == counted) { /* sizes below the count are multiples of CHUNK, too */
            if (i == size) {
                size = size > count / 2 ? count : size * 2;
                if (_PyTuple_Resize(&items, size) < 0) return NULL;
            }
            counted += CHUNK;
            count_items(r, CHUNK);
        }
        PyObject *item = decode_item(r, op);
        PyTuple_SET_ITEM(items, i, item);
        if (item == NULL) {
            trace(&r->fault.trail, i);
            Py_CLEAR(items);
        }
    }
    if (items != NULL && (op->item_code != OP_STRUCT || !op->sub->tracked))
        PyObject_GC_UnTrack(items); /* sound for the same reason as in new_instance */
    return items;
}

static inline int same_words(const uint32_t *words, const unsigned char *raw, Py_ssize_t count) {
    uint32_t different = 0, word;
    for (Py_ssize_t i = 0; i < count; i++) {
        memcpy(&word, raw + 4 * i, 4);
        different |= word ^ words[i];
    }
    return different == 0;
}

/* Creates the tuple of a short int32 array, or returns an equal tuple created recently. */
static Py_NO_INLINE PyObject *find_ids(Reader *r, const unsigned char *raw, Py_ssize_t count) {
    CodecState *state = r->state;
    uint64_t hash = (uint64_t)count;
    for (Py_ssize_t i = 0; i < count; i++)
        hash = (hash ^ load32(raw + 4 * i)) * 0x9E3779B97F4A7C15u;
    TupleEntry *entry = &state->tuples[hash >> 58];
    if (HAS_GIL) r->last = entry;
    if (HAS_GIL && entry->count == count && same_words(entry->words, raw, count)) return Py_NewRef(entry->value);
    PyObject *ids = PyTuple_New(count);
    for (Py_ssize_t i = 0; ids != NULL && i < count; i++) {
        PyObject *id = make_int(state, (int32_t)load32(raw + 4 * i));
        PyTuple_SET_ITEM(ids, i, id);
        if (id == NULL) Py_CLEAR(ids);
    }
    if (ids == NULL) return NULL;
    PyObject_GC_UnTrack(ids);
    if (!HAS_GIL) return ids;
    PyObject *old = entry->value;
    entry->count = count;
    memcpy(entry->words, raw, 4 * count);
    entry->value = Py_NewRef(ids);
    Py_XDECREF(old);
    return ids;
}

static inline PyObject *make_ids(Reader *r, const unsigned char *raw, Py_ssize_t count) {
    const TupleEntry *last = r->last; /* tried first: in-sync replicas mostly are the replicas */
    if (last->count == count && same_words(last->words, raw, count)) return Py_NewRef(last->value);
    return find_ids(r, raw, count);
}

static PyObject *decode_array(Reader *r, const Op *op) {
    Py_ssize_t count;
    const unsigned char *p = take_length(r->p, r->end, OP_ARRAY, op->flags, &count);
    if (p == NULL || (count > 0 && (count > (r->end - p) / op->size || count > r->elements))) return no_value(r->state);
    r->p = p;
    if (count < 0) Py_RETURN_NONE;
    r->elements -= count;
    if (count == 0) return Py_NewRef(r->state->empty_tuple);
    if (op->item_code == OP_INT32 && count <= TUPLE_MEMO_MAX) {
        r->p += 4 * count;
        return make_ids(r, r->p - 4 * count, count);
    }
    return decode_items(r, op, count);
}

/* Reads a value that is not of fixed size. */
static inline PyObject *decode_value(Reader *r, const Op *op) {
    int present = 1;
    const unsigned char *p = r->p;
    if (op->code == OP_ARRAY) return decode_array(r, op);
    if (op->code != OP_STRUCT) return decode_sized(r, op->code, op->flags);
    if (op->flags & NULLABLE) p = take_marker(p, r->end, op->flags, &present);
    if (p == NULL) return no_value(r->state);
    r->p = p;
    if (!present) Py_RETURN_NONE;
    return decode_struct(r, op->sub);
}

static PyObject *decode_any(Reader *r, const Op *op) {
    Py_ssize_t size = FIXED_SIZE[op->code];
    if (size == 0) return decode_value(r, op);
    if (r->end - r->p < size) return no_value(r->state);
    r->p += size;
    return make_fixed(r->state, op->code, r->p - size);
}

/* Reads a known tagged field, which must take exactly the bytes it declares. */
static int decode_tagged(Reader *r, const Struct *s, const Op *op, PyObject *object, uint32_t size) {
    const unsigned char *outer = r->end, *start = r->p, *stop = r->p + size;
    r->end = stop;
    PyObject *value = decode_any(r, op);
    if (value != NULL) Py_XSETREF(*slot_of(object, op->place), value);
    if (value == NULL || r->p != stop) return tagged_failed(r, s, op, start, stop, value != NULL);
    r->end = outer;
    return 0;
}

/* Appends an unknown tag to a list; the first unknown tag creates the list. */
static int keep_unknown_tag(Reader *r, PyObject **unknown, uint32_t tag, uint32_t size) {
    if (r->elements < 1 || r->room < size) return malformed(r->state);
    if (*unknown == NULL && (*unknown = PyList_New(0)) == NULL) return -1;
    r->elements--;
    r->room -= size;
    PyObject *pair = Py_BuildValue("(Iy#)", tag, (const char *)r->p, (Py_ssize_t)size);
    if (pair == NULL) return -1;
    PyObject_GC_UnTrack(pair);
    int failed = PyList_Append(*unknown, pair);
    Py_DECREF(pair);
    r->p += size;
    return failed;
}

/* Reads the tags of a section that is not empty, and collects tags unknown to the schema. Without an object for the
 * values it skips all tags but those to patch. */
static int decode_tags(Reader *r, const Struct *s, PyObject *object, uint32_t count, PyObject **unknown) {
    int64_t last = -1;
    for (uint32_t left = count; left > 0; left--) {
        const unsigned char *start = r->p;
        int64_t before = last;
        uint32_t size;
        const unsigned char *p = take_tag(start, r->end, &last, &r->size_at, &size);
        const Op *op = p == NULL ? NULL : find_tag(s, last);
        if (p == NULL || (op == NULL && is_inactive(s, last))) {
            malformed(r->state);
            return tag_failed(r, start, left, before);
        }
        r->p = p;
        if (op == NULL ? object == NULL || s->partial : op->label == OP_PASS || (object == NULL && !r->patching))
            r->p += size;
        else if (op != NULL) {
            if ((object == NULL ? patch_tagged(r, s, op, size) : decode_tagged(r, s, op, object, size)) < 0) return -1;
        } else if (keep_unknown_tag(r, unknown, (uint32_t)last, size) < 0)
            return tag_failed(r, start, left, before);
    }
    return 0;
}

static int decode_tag_section(Reader *r, const Struct *s, PyObject *object) {
    uint32_t count;
    PyObject *unknown = NULL;
    const unsigned char *p = take_uvarint(r->p, r->end, &count);
    if (p == NULL || count > MAX_TAGS || count > (r->end - p) / 2) { /* each tag has two bytes at least */
        malformed(r->state);
        return trace(&r->fault.trail, TAG_SECTION);
    }
    r->p = p;
    int failed = decode_tags(r, s, object, count, &unknown);
    if (unknown == NULL) return failed;
    PyObject *kept = failed ? NULL : PyList_AsTuple(unknown);
    Py_DECREF(unknown);
    if (kept == NULL) return -1;
    PyObject_GC_UnTrack(kept);
    Py_SETREF(*slot_of(object, s->unknown), kept);
    return 0;
}

/* Drops a struct that cannot be completed: the first field without a value has failed. */
static Py_NO_INLINE PyObject *field_failed(Reader *r, const Struct *s, PyObject *object) {
    const Op *op = s->ops;
    while (op->label != OP_END && *slot_of(object, op->place) != NULL)
        op++;
    trace(&r->fault.trail, op - s->ops);
    Py_DECREF(object);
    return NULL;
}

/* Stores the value created from the next `size` bytes, and continues with the next op. */
#define STORE(made, size)                                                                                              \
    value = made;                                                                                                      \
    p += size;                                                                                                         \
    if (value == NULL) return field_failed(r, s, object);                                                              \
    *slot_of(object, op->place) = value;                                                                               \
    DISPATCH(++op)

static PyObject *decode_struct(Reader *r, const Struct *s) {
    CodecState *state = r->state;
    const unsigned char *p = r->p; /* in a register: r->p is only right around calls that read */
    if (r->end - p < s->run) {
        trace(&r->fault.trail, 0);
        return no_value(state);
    }
    PyObject *object = new_value(state->values, s->type);
    if (object == NULL) return NULL;
    const Op *op = s->ops;
    PyObject *value;
    LABELS(op);
int16:
    STORE(make_int(state, (int16_t)load16(p)), 2);
int32:
    STORE(make_int(state, (int32_t)load32(p)), 4);
int64: /* offsets and times rarely repeat, but a high watermark mostly is the last stable offset */
    STORE(PyLong_FromLongLong((int64_t)load64(p)), 8);
next_int64:
    if (load64(p) != load64(p - 8)) goto int64;
    STORE(Py_NewRef(*slot_of(object, op[-1].place)), 8);
fixed:
    STORE(make_fixed(state, op->code, p), FIXED_SIZE[op->code]);
compact:
    if (p < r->end && *p < 2 && (*p || op->flags & NULLABLE)) {
        value = Py_NewRef(*p++ ? op->nothing : Py_None);
        goto run;
    }
    goto sized;
pass:
    p = pass_value(r, p, op);
    value = p == NULL ? no_value(state) : Py_NewRef(op->initial);
    goto run;
ids:
    if (p < r->end && (unsigned)(*p - 1) <= TUPLE_MEMO_MAX) {
        Py_ssize_t count = *p - 1;
        if (r->end - p <= 4 * count || r->elements < count) goto sized;
        r->elements -= count;
        value = count == 0 ? Py_NewRef(state->empty_tuple) : make_ids(r, p + 1, count);
        p += 1 + 4 * count;
        goto run;
    }
sized:
    r->p = p;
    value = decode_value(r, op);
    p = r->p;
run:
    if (value == NULL) return field_failed(r, s, object);
    *slot_of(object, op->place) = value;
    if (r->end - p < op->run) goto cut_off;
    DISPATCH(++op);
cut_off:
    r->p = p;
    malformed(state);
    return field_failed(r, s, object);
end:
    *slot_of(object, s->unknown) = Py_NewRef(state->empty_tuple);
    for (op = s->absent; op->label != OP_END; op++)
        *slot_of(object, op->place) = Py_NewRef(op->initial);
    for (op = s->tagged; op->label != OP_END; op++)
        *slot_of(object, op->place) = Py_NewRef(op->initial);
    r->p = p;
    if (s->flexible) {
        if (p < r->end && *p == 0)
            r->p++;
        else if (decode_tag_section(r, s, object) < 0)
            Py_CLEAR(object);
    }
    if (s->tracked && object != NULL) PyObject_GC_Track(object);
    return object;
}

/* ------------------------------------------------------------------------------------------- 5 Writing bytes */

#define STACK_SIZE 512
#define SLACK      8 /* bytes that are reserved beyond every run: a length or a tag count fits without asking */

typedef struct {
    unsigned char *start, *p, *end;
    CodecState *state;
    const char *errors;              /* handler for strings, NULL for strict */
    PyObject *bytes;                 /* the output, once it exceeds the buffer on the stack; owned */
    Trail trail;                     /* to the invalid value */
    unsigned char stack[STACK_SIZE]; /* enough for most messages; start points here or into the bytes */
} Writer;

_Static_assert(SLACK >= 5 && STACK_SIZE > SLACK, "a varint fits the slack");

static int grow(Writer *w, size_t need) {
    size_t used = w->p - w->start, size = w->end - w->start;
    size_t wanted = size * 2 > used + need ? size * 2 : used + need;
    if (need > (size_t)PY_SSIZE_T_MAX / 4 - used) return no_memory();
    if (w->bytes != NULL) {
        if (_PyBytes_Resize(&w->bytes, (Py_ssize_t)wanted) < 0) return -1;
    } else if ((w->bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)wanted)) != NULL) {
        memcpy(PyBytes_AS_STRING(w->bytes), w->stack, used);
    } else {
        return -1;
    }
    w->start = (unsigned char *)PyBytes_AS_STRING(w->bytes);
    w->p = w->start + used;
    w->end = w->start + wanted;
    return 0;
}

/* Returns the written bytes. */
static PyObject *finish(Writer *w) {
    if (w->bytes == NULL) return PyBytes_FromStringAndSize((const char *)w->start, w->p - w->start);
    if (_PyBytes_Resize(&w->bytes, w->p - w->start) < 0) return NULL;
    return Py_NewRef(w->bytes);
}

/* Reserves `need` more bytes. */
static inline int reserve(Writer *w, size_t need) {
    return (size_t)(w->end - w->p) >= need ? 0 : grow(w, need);
}

/* Writes a length and reserves `extra` bytes after it. */
static inline int write_length(Writer *w, int code, int flags, Py_ssize_t length, size_t extra) {
    if (length > (code == OP_STRING ? MAX_STRING : MAX_LENGTH)) return malformed(w->state);
    if (reserve(w, 5 + extra) < 0) return -1;
    w->p = store_length(w->p, code, flags, length);
    return 0;
}

/* ------------------------------------------------------------------------------------------------ 6 Encoding */

/* Encoding runs Python code only if a foreign object stands in for an int, a float or bytes. The encoder holds
 * references to the struct and the tuple being written, so that code cannot free them. */

static int encode_struct(Writer *w, const Struct *s, PyObject *object);

/* Reads an int64 within bounds from any int, or from an object with __index__. */
static Py_NO_INLINE int read_any_int(Writer *w, PyObject *item, int64_t low, int64_t high, int64_t *value) {
    Py_INCREF(item);
    PyObject *number = PyNumber_Index(item);
    Py_DECREF(item);
    if (number == NULL) return -1;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    return overflow || *value < low || *value > high ? malformed(w->state) : 0;
}

/* Reads an int of at least 32 bits and bounds that a compact int cannot exceed. */
static inline int read_wide_int(Writer *w, PyObject *item, int64_t low, int64_t high, int64_t *value) {
    if (PyLong_CheckExact(item) && compact_long(item, value)) return 0;
    return read_any_int(w, item, low, high, value);
}

static inline int read_int(Writer *w, PyObject *item, int64_t low, int64_t high, int64_t *value) {
    if (PyLong_CheckExact(item) && compact_long(item, value) && *value >= low && *value <= high) return 0;
    return read_any_int(w, item, low, high, value);
}

/* Writes the bytes of a UUID; -1, perhaps without an exception, if it is none. */
static int uuid_bytes(const CodecState *state, PyObject *item, unsigned char *raw) {
    if (!PyObject_TypeCheck(item, state->uuid_type)) return -1;
    PyObject *number = *slot_of(item, state->uuid_int);
    return number == NULL || !PyLong_Check(number) ? -1 : long_as_16_bytes(number, raw);
}

static int encode_uuid(Writer *w, PyObject *item) {
    if (uuid_bytes(w->state, item, w->p) < 0) return malformed(w->state);
    w->p += 16;
    return 0;
}

static int encode_float(Writer *w, PyObject *item) {
    Py_INCREF(item); /* __float__ may take it out of the message */
    double value = PyFloat_AsDouble(item);
    Py_DECREF(item);
    if ((value == -1.0 && PyErr_Occurred()) || PyFloat_Pack8(value, (char *)w->p, 0) < 0) return -1;
    w->p += 8;
    return 0;
}

/* Writes a fixed-size value into reserved bytes. encode_fields handles positional ints of the most frequent kinds
 * inline. */
static int encode_fixed(Writer *w, int code, PyObject *item) {
    if (code == OP_UUID) return encode_uuid(w, item);
    if (code == OP_FLOAT64) return encode_float(w, item);
    if (code == OP_BOOL) {
        if (item != Py_True && item != Py_False) return malformed(w->state);
        *w->p++ = item == Py_True;
        return 0;
    }
    int64_t value;
    if (read_int(w, item, LOWEST[code], HIGHEST[code], &value) < 0) return -1;
    w->p = store_number(w->p, FIXED_SIZE[code], value);
    return 0;
}

static int write_raw(Writer *w, int code, int flags, const char *raw, Py_ssize_t length) {
    if (write_length(w, code, flags, length, length) < 0) return -1;
    memcpy(w->p, raw, length);
    w->p += length;
    return 0;
}

/* Returns the content of bytes, a bytearray or a memoryview as bytes. */
static PyObject *content_of(CodecState *state, PyObject *item) {
    if (PyBytes_Check(item)) return Py_NewRef(item);
    if (!PyByteArray_Check(item) && !PyMemoryView_Check(item)) return no_value(state);
    Py_INCREF(item); /* __buffer__ may take it out of the message */
    PyObject *bytes = PyBytes_FromObject(item);
    Py_DECREF(item);
    return bytes;
}

/* Writes a string, bytes or records that is not None. */
static int encode_sized(Writer *w, int code, int flags, PyObject *item) {
    if (code != OP_STRING)
        item = content_of(w->state, item);
    else if (!PyUnicode_Check(item))
        return malformed(w->state);
    else if (PyUnicode_IS_COMPACT_ASCII(item))
        return write_raw(w, code, flags, PyUnicode_DATA(item), PyUnicode_GET_LENGTH(item));
    else /* not PyUnicode_AsUTF8: that would keep the bytes for as long as the string lives */
        item = PyUnicode_AsEncodedString(item, "utf-8", w->errors);
    if (item == NULL) return -1;
    int failed = write_raw(w, code, flags, PyBytes_AS_STRING(item), PyBytes_GET_SIZE(item));
    Py_DECREF(item);
    return failed;
}

/* Returns a tuple of a tuple's or a list's elements. */
static inline PyObject *as_tuple(CodecState *state, PyObject *items) {
    if (PyTuple_Check(items)) return Py_NewRef(items);
    return PyList_Check(items) ? PyList_AsTuple(items) : no_value(state);
}

static int encode_items(Writer *w, const Op *op, PyObject *items) {
    Py_ssize_t count = PyTuple_GET_SIZE(items), size = FIXED_SIZE[op->item_code];
    if (write_length(w, OP_ARRAY, op->flags, count, count * size) < 0) return -1;
    if (op->item_code == OP_STRUCT) {
        for (Py_ssize_t i = 0; i < count; i++)
            if (encode_struct(w, op->sub, PyTuple_GET_ITEM(items, i)) < 0) return trace(&w->trail, i);
        return 0;
    }
    if (op->item_code == OP_INT32) {
        unsigned char *p = w->p;
        for (Py_ssize_t i = 0; i < count; i++, p += 4) {
            int64_t value;
            if (read_wide_int(w, PyTuple_GET_ITEM(items, i), INT32_MIN, INT32_MAX, &value) < 0)
                return trace(&w->trail, i);
            store32(p, (uint32_t)value);
        }
        w->p = p;
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        if (size ? encode_fixed(w, op->item_code, item) : encode_sized(w, op->item_code, op->item_flags, item))
            return trace(&w->trail, i);
    }
    return 0;
}

static int encode_array(Writer *w, const Op *op, PyObject *value) {
    PyObject *items = as_tuple(w->state, value);
    int failed = items == NULL ? -1 : encode_items(w, op, items);
    Py_XDECREF(items);
    return failed;
}

static int encode_null(Writer *w, const Op *op) {
    if (!(op->flags & NULLABLE)) return malformed(w->state);
    if (reserve(w, 4) < 0) return -1;
    w->p = store_length(w->p, op->code, op->flags, -1);
    return 0;
}

/* Writes a value that is not of fixed size. */
static inline int encode_value(Writer *w, const Op *op, PyObject *value) {
    if (value == Py_None) return encode_null(w, op);
    if (op->code == OP_ARRAY) return encode_array(w, op, value);
    if (op->code != OP_STRUCT) return encode_sized(w, op->code, op->flags, value);
    if (op->flags & NULLABLE) {
        if (reserve(w, 1) < 0) return -1;
        *w->p++ = 1; /* the marker, an int8 or a varint */
    }
    Py_INCREF(value);
    int failed = encode_struct(w, op->sub, value);
    Py_DECREF(value);
    return failed;
}

/* Returns 1 if a value is not the default, 0 if it is, -1 with an exception. A value that the field cannot hold differs
 * from the default. The result equals differs_from_default of value_checks.py. No __eq__ of a value runs, so equality
 * in Python costs nothing here. */
static int differs(Writer *w, const Op *op, PyObject *value);

/* Returns whether a field with an empty array as its default holds a different value. */
static int is_set(PyObject *items) {
    if (PyTuple_Check(items)) return PyTuple_GET_SIZE(items) > 0;
    return !PyList_Check(items) || PyList_GET_SIZE(items) > 0;
}

/* Calls the Python function, for numbers, text and bytes whose type is not exactly the type of the default. */
static int foreign_differs(const Op *op, PyObject *value) {
    PyObject *function = import_attribute("kafka_msgs.codec.value_checks", "leaf_differs_from_default");
    PyObject *found = function == NULL ? NULL : PyObject_CallFunction(function, "iOO", op->code, op->initial, value);
    int different = found == NULL ? -1 : PyObject_IsTrue(found);
    Py_XDECREF(function);
    Py_XDECREF(found);
    return different;
}

static int uuid_differs(const CodecState *state, PyObject *value, PyObject *initial) {
    unsigned char found[16], expected[16];
    if (uuid_bytes(state, initial, expected) < 0) return -1;
    int same = uuid_bytes(state, value, found) == 0 && memcmp(found, expected, 16) == 0;
    PyErr_Clear();
    return !same;
}

/* Returns whether any field of a struct, from an op on, differs from its default; checks `all` fields, or only fields
 * that are not ignorable. */
static int fields_differ(Writer *w, const Op *op, PyObject *object, int all) {
    int different = 0;
    for (; op->label != OP_END && different == 0; op++) {
        PyObject *value = *slot_of(object, op->place);
        if ((op->ignorable && !all) || (value == op->initial && !PyFloat_Check(value))) continue;
        Py_XINCREF(value);
        different = value == NULL ? malformed(w->state) : differs(w, op, value);
        Py_XDECREF(value);
    }
    return different;
}

/* Returns whether a struct differs from the struct with all defaults, the only one that can be a default. */
static int struct_differs(Writer *w, const Struct *s, PyObject *object) {
    if (!PyObject_TypeCheck(object, s->type)) return 1;
    PyObject *unknown = *slot_of(object, s->unknown);
    int different = unknown == NULL ? malformed(w->state) : is_set(unknown);
    if (different == 0) different = fields_differ(w, s->ops, object, 1);
    if (different == 0) different = fields_differ(w, s->tagged, object, 1);
    return different == 0 ? fields_differ(w, s->absent, object, 1) : different;
}

/* Returns whether a struct shares the value objects of the default, as structs created without arguments do. */
static inline int same_slots(const Op *op, PyObject *value) {
    const PyTypeObject *type = op->sub->type;
    return op->sub->comparable && Py_TYPE(value) == type && Py_TYPE(op->initial) == type &&
           memcmp(value + 1, op->initial + 1, (size_t)type->tp_basicsize - sizeof(PyObject)) == 0;
}

static int differs(Writer *w, const Op *op, PyObject *value) {
    if (value == op->initial && !PyFloat_Check(value)) return 0;
    if (value == Py_None || op->initial == Py_None) return 1;
    if (op->code == OP_ARRAY) return is_set(value);
    if (op->code == OP_STRUCT) return same_slots(op, value) ? 0 : struct_differs(w, op->sub, value);
    if (op->code == OP_UUID) return uuid_differs(w->state, value, op->initial);
    if (op->code == OP_BOOL) return 1;
    if (op->code == OP_FLOAT64 || !Py_IS_TYPE(value, Py_TYPE(op->initial))) return foreign_differs(op, value);
    return PyObject_RichCompareBool(value, op->initial, Py_NE);
}

/* Writes a number at `place`, into the byte reserved before the bytes written since. */
static int write_before(Writer *w, size_t place, size_t number) {
    if (number > MAX_LENGTH) return malformed(w->state);
    if (reserve(w, 4) < 0) return -1;
    w->p = store_before(w->start + place, w->p, (uint32_t)number);
    return 0;
}

/* Writes a value of any kind. */
static int encode_any(Writer *w, const Op *op, PyObject *value) {
    if (!FIXED_SIZE[op->code]) return encode_value(w, op, value);
    return reserve(w, FIXED_SIZE[op->code]) < 0 ? -1 : encode_fixed(w, op->code, value);
}

/* Writes tag, size and value. */
static int encode_tagged(Writer *w, const Op *op, PyObject *value) {
    if (reserve(w, 5 + 1) < 0) return -1;
    w->p = store_varint(w->p, op->tag);
    size_t place = w->p++ - w->start;
    if (encode_any(w, op, value) < 0) return -1;
    return write_before(w, place, w->p - w->start - place - 1);
}

static int encode_unknown_tag(Writer *w, const Struct *s, PyObject *pair, int64_t *last) {
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyLong_Check(PyTuple_GET_ITEM(pair, 0)))
        return malformed(w->state);
    int64_t tag;
    if (read_int(w, PyTuple_GET_ITEM(pair, 0), *last + 1, MAX_TAG, &tag) < 0) return -1;
    *last = tag;
    if (find_tag(s, tag) || is_inactive(s, tag)) return malformed(w->state);
    PyObject *content = content_of(w->state, PyTuple_GET_ITEM(pair, 1));
    if (content == NULL) return -1;
    Py_ssize_t size = PyBytes_GET_SIZE(content);
    int failed = size > MAX_LENGTH ? malformed(w->state) : reserve(w, 10 + size);
    if (!failed) {
        w->p = store_varint(store_varint(w->p, (uint64_t)tag), (uint64_t)size);
        memcpy(w->p, PyBytes_AS_STRING(content), size);
        w->p += size;
    }
    Py_DECREF(content);
    return failed;
}

/* Writes the unknown tags, whose numbers are above all known tags, after `count` known tags. */
static int encode_unknown_tags(Writer *w, const Struct *s, PyObject *unknown, Py_ssize_t *count) {
    PyObject *pairs = as_tuple(w->state, unknown);
    if (pairs == NULL) return -1;
    *count += PyTuple_GET_SIZE(pairs);
    int failed = *count > MAX_TAGS ? malformed(w->state) : 0;
    int64_t last = -1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs) && !failed; i++)
        failed = encode_unknown_tag(w, s, PyTuple_GET_ITEM(pairs, i), &last);
    Py_DECREF(pairs);
    return failed;
}

/* Writes the tagged fields that are not the default, then the unknown ones. */
static int encode_tag_section(Writer *w, const Struct *s, PyObject *object, PyObject *unknown) {
    if (reserve(w, 1) < 0) return -1;
    size_t place = w->p++ - w->start;
    Py_ssize_t count = 0;
    for (const Op *op = s->tagged; op->label != OP_END; op++) {
        PyObject *value = Py_XNewRef(*slot_of(object, op->place));
        int different = value == NULL ? malformed(w->state) : differs(w, op, value);
        int failed = different < 0 || (different && encode_tagged(w, op, value) < 0);
        Py_XDECREF(value);
        if (failed) return trace(&w->trail, -1 - (op - s->tagged));
        count += different;
    }
    if (encode_unknown_tags(w, s, unknown, &count) < 0) return trace(&w->trail, TAG_SECTION);
    return write_before(w, place, (size_t)count);
}

/* Whether all tagged fields hold the very objects that are their defaults, or structs of these, as they mostly do. */
static inline int has_defaults(const Struct *s, PyObject *object) {
    for (const Op *op = s->tagged; op->label != OP_END; op++) {
        PyObject *value = *slot_of(object, op->place);
        if (value == NULL || op->code == OP_FLOAT64) return 0;
        if (value != op->initial && (op->code != OP_STRUCT || !same_slots(op, value))) return 0;
    }
    return 1;
}

/* Ends a struct after its positional fields: writes the tag section of flexible versions. */
static inline int encode_end(Writer *w, const Struct *s, PyObject *object) {
    PyObject *unknown = *slot_of(object, s->unknown);
    if (unknown == NULL || (!s->flexible && is_set(unknown))) {
        malformed(w->state);
        return trace(&w->trail, TAG_SECTION);
    }
    if (!s->flexible) return 0;
    if (unknown == w->state->empty_tuple && has_defaults(s, object)) {
        *w->p++ = 0; /* SLACK is reserved */
        return 0;
    }
    Py_INCREF(unknown);
    int failed = encode_tag_section(w, s, object, unknown);
    Py_DECREF(unknown);
    return failed;
}

/* Writes a short array of plain ints into SLACK reserved bytes; returns the position after it, or NULL without an
 * exception for any other value. */
static inline unsigned char *encode_ids(Writer *w, const Op *op, PyObject *ids, unsigned char *p) {
    if (!PyTuple_CheckExact(ids)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(ids);
    if (count >= 0x7F || w->end - p < SLACK + 4 * count + op->run) return NULL;
    *p++ = (unsigned char)(count + 1);
    for (Py_ssize_t i = 0; i < count; i++, p += 4) {
        PyObject *id = PyTuple_GET_ITEM(ids, i);
        int64_t value;
        if (!PyLong_CheckExact(id) || !compact_long(id, &value)) return NULL;
        store32(p, (uint32_t)value);
    }
    return p;
}

/* Writes the int in a slot with the given number of bits, and continues with the next op. */
#define WRITE(bits, read)                                                                                              \
    value = *slot_of(object, op->place);                                                                               \
    if (value == NULL || read(w, value, INT##bits##_MIN, INT##bits##_MAX, &number) < 0) goto refused;                  \
    store##bits(p, (uint##bits##_t)number);                                                                            \
    p += (bits) / 8;                                                                                                   \
    DISPATCH(++op)

static inline int encode_fields(Writer *w, const Struct *s, PyObject *object) {
    if (reserve(w, s->run + SLACK) < 0) return -1;
    const Op *op = s->ops;
    unsigned char *p = w->p, *next; /* in a register: w->p is only right around calls */
    PyObject *value;
    int64_t number;
    LABELS(op);
int16:
    WRITE(16, read_int);
int32:
    WRITE(32, read_wide_int);
int64:
next_int64:
    WRITE(64, read_wide_int);
fixed:
    value = *slot_of(object, op->place);
    w->p = p;
    if (value == NULL || encode_fixed(w, op->code, value) < 0) goto refused;
    p = w->p;
    DISPATCH(++op);
compact:
    value = *slot_of(object, op->place);
    if ((value == op->nothing || (value == Py_None && op->flags & NULLABLE)) && w->end - p > SLACK + op->run) {
        *p++ = value != Py_None;
        DISPATCH(++op);
    }
    goto sized;
ids:
    value = *slot_of(object, op->place);
    next = value == NULL ? NULL : encode_ids(w, op, value, p);
    if (next != NULL) {
        p = next;
        DISPATCH(++op);
    }
pass: /* never: what is written is whole */
sized:
    value = *slot_of(object, op->place);
    w->p = p;
    if (value == NULL || encode_value(w, op, value) < 0 || reserve(w, op->run + SLACK) < 0) goto refused;
    p = w->p;
    DISPATCH(++op);
end:
    w->p = p;
    return 0;
refused:
    if (!PyErr_Occurred()) malformed(w->state);
    return trace(&w->trail, op - s->ops);
}

/* Writes a struct that is held by a reference for as long as this takes. */
static int encode_struct(Writer *w, const Struct *s, PyObject *object) {
    if (!Py_IS_TYPE(object, s->type) && !PyType_IsSubtype(Py_TYPE(object), s->type)) return malformed(w->state);
    int different = s->absent->label == OP_END ? 0 : fields_differ(w, s->absent, object, 0);
    if (different) return different < 0 ? -1 : malformed(w->state);
    return encode_fields(w, s, object) < 0 ? -1 : encode_end(w, s, object);
}

#include "patch.h"

/* ------------------------------------------------------------------------------------------- 7 The Codec type */

/* Codec(structs, elements, room, too_deep, views, errors, encode_failure, decode_failure, trailing_data): native.py
 * creates codecs. */
static PyObject *codec_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    PyObject *specs;
    CoreState *core = core_of_type(type);
    Codec *self = core == NULL ? NULL : (Codec *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->state = &core->codec;
    int failed = !PyArg_ParseTuple(args, "O!LLppOOOO", &PyTuple_Type, &specs, &self->elements, &self->room,
                                   &self->too_deep, &self->views, &self->errors, &self->encode_failure,
                                   &self->decode_failure, &self->trailing_data);
    for (int i = 0; i < 4; i++)
        Py_XINCREF(self->owned[i]); /* the parsed arguments */
    failed = failed || check_budget(self->elements, self->room) < 0;
    if (!failed && self->errors != Py_None) failed = (self->handler = PyUnicode_AsUTF8(self->errors)) == NULL;
    if (!failed && PyTuple_GET_SIZE(specs) < 1) failed = refuse(PyExc_ValueError, "a program has structs");
    if (!failed && (self->structs = new_items(PyTuple_GET_SIZE(specs), sizeof(Struct))) != NULL)
        self->struct_count = PyTuple_GET_SIZE(specs);
    for (Py_ssize_t i = 0; i < self->struct_count && !failed; i++)
        failed = load_struct(self, PyTuple_GET_ITEM(specs, i), &self->structs[i]);
    if (PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

/* Whether the current exception is about the message. Interrupts, which are not an Exception, pass unchanged, and so do
 * MemoryError and RecursionError. */
static int is_failure(void) {
    return PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError) &&
           !PyErr_ExceptionMatches(PyExc_RecursionError);
}

/* Raises the exception that `make(*arguments)` returns; steals `arguments`, which may be NULL. */
static void raise_made(PyObject *make, PyObject *arguments) {
    PyObject *error = arguments == NULL ? NULL : PyObject_Call(make, arguments, NULL);
    Py_XDECREF(arguments);
    if (error != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_DECREF(error);
    }
}

/* Returns the bytes of any buffer, which must contain the offset: messages never change with their source. */
static PyObject *as_bytes(PyObject *data, Py_ssize_t offset) {
    int is_bytes = PyBytes_CheckExact(data); /* a view of an instance of a subclass could be part of a cycle */
    PyObject *view = is_bytes ? NULL : PyMemoryView_FromObject(data);
    PyObject *bytes = is_bytes ? Py_NewRef(data) : view == NULL ? NULL : PyBytes_FromObject(view);
    Py_XDECREF(view);
    if (bytes == NULL || (offset >= 0 && offset <= PyBytes_GET_SIZE(bytes))) return bytes;
    PyErr_Format(PyExc_ValueError, "offset %zd is outside a buffer of %zd bytes", offset, PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return NULL;
}

static void start_writer(Writer *w, const Codec *codec) {
    w->state = codec->state;
    w->errors = codec->handler;
    w->bytes = NULL;
    w->trail.count = 0;
    w->start = w->p = w->stack;
    w->end = w->stack + STACK_SIZE;
}

static inline void start_reader(Reader *r, Codec *codec, PyObject *bytes, Py_ssize_t offset) {
    r->start = (const unsigned char *)PyBytes_AS_STRING(bytes);
    r->p = r->start + offset;
    r->end = r->start + PyBytes_GET_SIZE(bytes);
    r->state = codec->state;
    r->codec = codec;
    r->source = bytes;
    r->view = NULL;
    r->elements = codec->elements;
    r->room = codec->room;
    r->items = 0;
    r->patching = 0;
    r->last = codec->state->tuples;
    start_fault(&r->fault);
}

/* Returns the steps of a trail from the root on; an empty tuple if there are too many. */
static PyObject *steps_of(const Trail *trail) {
    int count = trail->count > MAX_TRAIL ? 0 : trail->count;
    PyObject *steps = PyTuple_New(count);
    for (int i = 0; steps != NULL && i < count; i++) {
        PyObject *step = PyLong_FromSsize_t(trail->steps[count - 1 - i]);
        PyTuple_SET_ITEM(steps, i, step);
        if (step == NULL) Py_CLEAR(steps);
    }
    return steps;
}

/* Raises the error of bytes that the reader refused. */
static Py_NO_INLINE void raise_decode_failure(Codec *self, const Reader *r, PyObject *bytes, Py_ssize_t offset) {
    if (!is_failure()) return;
    PyObject *failure = take_exception(), *steps = steps_of(&r->fault.trail);
    raise_made(self->decode_failure,
               Py_BuildValue("(OnN(NnnLLiLL))", bytes, offset, failure, steps, r->p - r->start, r->end - r->start,
                             r->elements, r->room, r->fault.kind, r->fault.first, r->fault.second));
}

/* Raises the error of a message that the writer refused. */
static Py_NO_INLINE void raise_encode_failure(Codec *self, const Writer *w, PyObject *message) {
    if (!is_failure()) return;
    PyObject *failure = take_exception(), *steps = steps_of(&w->trail);
    raise_made(self->encode_failure, Py_BuildValue("(ONN)", message, failure, steps));
}

/* patch(data, offset, edits): returns the data with the fields changed that the edits change. */
static PyObject *codec_patch(Codec *self, PyObject *args) {
    Py_ssize_t offset;
    PyObject *data, *edits;
    if (!PyArg_ParseTuple(args, "OnO!", &data, &offset, &PyTuple_Type, &edits)) return NULL;
    PyObject *bytes = as_bytes(data, offset);
    if (bytes == NULL) return NULL;
    Patch patch = {.edits = edits};
    start_reader(&patch.reader, self, bytes, offset);
    patch.reader.patching = 1;
    start_writer(&patch.writer, self);
    PyObject *result = patched(&patch, &self->structs[0]);
    if (patch.doing == READING && result == NULL)
        raise_decode_failure(self, &patch.reader, bytes, offset);
    else if (patch.doing == WRITING && is_failure())
        raise_made(self->encode_failure, Py_BuildValue("(OnnON)", bytes, offset, patch.at - patch.reader.start,
                                                       patch.refused, take_exception()));
    Py_XDECREF(patch.refused);
    Py_XDECREF(patch.writer.bytes);
    Py_XDECREF(patch.reader.view);
    Py_DECREF(bytes);
    return result;
}

/* Decodes at an offset, from the start if it is NULL; all of the data must be the message if it is `whole`. */
static inline Py_ALWAYS_INLINE PyObject *decode_or_explain(Codec *self, PyObject *data, PyObject *given, int whole) {
    Py_ssize_t offset = given == NULL ? 0 : PyNumber_AsSsize_t(given, PyExc_ValueError);
    if (offset == -1 && PyErr_Occurred()) return NULL;
    PyObject *bytes = as_bytes(data, offset);
    if (bytes == NULL) return NULL;
    Reader reader;
    start_reader(&reader, self, bytes, offset);
    PyObject *message = self->too_deep ? no_value(self->state) : decode_struct(&reader, &self->structs[0]);
    Py_ssize_t size = PyBytes_GET_SIZE(bytes), end = reader.p - reader.start;
    if (message == NULL) {
        raise_decode_failure(self, &reader, bytes, offset);
    } else if (!whole) {
        message = Py_BuildValue("(Nn)", message, end);
    } else if (end != size) {
        Py_CLEAR(message);
        raise_made(self->trailing_data, Py_BuildValue("(nn)", end, size));
    }
    Py_XDECREF(reader.view);
    Py_DECREF(bytes);
    return message;
}

static PyObject *codec_decode(Codec *self, PyObject *const *args, Py_ssize_t count) {
    if (count < 1 || count > 2)
        return PyErr_Format(PyExc_TypeError, "decode expected 1 or 2 arguments, got %zd", count);
    return decode_or_explain(self, args[0], count == 2 ? args[1] : NULL, 1);
}

static PyObject *codec_read(Codec *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"buffer", "offset", NULL};
    PyObject *data, *offset = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:read", names, &data, &offset)) return NULL;
    return decode_or_explain(self, data, offset, 0);
}

static PyObject *codec_encode(Codec *self, PyObject *message) {
    Writer writer;
    start_writer(&writer, self);
    PyObject *result = NULL;
    Py_ssize_t hint = LOAD_LOOSE(self->hint);
    if (hint > STACK_SIZE && grow(&writer, hint) < 0) return NULL;
    if (encode_struct(&writer, &self->structs[0], message) == 0) {
        Py_ssize_t size = writer.p - writer.start;
        STORE_LOOSE(self->hint, size + size / 8);
        result = finish(&writer);
    }
    Py_CLEAR(writer.bytes);
    if (result == NULL) raise_encode_failure(self, &writer, message);
    return result;
}

PyObject *codec_of(PyObject *codec) {
    PyObject *encode = PyObject_GetAttrString(codec, "encode"), *core = NULL;
    if (encode != NULL && PyCFunction_Check(encode) && PyCFunction_GetFunction(encode) == (PyCFunction)codec_encode)
        core = Py_NewRef(PyCFunction_GetSelf(encode));
    Py_XDECREF(encode);
    return core;
}

PyObject *codec_run(PyObject *codec, int verb, PyObject *subject, PyObject *offset) {
    if (verb == CODEC_ENCODE) return codec_encode((Codec *)codec, subject);
    return decode_or_explain((Codec *)codec, subject, offset, verb == CODEC_DECODE);
}

static int codec_traverse(Codec *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    for (Py_ssize_t i = 0; i < self->struct_count; i++)
        Py_VISIT(self->structs[i].type); /* defaults are leaves, or unknown to the collector */
    return visit_all(self->owned, 4, visit, arg);
}

static int codec_clear(Codec *self) {
    clear_structs(&self->structs, &self->struct_count);
    clear_all(self->owned, 4);
    return 0;
}

static PyMethodDef codec_methods[] = {
    {"decode", (PyCFunction)(void (*)(void))codec_decode, METH_FASTCALL,
     "Return the message that a buffer holds from an offset to its end."},
    {"read", (PyCFunction)(void (*)(void))codec_read, METH_VARARGS | METH_KEYWORDS,
     "Decode the message at an offset of a buffer; return it and the offset after it."},
    {"patch", (PyCFunction)codec_patch, METH_VARARGS,
     "Return a buffer with the message at an offset changed by edits; the same object if nothing changed."},
    {"encode", (PyCFunction)codec_encode, METH_O, "Return the bytes of a message."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot codec_slots[] = {
    {Py_tp_doc, "Executes one plan."},
    {Py_tp_new, codec_new},
    {Py_tp_traverse, codec_traverse},
    {Py_tp_clear, codec_clear},
    {Py_tp_dealloc, dealloc_tracked},
    {Py_tp_methods, codec_methods},
    {0, NULL},
};

/* ---------------------------------------------------------------------------------------------- 8 What the module keeps */

/* Takes the attributes of UUID objects from the zero UUID. */
static int load_uuid(CodecState *state) {
    state->zero_uuid = import_attribute("kafka_msgs.primitives", "ZERO_UUID");
    if (state->zero_uuid == NULL) return -1;
    state->uuid_type = (PyTypeObject *)Py_NewRef(Py_TYPE(state->zero_uuid));
    state->uuid_unknown = PyObject_GetAttrString(state->zero_uuid, "is_safe");
    state->uuid_int = named_slot(state->uuid_type, "int");
    state->uuid_is_safe = named_slot(state->uuid_type, "is_safe");
    return PyErr_Occurred() ? -1 : 0;
}

/* Returns the source bytes object of a view and the view's offset in it; None for a view of any other object. */
static PyObject *view_source(PyObject *Py_UNUSED(module), PyObject *view) {
    if (!PyMemoryView_Check(view) || ((PyMemoryViewObject *)view)->flags & _Py_MEMORYVIEW_RELEASED) Py_RETURN_NONE;
    const Py_buffer *part = PyMemoryView_GET_BUFFER(view);
    if (part->obj == NULL || !PyBytes_CheckExact(part->obj) || !PyBuffer_IsContiguous(part, 'C')) Py_RETURN_NONE;
    return Py_BuildValue("(On)", part->obj, (const char *)part->buf - PyBytes_AS_STRING(part->obj));
}

static PyMethodDef codec_functions[] = {
    {"view_source", view_source, METH_O, "Return the bytes of which a view is a part, and the offset of the part."},
    {NULL, NULL, 0, NULL},
};

int codec_add(PyObject *module, CodecState *state) {
    state->malformed = PyErr_NewException(CORE_NAME ".MalformedError", PyExc_ValueError, NULL);
    state->empty_tuple = PyTuple_New(0);
    state->empty_str = PyUnicode_New(0, 0);
    state->empty_bytes = PyBytes_FromStringAndSize(NULL, 0);
    state->empty_view = state->empty_bytes == NULL ? NULL : PyMemoryView_FromObject(state->empty_bytes);
    for (long i = 0; i < SMALL_INTS; i++)
        state->small[i] = PyLong_FromLong(LEAST_INT + i);
    if (PyErr_Occurred() || load_uuid(state) < 0 || PyModule_AddFunctions(module, codec_functions) < 0) return -1;
    return core_add_type(module, CORE_NAME ".Codec", sizeof(Codec), Py_TPFLAGS_HAVE_GC, codec_slots, NULL) ? 0 : -1;
}

void codec_forget(CodecState *state) {
    clear_all(state->owned, CODEC_OBJECTS);
    for (int i = 0; i < INT_MEMO; i++)
        Py_CLEAR(state->ints[i].value);
    for (int i = 0; i < TUPLE_MEMO; i++) {
        state->tuples[i].count = 0;
        Py_CLEAR(state->tuples[i].value);
    }
}
