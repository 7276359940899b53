package operate

import (
	"maps"
	"sync"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Rewriting applies a Rewrite to messages, and remembers what it does to them. Several goroutines may use it at once.
type Rewriting struct {
	apply func(Message) (Message, error)

	mu      sync.Mutex
	edited  int
	example string
	unfit   map[string]int
}

// Rewriting begins to apply r, or returns what is wrong with r.
func (r Rewrite) Rewriting() (*Rewriting, error) {
	apply, err := r.Compile()
	if err != nil {
		return nil, err
	}
	return &Rewriting{apply: apply}, nil
}

// Apply returns the message as it is afterwards, or why SQS would refuse it so.
func (w *Rewriting) Apply(m Message) (Message, error) { return w.apply(m) }

// Try counts what would become of a message, and reports whether it can be changed so.
func (w *Rewriting) Try(m *Message) bool {
	after, err := w.apply(*m)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.leave(terminal.Line(err.Error(), maxExample))
	case !SameContent(m, &after):
		if w.edited++; w.edited == 1 {
			w.example = terminal.Shorten(Difference(m, &after), maxExample)
		}
	}
	return err == nil
}

// leave counts a message that cannot be changed. The caller holds the lock.
func (w *Rewriting) leave(why string) {
	if w.unfit == nil {
		w.unfit = make(map[string]int)
	}
	if _, has := w.unfit[why]; !has && len(w.unfit) >= maxUnfit {
		why = "there are other reasons"
	}
	w.unfit[why]++
}

const (
	// maxExample bounds the example of a change, and a reason, in bytes.
	maxExample = 4 << 10
	// maxUnfit bounds the reasons, besides one for all others: they can quote messages.
	maxUnfit = 20
)

// Edited is how many of the messages that were tried would differ afterwards, and the difference of the first of them.
func (w *Rewriting) Edited() (n int, example string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.edited, w.example
}

// Unfit is how many of the messages that were tried cannot be changed so, by the reason.
func (w *Rewriting) Unfit() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.unfit)
}
