//go:build !unix

package daemon

import (
	"context"
	"net"
)

// listenPrivately listens on a Unix socket. The permissions of its directory decide who may
// use it.
func listenPrivately(path string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), "unix", path)
}
