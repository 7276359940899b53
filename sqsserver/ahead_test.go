package sqsserver_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// openBacklog opens a server whose queue has n messages of that size, each with a
// body of its own, of which none is in memory.
func openBacklog(t *testing.T, config sqsserver.Config, queues []string, n, size int) *keptServer {
	t.Helper()
	k := openKept(t, newMemoryJournal(), config)
	for _, queue := range queues {
		if strings.HasSuffix(queue, ".fifo") {
			k.create(queue, map[string]string{"FifoQueue": "true"})
		} else {
			k.create(queue, nil)
		}
		for i := range n {
			k.send(queue, backlogBody(i, size))
		}
	}
	return k.cold()
}

// cold starts the server again: no body is in memory, and the journal counts anew.
func (k *keptServer) cold() *keptServer {
	k = k.restart()
	k.journal.reads()
	return k
}

func backlogBody(i, size int) string {
	head := fmt.Sprintf("%d.", i)
	return head + strings.Repeat("x", size-len(head))
}

// places are the numbers that the bodies of a backlog begin with.
func places(messages []sqsserver.Message) string {
	var all []string
	for _, m := range messages {
		head, _, _ := strings.Cut(m.Body, ".")
		all = append(all, head)
	}
	return strings.Join(all, " ")
}

// A receive reads the bodies of what follows its messages, and those who receive
// these ask the journal no more; every message has its own body.
func TestReadAhead(t *testing.T) {
	for _, queue := range []string{"q", "q.fifo"} {
		t.Run(queue, func(t *testing.T) {
			k := openBacklog(t, sqsserver.Config{}, []string{queue}, 100, 100)
			var got []string
			for range 10 {
				for _, m := range k.receive(queue, 10, 60) {
					got = append(got, m.Body)
					if err := k.deleteMessage(queue, m.ReceiptHandle); err != nil {
						t.Fatal(err)
					}
				}
			}
			var want []string
			for i := range 100 {
				want = append(want, backlogBody(i, 100))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("bodies (-want +got):\n%s", diff)
			}
			// The second comes for the messages 70 to 79, of which 74 to 79 are missing.
			if diff := cmp.Diff([]int{10 + 64, 6 + 20}, k.journal.reads()); diff != "" {
				t.Errorf("values read (-want +got):\n%s", diff)
			}
			if entries, unread := k.CachedBodies(); entries != 0 || unread != 0 {
				t.Errorf("%d bodies in the cache, %d bytes unread, want none of an empty queue", entries, unread)
			}
		})
	}
}

