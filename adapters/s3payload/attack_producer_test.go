// The attacker of this file is a producer that may send to one queue. By a pointer that it has
// forged, it must not make a consumer read or delete objects to which the producer has no access,
// nor make the consumer take S3's answer for an outage that stops all other messages.

package s3payload_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const aUUID = "123e4567-e89b-42d3-a456-426614174000"

// TestAttackForgedPointer: an object outside of the configured bucket and prefix is neither read
// nor deleted, and the message is refused for good.
func TestAttackForgedPointer(t *testing.T) {
	for _, at := range []string{
		"secrets/orders/" + aUUID, "payloads/invoices/" + aUUID, "payloads/orders/../invoices/" + aUUID, "payloads/" + aUUID,
		"payloads//orders/" + aUUID, "payloads/orders", "payloads/Orders/" + aUUID, "PAYLOADS/orders/" + aUUID,
		"arn:aws:s3:eu-west-1:1:accesspoint/x/orders/" + aUUID, "payloads/orders/./x", "payloads/orders/..",
	} {
		t.Run(at, func(t *testing.T) {
			store := newStorage()
			store.objects[at] = "secret"
			bucket, key, _ := strings.Cut(at, "/")
			var got *reprise.Message
			m := pointing(bucket, key, len("secret"))
			p := newPayloads(t, store)
			err := p.Fetch(keep(&got)).Handle(t.Context(), m)
			p.Remove(t.Context(), m)
			if err == nil || got != nil || reasonOf(err) != retry.ReasonPermanent || !strings.Contains(err.Error(), "the pointer") {
				t.Errorf("error %v", err)
			}
			if store.count("get")+store.count("delete") > 0 || p.Stats().NotRemoved != 1 {
				t.Errorf("%d objects read, %d deleted", store.count("get"), store.count("delete"))
			}
		})
	}
}

// TestAttackForgedPointerOfAConsumer: the consumer dead-letters such a message with the reason, and
// then deletes no object.
func TestAttackForgedPointerOfAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStorage()
		store.objects["secrets/key"] = "secret"
		p := newPayloads(t, watched{store, t})
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		q.SendMessage(sqsserver.SendMessageEntry{
			MessageBody:       pointing("secrets", "key", 6).Body,
			MessageAttributes: []sqsserver.MessageAttribute{{Name: s3payload.SizeAttribute, DataType: "Number", StringValue: "6"}},
		})
		q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			t.Error("the handler ran")
			return nil
		})), reprise.Config{AfterDelete: p.Remove})
		q.WaitEmpty(time.Minute)
		if story := storyOf(t, dead.Messages()[0]); story.Reason != "permanent" || !strings.Contains(story.Error, "which Config does not permit") {
			t.Errorf("the story is %+v", story)
		}
		if len(store.keys()) != 1 {
			t.Error("the object is gone")
		}
	})
}

// TestAttackNeighbouringFolder: a prefix without a slash at its end permits neither to read nor to delete what is in a folder, or under a
// name, that only begins with it. What libraries write behind the prefix, and what is in its folder, is a payload.
func TestAttackNeighbouringFolder(t *testing.T) {
	for key, permitted := range map[string]bool{
		"orders-payroll/" + aUUID: false, "orders-payroll/august": false, "orders2/" + aUUID: false, "orders-" + aUUID: false, "ordersx" + aUUID: false,
		"orders": false, "orders" + aUUID + "x": false, "orders" + aUUID: true, "orders/" + aUUID: true, "orders/2026/august": true,
	} {
		store := newStorage()
		store.objects["payloads/"+key] = "secret"
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Prefix = "orders" })
		var got *reprise.Message
		m := pointing("payloads", key, len("secret"))
		err := p.Fetch(keep(&got)).Handle(t.Context(), m)
		if (err == nil) != permitted || permitted != (got != nil && got.Body == "secret") {
			t.Errorf("%s is read: %v, %v; permitted: %t", key, got, err, permitted)
		}
		p.Remove(t.Context(), m)
		if gone := len(store.keys()) == 0; gone != permitted {
			t.Errorf("%s is removed: %t; permitted: %t", key, gone, permitted)
		}
	}
}

