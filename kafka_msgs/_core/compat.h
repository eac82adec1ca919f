/* The differences between the CPython versions that the C core supports (3.11 to 3.14). */
#ifndef KAFKA_MSGS_COMPAT_H
#define KAFKA_MSGS_COMPAT_H

#include <Python.h>
#include <stdint.h>

/* Reads an exact or derived int of at most one digit (30 bits); returns 0 when it is larger. */
static inline int compact_long(PyObject *number, int64_t *value) {
#if PY_VERSION_HEX >= 0x030C0000
    if (!PyUnstable_Long_IsCompact((PyLongObject *)number)) return 0;
    *value = PyUnstable_Long_CompactValue((PyLongObject *)number);
    return 1;
#else
    Py_ssize_t size = Py_SIZE(number);
    if (size < -1 || size > 1) return 0;
    *value = size * (int64_t)((PyLongObject *)number)->ob_digit[0];
    return 1;
#endif
}

/* Makes an int of 16 big-endian bytes. */
static inline PyObject *long_from_16_bytes(const unsigned char *raw) {
#if PY_VERSION_HEX >= 0x030D0000
    return PyLong_FromUnsignedNativeBytes(raw, 16, Py_ASNATIVEBYTES_BIG_ENDIAN);
#else
    return _PyLong_FromByteArray(raw, 16, 0, 0);
#endif
}

/* Writes a non-negative int below 2**128 as 16 big-endian bytes; -1 and an exception when it is not one. */
static inline int long_as_16_bytes(PyObject *number, unsigned char *raw) {
#if PY_VERSION_HEX >= 0x030D0000
    Py_ssize_t needed = PyLong_AsNativeBytes(number, raw, 16,
                                             Py_ASNATIVEBYTES_BIG_ENDIAN | Py_ASNATIVEBYTES_UNSIGNED_BUFFER |
                                                 Py_ASNATIVEBYTES_REJECT_NEGATIVE);
    if (needed > 16) PyErr_SetString(PyExc_OverflowError, "int too large for 16 bytes");
    return needed < 0 || needed > 16 ? -1 : 0;
#else
    return _PyLong_AsByteArray((PyLongObject *)number, raw, 16, 0, 0);
#endif
}

/* Takes the current exception, as an object; NULL without one. */
static inline PyObject *take_exception(void) {
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* Without the GIL, other threads run at any time. STORE_RELEASE publishes shared objects once and permanently, so
 * readers need no reference to them: HELD returns a reference only with the GIL, under which all these macros are plain
 * accesses. A class keeps its layout and its codecs. Counters that are only hints use LOOSE accesses: equal values are
 * not written again. */
#ifdef Py_GIL_DISABLED
#define LOAD_ACQUIRE(place)         __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define STORE_RELEASE(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)
#define LOAD_LOOSE(place)           __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define STORE_LOOSE(place, value)                                                                                      \
    if (LOAD_LOOSE(place) != (value)) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)
#define SET_FLAG(place) __atomic_exchange_n(&(place), 1, __ATOMIC_ACQUIRE)
#define HELD(object)    ((void)(object), NULL)
#define HAS_GIL         0
#else
#define LOAD_ACQUIRE(place)         (place)
#define STORE_RELEASE(place, value) ((place) = (value))
#define LOAD_LOOSE(place)           (place)
#define STORE_LOOSE(place, value)   ((place) = (value))
#define SET_FLAG(place)             ((place) || ((place) = 1, 0)) /* whether it was set before */
#define HELD(object)                Py_NewRef(object)
#define HAS_GIL                     1
#endif
#ifndef Py_BEGIN_CRITICAL_SECTION
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION()         }
#endif

#endif
