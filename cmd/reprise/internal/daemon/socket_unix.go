//go:build unix

package daemon

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
)

// socketMode lets only the user connect: most systems require write permission for it.
const socketMode = 0o600

// newSuffix makes the path of a socket that of the directory in which it is made before it is
// moved to its place. The path in there is longer than the final one, so a path that is too long
// for a socket fails here.
const newSuffix = ".new"

// listenPrivately listens on a Unix socket to which no other user can connect at any time. A
// new socket's mode depends on the umask, which is shared by all goroutines and so cannot
// be changed here. Therefore the socket is made in a private directory, gets its mode
// there, and is then moved.
func listenPrivately(path string) (_ net.Listener, err error) {
	dir := path + newSuffix
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

// renamedSocket removes its socket when it is closed, by the name that it was moved to.
type renamedSocket struct {
	*net.UnixListener
	path string
}

func (s *renamedSocket) Close() error {
	_ = os.Remove(s.path) // it may be gone, with its directory; the next start removes what is left
	return s.UnixListener.Close()
}
