package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/switchyard-dev/switchyard/cli/internal/remote"
	"github.com/switchyard-dev/switchyard/config"
	"github.com/switchyard-dev/switchyard/env"
	"github.com/switchyard-dev/switchyard/project"
)

func configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config", Short: "Work with configuration files",
		Long:    "Work with configuration files: switchyard.json(c) and opencode.json(c).",
		Example: "  switchyard config check",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configCheckCommand())
	return cmd
}

func configCheckCommand() *cobra.Command {
	var directory string
	cmd := &cobra.Command{
		Use: "check [PATH]", Short: "Find mistakes in configuration files", Args: cobra.MaximumNArgs(1),
		Long: "Find mistakes in one configuration file, or in all that apply to a directory: the owner's,\n" +
			"the project's, and those that the environment names. One line tells of each mistake:\n" +
			"file:line:column: severity: message. No server is needed.\n\n" +
			"Exit codes: 0 no errors, though there may be warnings; 1 errors; 2 wrong usage.",
		Example: "  switchyard config check\n  switchyard config check switchyard.json\n  switchyard config check --directory ~/src/app",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && cmd.Flags().Changed("directory") {
				return remote.Usagef("a path and --directory exclude each other")
			}
			if len(args) == 1 {
				directory = args[0]
			}
			list, err := configProblems(cmd.Context(), directory)
			if err != nil {
				return err
			}
			return tellProblems(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().StringVar(&directory, "directory", ".", "check all files that apply to this `directory`")
	return cmd
}

// configProblems checks a file, or all files that apply to a directory.
func configProblems(ctx context.Context, path string) ([]config.Problem, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("checking configuration: %w", err)
	}
	loader := config.NewLoader(config.DefaultOptions())
	if !info.IsDir() {
		return loader.Check(path)
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("checking configuration: %w", err)
	}
	if full, err = filepath.EvalSymlinks(full); err != nil {
		return nil, fmt.Errorf("checking configuration: %w", err)
	}
	place, err := env.Local(project.Locate(full).Root)
	if err != nil {
		return nil, err
	}
	list, err := loader.Problems(ctx, config.Location{Root: place.Root(), Directory: full, Files: place.Files()})
	return list, errors.Join(err, place.Close())
}

func tellProblems(w io.Writer, list []config.Problem) error {
	failures := 0
	for _, p := range list {
		fmt.Fprintln(w, p)
		if p.Severity == config.SeverityError {
			failures++
		}
	}
	switch {
	case failures > 0:
		return remote.Exitf(remote.ExitFailed, "errors in the configuration: %d", failures)
	case len(list) == 0:
		fmt.Fprintln(w, "no mistakes found")
	}
	return nil
}
