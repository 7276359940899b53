//go:build !unix

package daemon

import (
	"context"
	"net"
)

// listenPrivately listens on a Unix socket. Who may use it follows from the directory
// that it is in.
func listenPrivately(path string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(context.Background(), "unix", path)
}
