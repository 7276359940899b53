package sqsserver_test

import (
	"net"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

func TestIsLoopbackName(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "localhost.": true, "sqs.us-east-1.localhost": true,
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,

		"": false, ".": false, "reprise": false, "example.com": false, "localhost.example.com": false, "notlocalhost": false,
		"localhost:80": false, "[::1]": false, "127.0.0.1.example.com": false, "127.1": false,
		"0.0.0.0": false, "::": false, "10.0.0.1": false, "169.254.169.254": false, "::1%eth0": false,
	} {
		if got := sqsserver.IsLoopbackName(host); got != want {
			t.Errorf("IsLoopbackName(%q) = %v", host, got)
		}
	}
}

func TestIsLoopbackAddr(t *testing.T) {
	for _, test := range []struct {
		addr net.Addr
		want bool
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, true},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 1}, true},
		{text("127.0.0.1:1"), true},
		{text("[::ffff:127.0.0.1]:1"), true},
		{text("[::1%lo]:1"), true}, // the address of a connection, not a text from a browser

		{nil, false},
		{&net.TCPAddr{Port: 1}, false}, // all addresses of the machine
		{&net.TCPAddr{IP: net.IPv4zero, Port: 1}, false},
		{&net.TCPAddr{IP: net.IPv4(192, 168, 1, 7), Port: 1}, false},
		{&net.UnixAddr{Name: "/run/reprise.sock", Net: "unix"}, false},
		{text("localhost:1"), false},
		{text("10.0.0.1:1"), false},
	} {
		if got := sqsserver.IsLoopbackAddr(test.addr); got != test.want {
			t.Errorf("IsLoopbackAddr(%v) = %v", test.addr, got)
		}
	}
}

// text is an address of another kind than the net package's.
type text string

func (text) Network() string  { return "pipe" }
func (a text) String() string { return string(a) }
