// What the Go clients do in the recording: each makes a topic, writes to it, reads it as a group and looks at the group.
//
//	clients franz-go|sarama|kafka-go HOST:PORT
package main

import (
	"context"
	"log"
	"os"
	"time"
)

const (
	clientID = "shop-floor"
	patience = 60 * time.Second
)

var values = []string{"chair", "table", "lamp"}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	sessions := map[string]func(context.Context, string) error{
		"franz-go": runFranzGo,
		"sarama":   runSarama,
		"kafka-go": runKafkaGo,
	}
	if err := sessions[os.Args[1]](ctx, os.Args[2]); err != nil {
		log.Fatal(err)
	}
}
