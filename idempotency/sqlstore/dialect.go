package sqlstore

import (
	"strings"
	"time"
)

// Dialect is the SQL that a database speaks.
type Dialect uint8

const (
	// Postgres is PostgreSQL, from version 12, with any driver. Times are the
	// server's: after a failover to a server whose clock is ahead, leases end earlier by that much;
	// the middleware tolerates a tenth of a lease.
	Postgres Dialect = iota

	// SQLite is SQLite, from version 3.41, with any driver. Open it with a busy
	// timeout, and best with a write-ahead log: with modernc.org/sqlite
	// "file:NAME?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)".
	SQLite
	dialects
)

// args are the arguments of a statement: its subject and, if the database has no clock of its own,
// the time.
func (d Dialect) args(about any) []any {
	if d == SQLite {
		return []any{about, time.Now().UnixMilli()}
	}
	return []any{about}
}

// statements are the texts of a dialect, with $table for the table's name.
//
// Each but purge reads a batch from one JSON argument. They lock records in the order of their
// keys: otherwise batches with common keys could deadlock.
type statements struct {
	acquire  string // returns key, token, done, mismatched, wait, result; token is 0 unless acquired
	look     string // the same for keys that acquire left out, if it does
	complete string // these return the keys of claims that held
	release  string
	extend   string
	purge    string
}

// about returns the statements about a table.
func (s statements) about(table string) statements {
	for _, text := range []*string{&s.acquire, &s.look, &s.complete, &s.release, &s.extend, &s.purge} {
		*text = strings.ReplaceAll(*text, "$table", table)
	}
	return s
}

// schemas are the statements that make a table, with $table for its name. SQLite wants the schema, $schema with its
// dot, before the index's name, $index, and the table's own name, $name, behind it.
var schemas = [dialects][]string{
	Postgres: {
		`CREATE TABLE IF NOT EXISTS $table (
	key     text COLLATE "C" PRIMARY KEY,
	token   bigint NOT NULL,      -- of the latest claim
	digest  bytea,                -- of the payload it came with
	until   timestamptz NOT NULL, -- the end of its lease, or when it ended
	done    boolean NOT NULL,
	result  bytea,
	expires timestamptz NOT NULL  -- when the record may be removed
)`,
		`CREATE INDEX IF NOT EXISTS $index ON $table (expires)`,
	},
	SQLite: {
		`CREATE TABLE IF NOT EXISTS $table (
	key     TEXT PRIMARY KEY,
	token   INTEGER NOT NULL, -- of the latest claim
	digest  BLOB,             -- of the payload it came with
	until   INTEGER NOT NULL, -- Unix milliseconds: the end of its lease, or when it ended
	done    INTEGER NOT NULL,
	result  BLOB,
	expires INTEGER NOT NULL  -- Unix milliseconds: when the record may be removed
) WITHOUT ROWID`,
		`CREATE INDEX IF NOT EXISTS $schema$index ON $name (expires)`,
	},
}

