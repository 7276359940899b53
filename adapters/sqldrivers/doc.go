// Package sqldrivers holds the tests of the library's idempotency/sqlstore on real
// databases, PostgreSQL and SQLite. They stand here, and not beside it, so that
// their drivers are no requirement of the library. It has no code of its own.
package sqldrivers
