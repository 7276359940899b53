//go:build race && unix

package main_test

func init() { buildFlags = append(buildFlags, "-race") }
