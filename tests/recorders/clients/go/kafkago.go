package main

import (
	"context"

	"github.com/segmentio/kafka-go"
)

func runKafkaGo(ctx context.Context, bootstrap string) error {
	const topic, group = "segment-orders", "segment-billing"
	client := &kafka.Client{Addr: kafka.TCP(bootstrap), Transport: &kafka.Transport{ClientID: clientID}}
	created, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}},
	})
	if err != nil || created.Errors[topic] != nil {
		return err
	}
	writer := &kafka.Writer{Addr: kafka.TCP(bootstrap), Topic: topic, BatchSize: 1, Compression: kafka.Lz4}
	for _, value := range values {
		if err := writer.WriteMessages(ctx, kafka.Message{Key: []byte("k"), Value: []byte(value)}); err != nil {
			return err
		}
	}
	if err := writer.Close(); err != nil {
		return err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, Topic: topic, GroupID: group, StartOffset: kafka.FirstOffset,
		Dialer: &kafka.Dialer{ClientID: clientID, Timeout: patience}, // By default the name of the machine is in the id.
	})
	for range values {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return err
		}
		if err := reader.CommitMessages(ctx, message); err != nil {
			return err
		}
	}
	if err := reader.Close(); err != nil {
		return err
	}
	if _, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0}}}); err != nil {
		return err
	}
	if _, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{}); err != nil {
		return err
	}
	if _, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}}); err != nil {
		return err
	}
	rules := kafka.ACLFilter{
		ResourceTypeFilter: kafka.ResourceTypeTopic, ResourceNameFilter: topic,
		ResourcePatternTypeFilter: kafka.PatternTypeLiteral,
		Operation:                 kafka.ACLOperationTypeAny, PermissionType: kafka.ACLPermissionTypeAny,
	}
	if _, err := client.DescribeACLs(ctx, &kafka.DescribeACLsRequest{Filter: rules}); err != nil {
		return err
	}
	_, err = client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	return err
}
