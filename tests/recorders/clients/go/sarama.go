package main

import (
	"context"

	"github.com/IBM/sarama"
)

type reader struct{ done context.CancelFunc }

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim reads what the session wrote, commits it and ends the session.
func (each reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for read := 0; read < len(values); read++ {
		session.MarkMessage(<-claim.Messages(), "checked")
	}
	session.Commit()
	each.done()
	return nil
}

func runSarama(ctx context.Context, bootstrap string) error {
	const topic, group = "sarama-orders", "sarama-billing"
	config := sarama.NewConfig()
	config.ClientID = clientID
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Producer.Compression = sarama.CompressionSnappy
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	admin, err := sarama.NewClusterAdmin([]string{bootstrap}, config)
	if err != nil {
		return err
	}
	defer admin.Close()
	if err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false); err != nil {
		return err
	}
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, value := range values {
		message := &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(value)}
		if _, _, err := producer.SendMessage(message); err != nil {
			return err
		}
	}
	consumer, err := sarama.NewConsumerGroup([]string{bootstrap}, group, config)
	if err != nil {
		return err
	}
	reading, done := context.WithCancel(ctx)
	defer done()
	if err := consumer.Consume(reading, []string{topic}, reader{done}); err != nil {
		return err
	}
	if _, err := admin.DescribeConsumerGroups([]string{group}); err != nil {
		return err
	}
	if _, err := admin.ListConsumerGroupOffsets(group, nil); err != nil {
		return err
	}
	if err := consumer.Close(); err != nil {
		return err
	}
	return ctx.Err()
}
