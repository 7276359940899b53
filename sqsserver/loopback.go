package sqsserver

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopbackAddr reports whether addr, of a listener or of one end of a connection, is a
// loopback address: then only programs on this machine are at the other end. It returns
// false for nil and for addresses that are not those of TCP.
func IsLoopbackAddr(addr net.Addr) bool {
	switch addr := addr.(type) {
	case nil:
		return false
	case *net.TCPAddr:
		return addr.IP.IsLoopback()
	}
	return isLoopbackAddrPort(addr.String())
}

// IsLoopbackName reports whether host, a name or an address without a port, stands for
// this machine whatever resolves it: a loopback address, localhost, or a name below
// .localhost, about which no name server is asked (RFC 6761). Case and a final dot make
// no difference.
func IsLoopbackName(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return isLoopbackWithoutZone(addr)
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// isLoopbackAddrPort is IsLoopbackAddr for the text of an address with a port, such as
// http.Request.RemoteAddr.
func isLoopbackAddrPort(text string) bool {
	addr, err := netip.ParseAddrPort(text)
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// isLoopbackHost is IsLoopbackName for a Host, which may have a port.
func isLoopbackHost(hostport string) bool {
	// The usual Host of a local client is recognised without allocating.
	if hostport != "" && (hostport[0] == '[' || hostport[0] >= '0' && hostport[0] <= '9') {
		if addr, err := netip.ParseAddrPort(hostport); err == nil {
			return isLoopbackWithoutZone(addr.Addr())
		}
	}
	port, isLocalhost := strings.CutPrefix(hostport, "localhost:")
	if isLocalhost && port != "" && !strings.ContainsFunc(port, func(c rune) bool { return c < '0' || c > '9' }) {
		return true
	}
	host, _, ok := splitHost(hostport)
	return ok && IsLoopbackName(host)
}

// isLoopbackWithoutZone excludes addresses like ::1%eth0, which only texts can contain: programs
// that call this machine name no interface.
func isLoopbackWithoutZone(addr netip.Addr) bool {
	return addr.Zone() == "" && addr.Unmap().IsLoopback()
}
