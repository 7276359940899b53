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

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// controlSocket is the name of the Unix socket in the data directory on which a running
// daemon takes requests. It is there, and not a path of the SQS server, so that exactly
// those who may read the messages on disk may use it, the daemon's user and the superuser,
// whatever address, keys and certificates the server has. The only request is to write a
// backup to a new directory, which the daemon does as its own user. The parts are served
// there too.
const controlSocket = "control.sock"

// backupOrder is the body of POST /backup.
type backupOrder struct {
	Directory string `json:"directory"` // absolute; must not exist yet
}

// openControl makes the socket. If that fails, the reason is logged and the server runs
// without it.
func (d *Daemon) openControl() {
	// We hold the journal's lock, so a socket that exists was left by a crash.
	socket := filepath.Join(d.cfg.Journal.Dir, controlSocket)
	err := os.Remove(socket)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		d.control, err = listenPrivately(socket)
	}
	if err != nil {
		d.cfg.Logger.Warn("the socket for backups cannot be made, so none can be made while the program runs; a shorter --data may help", "error", err)
	}
}

// startControl serves the socket, and pushes the step that stops that.
func (d *Daemon) startControl() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /backup", d.serveBackup)
	server := &http.Server{Handler: d.before(mux), ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog: slog.NewLogLogger(d.cfg.Logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(d.control) }()
	d.steps.push("backups", func(ctx context.Context) error {
		// Wait for a backup under way: it reads the journal, which is closed next.
		err := server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			d.cfg.Logger.Warn("backups could not be made any more", "error", end)
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

// Backup makes dest a copy of the data directory dir, with everything that was acknowledged
// before the call. If a process runs on dir, that process makes the copy, and keeps
// running; otherwise Backup does. Both paths are absolute, and dest must not exist.
func Backup(ctx context.Context, dir, dest string) error {
	text, err := json.Marshal(backupOrder{dest})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://reprise/backup", strings.NewReader(string(text)))
	if err != nil {
		return err
	}
	client := httpclient.New(&http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, controlSocket))
		},
	})
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

// backupStopped makes a backup of a directory on which no process runs.
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

// backupTarget returns the path, without symbolic links, to which a backup of the data
// directory dir to dest is written. It must not exist; its parent must, and must be neither
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
	if _, err := os.Lstat(dest); !errors.Is(err, fs.ErrNotExist) { // a dangling link exists too
		return "", errors.Join(fmt.Errorf("backup to %s: it exists: name a directory that does not", dest), err)
	}
	data, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	// Compare the directories themselves: one can have several names.
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
