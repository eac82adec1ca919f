package org.apache.kafka.common.utils;

import java.nio.ByteBuffer;

/**
 * Stands where Kafka had its class of this name before 4.4, for generated classes of an older release beside the clients
 * of a newer one: the test messages. It passes on to where Kafka has it now.
 */
public final class ByteUtils {
    public static final ByteBuffer EMPTY_BUF = org.apache.kafka.common.utils.internals.ByteUtils.EMPTY_BUF;

    private ByteUtils() {
    }

    public static int sizeOfUnsignedVarint(int value) {
        return org.apache.kafka.common.utils.internals.ByteUtils.sizeOfUnsignedVarint(value);
    }
}
