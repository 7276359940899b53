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
