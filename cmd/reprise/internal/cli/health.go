package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

const (
	// healthTimeout limits one request to a server, which answers at once or not at all.
	healthTimeout = 5 * time.Second
	// healthPause is the time between two questions of --wait.
	healthPause = 100 * time.Millisecond
	// maxHealth is more than any health that a server reports.
	maxHealth = 64 << 10
)

func (a *app) health() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "health [ADDR]",
		Short: "Ask a running server or consumer for its health",
		Long: `Print the health of a running reprise serve, up or run: the line of JSON that
GET /health answers with. ADDR is its host:port, or the URL of the server. Without it
both ` + defaultAddr + `, the address of serve and up, and ` + defaultAdminAddr + `, that of run, are
asked, and what answers is printed, a line each.

The exit code is 0 if all that answers works, degraded or not, and 1 if it does not, or
nothing answers: container images without a shell use this as their health check. --wait
asks again until it works, for as long as given.`,
		Example: `  reprise health
  reprise health 127.0.0.1:9325
  reprise health --wait 30s https://sqs.example.org:9324`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = run(func(args []string) error {
		if len(args) == 0 {
			args = []string{defaultAddr, defaultAdminAddr}
		}
		pages := make([]string, len(args))
		for i, addr := range args {
			var err error
			if pages[i], err = healthPage(addr); err != nil {
				return usage(err)
			}
		}
		if wait < 0 {
			return usage(fmt.Errorf("--wait is %s: pass how long to wait, such as 30s, or 0", wait))
		}
		return a.runHealth(pages, wait)
	})
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to ask again, until it works")
	return cmd
}

// healthPage returns the URL of the health of the server at addr.
func healthPage(addr string) (string, error) {
	given := addr
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("ADDR is %q: pass one like %s or https://sqs.example.org:9324", given, defaultAddr)
	}
	return u.JoinPath("health").String(), nil
}

// runHealth asks pages until the answers are good or wait has passed, and prints the last answers.
func (a *app) runHealth(pages []string, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for {
		answers, err := askAll(a.ctx, pages)
		left := time.Until(deadline)
		if err == nil || left <= 0 || a.ctx.Err() != nil {
			for _, answer := range answers {
				fmt.Fprintln(a.stdout, terminal.Shorten(answer, maxLogged))
			}
			return err
		}
		select {
		case <-time.After(min(healthPause, left)):
		case <-a.drain:
			return errors.New("interrupted while waiting for " + strings.Join(pages, " and "))
		}
	}
}

// askAll returns the answers of pages, and an error if one that answers does not work, or if none
// does: then the first page's.
func askAll(ctx context.Context, pages []string) (answers []string, err error) {
	var silent, failed []error
	for _, page := range pages {
		answer, err := askHealth(ctx, page)
		if answer != "" {
			answers = append(answers, answer)
		}
		switch {
		case err != nil && answer == "":
			silent = append(silent, err)
		case err != nil:
			failed = append(failed, err)
		}
	}
	if len(silent) == len(pages) {
		return nil, silent[0]
	}
	return answers, errors.Join(failed...)
}

// askHealth returns the answer of page, and an error unless it is the health of a server
// or consumer that works.
func askHealth(ctx context.Context, page string) (answer string, err error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	client := httpclient.Default()
	client.CheckRedirect = nil // the address may be that of a proxy; nothing secret is sent
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("%w: is it running? reprise serve and up print their address when they start, run has --admin-addr", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return "", fmt.Errorf("read the answer of %s: %w", page, err)
	}
	answer = strings.TrimSpace(string(text))
	if resp.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s answers with status %s", page, resp.Status)
	}
	return answer, nil
}
