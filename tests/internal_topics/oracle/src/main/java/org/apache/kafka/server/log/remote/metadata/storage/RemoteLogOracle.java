package org.apache.kafka.server.log.remote.metadata.storage;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Iterator;
import java.util.Optional;

/**
 * The store in which a broker keeps the metadata of tiered storage: a line of JSON in, a line out.
 *
 * "open" makes a new store. "record" gives it the value of a record, and answers with the exception of one that is
 * refused. The others are about a partition ("topic", "id", "partition"): "list" gives its segments, "find" the id of
 * the one that has an "offset" of an "epoch", "highest" the highest offset of an "epoch".
 */
public final class RemoteLogOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
    private RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        RemoteLogOracle oracle = new RemoteLogOracle();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.writeValueAsString(oracle.run(JSON.readTree(line))));
            out.flush();
        }
    }

    private ObjectNode run(JsonNode command) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        switch (command.get("do").asText()) {
            case "open" -> store = new RemotePartitionMetadataStore();
            case "record" -> record(Base64.getDecoder().decode(command.get("value").asText()), result);
            case "list" -> list(partition(command), result.putArray("result"));
            case "find" -> result.put("result", store
                .remoteLogSegmentMetadata(partition(command), command.get("offset").asLong(), command.get("epoch").asInt())
                .map(segment -> segment.remoteLogSegmentId().id().toString()).orElse(null));
            default -> {
                Optional<Long> highest = store.highestLogOffset(partition(command), command.get("epoch").asInt());
                result.put("result", highest.orElse(null));
            }
        }
        return result;
    }

    private void record(byte[] value, ObjectNode result) {
        try {
            RemoteLogMetadata metadata = serde.deserialize(value);
            load(metadata.topicIdPartition());
            store.handleRemoteLogMetadata(metadata);
        } catch (RuntimeException refused) {
            result.put("refused", refused.getClass().getSimpleName());
        }
    }

    private void load(TopicIdPartition partition) {
        store.maybeLoadPartition(partition);
        store.markInitialized(partition);
    }

    private TopicIdPartition partition(JsonNode command) {
        Uuid id = Uuid.fromString(command.get("id").asText());
        TopicIdPartition partition =
            new TopicIdPartition(id, command.get("partition").asInt(), command.get("topic").asText());
        load(partition);
        return partition;
    }

    private void list(TopicIdPartition partition, ArrayNode found) throws Exception {
        Iterator<RemoteLogSegmentMetadata> segments = store.listRemoteLogSegments(partition);
        while (segments.hasNext()) {
            RemoteLogSegmentMetadata segment = segments.next();
            ObjectNode node = found.addObject();
            node.put("id", segment.remoteLogSegmentId().id().toString());
            node.put("start", segment.startOffset());
            node.put("end", segment.endOffset());
            node.put("size", segment.segmentSizeInBytes());
            node.put("state", segment.state().id());
            node.put("broker", segment.brokerId());
            node.put("maxTimestamp", segment.maxTimestampMs());
            node.put("eventTimestamp", segment.eventTimestampMs());
            node.put("txnIndexEmpty", segment.isTxnIdxEmpty());
            node.put("custom", segment.customMetadata()
                .map(custom -> Base64.getEncoder().encodeToString(custom.value())).orElse(null));
            ObjectNode epochs = node.putObject("epochs");
            segment.segmentLeaderEpochs().forEach((epoch, offset) -> epochs.put(epoch.toString(), offset));
        }
    }
}