// What is read ahead is bounded: in bytes for each receive, and for all queues
// together by a part of the cache.
func TestReadAheadIsBounded(t *testing.T) {
	for _, test := range []struct {
		size, want int // the bodies' size, and how many a receive of one reads
	}{
		{1 << 10, 1 + 64},
		{30 << 10, 1 + 3 + 1}, // the last is too many, and dropped
		{127 << 10, 1 + 1},
		{128 << 10, 1},
		{1 << 20, 1},
	} {
		t.Run(fmt.Sprint(test.size), func(t *testing.T) {
			k := openBacklog(t, sqsserver.Config{}, []string{"q"}, 70, test.size)
			k.receive("q", 1, 60)
			if diff := cmp.Diff([]int{test.want}, k.journal.reads()); diff != "" {
				t.Errorf("values read (-want +got):\n%s", diff)
			}
			if _, unread := k.CachedBodies(); unread > 192<<10 {
				t.Errorf("%d bytes unread", unread)
			}
		})
	}
	t.Run("queues", func(t *testing.T) {
		const cache = 1 << 20
		var queues []string
		for i := range 12 {
			queues = append(queues, fmt.Sprint("q", i))
		}
		k := openBacklog(t, sqsserver.Config{BodyCache: cache}, queues, 50, 1<<10)
		for _, queue := range queues {
			k.receive(queue, 10, 60)
			if _, unread := k.CachedBodies(); unread > cache/4 {
				t.Errorf("%d bytes unread after %s", unread, queue)
			}
		}
		reads := k.journal.reads()
		if reads[0] != 50 || reads[len(reads)-1] != 10 {
			t.Errorf("values read: %v, want all of the first queue and those received of the last", reads)
		}
	})
	t.Run("at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const cache = 1 << 20
			var queues []string
			for i := range 8 {
				queues = append(queues, fmt.Sprint("q", i))
			}
			k := openBacklog(t, sqsserver.Config{BodyCache: cache}, queues, 70, 2<<10)
			reading := make(chan struct{})
			k.journal.beforeGet = func() { <-reading }
			received := make(chan int, len(queues))
			for _, queue := range queues {
				go func() { received <- len(k.receive(queue, 1, 60)) }()
			}
			synctest.Wait()
			close(reading)
			for range queues {
				if n := <-received; n != 1 {
					t.Errorf("received %d messages, want 1", n)
				}
			}
			if _, unread := k.CachedBodies(); unread == 0 || unread > cache/4 {
				t.Errorf("%d bytes unread, want some, and no more than %d", unread, cache/4)
			}
			k.journal.reads()
			for _, queue := range queues { // one after the other, and nothing holds them up any more
				for range 7 {
					k.receive(queue, 10, 60)
				}
			}
			if n := len(k.journal.reads()); n > 3*len(queues) {
				t.Errorf("%d queues of 69 messages took %d reads, want 3 each at most", len(queues), n)
			}
		})
	})
	t.Run("small cache", func(t *testing.T) {
		const cache = 512 << 10 // a quarter of it is one receive's share
		k := openBacklog(t, sqsserver.Config{BodyCache: cache}, []string{"q"}, 70, 2<<10)
		k.receive("q", 1, 60)
		if _, unread := k.CachedBodies(); unread == 0 || unread > cache/4 {
			t.Errorf("%d bytes unread, want some, and no more than %d", unread, cache/4)
		}
	})
	t.Run("no cache", func(t *testing.T) {
		k := openBacklog(t, sqsserver.Config{BodyCache: -1}, []string{"q"}, 50, 100)
		k.receive("q", 10, 60)
		if diff := cmp.Diff([]int{10}, k.journal.reads()); diff != "" {
			t.Errorf("values read (-want +got):\n%s", diff)
		}
	})
}

// The messages of other queues, and those that stand far away, are not read ahead.
func TestReadAheadOfNeighbours(t *testing.T) {
	k := openKept(t, newMemoryJournal(), sqsserver.Config{})
	k.create("q", nil)
	k.create("other", nil)
	for i := range 40 {
		k.send("q", fmt.Sprint(i))
		n := 1
		if i == 19 {
			n = 300
		}
		for range n {
			k.send("other", "other")
		}
	}
	k = k.cold()
	if got := bodies(k.receive("q", 10, 60)); got != "0 1 2 3 4 5 6 7 8 9" {
		t.Errorf("received %s", got)
	}
	if diff := cmp.Diff([]int{20}, k.journal.reads()); diff != "" {
		t.Errorf("values read (-want +got):\n%s", diff)
	}
}

// What leaves the server while its body is read ahead has gone from the cache.
func TestGoneWhileReadAhead(t *testing.T) {
	for name, leave := range map[string]func(k *keptServer, messages []sqsserver.MessageInfo) error{
		"deleted": func(k *keptServer, messages []sqsserver.MessageInfo) (err error) {
			for _, m := range messages[10:40] {
				err = errors.Join(err, k.Delete("q", m.ID))
			}
			return err
		},
		"purged": func(k *keptServer, _ []sqsserver.MessageInfo) error {
			return k.PurgeQueue(k.t.Context(), &sqsserver.PurgeQueueInput{QueueUrl: k.url("q")})
		},
		"its queue": func(k *keptServer, _ []sqsserver.MessageInfo) error {
			return k.DeleteQueue(k.t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: k.url("q")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := openBacklog(t, sqsserver.Config{BodyCache: 1 << 20}, []string{"q"}, 40, 100)
			messages, err := k.Messages("q", sqsserver.Page{})
			if err != nil {
				t.Fatal(err)
			}
			k = k.cold()
			k.journal.duringGet = func(i int) {
				if i == 39 { // the last: all of them have been read
					if err := leave(k, messages); err != nil {
						t.Error(err)
					}
				}
			}
			if got := places(k.receive("q", 10, 60)); got != "0 1 2 3 4 5 6 7 8 9" {
				t.Errorf("received %s", got)
			}
			if entries, unread := k.CachedBodies(); entries > 10 || unread != 0 {
				t.Errorf("%d bodies in the cache, %d bytes unread, want those received alone", entries, unread)
			}
		})
	}
}

