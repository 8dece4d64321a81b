// Command perf runs Kubernetes' own benchmarks of gangs, in its sizes, with kube-scheduler and with our scheduler in turn, and prints a table of how
// fast each is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/gangctl/gangctl/test/upstream/overlay"
	"github.com/gangctl/gangctl/test/upstream/page"
	"github.com/gangctl/gangctl/test/upstream/programs"
)

// benchmarks is where the suites are, below programs.Tests.
const benchmarks = "scheduler_perf/"

// suites are the packages of benchmarks of gangs.
var suites = []string{"podgroup/gangscheduling", "podgroup/basicscheduling", "podgroup/tas", "workload_preemption"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	dir := flag.String("dir", "", "directory for what is made, such as bin/upstream")
	pattern := flag.String("run", "", "run the workloads whose CASE/NAME matches the expression")
	times := flag.Int("times", 1, "how often each workload is run with each scheduler; the table has the medians")
	document := flag.String("document", "", "page to write the table to; it has the lines "+section.Begin()+" and "+section.End())
	only := flag.String("suites", strings.Join(suites, ","), "packages below "+programs.Tests+benchmarks)
	flag.Parse()
	chosen, err := regexp.Compile(*pattern)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	switch {
	case *times < 1:
		return errors.New("-times: less than one")
	case *document != "" && *pattern != "":
		return errors.New("-document: the page has all workloads, and -run chooses some")
	}
	schedulers, err := compilers(ctx, *dir, strings.Split(*only, ","))
	if err != nil {
		return err
	}
	var rows table
	for _, suite := range strings.Split(*only, ",") {
		more, err := schedulers.measure(ctx, suite, chosen, *times)
		rows = append(rows, more...)
		if err != nil {
			fmt.Print(rows.String()) // what was measured took hours
			return err
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("no workload matches %s", *pattern)
	}
	fmt.Print(rows.String())
	if *document == "" {
		return nil
	}
	return section.Write(*document, "Kubernetes "+overlay.Version+":\n\n"+rows.String())
}

// section is where the table is on a page.
var section = page.Section("scheduler_perf")

// pair is what there is of each scheduler.
type pair[T any] struct{ stock, ours T }

// compilers returns a compiler for each scheduler.
func compilers(ctx context.Context, dir string, suites []string) (c schedulers, err error) {
	packages := make([]string, 0, len(suites))
	for _, suite := range suites {
		packages = append(packages, benchmarks+suite)
	}
	if c.stock, err = programs.NewCompiler(ctx, dir, true, packages); err != nil {
		return c, err
	}
	c.ours, err = programs.NewCompiler(ctx, dir, false, packages)
	return c, err
}

// schedulers are the two that are compared.
type schedulers pair[programs.Compiler]

// measure runs the workloads of a suite that match. The schedulers take turns at being first.
func (s schedulers) measure(ctx context.Context, suite string, chosen *regexp.Regexp, times int) (rows table, err error) {
	var program pair[programs.Program]
	if program.stock, err = s.stock.Compile(ctx, benchmarks+suite); err != nil {
		return nil, err
	}
	if program.ours, err = s.ours.Compile(ctx, benchmarks+suite); err != nil {
		return nil, err
	}
	workloads, err := workloadsOf(program.stock.Source)
	if err != nil {
		return nil, err
	}
	for _, w := range workloads {
		if !chosen.MatchString(w.String()) {
			continue
		}
		r := row{suite: suite, workload: w}
		for i := range times {
			order := []func() error{
				func() error { return r.stock.add(ctx, program.stock, w) },
				func() error { return r.ours.add(ctx, program.ours, w) },
			}
			for j := range order {
				if err := order[(i+j+len(rows))%len(order)](); err != nil {
					return rows, fmt.Errorf("%s of %s: %w", w, suite, err)
				}
			}
		}
		fmt.Fprintln(os.Stderr, r)
		rows = append(rows, r)
	}
	return rows, nil
}
