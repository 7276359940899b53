package journal

// WithMemTable returns o with tables in memory of that size, so that tests need not
// fill large ones.
func WithMemTable(o Options, bytes int64) Options {
	o.memTable = bytes
	return o
}

// Tables returns the first and the last key of every table.
func Tables(j *Journal) (keys [][2][]byte, err error) {
	levels, err := j.db.SSTables()
	for _, tables := range levels {
		for _, t := range tables {
			keys = append(keys, [2][]byte{t.Smallest.UserKey, t.Largest.UserKey})
		}
	}
	return keys, err
}

// Flushed reports whether all but the table in memory that is being filled is on disk.
func Flushed(j *Journal) bool {
	m := j.db.Metrics()
	return m.MemTable.Count == 1 && m.Flush.NumInProgress == 0
}

// Listed reports whether SYNCED is not being written.
func Listed(j *Journal) bool {
	if j.guard.listing.Load() || !j.guard.logsMu.TryLock() {
		return false
	}
	defer j.guard.logsMu.Unlock()
	return true
}

// Compacted reports whether no tables are being rewritten.
func Compacted(j *Journal) bool { return j.db.Metrics().Compact.NumInProgress == 0 }