// Who receives what another receive is reading ahead waits for that one.
func TestReceiveWhileReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openBacklog(t, sqsserver.Config{}, []string{"q"}, 40, 100)
		reading := make(chan struct{})
		k.journal.beforeGet = func() { <-reading }
		received := make(chan string, 2)
		for range 2 {
			go func() { received <- places(k.receive("q", 10, 60)) }()
			synctest.Wait()
		}
		close(reading)
		got := []string{<-received, <-received}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"0 1 2 3 4 5 6 7 8 9", "10 11 12 13 14 15 16 17 18 19"}, got); diff != "" {
			t.Errorf("received (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{40}, k.journal.reads()); diff != "" {
			t.Errorf("values read (-want +got):\n%s", diff)
		}
	})
}

// What one receive reads ahead while another reads it for itself is not unread.
func TestReadAheadOfWhatIsReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openBacklog(t, sqsserver.Config{}, []string{"q"}, 20, 100)
		first := k.receive("q", 10, 60)
		k = k.cold()
		reading := make(chan struct{})
		var blocked atomic.Bool
		k.journal.beforeGet = func() {
			if blocked.CompareAndSwap(false, true) {
				<-reading
			}
		}
		received := make(chan string)
		go func() { received <- places(k.receive("q", 10, 60)) }()
		synctest.Wait()
		for _, m := range first {
			if err := k.changeVisibility("q", m.ReceiptHandle, 0); err != nil {
				t.Fatal(err)
			}
		}
		if got := places(k.receive("q", 10, 60)); got != "0 1 2 3 4 5 6 7 8 9" {
			t.Errorf("received %s", got)
		}
		close(reading)
		if got := <-received; got != "10 11 12 13 14 15 16 17 18 19" {
			t.Errorf("received %s", got)
		}
		if entries, unread := k.CachedBodies(); entries != 20 || unread != 0 {
			t.Errorf("%d bodies in the cache, %d bytes unread, want all of them, and none", entries, unread)
		}
	})
}

// A body that is damaged or missing stops the server when its message is received,
// not when the ones before it are.
func TestDamagedAhead(t *testing.T) {
	for name, damage := range map[string]func(data map[string]string, key string){
		"missing":   func(data map[string]string, key string) { delete(data, key) },
		"truncated": func(data map[string]string, key string) { data[key] = data[key][1:] },
	} {
		t.Run(name, func(t *testing.T) {
			k := openBacklog(t, sqsserver.Config{}, []string{"q"}, 40, 100)
			damage(k.journal.data, slices.Sorted(slices.Values(k.journal.keys('b')))[15])
			if got := places(k.receive("q", 10, 60)); got != "0 1 2 3 4 5 6 7 8 9" || k.Err() != nil {
				t.Errorf("received %s, and the server says %v", got, k.Err())
			}
			in := &sqsserver.ReceiveMessageInput{QueueUrl: k.url("q"), MaxNumberOfMessages: sqsserver.Int(10)}
			_, err := k.ReceiveMessage(t.Context(), in)
			wantStorageError(t, "the receive", err)
			if entries, _ := k.CachedBodies(); entries != 39 {
				t.Errorf("%d bodies in the cache, want all but one", entries)
			}
		})
	}
}
