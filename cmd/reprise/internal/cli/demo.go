package cli

import "github.com/spf13/cobra"

func (a *app) demo() *cobra.Command { return &cobra.Command{Use: "demo", RunE: run(func([]string) error { return nil })} }
