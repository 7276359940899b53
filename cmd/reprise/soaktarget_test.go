//go:build unix

package main_test

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// soakTargetVariable makes this binary the flaky target of the soak: ADDR,FILE.
const soakTargetVariable = "REPRISE_SOAK_TARGET"

const (
	soakTimeout = 2 * time.Second // of an attempt
	soakKey     = 16              // bytes at the beginning of a body that name the message
	hopeless    = "hopeless"      // in the key of a message that the target refuses for good
)

// attempt is a run at the target, as its file tells of it. The file outlives its writer:
// each line is one write.
type attempt struct {
	key, id, runner string
	start           int64
	done            int64 // when the work was done; 0: it was not
	answered        int64 // when the answer had been handed to the system; 0: it was not, or was cut off
}

// runSoakTarget serves until it is killed.
func runSoakTarget(where string) {
	addr, file, _ := strings.Cut(where, ",")
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G703: the test's own file
	if err == nil {
		target := &soakTarget{file: out}
		err = http.ListenAndServe(addr, target) //nolint:gosec // G114: it serves the test
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

type soakTarget struct {
	file     *os.File
	attempts atomic.Int64
}

// ServeHTTP fails as targets do, by a hash of the message and the request: it answers with
// errors, cuts connections before and after its work, and takes too long. The attempt's number
// would not do: it stays the same in an outage, which a message that fails each time, and that
// is the last one of the queue, would prolong without end.
func (s *soakTarget) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) < soakKey {
		return // the caller was killed
	}
	key := strings.TrimSpace(string(body[:soakKey]))
	number := fmt.Sprintf("%d.%d", os.Getpid(), s.attempts.Add(1))
	s.note("start", number, key, r.Header.Get("X-Aws-Sqsd-Msgid"), r.Header.Get("X-Runner"))
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, key+number)
	time.Sleep(time.Duration(hash.Sum32()%20) * time.Millisecond)
	switch draw := hash.Sum32() / 20 % 1000; {
	case strings.HasPrefix(key, hopeless):
		w.WriteHeader(http.StatusUnprocessableEntity)
	case draw < 100:
		w.WriteHeader(http.StatusInternalServerError)
	case draw < 140:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case draw < 170:
		panic(http.ErrAbortHandler) // before the work
	case draw < 180:
		s.note("done", number)
		panic(http.ErrAbortHandler) // the answer is lost
	case draw < 185:
		time.Sleep(soakTimeout + time.Second) // the client has gone
		s.note("done", number)
	default:
		s.note("done", number)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush() // the caller may have been killed
		s.note("answered", number)
	}
}

func (s *soakTarget) note(what, number string, more ...string) {
	words := append([]string{what, number, strconv.FormatInt(time.Now().UnixNano(), 10)}, more...)
	if _, err := io.WriteString(s.file, strings.Join(words, "\t")+"\n"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// readAttempts reads what targets have noted. A line may be missing its end only if its
// writer was killed, which a write of the size of a line never shows.
func readAttempts(file string) ([]*attempt, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var all []*attempt
	byNumber := make(map[string]*attempt)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		if len(words) < 3 {
			return nil, fmt.Errorf("line %q of the target's file has too few words", lines.Text())
		}
		at, err := strconv.ParseInt(words[2], 10, 64)
		if err != nil {
			return nil, err
		}
		switch a := byNumber[words[1]]; {
		case words[0] == "start" && len(words) == 6:
			a = &attempt{key: words[3], id: words[4], runner: words[5], start: at}
			byNumber[words[1]] = a
			all = append(all, a)
		case a == nil:
			return nil, fmt.Errorf("line %q of the target's file is about an attempt that did not start", lines.Text())
		case words[0] == "done":
			a.done = at
		case words[0] == "answered":
			a.answered = at
		}
	}
	return all, lines.Err()
}
