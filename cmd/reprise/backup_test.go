//go:build unix

package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestBackup makes copies of a server at work: they contain every message acknowledged before,
// and the server goes on.
func TestBackup(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	dir := filepath.Join(temp, "data")
	p, endpoint := keep(t, dir, "--queue", "q")
	if info, err := os.Stat(filepath.Join(dir, "control.sock")); err != nil || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("control.sock: %v, %v; want a socket from the start", info, err)
	}
	var mu sync.Mutex
	acknowledged := 0
	ended := make(chan struct{})
	enough := make(chan struct{})
	c := client(endpoint)
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-enough:
				return
			default:
			}
			if _, err := c.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: queueURL(endpoint, "q"), MessageBody: aws.String(fmt.Sprint("message ", i)),
			}); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			acknowledged++
			mu.Unlock()
		}
	}()
	counts := map[string]int{}
	for i := range 3 {
		mu.Lock()
		before := acknowledged
		mu.Unlock()
		backup := filepath.Join(temp, "backup"+strconv.Itoa(i))
		if got := reprise(t, "", "backup", "--data", dir, backup); got.code != 0 || !strings.Contains(got.stdout, backup+" is a copy of "+dir) {
			t.Fatalf("backup: %+v", got)
		}
		counts[backup] = before
	}
	close(enough)
	<-ended
	for backup, before := range counts {
		got := reprise(t, "", "check", backup)
		if n := checkedMessages(t, got); n < before || n > acknowledged {
			t.Errorf("the backup has %d messages; %d had been acknowledged before it, %d at the end", n, before, acknowledged)
		}
	}
	if got := reprise(t, "", "backup", "--data", dir, filepath.Join(temp, "backup0")); got.code != 1 || !strings.Contains(got.stderr, "it exists") {
		t.Errorf("backup over a backup: %+v", got)
	}
	p.stop()
	if got := reprise(t, "", "backup", "--data", dir, filepath.Join(temp, "stopped")); got.code != 0 {
		t.Errorf("backup of a stopped server: %+v", got)
	}
	_, endpoint = keep(t, filepath.Join(temp, "stopped"))
	if got := receiveUntil(t, endpoint, "q", acknowledged); len(slices.Compact(got)) != acknowledged {
		t.Errorf("of %d messages %d came", acknowledged, len(slices.Compact(got)))
	}
}

// checkedMessages returns the number of messages that check reports.
func checkedMessages(t *testing.T, got result) int {
	t.Helper()
	said := regexp.MustCompile(` is sound: format 1, \d+ queues?, (\d+) messages?, `).FindStringSubmatch(got.stdout)
	if got.code != 0 || said == nil {
		t.Fatalf("check: %+v", got)
	}
	n, err := strconv.Atoi(said[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
