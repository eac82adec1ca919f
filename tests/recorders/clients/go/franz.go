package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func runFranzGo(ctx context.Context, bootstrap string) error {
	const topic, group = "franz-orders", "franz-billing"
	shared := []kgo.Opt{kgo.SeedBrokers(bootstrap), kgo.ClientID(clientID)}
	client, err := kgo.NewClient(append(shared, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())...)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 2, 1, nil, topic); err != nil {
		return err
	}
	if err := franzTransaction(ctx, append(shared, kgo.TransactionalID("franz-till")), topic); err != nil {
		return err
	}
	for _, value := range values {
		record := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(value)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
	}
	for read := 0; read < len(values); {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		read += fetches.NumRecords()
	}
	if err := client.CommitUncommittedOffsets(ctx); err != nil {
		return err
	}
	if _, err := admin.ListGroups(ctx); err != nil {
		return err
	}
	if _, err := admin.DescribeGroups(ctx, group); err != nil {
		return err
	}
	if _, err := admin.Lag(ctx, group); err != nil {
		return err
	}
	_, err = admin.DescribeTopicConfigs(ctx, topic)
	return err
}

func franzTransaction(ctx context.Context, options []kgo.Opt, topic string) error {
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.BeginTransaction(); err != nil {
		return err
	}
	record := &kgo.Record{Topic: topic, Value: []byte("in a transaction")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return err
	}
	return client.EndTransaction(ctx, kgo.TryCommit)
}
