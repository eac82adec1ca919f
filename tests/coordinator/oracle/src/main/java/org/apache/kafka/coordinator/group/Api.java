package org.apache.kafka.coordinator.group;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.CreateTopicsRequestDataJsonConverter;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.ShareGroupDescribeRequestData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupDescribeRequestData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.OffsetFetchRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.utils.internals.BufferSupplier;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Every group api the service answers, and its bodies from and to JSON with Kafka's own converters. */
final class Api {
    private static final BufferSupplier BUFFERS = BufferSupplier.NO_CACHING;

    private Api() { }

    /** What a request gave: the response, and for streams heartbeats the topics the broker would create. */
    record Answer(ApiMessage response, List<JsonNode> creatable) {
        Answer(ApiMessage response) {
            this(response, List.of());
        }
    }

    static CompletableFuture<Answer> call(
        GroupCoordinatorService service, ApiKeys api, RequestContext context, ApiMessage request
    ) {
        short version = context.apiVersion();
        return switch (api) {
            case CONSUMER_GROUP_HEARTBEAT -> answer(
                service.consumerGroupHeartbeat(context, (ConsumerGroupHeartbeatRequestData) request));
            case STREAMS_GROUP_HEARTBEAT -> service
                .streamsGroupHeartbeat(context, (StreamsGroupHeartbeatRequestData) request)
                .thenApply(result -> new Answer(result.data(), result.creatableTopics().values().stream()
                    .map(topic -> CreateTopicsRequestDataJsonConverter.CreatableTopicJsonConverter
                        .write(topic, ApiKeys.CREATE_TOPICS.latestVersion())).toList()));
            case STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE -> answer(service.streamsGroupTopologyDescriptionUpdate(
                context, (StreamsGroupTopologyDescriptionUpdateRequestData) request));
            case SHARE_GROUP_HEARTBEAT -> answer(
                service.shareGroupHeartbeat(context, (ShareGroupHeartbeatRequestData) request));
            case JOIN_GROUP -> answer(service.joinGroup(context, (JoinGroupRequestData) request, BUFFERS));
            case SYNC_GROUP -> answer(service.syncGroup(context, (SyncGroupRequestData) request, BUFFERS));
            case HEARTBEAT -> answer(service.heartbeat(context, (HeartbeatRequestData) request));
            case LEAVE_GROUP -> answer(service.leaveGroup(context, (LeaveGroupRequestData) request));
            case LIST_GROUPS -> answer(service.listGroups(context, (ListGroupsRequestData) request));
            case OFFSET_COMMIT -> answer(service.commitOffsets(context, (OffsetCommitRequestData) request, BUFFERS));
            case TXN_OFFSET_COMMIT -> answer(
                service.commitTransactionalOffsets(context, (TxnOffsetCommitRequestData) request, BUFFERS));
            case OFFSET_DELETE -> answer(service.deleteOffsets(context, (OffsetDeleteRequestData) request, BUFFERS));
            case OFFSET_FETCH -> fetch(service, context, (OffsetFetchRequestData) request, version);
            case DELETE_GROUPS -> service
                .deleteGroups(context, ((DeleteGroupsRequestData) request).groupsNames(), BUFFERS)
                .thenApply(results -> new Answer(new DeleteGroupsResponseData().setResults(results)));
            case DESCRIBE_GROUPS -> service.describeGroups(context, ((DescribeGroupsRequestData) request).groups())
                .thenApply(groups -> new Answer(new DescribeGroupsResponseData().setGroups(groups)));
            case CONSUMER_GROUP_DESCRIBE -> service
                .consumerGroupDescribe(context, ((ConsumerGroupDescribeRequestData) request).groupIds())
                .thenApply(groups -> new Answer(new ConsumerGroupDescribeResponseData().setGroups(groups)));
            case STREAMS_GROUP_DESCRIBE -> service
                .streamsGroupDescribe(context, ((StreamsGroupDescribeRequestData) request).groupIds(),
                    ((StreamsGroupDescribeRequestData) request).includeTopologyDescription())
                .thenApply(groups -> new Answer(new StreamsGroupDescribeResponseData().setGroups(groups)));
            case SHARE_GROUP_DESCRIBE -> service
                .shareGroupDescribe(context, ((ShareGroupDescribeRequestData) request).groupIds())
                .thenApply(groups -> new Answer(new ShareGroupDescribeResponseData().setGroups(groups)));
            default -> throw new IllegalArgumentException(api + " is not a group coordinator api");
        };
    }

    /** As KafkaApis does: one lookup per group, and the version decides where group errors go. */
    private static CompletableFuture<Answer> fetch(
        GroupCoordinatorService service, RequestContext context, OffsetFetchRequestData data, short version
    ) {
        var request = OffsetFetchRequest.parse(MessageUtil.toByteBufferAccessor(data, version), version);
        var futures = new ArrayList<CompletableFuture<OffsetFetchResponseData.OffsetFetchResponseGroup>>();
        for (var group : request.groups()) {
            futures.add(service.fetchOffsets(context, group, request.requireStable()).exceptionally(
                error -> OffsetFetchResponse.groupError(group, Errors.forException(error), version)));
        }
        return CompletableFuture.allOf(futures.toArray(new CompletableFuture[0])).thenApply(unused -> {
            var response = new OffsetFetchResponse.Builder(futures.stream().map(CompletableFuture::join).toList());
            return new Answer(response.build(version).data());
        });
    }

    private static CompletableFuture<Answer> answer(CompletableFuture<? extends ApiMessage> future) {
        return future.thenApply(Answer::new);
    }

    static ApiMessage read(ApiKeys api, JsonNode body, short version) {
        return (ApiMessage) invoke(api.name + "RequestDataJsonConverter", "read",
            new Class<?>[] {JsonNode.class, short.class}, body, version);
    }

    static JsonNode write(ApiMessage response, short version) {
        var name = response.getClass().getSimpleName();
        return (JsonNode) invoke(name + "JsonConverter", "write",
            new Class<?>[] {response.getClass(), short.class}, response, version);
    }

    private static Object invoke(String converter, String method, Class<?>[] types, Object... arguments) {
        try {
            return Class.forName("org.apache.kafka.common.message." + converter).getMethod(method, types)
                .invoke(null, arguments);
        } catch (InvocationTargetException e) {
            throw new IllegalArgumentException(e.getCause().getMessage(), e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
