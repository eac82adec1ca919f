/* Fault locations of plans: the steps from the root to a malformed or invalid value. The reference resumes there. */
#ifndef KAFKA_MSGS_FAULT_H
#define KAFKA_MSGS_FAULT_H

#include <Python.h>
#include <stdint.h>

#define MAX_TRAIL   64        /* steps; the reference reads the whole message again if the fault is deeper */
#define TAG_SECTION INT16_MAX /* a step like the index of a field, and above all of these */

/* The steps from the root to a fault, the innermost first: indexes of elements and fields (negative for tagged fields).
 * Each level adds its step while the calls return, so valid messages have no extra cost. */
typedef struct {
    int count; /* of steps; 0 until something fails */
    Py_ssize_t steps[MAX_TRAIL];
} Trail;

typedef struct {
    enum { AT_VALUE, AT_TAG, AFTER_TAGGED } kind; /* the reader is before a value, before a tag, after a tagged value */
    int64_t first, second; /* AT_TAG: the remaining tags and the last tag; AFTER_TAGGED: start and size of the value */
    Trail trail;
} Fault;

static inline void start_fault(Fault *fault) {
    fault->kind = AT_VALUE;
    fault->first = fault->second = 0;
    fault->trail.count = 0;
}

static Py_NO_INLINE int trace(Trail *trail, Py_ssize_t step) {
    if (trail->count < MAX_TRAIL) trail->steps[trail->count] = step;
    trail->count++;
    return -1;
}

/* Traces a step to a fault in a tag section. */
static Py_NO_INLINE int trace_tag(Fault *fault, int kind, int64_t first, int64_t second, Py_ssize_t step) {
    fault->kind = kind;
    fault->first = first;
    fault->second = second;
    return trace(&fault->trail, step);
}

#endif
