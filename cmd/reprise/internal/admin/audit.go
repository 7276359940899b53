package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"
)

// Every action leaves its line here: who asked for what, on which queue, with which settings and
// selection. The end of a job leaves a second one, with its counts. Both are logged whatever the log
// level, and are entries of the timeline.

// audit logs an action; more are further pairs of keys and values.
func (a *API) audit(r *http.Request, name, queue string, how any, err error, more ...any) {
	with, _ := json.Marshal(how) // it was read from JSON
	a.cfg.Events.timeline.acted(name, queue, string(with), remote(r), err, more)
	a.logAction(r, name, queue, string(with), err, more...)
}

// auditBegin logs the beginning of a job.
func (a *API) auditBegin(r *http.Request, j *Job, how JobRequest) {
	how.Edit = how.Edit.WithoutContent()
	with, _ := json.Marshal(how) // it was read from JSON
	a.cfg.Events.timeline.jobBegan(j)
	a.logAction(r, how.Action, j.URL, string(with), nil, "job", j.ID)
}

func (a *API) logAction(r *http.Request, name, queue, with string, err error, more ...any) {
	fields := append([]any{"action", name, "queue", queue, "with", with, "remote", remote(r)}, more...)
	if err != nil {
		fields = append(fields, "error", err)
	}
	a.write(r.Context(), "admin action", fields...)
}

// auditEnd logs the end of a job.
func (a *API) auditEnd(j *Job) {
	a.cfg.Events.timeline.jobEnded(j)
	fields := []any{
		"action", j.Action, "queue", j.URL, "job", j.ID, "state", j.State, "dry_run", j.DryRun,
		"looked", j.Looked, "matched", j.Matched, "done", j.Done, "failed", j.Failed, "remote", j.Remote,
	}
	if j.Problem != "" {
		fields = append(fields, "error", j.Problem)
	}
	a.write(context.Background(), "admin job ended", fields...)
}

func (a *API) write(ctx context.Context, message string, fields ...any) {
	line := slog.NewRecord(time.Now(), slog.LevelInfo, message, 0)
	line.Add(fields...)
	_ = a.cfg.Logger.Handler().Handle(context.WithoutCancel(ctx), line) // as the log's other lines
}

// remote is who calls.
func remote(r *http.Request) string {
	if byUnixSocket(r) {
		return "unix socket"
	}
	return r.RemoteAddr
}
