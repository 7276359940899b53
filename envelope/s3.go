package envelope

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxS3Records is how many records an event may have. S3 sends one: without a bound a
// message of 1 MiB could take fifty times as much memory.
const maxS3Records = 1000

// S3 is the [Decoder] of [S3 event notifications]. They have no inner body, so the body is
// unchanged, with all its records; the Envelope describes the first record, which in practice is
// the only one. The ID consists of the fields that distinguish events of a bucket: name, key,
// version and sequencer, or the request's id if S3 sends no sequencer.
//
// The test event, which S3 sends when notifications are set up, contains no work: it is deleted.
//
// [S3 event notifications]: https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html
func S3(body string) (*Envelope, error) {
	if o, ok := parse(body, "Service", "Event", "Bucket"); ok && o.text("Event") == "s3:TestEvent" {
		return &Envelope{Kind: "s3", Source: o.text("Bucket"), Type: "s3:TestEvent", Nothing: true}, nil
	}
	if !strings.Contains(body, "aws:s3") {
		return nil, nil
	}
	o, ok := parse(body, "Records")
	if !ok {
		return nil, nil
	}
	if n := elements(o.members["Records"], maxS3Records); n > maxS3Records {
		return nil, fmt.Errorf("S3 event: it has more than %d records, and S3 sends one", maxS3Records)
	}
	var records []s3Record
	err := json.Unmarshal([]byte(o.members["Records"]), &records)
	if len(records) == 0 || records[0].EventSource != "aws:s3" {
		return nil, nil // anything but a list of S3's records is not an S3 event, even if it is invalid
	}
	if err != nil {
		return nil, fmt.Errorf("S3 event: %w", err)
	}
	ids := make([]string, len(records))
	for i, r := range records {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("S3 event: record %d: %w", i, err)
		}
		ids[i] = r.id()
	}
	first := records[0]
	e := &Envelope{Kind: "s3", Source: first.S3.Bucket.Name, Type: first.EventName, Body: body}
	if !slices.Contains(ids, "") {
		e.ID = strings.Join(ids, " ")
	}
	if e.Time, err = time.Parse(time.RFC3339, first.EventTime); err != nil {
		return nil, fmt.Errorf("S3 event: the event's time: %w", err)
	}
	if e.Subject, err = url.QueryUnescape(first.S3.Object.Key); err != nil {
		return nil, fmt.Errorf("S3 event: the object's key %q: %w", first.S3.Object.Key, err)
	}
	return e, nil
}

// s3Record has the fields that are read from a record.
type s3Record struct {
	EventSource      string            `json:"eventSource"`
	EventVersion     string            `json:"eventVersion"`
	EventName        string            `json:"eventName"`
	EventTime        string            `json:"eventTime"`
	ResponseElements map[string]string `json:"responseElements"`
	S3               struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key       string `json:"key"` // encoded as in a URL's query
			VersionID string `json:"versionId"`
			Sequencer string `json:"sequencer"`
		} `json:"object"`
	} `json:"s3"`
}

func (r *s3Record) check() error {
	// The documentation recommends to compare the major version.
	if major, _, _ := strings.Cut(r.EventVersion, "."); major != "2" {
		return fmt.Errorf(`"eventVersion" is %q, and only 2 can be read`, r.EventVersion)
	}
	if r.EventName == "" || r.S3.Bucket.Name == "" || r.S3.Object.Key == "" {
		return errors.New("the event's name, the bucket or the object's key is missing")
	}
	return nil
}

// id distinguishes the event from others of its bucket; "" if that is impossible. None of the parts
// contains a space.
func (r *s3Record) id() string {
	last := cmp.Or(r.S3.Object.Sequencer, r.ResponseElements["x-amz-request-id"])
	if last == "" {
		return ""
	}
	return r.EventName + " " + r.S3.Object.Key + " " + r.S3.Object.VersionID + " " + last
}
