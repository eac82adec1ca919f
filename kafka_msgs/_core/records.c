/* The loops over the records of a magic 2 batch in C: bytes to Record objects, or to lists of one field, and back.
 *
 * Its only purpose is speed. It accepts and refuses the same bytes and arguments as records/python.py, and does not
 * explain a refusal. Reading returns None for bytes whose fault the Python side explains. Writing passes an argument
 * without the exact type to the Python side, which converts it or raises an error.
 *
 * Sections: 1 storage, 2 reading, 3 writing, 4 hashing, 5 what the module keeps. The layout of a record is in walk.h.
 *
 * Each collector has separate state. Without the GIL the lock of the collector guards it and serializes the callers.
 *
 * Conventions. Functions returning PyObject * return a new reference, or NULL: with an exception set, or, while
 * reading, without an exception for bytes that are not records. Functions returning int return 0, or -1 in the same two
 * ways.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>

#include "bytes.h"
#include "compat.h"
#include "core.h"
#include "layouts.h"
#include "objects.h"
#include "walk.h"

enum { KEY, VALUE, TIMESTAMP, HEADERS, OFFSET }; /* the arguments of append */
_Static_assert(OFFSET + 1 == ARGUMENTS, "each argument has a name");

/* ------------------------------------------------------------------------------------------------- 1 Storage */

/* Reads an exact int; returns 0 for other types and larger ints. */
static inline int read_int(PyObject *number, int64_t *value) {
    if (!PyLong_CheckExact(number)) return 0;
    if (compact_long(number, value)) return 1;
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    return !overflow;
}

/* The storage of a Record: its offset as a number, and objects. Every record of a batch has a different offset, so an
 * int object per record would cost memory and time before the offset is read; timestamps are often shared. A Record is
 * frozen and holds leaves and tuples, so the garbage collector has no references to visit. */
typedef struct {
    PyObject_HEAD
    int64_t offset;
    PyObject *wide; /* the offset if it is not an exact int of 64 bits, or NULL; owned, like the others */
    PyObject *timestamp, *key, *value, *headers;
} Storage;

/* A record with its topic and partition, which all records of a batch share. */
typedef struct {
    Storage record;
    PyObject *topic, *partition; /* owned */
} Placed;

/* The owned objects are adjacent: first the objects of the class, then the objects of its subclass. */
_Static_assert(offsetof(Storage, headers) - offsetof(Storage, wide) == 4 * sizeof(PyObject *), "five objects");
_Static_assert(offsetof(Placed, topic) == sizeof(Storage) && sizeof(Placed) == sizeof(Storage) + 2 * sizeof(PyObject *),
               "and two more");

static int storage_set_offset(Storage *self, PyObject *value, void *Py_UNUSED(closure)) {
    if (value == NULL) return refuse(PyExc_AttributeError, "the offset of a record cannot be deleted");
    PyObject *old;
    Py_BEGIN_CRITICAL_SECTION(self);
    old = self->wide;
    self->wide = read_int(value, &self->offset) ? NULL : Py_NewRef(value);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(old);
    return 0;
}

static PyObject *storage_offset(Storage *self, void *Py_UNUSED(closure)) {
    PyObject *offset;
    Py_BEGIN_CRITICAL_SECTION(self);
    offset = self->wide == NULL ? PyLong_FromLongLong(self->offset) : Py_NewRef(self->wide);
    Py_END_CRITICAL_SECTION();
    return offset;
}

/* Frees a record with `objects` owned objects, or the record part of a subclass instance. Classes created in Python
 * share a function that searches all base classes for slots, dictionaries and weak references, and handles deep
 * nesting. Records have none of these, and the search would be one sixth of the time spent reading records. So bound
 * classes use this function instead. */
static inline void free_record(PyObject *self, int objects) {
    if (Py_TYPE(self)->tp_finalize != NULL && PyObject_CallFinalizerFromDealloc(self) < 0) return;
    if (PyType_IS_GC(Py_TYPE(self))) PyObject_GC_UnTrack(self);
    PyObject **object = slot_of(self, offsetof(Storage, wide));
    for (PyObject **end = object + objects; object < end; object++)
        Py_XDECREF(*object);
    free_instance(self);
}

static void storage_dealloc(PyObject *self) {
    free_record(self, 5);
}

static void placed_dealloc(PyObject *self) {
    free_record(self, 7);
}

