//go:build unix

package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
)

// socketMode lets the user alone connect: most systems ask for the permission to write.
const socketMode = 0o600

// newDirectory is where a socket is until it has its mode, beside where it will be. The
// path there is the longer one, so that what is too long for an address of a socket is
// found out here.
const newDirectory = "control.new"

// listenPrivately listens on a Unix socket that nobody else could connect to at any
// time. A socket gets the mode that the umask leaves, which is the process's and not to
// be changed beside other goroutines, so it is made in a directory of its own.
func listenPrivately(path string) (_ net.Listener, err error) {
	dir := filepath.Join(filepath.Dir(path), newDirectory)
	if err := os.RemoveAll(dir); err != nil { // left by a crash
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	made := filepath.Join(dir, "s")
	l, err := new(net.ListenConfig).Listen(context.Background(), "unix", made)
	if err != nil {
		return nil, err
	}
	socket := &renamedSocket{l.(*net.UnixListener), path} // ListenConfig makes no other
	socket.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(made, socketMode), os.Rename(made, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return socket, nil
}

// renamedSocket removes its socket when it is closed, under the name that it has now.
type renamedSocket struct {
	*net.UnixListener
	path string
}

func (s *renamedSocket) Close() error {
	_ = os.Remove(s.path) // it may be gone, with its directory; the next start removes what is left
	return s.UnixListener.Close()
}
