package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/reprise-sqs/reprise/bench/canned"
)

// server serves a canned queue on loopback.
type server struct {
	http.Server
	url         string
	connections atomic.Int64 // accepted so far
}

func serve(q *canned.Queue) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{url: "http://" + listener.Addr().String()}
	s.Handler = q
	s.ReadHeaderTimeout = time.Minute
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	go func() { _ = s.Serve(listener) }() // until Close
	return s, nil
}
