package sqsserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

func appendQueueKey(dst []byte, kind byte, queue uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, kind), queue)
}

func appendMessageKey(dst []byte, queue, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(appendQueueKey(dst, messageKey, queue), sequence)
}

func appendAcceptanceKey(dst []byte, queue, sequence uint64) []byte {
	return binary.BigEndian.AppendUint64(appendQueueKey(dst, acceptanceKey, queue), sequence)
}

func appendBodyKey(dst []byte, sendNumber uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, bodyKey), sendNumber)
}

func appendNameKey(dst []byte, name queueName) []byte {
	dst = append(dst, nameKey)
	dst = append(dst, name.account...)
	dst = append(append(dst, 0), name.region...)
	return append(append(dst, 0), name.name...)
}

func parseNameKey(key []byte) (queueName, error) {
	account, rest, _ := strings.Cut(string(key[1:]), "\x00")
	region, name, found := strings.Cut(rest, "\x00")
	if !found || name == "" {
		return queueName{}, errors.New("its key names no queue")
	}
	return queueName{account: account, region: region, name: name}, nil
}

// following returns the first key that does not begin with the prefix. No prefix
// is all 0xff, for it begins with the kind.
func following(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
}

// parseKey reads the numbers of a key.
func parseKey(key []byte, numbers ...*uint64) error {
	if len(key) != 1+8*len(numbers) {
		return fmt.Errorf("the key has %d bytes, want %d", len(key), 1+8*len(numbers))
	}
	for i, n := range numbers {
		*n = binary.BigEndian.Uint64(key[1+8*i:])
	}
	return nil
}
