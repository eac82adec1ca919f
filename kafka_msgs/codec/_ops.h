/* Generated from kafka_msgs/codec/ops.py by `make generate`; do not edit. */
#ifndef KAFKA_MSGS_OPS_H
#define KAFKA_MSGS_OPS_H

enum {
    OP_BOOL = 0,
    OP_INT8 = 1,
    OP_INT16 = 2,
    OP_INT32 = 3,
    OP_INT64 = 4,
    OP_UINT16 = 5,
    OP_UINT32 = 6,
    OP_FLOAT64 = 7,
    OP_UUID = 8,
    OP_STRING = 9,
    OP_BYTES = 10,
    OP_RECORDS = 11,
    OP_ARRAY = 12,
    OP_STRUCT = 13,
};

/* Sizes in bytes of the ops whose size never varies; 0 for the others. */
static const unsigned char FIXED_SIZE[] = {1, 1, 2, 4, 8, 2, 4, 8, 16, 0, 0, 0, 0, 0};

#define MAX_STRING 32767
#define MAX_LENGTH 2147483647
#define MAX_TAG 2147483647

#endif
