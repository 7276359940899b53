package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Pebble's log is a sequence of blocks, and each block of chunks: a header and a part of a batch.
// The header has a checksum (4 bytes) of all that follows it, the length of the part (2), the
// kind of the chunk (1), the number of the log (4), and, in all logs but the first, 8 bytes that
// only Pebble's own reader uses. A chunk is never split between blocks. See the formats in
// pebble/record.
//
// A batch begins with 12 bytes of its own, followed by the stamp that Commit puts first.
const (
	logBlock = 32 << 10

	shortHeader = 11 // of the first log, with kinds of its own
	longHeader  = 19
	shortKinds  = 5
	longKinds   = 9
	endOfKinds  = 13

	batchHeader = 12
	stampLen    = 16
)

// part is the part of a batch that a chunk has: the chunk's kind minus the format's first kind.
type part byte

const (
	wholeBatch part = iota
	firstPart
	middlePart
	lastPart
)

func (p part) begins() bool { return p == wholeBatch || p == firstPart }
func (p part) ends() bool   { return p == wholeBatch || p == lastPart }

// stamp is the first thing in every batch of the log: the batch's number, counted since the
// journal was opened, and the last batch that had been synced before.
type stamp struct{ batch, synced uint64 }

func (s stamp) encode() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, s.batch), s.synced)
}

// stampOf returns the stamp of the batch that begins with data.
func stampOf(data []byte) (s stamp, ok bool) {
	const begin = batchHeader + 2
	if len(data) < begin+stampLen || data[batchHeader] != byte(pebble.InternalKeyKindLogData) ||
		data[batchHeader+1] != stampLen {
		return stamp{}, false
	}
	data = data[begin:]
	return stamp{binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])}, true
}

// checkLogTail fails if the newest log is damaged before its end.
//
// After a crash a log ends where the first chunk does not match its checksum: what follows was
// not written in full, so it was never acknowledged. A byte that the disk changed looks the same,
// but ending the log there would lose acknowledged batches. Pebble can distinguish the two only
// if a later block records how far the log was synced, and in version 2.1 that misses all blocks
// that were written full. So each batch has a stamp, and checkLogTail searches behind the end for
// a stamp that proves that the damaged part had been synced. Damage of the very last batch cannot
// be told from a crash that came while it was written: it is left out, and logger is told.
func checkLogTail(fs vfs.FS, dir string, logger *slog.Logger) error {
	name, number, err := newestLog(fs, dir)
	if err != nil || name == "" {
		return err
	}
	file, err := fs.Open(fs.PathJoin(dir, name))
	if err != nil {
		return err
	}
	end, err := checkLog(file, uint32(number&math.MaxUint32)) // Pebble writes 4 bytes of it
	if lost := end.lost(); err == nil && lost > 0 {
		logger.Warn("the end of the newest log cannot be read and is left out: a crash came before it was acknowledged, or the disk has lost it since",
			"file", fs.PathJoin(dir, name), "from_byte", end.complete, "batches", lost)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", fs.PathJoin(dir, name), err)
	}
	return errors.Join(err, file.Close())
}

// newestLog returns the log that Pebble was writing, if any. Pebble itself reports damage of
// earlier logs, which were closed.
func newestLog(fs vfs.FS, dir string) (newest string, number uint64, err error) {
	names, err := fs.List(dir)
	if err != nil {
		return "", 0, err
	}
	for _, name := range names {
		digits, isLog := strings.CutSuffix(name, ".log")
		if n, err := strconv.ParseUint(digits, 10, 64); isLog && err == nil && n >= number {
			newest, number = name, n
		}
	}
	return newest, number, nil
}

// logEnd is where a log ends, or seems to.
type logEnd struct {
	found  bool
	offset int64
	batch  uint64 // the last complete one; 0: none

	complete   int64  // bytes, up to the end of that batch
	incomplete bool   // there is a part of a later batch
	last       uint64 // the last batch that is known to have begun
}

