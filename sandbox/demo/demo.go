// Package demo plays the two examples of every guide to gang scheduling, with
// the commands that users type, first with the default scheduler and then with
// the gang scheduler, and shows what each makes of them side by side.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gangctl/gangctl/sandbox/members"
)

// Options are the programs, the streams and the limits of the demo.
type Options struct {
	// Gangctl and Sandbox are the paths of the two programs.
	Gangctl, Sandbox string
	// Out gets the tables; Err the commands as they are typed, and their output.
	Out, Err io.Writer
	// GPUHourPrice is what a GPU costs an hour, in dollars, for the last line.
	GPUHourPrice float64
	// Timeout bounds each step that waits for the cluster.
	Timeout time.Duration
}

// Scheduler is one of the two that the demo compares.
type Scheduler struct {
	Title string
	// Name is the value of gangctl-sandbox up --scheduler.
	Name string
	// Submit are the flags that send a job to it.
	Submit []string
}

// Schedulers returns the two, in the order in which they play.
func Schedulers() []Scheduler {
	return []Scheduler{
		{Title: "default scheduler", Name: "default", Submit: []string{"--scheduler", "default-scheduler", "--dialect", "none"}},
		{Title: "gang scheduler", Name: "gang"},
	}
}

// Run plays every act under every scheduler and prints the tables.
func Run(ctx context.Context, o Options) error {
	acts := Acts()
	tables := make([]table, len(acts))
	for _, scheduler := range Schedulers() {
		moments, err := play(ctx, o, scheduler, acts)
		if err != nil {
			return fmt.Errorf("demo with the %s: %w", scheduler.Title, err)
		}
		for i := range acts {
			tables[i].add(scheduler.Title, moments[i])
		}
	}
	for i, act := range acts {
		if err := tables[i].print(o.Out, act); err != nil {
			return fmt.Errorf("print the table of %q: %w", act.Title, err)
		}
	}
	printCost(o.Out, o.GPUHourPrice, tables)
	return nil
}

// play runs all acts under one scheduler, on a sandbox of its own that is gone
// afterwards whatever happens.
func play(ctx context.Context, o Options, scheduler Scheduler, acts []Act) (moments [][]members.List, err error) {
	dir, err := os.MkdirTemp("", "gangctl-demo-")
	if err != nil {
		return nil, fmt.Errorf("create a data directory: %w", err)
	}
	config := StageConfig{Gangctl: o.Gangctl, Sandbox: o.Sandbox, DataDir: filepath.Join(dir, "sandbox"), Log: o.Err, Timeout: o.Timeout, Scheduler: scheduler}
	defer func() {
		if downErr := config.Down(context.WithoutCancel(ctx)); downErr != nil && err == nil {
			err = downErr
		}
		if removeErr := os.RemoveAll(dir); removeErr != nil && err == nil {
			err = fmt.Errorf("remove the data directory: %w", removeErr)
		}
	}()
	stage, err := Start(ctx, config)
	if err != nil {
		return nil, err
	}
	for _, act := range acts {
		seen, err := act.Play(ctx, stage)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", act.Title, err)
		}
		moments = append(moments, seen)
	}
	return moments, nil
}
