package failures_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

var grpcFailures = []failure{
	{"gRPC", "the server is stopped", "code = Unavailable desc = connection error", true, func(t *testing.T) error {
		return check(t, t.Context(), closedAddr(t), "")
	}},
	{"gRPC", "the server stops during the call", "code = Unavailable desc = error reading from server", true, func(t *testing.T) error {
		var srv *grpc.Server
		srv, addr := health(t, func(ctx context.Context) error {
			go srv.Stop()
			<-ctx.Done()
			return ctx.Err()
		})
		return check(t, t.Context(), addr, "")
	}},
	{"gRPC", "no answer before the deadline", "code = DeadlineExceeded", true, func(t *testing.T) error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, addr := health(t, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		return check(t, ctx, addr, "")
	}},
	{"gRPC", "`Unavailable`", "code = Unavailable desc = restarting", true, answersStatus(codes.Unavailable, "restarting")},
	{"gRPC", "`ResourceExhausted`", "code = ResourceExhausted desc = quota exceeded", true, answersStatus(codes.ResourceExhausted, "quota exceeded")},
	{"gRPC", "a message that is too large", "code = ResourceExhausted desc = trying to send message larger than max", false, func(t *testing.T) error {
		_, addr := health(t, func(context.Context) error { return nil })
		return check(t, t.Context(), addr, strings.Repeat("a", 2000))
	}},
	{"gRPC", "`NotFound`", "code = NotFound desc = no such order", false, answersStatus(codes.NotFound, "no such order")},
	{"gRPC", "`Internal`", "code = Internal desc = nil pointer", false, answersStatus(codes.Internal, "nil pointer")},
}

// answersStatus calls a method that answers with a status.
func answersStatus(code codes.Code, text string) func(*testing.T) error {
	return func(t *testing.T) error {
		_, addr := health(t, func(context.Context) error { return status.Error(code, text) })
		return check(t, t.Context(), addr, "")
	}
}

// health starts a server of gRPC's health service, which answers by answer.
func health(t *testing.T, answer func(context.Context) error) (*grpc.Server, string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(srv, &service{answer: answer})
	go func() { _ = srv.Serve(listener) }() // Stop ends it
	t.Cleanup(srv.Stop)
	return srv, listener.Addr().String()
}

type service struct {
	grpc_health_v1.UnimplementedHealthServer
	answer func(context.Context) error
}

func (s *service) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return new(grpc_health_v1.HealthCheckResponse), s.answer(ctx)
}

func check(t *testing.T, ctx context.Context, addr, name string) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(1000)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: name})
	return err
}
