package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// controlSocket is the name of the Unix socket in the data directory on which a
// running daemon takes orders. It is there rather than beside SQS so that exactly
// those who may read the messages on the disk may use it, its user and the superuser,
// whatever address, keys and certificates the server has. It takes one order, which
// writes a new directory, as the user that the daemon runs as.
const controlSocket = "control.sock"

// backupOrder is the body of POST /backup.
type backupOrder struct {
	Directory string `json:"directory"` // absolute; must not exist yet
}

// openControl makes the socket. Without it the server does its work all the same:
// what is in the way is logged.
func (d *Daemon) openControl() {
	// Whoever has the journal has the socket: one that is there was left by a crash.
	socket := filepath.Join(d.cfg.Journal.Dir, controlSocket)
	err := os.Remove(socket)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		d.control, err = listenPrivately(socket)
	}
	if err != nil {
		d.cfg.Logger.Warn("no backups while the program runs: its socket cannot be made; a shorter --data may help", "error", err)
	}
}

// startControl takes orders, and pushes the step that ends it.
func (d *Daemon) startControl() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /backup", d.serveBackup)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: slog.NewLogLogger(d.cfg.Logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(d.control) }()
	d.steps.push("backups", func(ctx context.Context) error {
		// A backup under way reads the journal, which is closed next.
		err := server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			d.cfg.Logger.Warn("no backups could be made any more", "error", end)
		}
		return err
	})
}

func (d *Daemon) serveBackup(w http.ResponseWriter, r *http.Request) {
	var order backupOrder
	err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&order)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	dest, err := backupTarget(d.cfg.Journal.Dir, order.Directory)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := d.journal.Backup(dest); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// Backup makes dest a copy of the data directory dir, with everything that was
// acknowledged before the call: by the process that runs on dir, which does it
// without stopping, or, if none does, by itself. Both are absolute, and there must
// be no dest yet.
func Backup(ctx context.Context, dir, dest string) error {
	text, err := json.Marshal(backupOrder{dest})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://reprise/backup", strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, controlSocket))
		},
	}}
	resp, err := client.Do(r)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return backupStopped(dir, dest)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("asking the process that runs on %s for a backup: %w: run this as the user that the process runs as", dir, err)
	case err != nil:
		return fmt.Errorf("asking the process that runs on %s for a backup: %w", dir, err)
	}
	defer resp.Body.Close()
	reason, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	switch {
	case err != nil:
		return fmt.Errorf("the process that runs on %s gave no answer: %w: see what it logs, and remove %s if it is there", dir, err, dest)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the process that runs on %s made no backup: %s", dir, strings.TrimSpace(string(reason)))
	}
	return nil
}

// backupStopped makes a backup of a directory that no process runs on.
func backupStopped(dir, dest string) (err error) {
	j, err := journal.Open(journal.Options{Dir: dir, Existing: true})
	if err != nil {
		return &StorageError{err}
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if dest, err = backupTarget(dir, dest); err != nil {
		return err
	}
	return j.Backup(dest)
}

// backupTarget is where a backup of the data directory dir to dest is written: without
// symbolic links. There must be nothing yet, in a directory that exists and is neither
// dir nor below it.
func backupTarget(dir, dest string) (string, error) {
	if !filepath.IsAbs(dest) {
		return "", fmt.Errorf("backup to %q: name an absolute path", dest)
	}
	dest = filepath.Clean(dest)
	parent, err := filepath.EvalSymlinks(filepath.Dir(dest))
	if err != nil {
		return "", fmt.Errorf("backup to %s: the directory that it is to be in: %w", dest, err)
	}
	dest = filepath.Join(parent, filepath.Base(dest))
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere is something, too
		return "", errors.Join(fmt.Errorf("backup to %s: it exists: name a directory that does not", dest), err)
	}
	data, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	// By what the directories are, not by their names: one can have several.
	for at := parent; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return "", err
		}
		if os.SameFile(info, data) {
			return "", fmt.Errorf("backup to %s: it is in the data directory %s: name a directory outside of it", dest, dir)
		}
		if at == filepath.Dir(at) {
			return dest, nil
		}
	}
}
