package serving

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/reprise-sqs/reprise/bench/appendlog"
	"github.com/reprise-sqs/reprise/bench/process"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// childVariable makes this program run as one of the servers for comparisons, or as the process
// that measures; it reads its childConfig from its standard input.
const childVariable = "REPRISE_BENCH_SERVER"

// childConfig is the task of such a process: give prepared replies, be an SQS over an append log,
// or make the comparison with other servers.
type childConfig struct {
	Addr    string
	Replies map[string]reply `json:",omitempty"` // by action
	Least   bool             `json:",omitempty"` // do the minimal work on messages
	Log     *appendlog.Options
	Others  *othersConfig
}

// childCommand is the command of such a process.
func childCommand(config childConfig) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stdin = bytes.NewReader(in)
	return cmd, nil
}

// child starts such a server.
func (b *Bench) child(name string, config childConfig) (*subject, error) {
	var err error
	if config.Addr, err = process.FreeAddr(); err != nil {
		return nil, err
	}
	cmd, err := childCommand(config)
	if err != nil {
		return nil, err
	}
	p, err := process.Start(config.Addr, cmd)
	if err != nil {
		return nil, err
	}
	return &subject{name: name, process: p}, nil
}

// ServeIfChild must be called first by every program that uses this package: comparisons start the
// program again as a server, and then this function does not return.
func ServeIfChild() {
	if os.Getenv(childVariable) == "" {
		return
	}
	if err := serveChild(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveChild() error {
	var config childConfig
	if err := json.NewDecoder(os.Stdin).Decode(&config); err != nil {
		return err
	}
	if config.Others != nil {
		return config.Others.run()
	}
	var handler http.Handler = canned(config.Replies)
	if config.Least {
		handler = newLeast(config.Replies)
	}
	if config.Log != nil {
		log, err := appendlog.Create(*config.Log)
		if err != nil {
			return err
		}
		server, err := sqsserver.Open(log, sqsserver.Config{Logger: slog.Default()})
		if err != nil {
			return err
		}
		handler = server
		if os.Getenv("GOMAXPROCS") == "" { // as in the program's durable server
			runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
		}
	}
	// The limits of the program's server: deadlines are a part of the cost of a connection.
	server := &http.Server{
		Addr: config.Addr, Handler: handler,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 3 * time.Minute,
	}
	return server.ListenAndServe()
}
