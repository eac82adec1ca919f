// A session of an old sarama: "clients HOST:PORT CLIENT_ID VERSION" produces, reads in a group, and commits. VERSION is
// the release of Kafka that sarama is configured for.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/Shopify/sarama"
)

const seconds = 20

type reader struct{ done context.CancelFunc }

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (each reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for read := 0; read < 3; read++ {
		select {
		case message := <-claim.Messages():
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
	each.done()
	return nil
}

func run(bootstrap, name, version string) error {
	config := sarama.NewConfig()
	config.ClientID = name
	config.Producer.Return.Successes = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	parsed, err := sarama.ParseKafkaVersion(version)
	if err != nil {
		return err
	}
	config.Version = parsed
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := 0; number < 3; number++ {
		value := sarama.StringEncoder(fmt.Sprintf("order %d", number))
		if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: name, Value: value}); err != nil {
			return err
		}
	}
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, name, config)
	if err != nil {
		return err
	}
	reading, done := context.WithTimeout(context.Background(), seconds*time.Second)
	defer done()
	if err := group.Consume(reading, []string{name}, reader{done}); err != nil {
		return err
	}
	if reading.Err() != context.Canceled {
		return fmt.Errorf("no records arrived")
	}
	return group.Close()
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
