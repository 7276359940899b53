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

// drain does nothing: on this system a pipe cannot be read without waiting.
func (o *output) drain() {}
