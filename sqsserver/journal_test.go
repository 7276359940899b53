package sqsserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func TestBatchKeepsChangesInOrder(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	var b sqsserver.Batch
	for round := range 2 { // the second on reused memory
		b.Set([]byte("k"), []byte("v"))
		b.Delete([]byte("k"))
		b.DeleteRange([]byte("a"), []byte("b"))
		b.Set([]byte(long), nil)
		b.Set(nil, []byte(long))
		want := []string{"1 k=v", "2 k=", "3 a=b", "1 " + long + "=", "1 =" + long}
		if diff := cmp.Diff(want, changes(&b)); diff != "" {
			t.Errorf("round %d: changes (-want +got):\n%s", round, diff)
		}
		if b.Len() != len(want) {
			t.Errorf("round %d: Len() = %d, want %d", round, b.Len(), len(want))
		}
		if b.Size() < 2*len(long) {
			t.Errorf("round %d: Size() = %d, less than its values", round, b.Size())
		}
		b.Reset()
		if b.Len() != 0 || b.Size() != 0 || changes(&b) != nil {
			t.Errorf("round %d: not empty after Reset: %d changes, %d bytes", round, b.Len(), b.Size())
		}
	}
}

func TestBatchCopies(t *testing.T) {
	key, value := []byte("key"), []byte("value")
	var b sqsserver.Batch
	b.Set(key, value)
	clear(key)
	clear(value)
	if diff := cmp.Diff([]string{"1 key=value"}, changes(&b)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
}

func TestBatchReusedAllocatesNothing(t *testing.T) {
	key, value := []byte("key"), make([]byte, 1024)
	var b sqsserver.Batch
	fill := func() {
		b.Reset()
		for range 10 {
			b.Set(key, value)
			b.Delete(key)
		}
	}
	fill()
	if allocs := testing.AllocsPerRun(100, fill); allocs != 0 {
		t.Errorf("filling a reused batch allocates %v times, want 0", allocs)
	}
}

func changes(b *sqsserver.Batch) []string {
	var all []string
	b.Each(func(op sqsserver.BatchOp, key, value []byte) {
		all = append(all, fmt.Sprintf("%d %s=%s", op, key, value))
	})
	return all
}
