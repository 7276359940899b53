package journal

import (
	"errors"
	"fmt"
)

// Report is what a journal contains.
type Report struct {
	Format int // of the directory

	// Kinds are the keys by their first byte, in ascending order.
	Kinds []Kind

	// DiskBytes is the size of the files.
	DiskBytes uint64
}

// Kind counts the keys that begin with the same byte.
type Kind struct {
	Prefix byte
	Keys   int
	Bytes  int64 // of keys and values
}

// Check reads every record of the journal o.Dir, each with its checksum. It changes nothing; no
// other process may have the journal open. It does not know what the records mean: to check that,
// open the journal with ReadOnly and Scan it. The error is about the first damage found.
func Check(o Options) (Report, error) {
	o.ReadOnly = true
	j, err := Open(o)
	if err != nil {
		return Report{}, err
	}
	report := Report{Format: Format, DiskBytes: j.db.Metrics().DiskSpaceUsage()}
	err = j.Scan(nil, report.add)
	return report, errors.Join(err, j.Close())
}

func (r *Report) add(key, value []byte) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: a key is empty", errDamaged)
	}
	if n := len(r.Kinds); n == 0 || r.Kinds[n-1].Prefix != key[0] {
		r.Kinds = append(r.Kinds, Kind{Prefix: key[0]})
	}
	kind := &r.Kinds[len(r.Kinds)-1]
	kind.Keys++
	kind.Bytes += int64(len(key) + len(value))
	return nil
}