// TestAttackDeleteByGuess: in a bucket without a prefix for payloads, an object whose name can be
// guessed is not deleted, and one with the name of a payload is. Under a prefix every object is a
// payload, and is deleted.
func TestAttackDeleteByGuess(t *testing.T) {
	for _, test := range []struct {
		prefix, key string
		goes        bool
	}{
		{"", "backups/2026-11-23.sql", false},
		{"", "index.html", false},
		{"", aUUID[:35] + "g", false},
		{"", "x", false},
		{"", strings.ReplaceAll(aUUID, "-", "0"), false},
		{"", aUUID, true},
		{"", "team/" + strings.ToUpper(aUUID), true},
		{"orders/", "orders/of-its-sender", true},
	} {
		store := newStorage()
		store.objects["payloads/"+test.key] = "x"
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Prefix = test.prefix })
		p.Remove(t.Context(), pointing("payloads", test.key, 1))
		if gone := len(store.keys()) == 0; gone != test.goes || p.Stats().NotRemoved == 1 == test.goes {
			t.Errorf("prefix %q, key %q: gone %v, want %v", test.prefix, test.key, gone, test.goes)
		}
	}
}

// TestAttackSizeOfAnObject: Config limits how much is read and held, whatever the message or the
// reply says.
func TestAttackSizeOfAnObject(t *testing.T) {
	for _, said := range []string{"1001", "9223372036854775807", "99999999999999999999", "1e9", "5"} {
		store := newStorage()
		store.objects["payloads/orders/1"] = strings.Repeat("x", 1<<20)
		store.unsized = true
		p := newPayloads(t, store, func(c *s3payload.Config) { c.MaxSize = 1000 })
		m := pointing("payloads", "orders/1", 0)
		m.Attributes = map[string]types.MessageAttributeValue{s3payload.SizeAttribute: number(said)}
		var got *reprise.Message
		err := p.Fetch(keep(&got)).Handle(t.Context(), m)
		if err == nil || got != nil || reasonOf(err) != retry.ReasonPermanent || len(err.Error()) > 500 {
			t.Errorf("of %s bytes: %v", said, err)
		}
	}
}

// TestAttackNestedPointer: an object that is a pointer itself is not followed.
func TestAttackNestedPointer(t *testing.T) {
	store := newStorage()
	inner := pointing("secrets", "key", 6)
	store.objects["secrets/key"] = "secret"
	store.objects["payloads/orders/1"] = inner.Body
	p := newPayloads(t, watched{store, t})
	var got *reprise.Message
	if err := p.Fetch(p.Fetch(keep(&got))).Handle(t.Context(), pointing("payloads", "orders/1", len(inner.Body))); err != nil || got.Body != inner.Body {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestAttackPointersThatLookLikeAnOutage: an answer of S3 about one object, which a forged pointer
// can provoke, fails that message alone. Only answers that every object would get count as
// unavailable.
func TestAttackPointersThatLookLikeAnOutage(t *testing.T) {
	const permanent, plain, unavailable = "permanent", "plain", "unavailable"
	for _, tt := range []struct {
		status int
		code   string // without one the reply has no body
		want   string
	}{
		{404, "NoSuchKey", permanent},
		{403, "InvalidObjectState", permanent},
		{403, "AccessDenied", plain},
		{400, "InvalidURI", plain},
		{400, "InvalidRequest", plain},
		{400, "KeyTooLongError", plain},
		{400, "InvalidArgument", plain},
		{400, "KMS.DisabledException", plain},
		{405, "MethodNotAllowed", plain},
		{400, "CodeOfTheFuture", plain},
		{400, "", plain},
		{403, "", plain},
		{414, "", plain},

		{404, "NoSuchBucket", unavailable},
		{400, "InvalidBucketName", unavailable},
		{301, "PermanentRedirect", unavailable},
		{400, "AuthorizationHeaderMalformed", unavailable},
		{400, "ExpiredToken", unavailable},
		{400, "InvalidToken", unavailable},
		{403, "InvalidAccessKeyId", unavailable},
		{403, "SignatureDoesNotMatch", unavailable},
		{403, "RequestTimeTooSkewed", unavailable},
		{403, "AllAccessDisabled", unavailable},
		{403, "AccountProblem", unavailable},
		{400, "RequestTimeout", unavailable},
		{400, "ThrottlingException", unavailable},
		{400, "KMS.ThrottlingException", unavailable},
		{400, "RequestLimitExceeded", unavailable},
		{408, "", unavailable},
		{429, "", unavailable},
		{503, "SlowDown", unavailable},
		{500, "InternalError", unavailable},
		{502, "", unavailable},
	} {
		t.Run(fmt.Sprint(tt.status, tt.code), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				if tt.code != "" {
					fmt.Fprintf(w, "<Error><Code>%s</Code><Message>so S3 says</Message></Error>", tt.code)
				}
			}))
			defer server.Close()
			client := s3.New(s3.Options{
				Region: "us-east-1", BaseEndpoint: aws.String(server.URL), UsePathStyle: true, Retryer: aws.NopRetryer{},
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
				}),
			})
			var got *reprise.Message
			err := newPayloads(t, client).Fetch(keep(&got)).Handle(t.Context(), pointing("payloads", "orders/1", 5))
			if err == nil || got != nil || !strings.Contains(err.Error(), tt.code) {
				t.Fatalf("error %v, want one of %s", err, tt.code)
			}
			is := plain
			switch {
			case reasonOf(err) == retry.ReasonPermanent:
				is = permanent
			case reprise.IsUnavailable(err):
				is = unavailable
			}
			if is != tt.want {
				t.Errorf("%v: %s, want %s", err, is, tt.want)
			}
		})
	}
}

