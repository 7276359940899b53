package sqsserver_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Far too many tags are refused before they are copied, which is done while every
// queue waits.
func TestFarTooManyTags(t *testing.T) {
	b := newTestServer(t, nil)
	tags := make(map[string]string)
	for i := range 10_000 {
		tags[fmt.Sprint("k", i)] = ""
	}
	allocations := testing.AllocsPerRun(10, func() {
		err := b.server.TagQueue(t.Context(), &sqsserver.TagQueueInput{QueueUrl: b.url, Tags: tags})
		if err == nil || !strings.Contains(err.Error(), "Too many tags added for queue q.") {
			t.Fatalf("TagQueue: %v", err)
		}
	})
	if allocations > 10 {
		t.Errorf("%v allocations for a refusal, want a handful", allocations)
	}
}

// TestTagsThatStay: a request that changes no tag writes nothing to the journal.
func TestTagsThatStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("q", nil)
		url := k.url("q")
		tag := func(value string) error {
			return k.TagQueue(t.Context(), &sqsserver.TagQueueInput{QueueUrl: url, Tags: map[string]string{"team": value}})
		}
		untag := func(key string) error {
			return k.UntagQueue(t.Context(), &sqsserver.UntagQueueInput{QueueUrl: url, TagKeys: []string{key}})
		}
		for _, step := range []struct {
			name   string
			run    func() error
			writes bool
		}{
			{"remove from a queue without tags", func() error { return untag("cost") }, false},
			{"add", func() error { return tag("a") }, true},
			{"add again", func() error { return tag("a") }, false},
			{"remove another", func() error { return untag("cost") }, false},
			{"change", func() error { return tag("b") }, true},
			{"remove", func() error { return untag("team") }, true},
		} {
			before, _ := k.journal.writes()
			if err := step.run(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			synctest.Wait()
			if after, _ := k.journal.writes(); (after > before) != step.writes {
				t.Errorf("%s: %d writes, want some: %t", step.name, after-before, step.writes)
			}
		}
	})
}

// TestWrongTagsHaveOneError: which of several wrong tags the error names does not change from request to request.
func TestWrongTagsHaveOneError(t *testing.T) {
	b := newTestServer(t, nil)
	wrong := map[string]string{"a": "?", "b": "!", "aws:c": "", "": "", "d": strings.Repeat("v", 257)}
	errs := make(map[string]bool)
	for range 100 {
		err := b.server.TagQueue(t.Context(), &sqsserver.TagQueueInput{QueueUrl: b.url, Tags: wrong})
		errs[fmt.Sprint(err)] = true
	}
	if len(errs) != 1 {
		t.Errorf("the same request is refused with %d errors: %v", len(errs), errs)
	}
}
