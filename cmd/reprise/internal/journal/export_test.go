package journal

// WithMemTable returns o with tables in memory of that size, so that tests need not
// fill large ones.
func WithMemTable(o Options, bytes int64) Options {
	o.memTable = bytes
	return o
}
