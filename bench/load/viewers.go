package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Viewers look at live pages of a dashboard at the same time, as browsers do: each holds the stream of its page and,
// if the page has charts, asks for their newest figures again and again.
type Viewers struct {
	stop   context.CancelFunc
	all    sync.WaitGroup
	client *http.Client

	mu      sync.Mutex
	problem error
	bytes   atomic.Int64
}

// Page is a live page of a dashboard.
type Page struct {
	Stream  string // the path of its stream
	Figures string // the path of the figures of its charts; empty: it has none
}

const (
	// figuresEvery is how often charts ask for figures: see charts.js of the dashboard.
	figuresEvery = 2 * time.Second
	viewerBuffer = 4 << 10 // of each stream, in bytes
)

// OpenViewers has n viewers look at pages of the server at addr, in turn, and returns when each has seen its page.
func OpenViewers(addr string, n int, pages ...Page) (*Viewers, error) {
	ctx, stop := context.WithCancel(context.Background())
	v := &Viewers{stop: stop, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}}
	var seen sync.WaitGroup
	for i := range n {
		page := pages[i%len(pages)]
		seen.Add(1)
		once := sync.OnceFunc(seen.Done)
		v.all.Go(func() {
			defer once()
			v.fail(ctx, v.read(ctx, "http://"+addr+page.Stream, once))
		})
		if page.Figures != "" {
			v.all.Go(func() { v.fail(ctx, v.ask(ctx, "http://"+addr+page.Figures)) })
		}
	}
	seen.Wait()
	if err := v.Problem(); err != nil {
		_, _ = v.Close() // it is the same error
		return nil, err
	}
	return v, nil
}

// Problem is the error of the first viewer that sees nothing more; nil: all look on.
func (v *Viewers) Problem() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.problem
}

// Close ends the viewers, and returns how many bytes they were sent. The error is that of the first viewer that saw
// nothing more before.
func (v *Viewers) Close() (int64, error) {
	v.stop()
	v.all.Wait()
	v.client.CloseIdleConnections()
	return v.bytes.Load(), v.problem
}

// fail notes why a viewer sees nothing more, unless it was ended.
func (v *Viewers) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.problem == nil {
		v.problem = fmt.Errorf("load: a viewer sees nothing more: %w", err)
	}
}

// read reads a stream until ctx ends, and calls begun when its first event has begun.
func (v *Viewers) read(ctx context.Context, url string, begun func()) error {
	body, err := v.get(ctx, url)
	if err != nil {
		return err
	}
	defer body.Close()
	stream := bufio.NewReaderSize(body, viewerBuffer)
	if _, err := stream.Peek(1); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	begun()
	n, err := io.Copy(io.Discard, stream)
	v.bytes.Add(n)
	if err == nil {
		err = errors.New("the stream has ended")
	}
	return fmt.Errorf("%s: %w", url, err)
}

// ask asks for figures until ctx ends.
func (v *Viewers) ask(ctx context.Context, url string) error {
	for {
		body, err := v.get(ctx, fmt.Sprintf("%s?after=%d", url, time.Now().Add(-figuresEvery).Unix()))
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, body)
		v.bytes.Add(n)
		body.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", url, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(figuresEvery):
		}
	}
}

func (v *Viewers) get(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := v.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s: status %s", url, response.Status)
	}
	return response.Body, nil
}
