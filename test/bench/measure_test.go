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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// measureEnv makes the test binary run one command and print what it cost, in a
// process of its own: that of the benchmark has a cluster in memory.
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
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	resident := follow(cmd.Process.Pid)
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return cost{}, err
	}
	c := cost{Wall: time.Since(start), Written: out.n, Output: out.head.String() + errOut.String(), Exit: cmd.ProcessState.ExitCode(), Resident: resident()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.CPU = time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return c, nil
}

// followEvery is how often the peak of a process is read; it never falls, so that the last reading is the peak but for what came after it.
const followEvery = 2 * time.Millisecond

// follow reads the peak of a process until it has ended; the function that it returns returns the last reading. What the kernel itself returns
// for a child, ru_maxrss, is no less than what the parent had when it started the child.
func follow(pid int) (resident func() int64) {
	last := make(chan int64, 1)
	go func() {
		var peak int64
		for {
			now, err := residentPeak(pid)
			if err != nil {
				last <- peak
				return
			}
			peak = now
			time.Sleep(followEvery)
		}
	}()
	return func() int64 { return <-last }
}

// residentPeak is the most memory that a process ever had, in bytes. One that has ended has none.
func residentPeak(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("process %d has no VmHWM: %w", pid, err)
	}
	return kib << 10, nil
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

// userHZ is the unit of the times in /proc, fixed by the kernel's interface.
const userHZ = 100

// processTime is the CPU time that a process has used.
func processTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var sum time.Duration
	for _, at := range []int{11, 12} { // user and system
		ticks, err := strconv.ParseInt(fields[at], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ticks) * time.Second / userHZ
	}
	return sum
}
