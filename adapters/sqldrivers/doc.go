// Package sqldrivers holds the tests of the library's idempotency/sqlstore on real
// databases, PostgreSQL and SQLite. They are in a module of their own, so that their drivers are
// not a requirement of the library. The package has no other code.
package sqldrivers