// denying answers like S3 for an object that does not exist, to a role without s3:ListBucket or for
// a key that S3 refuses.
type denying struct {
	*storage
	code string
}

func (d denying) GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	d.mu.Lock()
	_, ok := d.objects[*in.Bucket+"/"+*in.Key]
	d.mu.Unlock()
	if !ok {
		return nil, reply(d.code, smithy.FaultClient)
	}
	return d.storage.GetObject(ctx, in, opts...)
}

// TestAttackForgedPointersOpenNoBreaker: 25 pointers to objects that do not exist delay no other
// messages, and each is retried and dead-lettered with S3's answer.
func TestAttackForgedPointersOpenNoBreaker(t *testing.T) {
	for _, code := range []string{"AccessDenied", "InvalidURI", "InvalidRequest", "KeyTooLongError"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const forged, good = 25, 10
				store := newStorage()
				p := newPayloads(t, denying{store, code})
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(1000)
				for i := range forged {
					q.SendMessage(sqsserver.SendMessageEntry{
						MessageBody:       pointing("payloads", fmt.Sprint("orders/", i), 5).Body,
						MessageAttributes: []sqsserver.MessageAttribute{{Name: s3payload.SizeAttribute, DataType: "Number", StringValue: "5"}},
					})
				}
				handled := make(chan struct{}, good)
				c := q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					handled <- struct{}{}
					return nil
				})), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3}})
				time.Sleep(5 * time.Second)
				if got := c.Status(); got.Counts.Retried != forged || len(got.Breakers) > 0 {
					t.Errorf("%d retried, want %d; breakers %+v, want none", got.Counts.Retried, forged, got.Breakers)
				}
				sender := newSender(t, q)
				for i := range good {
					if _, err := p.Send(t.Context(), sender, reprise.Outgoing{Body: strings.Repeat("order ", 100)}); err != nil {
						t.Fatal(err)
					}
					select {
					case <-handled:
					case <-time.After(5 * time.Second):
						t.Fatalf("good message %d waits; breakers %+v", i, c.Status().Breakers)
					}
				}
				q.WaitEmpty(time.Hour)
				letters := dead.Messages()
				if len(letters) != forged {
					t.Fatalf("%d dead letters, want %d", len(letters), forged)
				}
				for _, letter := range letters {
					if story := storyOf(t, letter); story.Attempts != 3 || !strings.Contains(story.Error, code) {
						t.Errorf("the story is %+v", story)
					}
				}
			})
		})
	}
}
