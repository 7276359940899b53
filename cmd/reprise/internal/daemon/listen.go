package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// ReachableError is the error of an address that other machines could reach, for a server
// that accepts any credentials.
type ReachableError struct{ Addr *net.TCPAddr }

func (e *ReachableError) Error() string {
	return fmt.Sprintf("address %q can be reached from other machines, and the server accepts any credentials: pass --addr 127.0.0.1:%d", e.Addr, e.Addr.Port)
}

// examplePorts are the default ports of the flags.
var examplePorts = map[string]string{"--addr": "9324", "--admin-addr": "9325", "--pprof-addr": "6060"}

// listen listens on addr, the value of flag. An address that other machines can reach is
// refused with a [*ReachableError], unless the server verifies signatures or allowRemote
// permits it.
func listen(flag, addr string, allowRemote, verifies bool) (net.Listener, error) {
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		example := addr
		if _, err := strconv.ParseUint(addr, 10, 16); err != nil { // addr is not just a port
			example = examplePorts[flag]
		}
		return nil, fmt.Errorf("%s %q: %w: pass one like 127.0.0.1:%s", flag, addr, err, example)
	}
	if !sqsserver.IsLoopbackAddr(tcp) && !allowRemote && !verifies {
		return nil, &ReachableError{tcp}
	}
	l, err := net.ListenTCP("tcp", tcp)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("address %s is taken by another program: stop that one, or pass another %s (127.0.0.1:0 takes any free port)", addr, flag)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("address %s needs more rights than this program has: pass an %s with a port of 1024 or above", addr, flag)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("address %s is not one of this machine's: pass an %s like 127.0.0.1:%s", addr, flag, examplePorts[flag])
	case err != nil:
		return nil, fmt.Errorf("listening: %w", err)
	}
	return l, nil
}

// UnixPrefix begins an address that is the path of a Unix socket.
const UnixPrefix = "unix:"

// listenForAdmin listens on addr, the value of --admin-addr.
func listenForAdmin(addr string) (net.Listener, error) {
	path, isSocket := strings.CutPrefix(addr, UnixPrefix)
	if !isSocket {
		const allowRemote = true // without a token it shows health and metrics alone, and loopback is the default: another address is meant
		return listen("--admin-addr", addr, allowRemote, false)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("--admin-addr %s: %w", addr, err)
	case info.Mode()&fs.ModeSocket == 0:
		return nil, fmt.Errorf("--admin-addr %s: a file of another kind is there: pass another path, or remove it", addr)
	default:
		if conn, err := new(net.Dialer).DialContext(context.Background(), "unix", path); err == nil {
			_ = conn.Close() // nothing was written
			return nil, fmt.Errorf("--admin-addr %s: another process listens there: stop it, or pass another path", addr)
		}
	}
	l, err := listenPrivately(path)
	if err != nil {
		return nil, fmt.Errorf("--admin-addr %s: %w: pass the path of a socket in a folder that this user may write, such as unix:/run/reprise/admin.sock", addr, err)
	}
	return l, nil
}

// localURL returns the URL by which programs on this machine reach l, which listen has
// made.
func localURL(scheme string, l net.Listener) string {
	addr := *l.Addr().(*net.TCPAddr) // listen makes no other
	if addr.IP.IsUnspecified() {
		addr.IP = net.IPv4(127, 0, 0, 1)
	}
	return scheme + "://" + addr.String()
}
