package admin

import (
	"net/http"
	"net/netip"
)

// ClientOf names the client of a request, to bound what one client takes: its address, or of IPv6 the network, of which one
// client has all addresses. All clients of a Unix socket are one.
func ClientOf(r *http.Request) string {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "" // a Unix socket
	}
	bits := 32
	addr := at.Addr().Unmap().WithZone("")
	if !addr.Is4() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // it is valid
	return prefix.String()
}

// Streams bounds replies that do not end: in all, and so that no client takes the places of all others. It needs a lock.
type Streams struct {
	// Most is how many there may be, MostOfOne how many of one client.
	Most, MostOfOne int

	all int
	of  map[string]int // by client
}

// Begin counts a stream, which [Streams.End] follows; false: there are too many.
func (s *Streams) Begin(client string) bool {
	if s.all >= s.Most || s.of[client] >= s.MostOfOne {
		return false
	}
	if s.of == nil {
		s.of = make(map[string]int)
	}
	s.all++
	s.of[client]++
	return true
}

// End counts the end of a stream.
func (s *Streams) End(client string) {
	s.all--
	if s.of[client]--; s.of[client] == 0 {
		delete(s.of, client)
	}
}
