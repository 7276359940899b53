//go:build !unix

package emulator

// run reads until the pipe ends or is closed.
func (o *output) run() {
	defer close(o.done)
	for {
		n, err := o.file.Read(o.buffer)
		o.mu.Lock()
		o.take(o.buffer[:n])
		if err != nil {
			o.flush()
		}
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// drain does nothing: whether something is written cannot be asked here without
// waiting for it.
func (o *output) drain() {}
