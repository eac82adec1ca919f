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

#define CODECS  (CODEC_MASK + 1)
#define NO_BASE (LOG_APPEND_TIME | DELETE_HORIZON) /* attributes with which the base timestamp is not a record's */

typedef struct {
    Py_ssize_t at, last; /* where counting goes on, and where the last counted batch starts */
    int64_t batches, records, first_time, last_time, producer;
    int64_t codecs[CODECS];
    PyObject *producers; /* a set; owned */
} Tally;

/* Whether the checksum of the bytes is the stored one; -1 with an exception. */
static int is_sound(PyObject *checksum, const unsigned char *p, Py_ssize_t size, uint32_t stored) {
    /* The view ends with the call: the function looks at the bytes and keeps nothing. */
    PyObject *view = PyMemoryView_FromMemory((char *)p, size, PyBUF_READ);
    if (view == NULL) return -1;
    PyObject *found = PyObject_CallOneArg(checksum, view);
    Py_DECREF(view);
    if (found == NULL) return -1;
    unsigned long value = PyLong_AsUnsignedLong(found);
    Py_DECREF(found);
    if (value == (unsigned long)-1 && PyErr_Occurred()) return -1;
    return value == stored;
}

static void add_time(Tally *tally, int64_t time) {
    if (time == NO_TIMESTAMP) return;
    if (time < tally->first_time) tally->first_time = time;
    if (time > tally->last_time) tally->last_time = time;
}

/* Remembers a producer; most batches have that of the batch before. */
static int add_producer(Tally *tally, int64_t producer) {
    if (producer == tally->producer) return 0;
    tally->producer = producer;
    if (producer == NO_PRODUCER) return 0;
    PyObject *number = PyLong_FromLongLong(producer);
    if (number == NULL) return -1;
    int failed = PySet_Add(tally->producers, number);
    Py_DECREF(number);
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

/* Counts sound batches of magic 2 up to the first that starts at `stop` or later; -1 with an exception. */
static int count_run(Tally *tally, const unsigned char *data, Py_ssize_t length, Py_ssize_t stop, PyObject *checksum) {
    while (tally->at < stop && length - tally->at >= HEADER_SIZE) {
        const unsigned char *p = data + tally->at;
        int32_t stated = (int32_t)load32(p + SIZE_AT);
        if (p[MAGIC_AT] != 2 || stated < HEADER_SIZE - SIZE_AND_OFFSET || stated > length - tally->at - SIZE_AND_OFFSET)
            return 0;
        Py_ssize_t size = (Py_ssize_t)stated + SIZE_AND_OFFSET;
        if (checksum != Py_None) {
            int sound = is_sound(checksum, p + CRC_FROM, size - CRC_FROM, load32(p + CRC_AT));
            if (sound <= 0) return sound;
        }
        if (add_batch(tally, p, size)) return -1;
    }
    return 0;
}

/* Returns a number, or None if no header has a time. */
static PyObject *time_or_none(const Tally *tally, int64_t time) {
    if (tally->first_time > tally->last_time) Py_RETURN_NONE;
    return PyLong_FromLongLong(time);
}

static PyObject *counted(const Tally *tally) {
    return Py_BuildValue("nnLLNNy#O", tally->at, tally->last, (long long)tally->batches, (long long)tally->records,
                         time_or_none(tally, tally->first_time), time_or_none(tally, tally->last_time), tally->codecs,
                         (Py_ssize_t)sizeof(tally->codecs), tally->producers);
}

static PyObject *count(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer data;
    Py_ssize_t position, stop;
    PyObject *checksum, *result = NULL;
    if (!PyArg_ParseTuple(args, "y*nnO:count_batches", &data, &position, &stop, &checksum)) return NULL;
    Tally tally = {.at = position, .last = position, .first_time = INT64_MAX, .last_time = INT64_MIN};
    tally.producer = NO_PRODUCER;
    if (position < 0)
        PyErr_SetString(PyExc_ValueError, "a negative position");
    else if ((tally.producers = PySet_New(NULL)) != NULL && !count_run(&tally, data.buf, data.len, stop, checksum))
        result = counted(&tally);
    Py_XDECREF(tally.producers);
    PyBuffer_Release(&data);
    return result;
}

static PyMethodDef log_functions[] = {
    {"count_batches", count, METH_VARARGS,
     "count_batches(data, position, stop, checksum, /)\n--\n\nDo what log.python.count_batches does."},
    {NULL, NULL, 0, NULL},
};

int log_add(PyObject *module) {
    return PyModule_AddFunctions(module, log_functions);
}