// A record is free if its claim's lease has ended and it is not completed, or its
// retention has ended too. A token begins at the time in microseconds, so that it is larger than
// any token of a removed record, and grows by at least one.
var texts = [dialects]statements{
	Postgres: {
		acquire: `
WITH given AS (
	SELECT g.key, decode(g.digest, 'hex') AS digest,
		now() + g.lease * interval '1 millisecond' AS until,
		now() + g.retention * interval '1 millisecond' AS expires
	FROM json_to_recordset($1::json) AS g(key text, digest text, lease bigint, retention bigint)
), acquired AS (
	INSERT INTO $table AS r (key, token, digest, until, done, expires)
	SELECT key, (extract(epoch FROM now()) * 1000000)::bigint, digest, until, false, expires
	FROM given ORDER BY key COLLATE "C"
	ON CONFLICT (key) DO UPDATE SET
		token = greatest(r.token + 1, excluded.token), digest = excluded.digest,
		until = excluded.until, done = false, result = NULL, expires = excluded.expires
	WHERE r.until <= now() AND (NOT r.done OR r.expires <= now())
	RETURNING r.key, r.token
)
SELECT given.key, coalesce(acquired.token, 0), coalesce(r.done, false),
	coalesce(r.done AND r.digest <> given.digest, false),
	coalesce((extract(epoch FROM r.until - now()) * 1000)::bigint, 0),
	CASE WHEN acquired.token IS NULL THEN r.result END
FROM given LEFT JOIN acquired ON acquired.key = given.key
	LEFT JOIN $table AS r ON r.key = given.key -- as it was before the statement`,
		complete: `
WITH given AS (
	SELECT g.key, g.token, decode(g.result, 'hex') AS result,
		now() + g.retention * interval '1 millisecond' AS expires
	FROM json_to_recordset($1::json) AS g(key text, token bigint, result text, retention bigint)
), held AS (
	SELECT r.key, r.done, given.result, given.expires
	FROM $table AS r JOIN given ON r.key = given.key AND r.token = given.token
	ORDER BY r.key FOR UPDATE OF r
), completed AS (
	UPDATE $table AS r SET done = true, until = now(), result = held.result, expires = held.expires
	FROM held WHERE r.key = held.key AND NOT held.done
)
SELECT key FROM held`,
		release: `
WITH held AS (
	SELECT r.key
	FROM $table AS r JOIN json_to_recordset($1::json) AS g(key text, token bigint) ON r.key = g.key AND r.token = g.token
	WHERE NOT r.done
	ORDER BY r.key FOR UPDATE OF r
)
UPDATE $table AS r SET until = now() FROM held WHERE r.key = held.key RETURNING r.key`,
		extend: `
WITH held AS (
	SELECT r.key, now() + g.lease * interval '1 millisecond' AS until
	FROM $table AS r JOIN json_to_recordset($1::json) AS g(key text, token bigint, lease bigint) ON r.key = g.key AND r.token = g.token
	WHERE NOT r.done
	ORDER BY r.key FOR UPDATE OF r
)
UPDATE $table AS r SET until = held.until FROM held WHERE r.key = held.key RETURNING r.key`,
		purge: `
DELETE FROM $table WHERE key IN (
	SELECT key FROM $table WHERE expires <= now() AND until <= now() LIMIT $1 FOR UPDATE SKIP LOCKED
)`,
	},
	SQLite: {
		// A statement that writes cannot be part of another.
		acquire: `
INSERT INTO $table AS r (key, token, digest, until, done, expires)
SELECT value->>'key', ?2 * 1000, unhex(value->>'digest'), ?2 + (value->>'lease'), 0, ?2 + (value->>'retention')
FROM json_each(?1) WHERE true
ON CONFLICT (key) DO UPDATE SET
	token = max(r.token + 1, excluded.token), digest = excluded.digest,
	until = excluded.until, done = 0, result = NULL, expires = excluded.expires
WHERE r.until <= ?2 AND (NOT r.done OR r.expires <= ?2)
RETURNING key, token, 0, 0, 0, NULL`,
		look: `
SELECT r.key, 0, r.done, coalesce(r.done AND r.digest <> unhex(g.value->>'digest'), 0), r.until - ?2, r.result
FROM json_each(?1) AS g JOIN $table AS r ON r.key = g.value->>'key'`,
		complete: `
UPDATE $table AS r SET done = 1,
	until   = CASE WHEN r.done THEN r.until ELSE ?2 END,
	result  = CASE WHEN r.done THEN r.result ELSE unhex(g.value->>'result') END,
	expires = CASE WHEN r.done THEN r.expires ELSE ?2 + (g.value->>'retention') END
FROM json_each(?1) AS g
WHERE r.key = g.value->>'key' AND r.token = g.value->>'token'
RETURNING key`,
		release: `
UPDATE $table AS r SET until = ?2
FROM json_each(?1) AS g
WHERE r.key = g.value->>'key' AND r.token = g.value->>'token' AND NOT r.done
RETURNING key`,
		extend: `
UPDATE $table AS r SET until = ?2 + (g.value->>'lease')
FROM json_each(?1) AS g
WHERE r.key = g.value->>'key' AND r.token = g.value->>'token' AND NOT r.done
RETURNING key`,
		purge: `
DELETE FROM $table WHERE key IN (SELECT key FROM $table WHERE expires <= ?2 AND until <= ?2 LIMIT ?1)`,
	},
}
