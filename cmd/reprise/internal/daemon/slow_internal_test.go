package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// pipes is a listener whose connections have no buffer, so that who does not read
// holds up who writes, and time can be virtual.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accepted <- server
	return client
}

// drip writes text and then a byte every second, and returns the reply and how long the
// connection lasted.
func drip(conn net.Conn, text string) (answer string, lasted time.Duration) {
	begin := time.Now()
	answered := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(conn) // the connection is cut in the end
		answered <- string(all)
	}()
	_, err := io.WriteString(conn, text)
	for err == nil {
		time.Sleep(time.Second)
		_, err = conn.Write([]byte("x"))
	}
	return <-answered, time.Since(begin)
}

// Connections of clients that are slow, or that do not read, are closed after a time, and have
// no effect: half a request sends no message, and the messages of a reply that the client does
// not read are visible again.
func TestSlowClients(t *testing.T) {
	const header = "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.%s\r\n"
	visible := func(t *testing.T, s *sqsserver.Server) (visible, inFlight int) {
		t.Helper()
		q := s.Queues()[0]
		return q.Visible, q.InFlight
	}
	for _, test := range []struct {
		name   string
		attack func(t *testing.T, conn net.Conn, s *sqsserver.Server)
	}{
		{"header", func(t *testing.T, conn net.Conn, _ *sqsserver.Server) {
			answer, lasted := drip(conn, fmt.Sprintf(header, "SendMessage")+"X-Slow: ")
			if answer != "" || lasted > readHeaderTimeout+2*time.Second {
				t.Errorf("answered %q after %v, want to be cut after %v", answer, lasted, readHeaderTimeout)
			}
		}},
		{"body", func(t *testing.T, conn net.Conn, _ *sqsserver.Server) {
			answer, lasted := drip(conn, fmt.Sprintf(header, "SendMessage")+"Content-Length: 1000\r\n\r\n"+`{"QueueUrl":"q","MessageBody":"x"}`)
			if answer != "" || lasted > readTimeout+2*time.Second {
				t.Errorf("answered %q after %v, want to be cut after %v", answer, lasted, readTimeout)
			}
		}},
		{"reply of a receive", func(t *testing.T, conn net.Conn, s *sqsserver.Server) {
			const body = `{"QueueUrl":"q","MaxNumberOfMessages":10,"VisibilityTimeout":43200}`
			if _, err := fmt.Fprintf(conn, header+"Content-Length: %d\r\n\r\n%s", "ReceiveMessage", len(body), body); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n, inFlight := visible(t, s); n != 0 || inFlight != 10 {
				t.Fatalf("%d messages visible and %d in flight, want all received", n, inFlight)
			}
			time.Sleep(writeTimeout + time.Second)
			synctest.Wait()
		}},
		{"reply of a long poll", func(t *testing.T, conn net.Conn, s *sqsserver.Server) {
			const receive = `{"QueueUrl":"q","MaxNumberOfMessages":10,"VisibilityTimeout":43200}`
			held, err := s.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "q", MaxNumberOfMessages: sqsserver.Int(10)})
			if err != nil {
				t.Fatal(err)
			}
			body := strings.Replace(receive, "}", `,"WaitTimeSeconds":20}`, 1)
			if _, err := fmt.Fprintf(conn, header+"Content-Length: %d\r\n\r\n%s", "ReceiveMessage", len(body), body); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			for i := range held.Messages {
				err := s.ChangeMessageVisibility(t.Context(), &sqsserver.ChangeMessageVisibilityInput{
					QueueUrl: "q", ReceiptHandle: held.Messages[i].ReceiptHandle, VisibilityTimeout: sqsserver.Int(0)})
				if err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(writeTimeout + time.Second)
			synctest.Wait()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sqsserver.New(sqsserver.Config{Logger: slog.New(slog.DiscardHandler)})
				defer s.Close()
				if _, err := s.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					in := &sqsserver.SendMessageInput{QueueUrl: "q"}
					in.MessageBody = fmt.Sprint(i)
					if _, err := s.SendMessage(t.Context(), in); err != nil {
						t.Fatal(err)
					}
				}
				l := pipes{make(chan net.Conn), make(chan struct{})}
				var open int
				server := newHTTPServer(s, slog.New(slog.DiscardHandler))
				server.ConnState = func(_ net.Conn, state http.ConnState) {
					switch state {
					case http.StateNew:
						open++
					case http.StateClosed:
						open--
					}
				}
				served := make(chan error, 1)
				go func() { served <- server.Serve(l) }()

				test.attack(t, l.dial(), s)
				synctest.Wait()
				if open != 0 {
					t.Error("the connection is still open")
				}
				if n, inFlight := visible(t, s); n != 10 || inFlight != 0 {
					t.Errorf("%d messages visible and %d in flight, want the 10 that were there", n, inFlight)
				}
				if err := server.Close(); err != nil {
					t.Error(err)
				}
				<-served
			})
		})
	}
}
