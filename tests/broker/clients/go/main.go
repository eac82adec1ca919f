// The session of tests/broker/clients/features.py, by clients in Go:
//
//	sessions franz-go|sarama|kafka-go SERVERS SERVERS_WITH_LOGIN PREFIX
//
// A line of JSON for each feature has the facts that were found, or the error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

const (
	patience   = 120 * time.Second
	batch      = 20
	startTime  = 1_700_000_000_000
	user       = "alice"
	password   = "alice-secret"
	partitions = 4
)

// place is where a session takes place. All topics and groups begin with the prefix.
type place struct{ servers, login, prefix string }

func (p place) name(suffix string) string { return p.prefix + "-" + suffix }

type feature struct {
	name string
	run  func(context.Context) (any, error)
}

// facts is what a feature reports.
type facts map[string]any

// record is how a record is reported.
type record struct {
	Offset    int64  `json:"offset"`
	Key       string `json:"key"`
	Value     string `json:"value"`
	Header    string `json:"header"`
	Timestamp int64  `json:"timestamp"`
}

var sessions = map[string]func(place) []feature{
	"franz-go": franzSession,
	"sarama":   saramaSession,
	"kafka-go": segmentSession,
	"control":  controlSession,
}

func main() {
	where := place{os.Args[2], os.Args[3], os.Args[4]}
	out := json.NewEncoder(os.Stdout)
	for _, each := range sessions[os.Args[1]](where) {
		line := facts{"feature": each.name}
		if found, err := run(each); err != nil {
			line["error"] = err.Error()
		} else {
			line["facts"] = found
		}
		if err := out.Encode(line); err != nil {
			panic(err)
		}
	}
}

func run(each feature) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return each.run(ctx)
}

// until waits for a condition, until the time of the feature is over.
func until(ctx context.Context, what string, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("never: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
