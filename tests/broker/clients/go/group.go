package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
)

// position is a place in the topic of the group.
type position struct {
	partition int32
	offset    int64
}

// progress is what a member owns, and has read of that. Clients tell it from goroutines of their own.
type progress struct {
	mutex sync.Mutex
	owned map[int32]bool
	read  map[position]bool
}

func newProgress() *progress {
	return &progress{owned: map[int32]bool{}, read: map[position]bool{}}
}

func (p *progress) own(is bool, partitions ...int32) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, each := range partitions {
		if is {
			p.owned[each] = true
		} else {
			delete(p.owned, each)
			maps.DeleteFunc(p.read, func(at position, _ bool) bool { return at.partition == each })
		}
	}
}

func (p *progress) ownOnly(partitions []int32) {
	p.mutex.Lock()
	clear(p.owned)
	clear(p.read)
	p.mutex.Unlock()
	p.own(true, partitions...)
}

func (p *progress) saw(partition int32, offset int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.read[position{partition, offset}] = true
}

func (p *progress) counts() (owned, read int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.owned), len(p.read)
}

func (p *progress) owns(count int) func() bool {
	return func() bool { owned, _ := p.counts(); return owned == count }
}

func (p *progress) hasRead(count int) func() bool {
	return func() bool { _, read := p.counts(); return read >= count }
}

func (p *progress) firstOffset() int64 {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	first := int64(1 << 62)
	for each := range p.read {
		first = min(first, each.offset)
	}
	return first
}

// member reads in a group from the moment it is made.
type member interface {
	progress() *progress
	commit(context.Context) error
	leave() error
}

// groupFacts lets members come and go, and a later one resume where the group was.
func groupFacts(ctx context.Context, join func(context.Context) (member, error),
	produce func(ctx context.Context, partition int32, value string) error) (any, error) {
	if err := fill(ctx, 10, produce); err != nil {
		return nil, err
	}
	first, err := join(ctx)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, "one member has all", first.progress().owns(partitions)); err != nil {
		return nil, err
	}
	if err := share(ctx, first, join); err != nil {
		return nil, err
	}
	if err := until(ctx, "everything is read", first.progress().hasRead(10*partitions)); err != nil {
		return nil, err
	}
	_, read := first.progress().counts()
	if err := first.commit(ctx); err != nil {
		return nil, err
	}
	if err := first.leave(); err != nil {
		return nil, err
	}
	if err := fill(ctx, 2, produce); err != nil {
		return nil, err
	}
	next, err := join(ctx)
	if err != nil {
		return nil, err
	}
	if err := until(ctx, "new records are read", next.progress().hasRead(2*partitions)); err != nil {
		return nil, err
	}
	if err := next.commit(ctx); err != nil {
		return nil, err
	}
	_, again := next.progress().counts()
	found := facts{"read": read, "resumed at": next.progress().firstOffset(), "read later": again}
	return found, next.leave()
}

// share lets a second member come, take its half, and go.
func share(ctx context.Context, first member, join func(context.Context) (member, error)) error {
	second, err := join(ctx)
	if err != nil {
		return err
	}
	halves := func() bool { return first.progress().owns(2)() && second.progress().owns(2)() }
	if err := until(ctx, "each has a half", halves); err != nil {
		return err
	}
	if err := second.leave(); err != nil {
		return err
	}
	return until(ctx, "the first has all again", first.progress().owns(partitions))
}

func fill(ctx context.Context, count int, produce func(context.Context, int32, string) error) error {
	for partition := range int32(partitions) {
		for number := range count {
			if err := produce(ctx, partition, fmt.Sprint("value-", number)); err != nil {
				return err
			}
		}
	}
	return nil
}
