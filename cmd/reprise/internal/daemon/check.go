package daemon

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// CheckReport is the content of a data directory.
type CheckReport struct {
	Format    int // of the directory
	DiskBytes uint64
	Queues    []CheckedQueue
}

// CheckedQueue is a queue in a CheckReport.
type CheckedQueue struct {
	ARN      string
	Messages int
	Bytes    int64 // of their bodies
}

// Messages returns the number of messages.
func (r *CheckReport) Messages() int {
	n := 0
	for _, q := range r.Queues {
		n += q.Messages
	}
	return n
}

// messagesPerPage bounds the memory of a check.
const messagesPerPage = 1000

// Check reads everything in the data directory dir, and changes nothing. First it verifies
// the checksums of the files, then it reads every record as the server would. The error is
// about the first damage that it finds.
func Check(dir string) (CheckReport, error) {
	report, err := check(dir)
	if err != nil {
		return report, &StorageError{err}
	}
	return report, nil
}

func check(dir string) (report CheckReport, err error) {
	files, err := journal.Check(journal.Options{Dir: dir})
	if err != nil {
		return report, err
	}
	report.Format, report.DiskBytes = files.Format, files.DiskBytes
	j, err := journal.Open(journal.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		return report, err
	}
	server, err := sqsserver.Open(frozen{j}, sqsserver.Config{BodyCache: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		_ = j.Close() // its error would repeat this one
		return report, fmt.Errorf("%s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	for _, info := range server.Queues() {
		q, err := checkQueue(server, info.ARN)
		if err != nil {
			return report, fmt.Errorf("%s: queue %s: %w", dir, info.ARN, err)
		}
		report.Queues = append(report.Queues, q)
	}
	return report, nil
}

func checkQueue(server *sqsserver.Server, arn string) (CheckedQueue, error) {
	q := CheckedQueue{ARN: arn}
	for page := (sqsserver.Page{Limit: messagesPerPage}); ; {
		messages, err := server.Messages(arn, page)
		if err != nil {
			return q, err
		}
		for i := range messages {
			q.Messages++
			q.Bytes += int64(len(messages[i].Body))
		}
		if len(messages) < page.Limit {
			return q, nil
		}
		page.After = messages[len(messages)-1].Number
	}
}

// frozen is a journal that is only read. The server writes to its journal at the start, also to
// convert older records, and when messages expire; frozen discards that.
type frozen struct{ *journal.Journal }

func (frozen) Commit(*sqsserver.Batch, bool) error { return nil }
func (frozen) CheckRoom(int64) error               { return nil }
