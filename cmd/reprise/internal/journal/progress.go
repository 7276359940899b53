package journal

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// progress is how far a file was written and synced, which Pebble does in turn. A nil one notes nothing.
type progress struct {
	mu                       sync.Mutex
	writing, written, synced syncedPart
	first, last              []byte // of a table: its ends, as far as it was written
	table                    bool
}

// write notes data that is about to be written: the file system may change it.
func (p *progress) write(data []byte) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.table {
		p.writing = p.written.extend(data)
		return
	}
	p.writing.bytes += int64(len(data))
	p.first = append(p.first, data[:min(len(data), endBytes-len(p.first))]...)
	data = data[max(0, len(data)-endBytes):]
	p.last = append(slices.Delete(p.last, 0, max(0, len(p.last)+len(data)-endBytes)), data...)
}

// wrote notes that the data was written.
func (p *progress) wrote() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = p.writing
}

// sync returns what a sync that begins now will have on disk.
func (p *progress) sync() (part syncedPart) {
	if p == nil {
		return part
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	part = p.written
	if p.table {
		part.checksum = syncedPart{}.extend(p.first).extend(p.last).checksum
	}
	return part
}

// didSync notes that the sync has succeeded.
func (p *progress) didSync(part syncedPart) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.synced = part
}

func (p *progress) part() (part syncedPart, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.synced, p.synced.bytes > 0
}

// resume begins with what the files of the directory say.
func (g *guard) resume(logs []string, synced syncedParts) {
	g.logs = logs
	for file, part := range synced {
		g.synced[file] = part
		if strings.HasPrefix(file, manifestPrefix) {
			g.manifest = file
		}
	}
}

// follow returns the progress of a file that was made: nil for files that SYNCED does not list.
func (g *guard) follow(name string) *progress {
	name = g.FS.PathBase(name)
	if !isListed(name) {
		return nil
	}
	g.progressMu.Lock()
	defer g.progressMu.Unlock()
	p := &progress{table: isTable(name)}
	g.progress[name] = p
	return p
}

// forget removes a file from the list before another is made with its name: Pebble may use the number of a file
// again that it has removed.
func (g *guard) forget(name string) {
	name = g.FS.PathBase(name)
	g.progressMu.Lock()
	_, listed := g.synced[name]
	delete(g.progress, name)
	delete(g.synced, name)
	delete(g.gone, name)
	g.progressMu.Unlock()
	if listed {
		g.logsMu.Lock()
		defer g.logsMu.Unlock()
		g.saveSynced()
	}
}

// removed notes that a file is no longer needed. The list may keep it until it is written anew.
func (g *guard) removed(name string) {
	g.progressMu.Lock()
	defer g.progressMu.Unlock()
	name = g.FS.PathBase(name)
	delete(g.progress, name)
	if _, listed := g.synced[name]; listed {
		g.gone[name] = true
	}
}

// selected notes the marker of a manifest, which is on disk.
func (g *guard) selected(marker string) {
	if manifest := selectedManifest([]string{g.FS.PathBase(marker)}); manifest != "" {
		g.progressMu.Lock()
		defer g.progressMu.Unlock()
		g.manifest = manifest
	}
}

// committed lists anew what is synced if the newest log has twice as many batches as when it was listed.
func (g *guard) committed() {
	if n := g.batches.Add(1); n&(n-1) == 0 {
		g.listSoon()
	}
}

// listSoon lists what is synced in the background: commits do not wait for it.
func (g *guard) listSoon() {
	if g.listing.Swap(true) {
		return
	}
	go func() {
		g.logsMu.Lock()
		defer g.logsMu.Unlock()
		g.listing.Store(false) // before the list is made: what comes later is listed once more
		if !g.ended {
			g.saveSynced()
		}
	}()
}

// closed lists what is synced when nothing more will be written.
func (g *guard) closed() {
	g.logsMu.Lock()
	defer g.logsMu.Unlock()
	g.saveSynced()
}

// end waits for a list that is being written, and prevents others: the directory may be another process's soon.
func (g *guard) end() {
	g.logsMu.Lock()
	defer g.logsMu.Unlock()
	g.ended = true
}

// saveSynced lists what is synced. The caller holds logsMu.
func (g *guard) saveSynced() {
	g.progressMu.Lock()
	parts := make(syncedParts)
	add := func(file string, part syncedPart) {
		if isTable(file) && !g.gone[file] || file == g.manifest || slices.Contains(g.logs, file) {
			parts[file] = part
		}
	}
	for file, part := range g.synced {
		add(file, part)
	}
	for file, p := range g.progress {
		if part, known := p.part(); known {
			add(file, part)
		}
	}
	text := parts.text()
	g.synced = parts
	clear(g.gone)
	g.progressMu.Unlock()
	// The marker must be on disk before it is said that its manifest is in use.
	err := syncDir(g.FS, g.dir)
	if err == nil {
		err = replaceFile(g, g.dir, syncedFile, text)
	}
	if err != nil {
		g.stop(fmt.Errorf("writing %s: %w", syncedFile, err))
	}
}
