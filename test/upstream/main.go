// Command upstream runs Kubernetes' own integration tests of gangs against our scheduler, byte for byte as the module k8s.io/kubernetes has
// them, and prints a table of the results.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gangctl/gangctl/test/upstream/overlay"
	"github.com/gangctl/gangctl/test/upstream/programs"
	"github.com/gangctl/gangctl/test/upstream/results"
)

// tests is where the suites are, below programs.Tests.
const tests = "scheduler/"

// suites are the packages of tests of gangs.
var suites = []string{"podgroup", "podgroup/queueing", "podgroup/topology_aware_scheduling", "preemption/podgroup"}

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
	stock := flag.Bool("stock", false, "run the tests against kube-scheduler, as they are")
	pattern := flag.String("run", "", "run the tests that match, as go test -run")
	document := flag.String("document", "", "page to write the table to; it has the lines "+results.Section.Begin()+" and "+results.Section.End())
	only := flag.String("suites", strings.Join(suites, ","), "packages below "+programs.Tests+tests)
	flag.Parse()
	chosen := strings.Split(*only, ",")
	packages := make([]string, 0, len(chosen))
	for _, suite := range chosen {
		packages = append(packages, tests+suite)
	}
	compiler, err := programs.NewCompiler(ctx, *dir, *stock, packages)
	if err != nil {
		return err
	}
	r := runner{compiler, *pattern}
	var all []results.Result
	for _, suite := range chosen {
		found, err := r.test(ctx, suite)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	table := results.Judge(all, results.Differences())
	if *stock {
		table = results.Judge(all, nil)
	}
	fmt.Print(table.String())
	if *document != "" {
		if err := table.Document(*document, overlay.Version); err != nil {
			return err
		}
	}
	return table.Err()
}
