package sqsserver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of tags.
const (
	maxTags     = 50
	maxTagKey   = 128 // characters
	maxTagValue = 256
)

// TagQueue adds tags to a queue.
func (s *Server) TagQueue(ctx context.Context, in *TagQueueInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionTagQueue)
	if err != nil {
		return err
	}
	if len(in.Tags) == 0 {
		return errMissingParameter("Tags")
	}
	if len(in.Tags) > maxTags { // under the lock others would wait for the copy
		return errTooManyTags(r.queue.name)
	}
	if err := s.checkSpace(); err != nil {
		return err
	}
	return s.changeTags(ctx, r, func(tags map[string]string) { maps.Copy(tags, in.Tags) })
}

// UntagQueue removes tags from a queue.
func (s *Server) UntagQueue(ctx context.Context, in *UntagQueueInput) error {
	r, err := s.lookup(ctx, in.QueueUrl, actionUntagQueue)
	if err != nil {
		return err
	}
	if len(in.TagKeys) == 0 || slices.ContainsFunc(in.TagKeys, func(key string) bool { return !validTagKeyLength(key) }) {
		return errTagKeyLength()
	}
	return s.changeTags(ctx, r, func(tags map[string]string) {
		for _, key := range in.TagKeys {
			delete(tags, key)
		}
	})
}

// changeTags changes the tags of a queue, unless they would not be valid.
func (s *Server) changeTags(ctx context.Context, r request, change func(tags map[string]string)) error {
	return s.change(ctx, r, func(time.Time) error {
		tags := make(map[string]string)
		maps.Copy(tags, r.queue.tags)
		change(tags)
		if err := checkTags(r.queue.name, tags); err != nil || maps.Equal(tags, r.queue.tags) {
			return err
		}
		r.queue.tags = tags
		s.recordQueue(r.queue)
		return nil
	})
}

// ListQueueTags returns the tags of a queue.
func (s *Server) ListQueueTags(ctx context.Context, in *ListQueueTagsInput) (*ListQueueTagsOutput, error) {
	r, err := s.lookup(ctx, in.QueueUrl, actionListQueueTags)
	if err != nil {
		return nil, err
	}
	var tags map[string]string
	if err := s.underLock(r.queue, func(time.Time) { tags = maps.Clone(r.queue.tags) }); err != nil {
		return nil, err
	}
	return &ListQueueTagsOutput{Tags: tags}, r.delayOrLose(ctx)
}

// checkTags checks all tags that a queue is to have.
func checkTags(queue string, tags map[string]string) error {
	if len(tags) > maxTags {
		return errTooManyTags(queue)
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) { // the same error each time
		value := tags[key]
		if !validTagKeyLength(key) {
			return errTagKeyLength()
		}
		if !validTagText(key, maxTagKey) || strings.HasPrefix(strings.ToLower(key), "aws:") {
			return errTagKey(key)
		}
		if !validTagText(value, maxTagValue) {
			return errTagValue(value)
		}
	}
	return nil
}

func validTagKeyLength(key string) bool {
	return key != "" && utf8.RuneCountInString(key) <= maxTagKey
}

// validTagText reports whether text consists of letters, digits and spaces of any script and
// some punctuation.
func validTagText(text string, limit int) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > limit {
		return false
	}
	for _, c := range text {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsSpace(c) && !strings.ContainsRune("_.:/=+-@", c) {
			return false
		}
	}
	return true
}