static PyGetSetDef storage_numbers[] = {
    {"offset", (getter)storage_offset, (setter)storage_set_offset, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef storage_objects[] = {
    {"timestamp", T_OBJECT_EX, offsetof(Storage, timestamp), 0, NULL},
    {"key", T_OBJECT_EX, offsetof(Storage, key), 0, NULL},
    {"value", T_OBJECT_EX, offsetof(Storage, value), 0, NULL},
    {"headers", T_OBJECT_EX, offsetof(Storage, headers), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot storage_slots[] = {
    {Py_tp_doc, "Keeps the fields of a record."},
    {Py_tp_dealloc, storage_dealloc},
    {Py_tp_getset, storage_numbers},
    {Py_tp_members, storage_objects},
    {0, NULL},
};

static PyMemberDef placed_objects[] = {
    {"topic", T_OBJECT_EX, offsetof(Placed, topic), 0, NULL},
    {"partition", T_OBJECT_EX, offsetof(Placed, partition), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot placed_slots[] = {
    {Py_tp_doc, "Keeps the fields of a record, and where it comes from."},
    {Py_tp_dealloc, placed_dealloc},
    {Py_tp_members, placed_objects},
    {0, NULL},
};

/* Checks that a class is defined in Python and adds nothing to its base; -1 with an exception if not. */
static int adds_nothing(PyTypeObject *type, PyTypeObject *base) {
    if (PyType_IsSubtype(type, base) && type->tp_basicsize == base->tp_basicsize && PyType_IS_GC(type) &&
        type->tp_dictoffset == 0 && type->tp_weaklistoffset == 0)
        return 0;
    PyErr_Format(PyExc_TypeError, "%R is not a class that adds nothing to %R", type, base);
    return -1;
}

/* Binds the classes of records, once: threads that read records rely on it. The classes get the deallocators of their
 * bases. */
static PyObject *bind(PyObject *module, PyObject *args) {
    RecordsState *state = &core_of_module(module)->records;
    PyTypeObject *type, *placed;
    PyObject *checked;
    if (!PyArg_ParseTuple(args, "O!O!O:bind_records", &PyType_Type, &type, &PyType_Type, &placed, &checked) ||
        adds_nothing(type, state->storage_type) < 0 || adds_nothing(placed, state->placed_storage_type) < 0)
        return NULL;
    if (state->checked != NULL) return PyErr_Format(PyExc_RuntimeError, "the classes of records are bound already");
    type->tp_dealloc = state->storage_type->tp_dealloc;
    placed->tp_dealloc = state->placed_storage_type->tp_dealloc;
    state->record_type = (PyTypeObject *)Py_NewRef(type);
    state->placed_type = (PyTypeObject *)Py_NewRef(placed);
    state->checked = Py_NewRef(checked);
    Py_RETURN_NONE;
}

/* ------------------------------------------------------------------------------------------------- 2 Reading */

#define NAME_MEMO 16 /* places among a record's headers whose last name is remembered */

typedef struct {
    const unsigned char *raw; /* in the bytes that are read */
    int32_t size;
    PyObject *name; /* owned, or NULL */
} NameEntry;

typedef struct {
    RecordsState *state;
    PyObject *body; /* the bytes; borrowed */
    const unsigned char *start;
    const unsigned char *p, *end;
    Py_ssize_t count;
    long long base_offset, base_timestamp;
    PyObject *append_timestamp;  /* borrowed, or NULL if each record has its own */
    PyObject *topic, *partition; /* borrowed, or NULL for records without them */
    PyObject *whole;             /* a view of the body if views are wanted, or NULL; owned */
    int64_t last_delta;          /* of the last timestamp that was made */
    PyObject *last_timestamp;    /* owned, or NULL */
    NameEntry names[NAME_MEMO];  /* by place: the records of a batch mostly have the same headers in the same order */
} Reader;

/* Adds two numbers; returns 1, or 0 if the sum exceeds 64 bits. */
static inline int add(int64_t base, int64_t delta, int64_t *sum) {
    if (delta >= 0 ? base > INT64_MAX - delta : base < INT64_MIN - delta) return 0;
    *sum = base + delta;
    return 1;
}

/* Creates the int base + delta; sums of more than 64 bits are left to the Python side. */
static PyObject *make_sum(int64_t base, int64_t delta) {
    int64_t value;
    return add(base, delta, &value) ? PyLong_FromLongLong(value) : NULL;
}

/* Creates a timestamp, or reuses the previous record's timestamp: producers send many records in a millisecond. */
static inline PyObject *make_timestamp(Reader *r, const WalkRecord *record) {
    if (r->append_timestamp != NULL) return Py_NewRef(r->append_timestamp);
    if (r->last_timestamp == NULL || r->last_delta != record->timestamp_delta) {
        PyObject *made = make_sum(r->base_timestamp, record->timestamp_delta);
        if (made == NULL) return NULL;
        r->last_delta = record->timestamp_delta;
        Py_XSETREF(r->last_timestamp, made);
    }
    return Py_NewRef(r->last_timestamp);
}

static inline PyObject *make_payload(Reader *r, const unsigned char *content, int32_t size) {
    if (content == NULL) Py_RETURN_NONE;
    if (r->whole == NULL) return PyBytes_FromStringAndSize((const char *)content, size);
    return PySequence_GetSlice(r->whole, content - r->start, content - r->start + size);
}

static inline PyObject *make_name(const unsigned char *raw, int32_t size) {
    return PyUnicode_DecodeUTF8((const char *)raw, size, "surrogateescape");
}

/* Creates the name of the header at an index, or reuses an equal name of the previous record. */
static PyObject *find_name(Reader *r, int32_t place, const unsigned char *raw, int32_t size) {
    if (place >= NAME_MEMO) return make_name(raw, size);
    NameEntry *entry = &r->names[place];
    if (entry->name == NULL || entry->size != size || memcmp(entry->raw, raw, size) != 0) {
        PyObject *made = make_name(raw, size);
        if (made == NULL) return NULL;
        entry->raw = raw;
        entry->size = size;
        Py_XSETREF(entry->name, made);
    }
    return Py_NewRef(entry->name);
}

/* Creates (name, value). Tuples of leaves cannot be in a cycle, so the garbage collector need not track them. */
static PyObject *make_header(Reader *r, int32_t place, const WalkHeader *header) {
    PyObject *pair = PyTuple_New(2);
    if (pair == NULL) return NULL;
    PyObject_GC_UnTrack(pair);
    PyObject *name = find_name(r, place, header->name, header->name_size);
    PyTuple_SET_ITEM(pair, 0, name);
    PyObject *value = name == NULL ? NULL : make_payload(r, header->value, header->value_size);
    PyTuple_SET_ITEM(pair, 1, value);
    if (value == NULL) Py_CLEAR(pair);
    return pair;
}

/* Checks all headers before any allocation, so the header count alone allocates nothing. */
static PyObject *make_headers(Reader *r, const WalkRecord *record) {
    if (record->header_count == 0) return Py_NewRef(r->state->empty_tuple);
    if (walk_headers(record) < 0) return NULL;
    PyObject *headers = PyTuple_New(record->header_count);
    if (headers != NULL) PyObject_GC_UnTrack(headers);
    const unsigned char *p = record->headers;
    for (int32_t i = 0; headers != NULL && i < record->header_count; i++) {
        WalkHeader header;
        p = walk_header(p, record->end, &header);
        PyObject *pair = p == NULL ? NULL : make_header(r, i, &header);
        PyTuple_SET_ITEM(headers, i, pair);
        if (pair == NULL) Py_CLEAR(headers);
    }
    return headers;
}

/* Fills a record whose objects are NULL; the caller drops the record on failure. */
static inline int fill_record(Reader *r, const WalkRecord *record, Storage *object) {
    if (!add(r->base_offset, record->offset_delta, &object->offset)) return -1;
    if ((object->timestamp = make_timestamp(r, record)) == NULL) return -1;
    if ((object->key = make_payload(r, record->key, record->key_size)) == NULL) return -1;
    if ((object->value = make_payload(r, record->value, record->value_size)) == NULL) return -1;
    return (object->headers = make_headers(r, record)) == NULL ? -1 : 0;
}

/* Creates a Record that the garbage collector does not track, without __init__, which has nothing to check. */
static inline PyObject *make_record(Reader *r, const WalkRecord *record) {
    Storage *object = PyObject_GC_New(Storage, r->topic == NULL ? r->state->record_type : r->state->placed_type);
    if (object == NULL) return NULL;
    object->wide = object->timestamp = object->key = object->value = object->headers = NULL;
    if (r->topic != NULL) {
        ((Placed *)object)->topic = Py_NewRef(r->topic);
        ((Placed *)object)->partition = Py_NewRef(r->partition);
    }
    if (fill_record(r, record, object) < 0) Py_CLEAR(object);
    return (PyObject *)object;
}

static inline PyObject *make_one(Reader *r, const WalkRecord *record, int part) {
    if (part == PART_RECORDS) return make_record(r, record);
    if (part == PART_OFFSETS) return make_sum(r->base_offset, record->offset_delta);
    if (part == PART_TIMESTAMPS) return make_timestamp(r, record);
    if (part == PART_KEYS) return make_payload(r, record->key, record->key_size);
    return make_payload(r, record->value, record->value_size);
}

/* Creates a list with one object per record. Only records have headers; for other parts the loop checks these. The
 * garbage collector does not track the list while it has holes. */
static inline PyObject *make_list(Reader *r, int part) {
    PyObject *list = PyList_New(r->count);
    if (list == NULL) return NULL;
    PyObject_GC_UnTrack(list);
    for (Py_ssize_t i = 0; i < r->count; i++) {
        WalkRecord record;
        r->p = walk_record(r->p, r->end, &record);
        if (r->p == NULL || (part != PART_RECORDS && record.header_count > 0 && walk_headers(&record) < 0))
            goto refused;
        PyObject *made = make_one(r, &record, part);
        if (made == NULL) goto refused;
        PyList_SET_ITEM(list, i, made);
    }
    if (r->p != r->end) goto refused;
    PyObject_GC_Track(list);
    return list;
refused:
    Py_DECREF(list);
    return NULL;
}

/* Checks all records, and returns the start positions of every MARKED-th record and the end position of the last
 * record. */
static PyObject *make_marks(Reader *r) {
    PyObject *marks = PyList_New((r->count + MARKED - 1) / MARKED + 1);
    for (Py_ssize_t i = 0; marks != NULL; i++) {
        WalkRecord record;
        if (i % MARKED == 0 || i == r->count)
            PyList_SET_ITEM(marks, (i + MARKED - 1) / MARKED, PyLong_FromSsize_t(r->p - r->start));
        if (i == r->count) break;
        r->p = walk_record(r->p, r->end, &record);
        if (r->p == NULL || (record.header_count > 0 && walk_headers(&record) < 0)) Py_CLEAR(marks);
    }
    if (r->p != r->end || PyErr_Occurred()) Py_CLEAR(marks);
    return marks;
}

static PyObject *make_part(Reader *r, int part) {
    if (part == PART_RECORDS) return make_list(r, PART_RECORDS); /* a loop of its own: the most frequent one */
    if (part == PART_MARKS) return make_marks(r);
    if (part < PART_RECORDS || part > PART_VALUES) return PyErr_Format(PyExc_ValueError, "not a part of records");
    return make_list(r, part);
}

static void clear_reader(Reader *r) {
    Py_CLEAR(r->whole);
    Py_CLEAR(r->last_timestamp);
    for (int i = 0; i < NAME_MEMO; i++)
        Py_CLEAR(r->names[i].name);
}

static PyObject *records_exceed(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *body;
    Py_ssize_t at, end;
    long long count, limit;
    if (!PyArg_ParseTuple(args, "SnnLL:records_exceed", &body, &at, &end, &count, &limit)) return NULL;
    if (at < 0 || at > end || end > PyBytes_GET_SIZE(body) || limit < 0)
        return PyErr_Format(PyExc_ValueError, "not a part of the bytes, or a negative limit");
    const unsigned char *start = (const unsigned char *)PyBytes_AS_STRING(body);
    return PyBool_FromLong(walk_exceeds(start + at, start + end, count, limit));
}

PyDoc_STRVAR(
    read_doc,
    "read_records(part, body, at, end, count, base_offset, base_timestamp, append_timestamp, views, "
    "topic=None, partition=None)\n--\n\n"
    "Return a list of one part of each record, or of marks, or None for bytes that are not such records. With a topic "
    "and a partition the records know them.");

static PyObject *read_part(PyObject *module, PyObject *args) {
    int part, views;
    Py_ssize_t at, end;
    Reader r = {.state = &core_of_module(module)->records};
    if (!PyArg_ParseTuple(args, "iSnnnLLOp|OO:read_records", &part, &r.body, &at, &end, &r.count, &r.base_offset,
                          &r.base_timestamp, &r.append_timestamp, &views, &r.topic, &r.partition)) {
        return NULL;
    }
    if (r.partition == NULL) r.topic = NULL;
    if (r.state->record_type == NULL) return PyErr_Format(PyExc_TypeError, "nothing was bound");
    if (at < 0 || at > end || end > PyBytes_GET_SIZE(r.body))
        return PyErr_Format(PyExc_ValueError, "not a part of the bytes");
    if (r.count < 0) r.count = 0;
    if (r.count > (end - at) / WALK_SMALLEST) Py_RETURN_NONE;
    r.start = (const unsigned char *)PyBytes_AS_STRING(r.body);
    r.p = r.start + at;
    r.end = r.start + end;
    if (r.append_timestamp == Py_None) r.append_timestamp = NULL;
    if (r.append_timestamp != NULL && !PyLong_Check(r.append_timestamp))
        return PyErr_Format(PyExc_TypeError, "a timestamp is an int");
    if (views && (r.whole = PyMemoryView_FromObject(r.body)) == NULL) return NULL;
    PyObject *list = make_part(&r, part);
    clear_reader(&r);
    if (list == NULL && !PyErr_Occurred()) Py_RETURN_NONE;
    return list;
}

/* ------------------------------------------------------------------------------------------------- 3 Writing */

/* Collects the bytes of records; the same as the class of that name in python.py. Its fields are never negative but for
 * the timestamps, and next_offset may be one more than an int64 holds. */
typedef struct {
    PyObject_HEAD
    RecordsState *state; /* borrowed from the module, which the type keeps alive */
    PyObject *buffer;    /* owned bytes: HEADER_SIZE free ones, records, room for more; NULL after memory ran out */
    Py_ssize_t size;     /* bytes of the records */
    Py_ssize_t exports;  /* live views of the records: the buffer cannot move meanwhile */
    int sealed;          /* the buffer is a batch that somebody has, and never changes again */
    uint64_t base_offset, next_offset, highest_offset;
    long long base_timestamp, max_timestamp; /* long long, as members of that type are */
    int has_base;                            /* whether base_timestamp is settled; the first record settles it */
    Py_ssize_t room;                         /* bytes beyond which only the first record is taken */
    Py_ssize_t count;
} Collector;

static inline unsigned char *records_of(const Collector *self) {
    return (unsigned char *)PyBytes_AS_STRING(self->buffer) + HEADER_SIZE;
}

/* Puts the records into another buffer, for `room` bytes of them. */
static int move_records(Collector *self, Py_ssize_t room) {
    PyObject *moved = PyBytes_FromStringAndSize(NULL, HEADER_SIZE + room);
    if (moved == NULL) return -1;
    memcpy(PyBytes_AS_STRING(moved) + HEADER_SIZE, records_of(self), self->size);
    Py_SETREF(self->buffer, moved);
    self->sealed = 0;
    return 0;
}

/* Resizes the buffer. Without the GIL, only the thread that created a bytes object could resize it in place. */
static int resize_buffer(Collector *self, Py_ssize_t room) {
    return HAS_GIL ? _PyBytes_Resize(&self->buffer, HEADER_SIZE + room) : move_records(self, room);
}

/* Reserves `need` bytes after the records. With the GIL the buffer grows by one eighth at a time: a buffer much larger
 * than the batch would be allocated from the system, and returned to it, for every batch. */
static int make_room(Collector *self, size_t need) {
    if (self->buffer == NULL || need > (size_t)PY_SSIZE_T_MAX / 2 - HEADER_SIZE - self->size) return no_memory();
    if (self->exports > 0) return refuse(PyExc_BufferError, "Existing exports of data: object cannot be re-sized");
    Py_ssize_t used = self->size + (Py_ssize_t)need;
    if (self->sealed) return move_records(self, used + used / 2);
    if (HEADER_SIZE + used <= PyBytes_GET_SIZE(self->buffer)) return 0;
    return resize_buffer(self, used + used / (HAS_GIL ? 8 : 2) + 512);
}

/* The bytes of a key, a value or a name, borrowed; `raw` is NULL for None. */
typedef struct {
    const char *raw;
    Py_ssize_t size;
} Content;

/* One record as it will be written: everything checked, all objects borrowed. */
typedef struct {
    Content key, value;
    PyObject *const *headers; /* pairs of a name (an ASCII str, or bytes) and a value (bytes or None) */
    Py_ssize_t header_count;
    uint64_t offset;
    int64_t timestamp;
} Draft;

static inline uint64_t zigzag(int64_t value) {
    return (uint64_t)value << 1 ^ (uint64_t)(value < 0 ? -1 : 0);
}

static inline size_t varint_size(uint64_t raw) {
    size_t size = 1;
    while (raw >>= 7)
        size++;
    return size;
}

static inline Content content_of(PyObject *content) {
    if (content == Py_None) return (Content){NULL, 0};
    if (PyUnicode_Check(content)) return (Content){PyUnicode_DATA(content), PyUnicode_GET_LENGTH(content)};
    return (Content){PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content)};
}

static inline size_t content_size(Content content) {
    return content.raw == NULL ? 1 : varint_size((uint64_t)content.size << 1) + (size_t)content.size;
}

static inline unsigned char *store_content(unsigned char *p, Content content) {
    if (content.raw == NULL) {
        *p++ = 1; /* -1 in zig-zag */
        return p;
    }
    p = store_varint(p, (uint64_t)content.size << 1);
    memcpy(p, content.raw, content.size);
    return p + content.size;
}

/* Appends a record: returns 1, or 0 if it would exceed the room. */
static int write_record(Collector *self, const Draft *draft) {
    uint64_t time = zigzag(self->has_base ? (int64_t)((uint64_t)draft->timestamp - (uint64_t)self->base_timestamp) : 0);
    uint64_t offset = (draft->offset - self->base_offset) << 1, headers = (uint64_t)draft->header_count << 1;
    size_t size = 1 + varint_size(time) + varint_size(offset) + varint_size(headers) + content_size(draft->key) +
                  content_size(draft->value);
    for (Py_ssize_t i = 0; i < draft->header_count; i++)
        size += content_size(content_of(PyTuple_GET_ITEM(draft->headers[i], 0))) +
                content_size(content_of(PyTuple_GET_ITEM(draft->headers[i], 1)));
    size_t total = varint_size((uint64_t)size << 1) + size;
    if (self->count > 0 && (self->size > self->room || total > (size_t)(self->room - self->size))) return 0;
    if (make_room(self, total) < 0) return -1;
    unsigned char *p = records_of(self) + self->size;
    p = store_varint(p, (uint64_t)size << 1);
    *p++ = 0; /* attributes */
    p = store_varint(p, time);
    p = store_varint(p, offset);
    p = store_content(p, draft->key);
    p = store_content(p, draft->value);
    p = store_varint(p, headers);
    for (Py_ssize_t i = 0; i < draft->header_count; i++) {
        p = store_content(p, content_of(PyTuple_GET_ITEM(draft->headers[i], 0)));
        p = store_content(p, content_of(PyTuple_GET_ITEM(draft->headers[i], 1)));
    }
    self->size += (Py_ssize_t)total;
    return 1;
}

static int add_record(Collector *self, const Draft *draft) {
    int taken = write_record(self, draft);
    if (taken <= 0) return taken;
    if (!self->has_base) self->base_timestamp = draft->timestamp;
    self->has_base = 1;
    if (draft->timestamp > self->max_timestamp) self->max_timestamp = draft->timestamp;
    self->next_offset = draft->offset + 1;
    self->count++;
    return 1;
}

static inline int is_content(PyObject *content) {
    return content == Py_None || PyBytes_Check(content);
}

/* Returns whether a header can be written without conversion. `name` is bytes only if the Python side created it. */
static int is_header(PyObject *header, int checked) {
    if (!PyTuple_CheckExact(header) || PyTuple_GET_SIZE(header) != 2) return 0;
    PyObject *name = PyTuple_GET_ITEM(header, 0);
    if (!(checked ? PyBytes_Check(name) : PyUnicode_CheckExact(name) && PyUnicode_IS_COMPACT_ASCII(name))) return 0;
    return is_content(PyTuple_GET_ITEM(header, 1));
}

static int read_headers(PyObject *headers, int checked, Draft *draft) {
    if (headers == NULL) return 1;
    if (!PyTuple_CheckExact(headers) && !(HAS_GIL && PyList_CheckExact(headers)))
        return 0; /* other code may change a list */
    draft->headers = PySequence_Fast_ITEMS(headers);
    draft->header_count = PySequence_Fast_GET_SIZE(headers);
    for (Py_ssize_t i = 0; i < draft->header_count; i++)
        if (!is_header(draft->headers[i], checked)) return 0;
    return 1;
}

/* Whether the difference to the base is one of 64 bits; timestamps are -1 at least. */
static inline int delta_fits(const Collector *self, int64_t timestamp) {
    return timestamp < INT64_MAX || !self->has_base || self->base_timestamp >= 0;
}

/* Reads arguments of the exact types: returns 1, or 0 for any other arguments. Runs no Python code. */
static int read_draft(const Collector *self, PyObject *const *values, int checked, Draft *draft) {
    int64_t offset;
    draft->timestamp = -1;
    draft->offset = self->next_offset;
    if (values[OFFSET] != NULL && values[OFFSET] != Py_None) {
        if (!read_int(values[OFFSET], &offset) || offset < 0) return 0;
        draft->offset = (uint64_t)offset;
    }
    if (draft->offset < self->next_offset || draft->offset > self->highest_offset) return 0;
    if (values[TIMESTAMP] != NULL && !read_int(values[TIMESTAMP], &draft->timestamp)) return 0;
    if (draft->timestamp < -1 || !delta_fits(self, draft->timestamp)) return 0;
    if (!is_content(values[KEY]) || !is_content(values[VALUE])) return 0;
    draft->key = content_of(values[KEY]);
    draft->value = content_of(values[VALUE]);
    return read_headers(values[HEADERS], checked, draft);
}

enum { NOT_EXACT = 2 };

/* Adds a record from arguments of the exact types: returns 1, 0 if it does not fit, -1, or NOT_EXACT. */
static int add_exact(Collector *self, PyObject *const *values, int checked) {
    Draft draft = {0};
    int taken;
    Py_BEGIN_CRITICAL_SECTION(self);
    taken = read_draft(self, values, checked, &draft) ? add_record(self, &draft) : NOT_EXACT;
    Py_END_CRITICAL_SECTION();
    return taken;
}

/* Calls the Python side to convert the arguments to exact types, or to raise. The conversion, and other threads, may
 * add records meanwhile, so a record without an offset gets the next offset only afterward. */
static int add_checked(Collector *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords, PyObject *offset) {
    PyObject *checked = PyMethod_New(self->state->checked, (PyObject *)self), *values[ARGUMENTS];
    PyObject *made = checked == NULL ? NULL : PyObject_Vectorcall(checked, args, (size_t)count, keywords);
    Py_XDECREF(checked);
    if (made == NULL) return -1;
    int taken = NOT_EXACT;
    if (PyTuple_CheckExact(made) && PyTuple_GET_SIZE(made) == ARGUMENTS) {
        memcpy(values, PySequence_Fast_ITEMS(made), sizeof(values));
        if (offset == NULL || offset == Py_None) values[OFFSET] = NULL;
        taken = add_exact(self, values, 1);
    }
    Py_DECREF(made);
    if (taken != NOT_EXACT) return taken;
    return refuse(PyExc_SystemError, "the arguments of a record were checked and are not exact");
}

static PyObject *collector_append(Collector *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords) {
    PyObject *values[ARGUMENTS] = {NULL};
    if (!sort_arguments(self->state->names, ARGUMENTS, VALUE + 1, args, count, keywords, values) ||
        values[KEY] == NULL || values[VALUE] == NULL)
        return PyErr_Format(PyExc_TypeError,
                            "append() takes a key and a value, and by name timestamp, headers, offset");
    int taken = add_exact(self, values, 0);
    if (taken == NOT_EXACT) taken = add_checked(self, args, count, keywords, values[OFFSET]);
    return taken < 0 ? NULL : Py_NewRef(taken ? Py_True : Py_False);
}

/* A column of contents: n + 1 offsets of 64 bits from `first` on, the bytes, and a byte for each row, 0 for null. A
 * timestamp column only has n numbers in place of the offsets. */
typedef struct {
    Py_buffer offsets, data, valid; /* `buf` is NULL for a missing buffer */
    Py_ssize_t first;
} ContentColumn;

enum { KEYS, VALUES, TIMES, CONTENT_COLUMNS };

static inline int64_t number_at(const Py_buffer *numbers, Py_ssize_t index) {
    int64_t number;
    memcpy(&number, (const char *)numbers->buf + index * 8, 8);
    return number;
}

/* Whether a buffer, if there is one, has `count` values of `size` bytes from a first one on. */
static int holds(const Py_buffer *buffer, Py_ssize_t first, Py_ssize_t count, int size) {
    Py_ssize_t most = buffer->len / size;
    return buffer->buf == NULL || (first >= 0 && first <= most && count <= most - first);
}

/* Loads the content of a row: returns 1, or 0 if the offsets are outside of the bytes. */
static inline int content_at(const ContentColumn *column, Py_ssize_t row, Content *content) {
    *content = (Content){NULL, 0};
    if (column->offsets.buf == NULL) return 1;
    if (column->valid.buf != NULL && !((const char *)column->valid.buf)[row]) return 1;
    int64_t from = number_at(&column->offsets, column->first + row);
    int64_t to = number_at(&column->offsets, column->first + row + 1);
    if (from < 0 || to < from || to > column->data.len || to - from > INT32_MAX) return 0;
    content->raw = column->data.buf == NULL ? "" : (const char *)column->data.buf + from;
    content->size = (Py_ssize_t)(to - from);
    return 1;
}

/* Adds rows until one does not fit, or cannot be written as it is: the number of rows, or -1. */
static Py_ssize_t add_rows(Collector *self, Py_ssize_t start, Py_ssize_t stop, int64_t timestamp,
                           const ContentColumn *columns) {
    const ContentColumn *times = &columns[TIMES];
    Py_ssize_t row = start;
    for (; row < stop; row++) {
        Draft draft = {.offset = self->next_offset, .timestamp = timestamp};
        if (times->offsets.buf != NULL) draft.timestamp = number_at(&times->offsets, times->first + row);
        if (draft.offset > self->highest_offset || draft.timestamp < -1 || !delta_fits(self, draft.timestamp)) break;
        if (!content_at(&columns[KEYS], row, &draft.key) || !content_at(&columns[VALUES], row, &draft.value))
            return refuse(PyExc_ValueError, "the offsets of a column lead out of its bytes");
        int taken = add_record(self, &draft);
        if (taken < 0) return -1;
        if (!taken) break;
    }
    return row - start;
}

static PyObject *collector_append_rows(Collector *self, PyObject *args) {
    Py_ssize_t start, stop, added = -1;
    long long timestamp;
    ContentColumn columns[CONTENT_COLUMNS] = {0}, *keys = &columns[KEYS], *values = &columns[VALUES],
                  *times = &columns[TIMES];
    if (!PyArg_ParseTuple(args, "nnLz*z*z*nz*z*z*nz*n:append_rows", &start, &stop, &timestamp, &keys->offsets,
                          &keys->data, &keys->valid, &keys->first, &values->offsets, &values->data, &values->valid,
                          &values->first, &times->offsets, &times->first))
        return NULL;
    int failed = start < 0 || stop < start || stop > INT32_MAX;
    for (ContentColumn *column = keys; column <= times; column++)
        failed = failed || !holds(&column->offsets, column->first, stop + (column < times), 8) ||
                 !holds(&column->valid, 0, stop, 1);
    Py_BEGIN_CRITICAL_SECTION(self);
    added = failed ? refuse(PyExc_ValueError, "a column does not have these rows")
                   : add_rows(self, start, stop, timestamp, columns);
    Py_END_CRITICAL_SECTION();
    for (ContentColumn *column = keys; column <= times; column++) {
        PyBuffer_Release(&column->offsets);
        PyBuffer_Release(&column->data);
        PyBuffer_Release(&column->valid);
    }
    return added < 0 ? NULL : PyLong_FromSsize_t(added);
}

/* Turns the buffer itself into the batch: it has the necessary size, and is not copied again unless more records
 * follow. The header must match these records: other threads may have added records since the header was created. */
static PyObject *seal(Collector *self, const char *head) {
    if ((Py_ssize_t)load32((const unsigned char *)head + SIZE_AT) != HEADER_SIZE - SIZE_AND_OFFSET + self->size)
        return PyErr_Format(PyExc_ValueError, "not the header of these records");
    if (make_room(self, 0) < 0 || resize_buffer(self, self->size) < 0) return NULL;
    memcpy(PyBytes_AS_STRING(self->buffer), head, HEADER_SIZE);
    self->sealed = 1;
    return Py_NewRef(self->buffer);
}

static PyObject *collector_sealed(Collector *self, PyObject *head) {
    if (!PyBytes_Check(head) || PyBytes_GET_SIZE(head) != HEADER_SIZE)
        return PyErr_Format(PyExc_ValueError, "not the header of a batch");
    PyObject *batch;
    Py_BEGIN_CRITICAL_SECTION(self);
    batch = seal(self, PyBytes_AS_STRING(head));
    Py_END_CRITICAL_SECTION();
    return batch;
}

static int collector_getbuffer(Collector *self, Py_buffer *view, int flags) {
    int failed;
    view->obj = NULL;
    Py_BEGIN_CRITICAL_SECTION(self);
    failed = self->buffer == NULL ? no_memory()
                                  : PyBuffer_FillInfo(view, (PyObject *)self, records_of(self), self->size, 1, flags);
    self->exports += !failed;
    Py_END_CRITICAL_SECTION();
    return failed;
}

static void collector_releasebuffer(Collector *self, Py_buffer *Py_UNUSED(view)) {
    Py_BEGIN_CRITICAL_SECTION(self);
    self->exports--;
    Py_END_CRITICAL_SECTION();
}

/* Collector(base_offset, highest_offset, base_timestamp, room): None if the first record decides, or for no limit. */
static PyObject *collector_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    unsigned long long base_offset, highest_offset;
    PyObject *base_timestamp, *room;
    if (!PyArg_ParseTuple(args, "KKOO:RecordAppender", &base_offset, &highest_offset, &base_timestamp, &room))
        return NULL;
    CoreState *core = core_of_type(type);
    Collector *self = core == NULL ? NULL : (Collector *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->state = &core->records;
    if (self->state->checked == NULL) PyErr_SetString(PyExc_TypeError, "nothing was bound");
    self->base_offset = self->next_offset = base_offset;
    self->highest_offset = highest_offset;
    self->base_timestamp = self->max_timestamp = -1;
    self->has_base = base_timestamp != Py_None;
    self->room = PY_SSIZE_T_MAX;
    if (self->has_base && !PyErr_Occurred()) self->base_timestamp = PyLong_AsLongLong(base_timestamp);
    if (room != Py_None && !PyErr_Occurred()) self->room = PyNumber_AsSsize_t(room, NULL);
    if (!PyErr_Occurred()) self->buffer = PyBytes_FromStringAndSize(NULL, HEADER_SIZE);
    if (self->buffer == NULL) Py_CLEAR(self);
    return (PyObject *)self;
}

static void collector_dealloc(Collector *self) {
    Py_XDECREF(self->buffer);
    free_instance((PyObject *)self);
}

static PyMethodDef collector_methods[] = {
    {"append", (PyCFunction)(void (*)(void))collector_append, METH_FASTCALL | METH_KEYWORDS,
     "append($self, key, value, *, timestamp=-1, headers=(), offset=None)\n--\n\n"
     "Add a record; return False, and add nothing, when it would take the batch beyond its size limit.\n\n"
     "The same as BatchBuilder.append."},
    {"append_rows", (PyCFunction)collector_append_rows, METH_VARARGS,
     "append_rows($self, start, stop, timestamp, key_offsets, key_data, key_valid, key_first, value_offsets, "
     "value_data, value_valid, value_first, times, first_time, /)\n--\n\n"
     "Add rows of columns until one does not fit or cannot be written as it is; return how many were added."},
    {"sealed", (PyCFunction)collector_sealed, METH_O,
     "sealed($self, head, /)\n--\n\nReturn the header and the records, as bytes."},
    {NULL, NULL, 0, NULL},
};

/* Reads a number that other threads may be changing. */
static PyObject *collector_number(PyObject *self, void *member) {
    PyObject *number;
    Py_BEGIN_CRITICAL_SECTION(self);
    number = PyMember_GetOne((const char *)self, member);
    Py_END_CRITICAL_SECTION();
    return number;
}

#define NUMBER(name, type, doc)                                                                                        \
    {                                                                                                                  \
        #name, collector_number, NULL, doc, &(PyMemberDef) {                                                           \
            #name, type, offsetof(Collector, name), READONLY, NULL                                                     \
        }                                                                                                              \
    }

static PyGetSetDef collector_numbers[] = {
    NUMBER(size, T_PYSSIZET, "The bytes that the records take."),
    NUMBER(count, T_PYSSIZET, "How many there are."),
    NUMBER(next_offset, T_ULONGLONG, "The offset that the next one gets."),
    NUMBER(highest_offset, T_ULONGLONG, "The highest that one may get."),
    NUMBER(base_timestamp, T_LONGLONG, "What their timestamps count from."),
    NUMBER(max_timestamp, T_LONGLONG, "The latest of them, -1 for none."),
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot collector_slots[] = {
    {Py_tp_doc, "Collects the bytes of records for a batch, which are those of its buffer."},
    {Py_tp_new, collector_new},
    {Py_tp_dealloc, collector_dealloc},
    {Py_tp_methods, collector_methods},
    {Py_tp_getset, collector_numbers},
    {Py_bf_getbuffer, collector_getbuffer},
    {Py_bf_releasebuffer, collector_releasebuffer},
    {0, NULL},
};

/* The storage of a record delivery: a batch, the index in it, and the timestamp. A producer creates one for each
 * record. The garbage collector does not visit it: a batch never refers to its deliveries, and refers to its producer
 * only until it is done. */
typedef struct {
    PyObject_HEAD
    PyObject *batch;
    Py_ssize_t index;
    long long timestamp;
} Delivery;

/* Delivery(batch, index, timestamp) */
static PyObject *delivery_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs)) {
    if (PyTuple_GET_SIZE(args) != 3)
        return PyErr_Format(PyExc_TypeError, "a delivery is made of a batch, an index and a timestamp");
    Delivery *self = (Delivery *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    if (PyType_IS_GC(type)) PyObject_GC_UnTrack(self); /* as every class is that Python code makes */
    self->batch = Py_NewRef(PyTuple_GET_ITEM(args, 0));
    self->index = PyLong_AsSsize_t(PyTuple_GET_ITEM(args, 1));
    self->timestamp = PyLong_AsLongLong(PyTuple_GET_ITEM(args, 2));
    if (PyErr_Occurred()) Py_CLEAR(self);
    return (PyObject *)self;
}

static void delivery_dealloc(Delivery *self) {
    Py_XDECREF(self->batch);
    free_instance((PyObject *)self);
}

static PyMemberDef delivery_members[] = {
    {"_batch", T_OBJECT_EX, offsetof(Delivery, batch), READONLY, NULL},
    {"_index", T_PYSSIZET, offsetof(Delivery, index), READONLY, NULL},
    {"_timestamp", T_LONGLONG, offsetof(Delivery, timestamp), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot delivery_slots[] = {
    {Py_tp_doc, "Keeps what the delivery of a record is computed from."},
    {Py_tp_new, delivery_new},
    {Py_tp_dealloc, delivery_dealloc},
    {Py_tp_members, delivery_members},
    {0, NULL},
};

/* ------------------------------------------------------------------------------------------------- 4 Hashing */

#define HASH_SEED   0x9747b28cu
#define HASH_FACTOR 0x5bd1e995u

/* Mixes four bytes; the hash reads them with the lowest byte first, on every machine. */
static inline uint32_t mixed_word(const unsigned char *p) {
    uint32_t word = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    word *= HASH_FACTOR;
    word ^= word >> 24;
    return word * HASH_FACTOR;
}

static uint32_t hash_of(const unsigned char *p, size_t size) {
    uint32_t hash = HASH_SEED ^ (uint32_t)size;
    for (; size >= 4; p += 4, size -= 4)
        hash = hash * HASH_FACTOR ^ mixed_word(p);
    for (size_t i = size; i > 0; i--)
        hash ^= (uint32_t)p[i - 1] << 8 * (i - 1);
    if (size > 0) hash *= HASH_FACTOR;
    hash ^= hash >> 13;
    hash *= HASH_FACTOR;
    return hash ^ hash >> 15;
}

static PyObject *murmur2(PyObject *Py_UNUSED(module), PyObject *key) {
    Py_buffer view;
    if (PyObject_GetBuffer(key, &view, PyBUF_SIMPLE) < 0) return NULL;
    uint32_t hash = hash_of(view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(hash);
}

/* ---------------------------------------------------------------------------------------------- 5 What the module keeps */

/* Creates the base classes of records. */
static int add_storages(PyObject *module, RecordsState *state) {
    PyTypeObject *plain =
        core_add_type(module, CORE_NAME ".RecordStorage", sizeof(Storage), Py_TPFLAGS_BASETYPE, storage_slots, NULL);
    state->storage_type = (PyTypeObject *)Py_XNewRef(plain);
    if (plain == NULL) return -1;
    PyTypeObject *placed = core_add_type(module, CORE_NAME ".PlacedRecordStorage", sizeof(Placed), Py_TPFLAGS_BASETYPE,
                                         placed_slots, plain);
    state->placed_storage_type = (PyTypeObject *)Py_XNewRef(placed);
    return placed == NULL ? -1 : 0;
}

static PyMethodDef records_functions[] = {
    {"read_records", read_part, METH_VARARGS, read_doc},
    {"records_exceed", records_exceed, METH_VARARGS,
     "records_exceed(body, at, end, count, limit)\n--\n\n"
     "Return whether the bytes hold `count` records with more than `limit` elements."},
    {"bind_records", bind, METH_VARARGS,
     "bind_records(record_type, placed_type, checked, /)\n--\n\n"
     "Say which subclasses of the storages the records are of, and what makes arguments exact."},
    {"murmur2", murmur2, METH_O,
     "murmur2(key, /)\n--\n\nReturn the 32 bit hash by which Kafka's producer chooses a partition."},
    {NULL, NULL, 0, NULL},
};

int records_add(PyObject *module, RecordsState *state) {
    static const char *const names[ARGUMENTS] = {"key", "value", "timestamp", "headers", "offset"};
    for (int i = 0; i < ARGUMENTS; i++) {
        state->names[i] = PyUnicode_InternFromString(names[i]);
        if (state->names[i] == NULL) return -1;
    }
    state->empty_tuple = PyTuple_New(0);
    if (state->empty_tuple == NULL || add_storages(module, state) < 0 ||
        !core_add_type(module, CORE_NAME ".RecordAppender", sizeof(Collector), Py_TPFLAGS_IMMUTABLETYPE,
                       collector_slots, NULL) ||
        !core_add_type(module, CORE_NAME ".DeliveryStorage", sizeof(Delivery), Py_TPFLAGS_BASETYPE, delivery_slots,
                       NULL))
        return -1;
    return PyModule_AddFunctions(module, records_functions);
}