// lost is how many batches have begun and are not complete, as far as is known.
func (e *logEnd) lost() uint64 {
	if !e.incomplete {
		return 0
	}
	return max(1, e.last-min(e.last, e.batch))
}

func checkLog(r io.Reader, log uint32) (end logEnd, err error) {
	block := make([]byte, logBlock)
	for start := int64(0); ; start += logBlock {
		n, err := io.ReadFull(r, block)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return end, err
		}
		rest := block[:n]
		for !end.found && len(rest) >= shortHeader && !zero(rest) {
			size, part, data := chunk(rest, log)
			if size == 0 {
				end.found, end.offset = true, start+int64(n-len(rest))
				end.incomplete = end.incomplete || isOf(rest, log)
				break
			}
			if s, ok := stampOf(data); ok && part.begins() {
				end.last = s.batch
			}
			rest = rest[size:]
			end.incomplete = !part.ends()
			if part.ends() {
				end.batch, end.complete = end.last, start+int64(n-len(rest))
			}
		}
		if end.found {
			if err := end.check(rest, log); err != nil {
				return end, err
			}
		}
		if n < logBlock {
			// Fewer bytes than a header has, and no padding, as the file ends in the midst of a block.
			end.incomplete = end.incomplete || !end.found && len(rest) > 0 && len(rest) < shortHeader && !zero(rest)
			return end, nil
		}
	}
}

// isOf reports whether the chunk at the beginning of rest, which cannot be read, is one of that log and not of
// the log that had the file before.
func isOf(rest []byte, log uint32) bool {
	if binary.LittleEndian.Uint32(rest[7:]) == log {
		return true
	}
	mended := slices.Clone(rest)
	binary.LittleEndian.PutUint32(mended[7:], log)
	size, _, _ := chunk(mended, log)
	return size > 0 // its number alone was changed
}

// check fails if a batch in rest, the bytes behind the end, proves that a missing batch had been
// synced. It tries every byte, because the length of a damaged chunk cannot be trusted.
func (e *logEnd) check(rest []byte, log uint32) error {
	for at := range rest {
		size, part, data := chunk(rest[at:], log)
		if size == 0 || !part.begins() {
			continue
		}
		s, ok := stampOf(data)
		// If there is no batch before the end, the missing batches are only known to come before
		// the one that was found.
		if ok && (e.batch > 0 && s.synced > e.batch || e.batch == 0 && s.synced == s.batch-1) {
			return fmt.Errorf("%w at byte %d: batches up to %d had been synced, and those from %d on cannot be read",
				errDamaged, e.offset, s.synced, e.batch+1)
		}
		e.incomplete, e.last = true, max(e.last, s.batch)
	}
	return nil
}

// chunk returns the size of the chunk of that log at the beginning of rest, 0 if there is none,
// and its part of a batch.
func chunk(rest []byte, log uint32) (size int, p part, data []byte) {
	if len(rest) < shortHeader {
		return 0, 0, nil
	}
	kind, header := rest[6], shortHeader
	switch {
	case kind < shortKinds || kind >= endOfKinds:
		return 0, 0, nil
	case kind < longKinds:
		p = part(kind - shortKinds)
	default:
		p, header = part(kind-longKinds), longHeader
	}
	size = header + int(binary.LittleEndian.Uint16(rest[4:]))
	if size > len(rest) || binary.LittleEndian.Uint32(rest[7:]) != log ||
		binary.LittleEndian.Uint32(rest) != logChecksum(rest[6:size]) {
		return 0, 0, nil
	}
	return size, p, rest[header:size]
}

// zero reports whether rest is the padding of a block, too short for a chunk: the next chunk is
// in the next block.
func zero(rest []byte) bool {
	return len(rest) < longHeader && !slices.ContainsFunc(rest, func(b byte) bool { return b != 0 })
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// logChecksum is CRC-32C, masked as LevelDB does.
func logChecksum(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
