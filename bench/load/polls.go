package load

import (
	"bufio"
	"fmt"
	"net"
)

// Polls are long polls that wait at the same time, each on its own connection.
type Polls struct {
	// Answers has the number of messages of every poll that was answered.
	Answers <-chan int

	connections []*connection
}

// OpenPolls starts n polls of 20 seconds. Those that fail are not answered.
func OpenPolls(addr, queueURL string, n int) (*Polls, error) {
	request := newRequests(addr, queueURL).poll
	answers := make(chan int, n)
	p := &Polls{Answers: answers}
	for i := range n {
		conn, err := net.DialTimeout("tcp", addr, callTimeout)
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("load: connection %d of %d: %w", i+1, n, err)
		}
		p.connections = append(p.connections, &connection{addr: addr, conn: conn, replies: bufio.NewReader(conn)})
	}
	for _, c := range p.connections { // all at once, because connecting takes a good part of the 20 seconds
		go func() {
			if got, err := c.receive(request); err == nil {
				answers <- got
			}
		}()
	}
	return p, nil
}

// Close closes the connections, and so ends polls that still wait.
func (p *Polls) Close() {
	for _, c := range p.connections {
		c.conn.Close()
	}
}
