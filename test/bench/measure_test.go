package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// measureEnv makes the test binary run one command and print what it cost. A
// process of its own does that, because Linux counts the memory of the parent,
// at the moment of the fork, as memory of the child.
const measureEnv = "GANGCTL_BENCH_MEASURE"

// cost is what one run of a command took.
type cost struct {
	Wall, CPU time.Duration
	// Resident is the most memory that it had at any moment, in bytes.
	Resident int64
	// Written is how much it printed, in bytes; Output the beginning of that.
	Written int64
	Output  string
	Exit    int
}

func TestMain(m *testing.M) {
	if way := os.Getenv(collectEnv); way != "" {
		if err := readCluster(context.Background(), way); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(measureEnv) == "" {
		os.Exit(m.Run())
	}
	c, err := run(os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// measure runs a command in a fresh process, and reports what it cost.
func measure(b *testing.B, kubeconfig string, command ...string) cost {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], command...)
	cmd.Env = append(os.Environ(), measureEnv+"=1", "KUBECONFIG="+kubeconfig)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v: %v\n%s", command, err, errOut.String())
	}
	var c cost
	if err := json.Unmarshal(out.Bytes(), &c); err != nil {
		b.Fatalf("%v: %v\n%s", command, err, out.String())
	}
	return c
}

func run(command []string) (cost, error) {
	cmd := exec.Command(command[0], command[1:]...)
	var out counter
	var errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	start := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return cost{}, err
	}
	c := cost{Wall: time.Since(start), Written: out.n, Output: out.head.String() + errOut.String(), Exit: cmd.ProcessState.ExitCode()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.Resident = usage.Maxrss << 10
		c.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return c, nil
}

// counter keeps the beginning of what is written to it, and the length of all.
type counter struct {
	head bytes.Buffer
	n    int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	_, err := io.CopyN(&c.head, bytes.NewReader(p), int64(max(0, min(len(p), 4096-c.head.Len()))))
	return len(p), err
}
