/* The count over the headers of batches in C, without an object for each batch.
 *
 * It owns speed. It counts the same batches as log/python.py, and stops at the same byte. The walk of scan.py reports why
 * it stopped. A function of the caller computes the checksum, so there is one implementation of it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "bytes.h"
#include "core.h"
#include "layouts.h"
#include "walk.h"

#define CODECS  (CODEC_MASK + 1)
#define NO_BASE (LOG_APPEND_TIME | DELETE_HORIZON) /* attributes with which the base timestamp is not a record's */

typedef struct {
    Py_ssize_t at, last; /* the start of the next batch and of the last counted batch */
    int64_t batches, records, first_time, last_time, producer;
    int64_t codecs[CODECS];
    PyObject *producers; /* a set; owned */
} Tally;

/* Returns whether the checksum of some bytes of a view equals the stored one; -1 with an exception. */
static int is_sound(PyObject *checksum, PyObject *whole, Py_ssize_t at, Py_ssize_t size, uint32_t stored) {
    PyObject *view = PySequence_GetSlice(whole, at, at + size);
    PyObject *found = view == NULL ? NULL : PyObject_CallOneArg(checksum, view);
    unsigned long value = found == NULL ? 0 : PyLong_AsUnsignedLong(found);
    Py_XDECREF(view);
    Py_XDECREF(found);
    return PyErr_Occurred() ? -1 : value == stored;
}

static void add_time(Tally *tally, int64_t time) {
    if (time == NO_TIMESTAMP) return;
    if (time < tally->first_time) tally->first_time = time;
    if (time > tally->last_time) tally->last_time = time;
}

/* Adds a producer id; most batches have the same producer as the previous batch. */
static int add_producer(Tally *tally, int64_t producer) {
    if (producer == tally->producer) return 0;
    tally->producer = producer;
    if (producer == NO_PRODUCER) return 0;
    PyObject *number = PyLong_FromLongLong(producer);
    int failed = number == NULL ? -1 : PySet_Add(tally->producers, number);
    Py_XDECREF(number);
    return failed;
}

/* Counts the batch of `size` bytes at `p`. */
static int add_batch(Tally *tally, const unsigned char *p, Py_ssize_t size) {
    unsigned flags = load16(p + ATTRIBUTES_AT);
    if (!(flags & NO_BASE)) add_time(tally, (int64_t)load64(p + BASE_TIMESTAMP_AT));
    add_time(tally, (int64_t)load64(p + MAX_TIMESTAMP_AT));
    tally->codecs[flags & CODEC_MASK]++;
    tally->batches++;
    tally->records += (int32_t)load32(p + COUNT_AT);
    tally->last = tally->at;
    tally->at += size;
    return add_producer(tally, (int64_t)load64(p + PRODUCER_ID_AT));
}

/* The limits of a count of batches. */
typedef struct {
    Py_ssize_t stop;       /* batches that start here or later are not counted */
    int without;           /* excluded attributes */
    long long first, last; /* all offsets of a counted batch lie in this range */
    PyObject *checksum;    /* computes checksums, or None; borrowed */
    PyObject *whole;       /* a view of all bytes; owned */
} Limits;

static int is_within(const unsigned char *p, const Limits *limits) {
    int64_t first = (int64_t)load64(p + BASE_OFFSET_AT), delta = (int32_t)load32(p + LAST_OFFSET_DELTA_AT);
    return !(load16(p + ATTRIBUTES_AT) & limits->without) && first >= limits->first && first <= limits->last &&
           delta >= 0 && (uint64_t)delta <= (uint64_t)limits->last - (uint64_t)first;
}

/* Counts valid magic 2 batches up to the first invalid one or a limit; -1 with an exception. */
static int count_run(Tally *tally, const unsigned char *data, Py_ssize_t length, const Limits *limits) {
    Py_ssize_t size;
    while (tally->at < limits->stop && tally->at < length &&
           (size = walk_batch(data + tally->at, length - tally->at)) != 0) {
        const unsigned char *p = data + tally->at;
        if (!is_within(p, limits)) return 0;
        if (limits->checksum != Py_None) {
            int sound =
                is_sound(limits->checksum, limits->whole, tally->at + CRC_FROM, size - CRC_FROM, load32(p + CRC_AT));
            if (sound <= 0) return sound;
        }
        if (add_batch(tally, p, size)) return -1;
    }
    return 0;
}

/* The first time is above the last time if no header contains a time. */
static PyObject *counted(const Tally *tally) {
    return Py_BuildValue("nnLLLLy#O", tally->at, tally->last, (long long)tally->batches, (long long)tally->records,
                         (long long)tally->first_time, (long long)tally->last_time, tally->codecs,
                         (Py_ssize_t)sizeof(tally->codecs), tally->producers);
}

static PyObject *count(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer data;
    Py_ssize_t position;
    PyObject *result = NULL;
    Limits limits = {.first = INT64_MIN, .last = INT64_MAX};
    if (!PyArg_ParseTuple(args, "y*nnO|iLL:count_batches", &data, &position, &limits.stop, &limits.checksum,
                          &limits.without, &limits.first, &limits.last))
        return NULL;
    Tally tally = {position, position, .first_time = INT64_MAX, .last_time = INT64_MIN, .producer = NO_PRODUCER};
    if (position < 0)
        PyErr_SetString(PyExc_ValueError, "a negative position");
    else if ((tally.producers = PySet_New(NULL)) != NULL &&
             (limits.whole = PyMemoryView_FromObject(data.obj)) != NULL &&
             !count_run(&tally, data.buf, data.len, &limits))
        result = counted(&tally);
    Py_XDECREF(limits.whole);
    Py_XDECREF(tally.producers);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef log_functions[] = {
    {"count_batches", count, METH_VARARGS,
     "count_batches(data, position, stop, checksum, without=0, first=-2**63, last=2**63 - 1, /)\n--\n\nDo what "
     "log.python.count_batches does."},
    {NULL, NULL, 0, NULL},
};

int log_add(PyObject *module) {
    return PyModule_AddFunctions(module, log_functions);
}
