// Package hostile feeds objects that a tenant may write, changed at random, to all that reads them: the decoders, the cache of gangs, the
// engine with the planner, the diagnosis, and the commands that print. One process does all, in 256 MiB.
package hostile

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/wrap"
	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/describe"
	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/cmd/get"
	"github.com/gangctl/gangctl/pkg/cmd/list"
	"github.com/gangctl/gangctl/pkg/cmd/report"
	"github.com/gangctl/gangctl/pkg/cmd/top"
	"github.com/gangctl/gangctl/pkg/cmd/whypending"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

const (
	// memory is what the process may have in its heap, whatever it reads.
	memory = 384 << 20
	// patience is how long one that reads an input may take: ten times what the largest input takes on a machine that is idle.
	patience = time.Minute

	// tenant is the namespace of whoever writes what is absurd, and quiet that of another user.
	tenant, quiet = "team", "quiet"
	jobName       = "llama"
)

type (
	contextType = context.Context
	handleType  = fwk.Handle
	pluginType  = fwk.Plugin
)

func TestMain(m *testing.M) {
	debug.SetMemoryLimit(memory)
	ktesting.DefaultConfig = ktesting.NewConfig(ktesting.Verbosity(0)) // what the engine logs of each input takes as long as what it does
	if err := keepCrashes(); err != nil {
		fmt.Fprintln(os.Stderr, "error: keep what a crash prints:", err)
		os.Exit(1)
	}
	go watch()
	os.Exit(m.Run())
}

// keepCrashes writes what a process prints that crashes to a file in the directory of GANGCTL_CRASHES, if that is set. A worker of the fuzzing
// engine has no standard error, and of one that panics outside of the goroutine of its test nothing would be known but that it is gone.
func keepCrashes() error {
	dir := os.Getenv("GANGCTL_CRASHES")
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.txt", os.Getpid())))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the runtime has its own
	return debug.SetCrashOutput(file, debug.CrashOptions{})
}

// watch ends the process when the heap is too large, before the machine has no memory left. What is garbage does not count: on a busy machine the
// collector may be behind.
func watch() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	tooMuch := func() bool {
		metrics.Read(sample)
		return sample[0].Value.Uint64() > memory
	}
	for range time.Tick(5 * time.Millisecond) {
		if !tooMuch() {
			continue
		}
		if debug.FreeOSMemory(); tooMuch() { // which collects
			panic(fmt.Sprintf("%d MiB are in use", sample[0].Value.Uint64()>>20))
		}
	}
}

// input is a cluster.
type input struct {
	objects []*unstructured.Unstructured
	nodes   []*corev1.Node
	pods    []*corev1.Pod
	budgets []*policyv1.PodDisruptionBudget
	devices []runtime.Object // slices, classes and claims
}

// target is a kind of job in a dialect, and the valid objects that are changed.
type target struct {
	kind  string // as commands name it
	job   bool   // it is about the job, and not about what declares the gang
	some  bool   // of the commands each input gets some, in turns: more inputs find more than more commands
	fixed []*unstructured.Unstructured
	owned []*unstructured.Unstructured // the tenant's
}

// newTarget makes the objects of a job of three, of which one member runs, next to the gang of another tenant.
func newTarget(x format) (target, error) {
	c := clustertest.New().Nodes(cmp.Or(x.nodes, 3), 8)
	c.Namespace(quiet)
	g := clustertest.Gang{Namespace: tenant, Name: jobName, Kind: x.kind, Dialect: x.dialect, Workers: 3, GPUs: 4, CPU: "4", Queue: "research", Nodes: []string{"n1"}}
	if x.spec != nil {
		g.GPUs, g.Nodes, g.Spec = 0, nil, x.spec
	}
	if x.dialect == devices {
		g.Dialect, g.GPUs, g.Nodes, g.Spec = gang.Labels, 0, nil, claimDevices
		addDevices(c)
	}
	c.Add(g)
	c.Add(clustertest.Gang{Namespace: quiet, Name: "calm", Kind: "Job", Dialect: gang.Labels, Workers: 2, CPU: "1", Memory: "1Gi"})
	var text bytes.Buffer
	if err := c.Done().Write(&text); err != nil {
		return target{}, err
	}
	// Pods of a JobSet have its uid as a label, of which an API server takes no colon and no slash.
	named := "JobSet:" + tenant + "/" + jobName
	documents, err := document.Split(bytes.ReplaceAll(text.Bytes(), []byte(named), []byte(strings.NewReplacer(":", ".", "/", ".").Replace(named))))
	if err != nil {
		return target{}, err
	}
	t := target{job: x.job, some: fuzzing(), kind: map[string]string{"Job": "batchjob", clustertest.VolcanoJob: "vcjob"}[x.kind]}
	if t.kind == "" {
		t.kind = strings.ToLower(x.kind)
	}
	for _, d := range documents[1:] { // the first is the snapshot's header
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(d.JSON); err != nil {
			return target{}, err
		}
		if u.GetNamespace() == tenant {
			t.owned = append(t.owned, u)
		} else {
			t.fixed = append(t.fixed, u)
		}
	}
	return t, nil
}

// changed is the cluster with what a program makes of the tenant's objects; ok is false for one that no API server has.
func (t target) changed(p program, text string) (in input, ok bool) {
	objects := make([]*unstructured.Unstructured, 0, len(t.owned))
	for _, u := range t.owned {
		objects = append(objects, u.DeepCopy())
	}
	p.apply(objects, text)
	for i, u := range objects { // as they come over the wire
		raw, err := json.Marshal(u.Object)
		if err != nil || len(raw) > 3<<19 {
			return input{}, false
		}
		objects[i] = &unstructured.Unstructured{}
		if objects[i].UnmarshalJSON(raw) != nil {
			return input{}, false
		}
	}
	return typed(append(objects, t.fixed...))
}

// fuzzing reports whether inputs are searched for, and not only those of testdata run.
func fuzzing() bool {
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

// validJob reports whether an API server has such a Job. It decodes JSON, which refuses a number that the field has no room for; the converter of
// unstructured objects takes its last bits.
func validJob(u *unstructured.Unstructured) bool {
	raw, err := u.MarshalJSON()
	return err == nil && json.Unmarshal(raw, &batchv1.Job{}) == nil
}

// feed gives a cluster to all that reads it. Turn selects the commands, where not all are typed.
func (t target) feed(tt *testing.T, in input, turn int) {
	tt.Helper()
	a := &allowance{start: time.Now(), spent: cpuTime(), searched: t.some}
	defer a.limit()()
	decode(tt, in)
	a.next("the scheduler")
	schedule(tt, in, a)
	for i, c := range t.commands() {
		if t.some && (turn+i)%5 != 0 {
			continue
		}
		a.check(tt)
		a.next("gangctl " + c.String())
		first := c.run(tt, in)
		if t.some || c.name == "why-pending" {
			if second := c.run(tt, in); first != second && !cutShort(first) && !cutShort(second) {
				tt.Errorf("gangctl %s prints\n%s\nand then\n%s", c, first, second)
			}
		}
		c.check(tt, first)
	}
}

// cutShort reports whether a search ended for lack of time, as the text reports. What had been found by then depends on the machine.
func cutShort(text string) bool {
	return slices.ContainsFunc([]string{"Out of time", `"cut"`, "too long to be looked for", "took too long"}, func(s string) bool { return strings.Contains(text, s) })
}

// allowance is what one input may take, and each that reads it.
type allowance struct {
	start    time.Time
	spent    time.Duration // of the processor, before the input
	searched bool          // the input is one that is searched for
	reading  atomic.Pointer[reading]
}

// reading is one that reads the input.
type reading struct {
	by    string
	spent time.Duration // of the processor, before it
}

// next says who reads the input from now on.
func (a *allowance) next(by string) { a.reading.Store(&reading{by, cpuTime()}) }

// engineTime is how long Go's fuzzing engine lets an input take by the clock. It takes a worker for deadlocked that needs longer, and ends it
// without a word of what it did.
const engineTime = 10 * time.Second

// check ends an input before the engine ends its worker: one that computes for so long is a finding, and one that waits for a core of a machine
// that is busy is passed over.
func (a *allowance) check(t *testing.T) {
	t.Helper()
	waited := time.Since(a.start)
	if !a.searched || waited < engineTime/2 {
		return
	}
	if spent := cpuTime() - a.spent; spent > waited/2 {
		t.Fatalf("an input takes %s of processor time in %s", spent, waited)
	}
	t.Skip("the machine is too busy for it")
}

// limit ends the process if one that reads the input computes for too long, or does nothing for ever, before the returned function is called. On
// a machine that is busy it may wait for a core far longer than it computes.
func (a *allowance) limit() (stop func()) {
	done := make(chan struct{})
	a.next("the decoders")
	go func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for waited := range 600 {
			select {
			case <-done:
				return
			case <-ticks.C:
			}
			r := a.reading.Load()
			if spent := cpuTime() - r.spent; spent > patience {
				panic(fmt.Sprintf("%s took %s of processor time for an input, which was read for %d s", r.by, spent, waited))
			}
		}
		panic("an input takes too long")
	}()
	return func() { close(done) }
}

// cpuTime is the processor time of this process.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it cannot fail for oneself
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// readers are the dialects, and jobKinds the kinds, that are decoded.
func readers() (all []gang.Dialect) {
	for _, r := range dialect.Readers() {
		all = append(all, r.Dialect)
	}
	return append(all, gang.PDB)
}

func jobKinds() (all []string) {
	for _, r := range kind.Readers() {
		all = append(all, r.Title())
	}
	return all
}

// decode reads the group objects, and checks what the decoders promise.
func decode(t *testing.T, in input) {
	t.Helper()
	for _, r := range dialect.Readers() {
		for _, u := range in.objects {
			if r.Decode == nil || !slices.ContainsFunc(r.Kinds, func(k gang.Served) bool { return k.GroupKind == u.GroupVersionKind().GroupKind() }) {
				continue
			}
			if d, err := r.Decode(u); err == nil && d.MinMember < 1 {
				t.Errorf("%s: %s has a minimum of %d", r.Dialect, u.GetName(), d.MinMember)
			}
		}
		for _, pod := range in.pods {
			name, ok := r.GroupOf(pod)
			if !ok || r.FromPods == nil {
				continue
			}
			d, err := r.FromPods(gang.Key{Dialect: r.Dialect, Namespace: pod.Namespace, Name: name}, []*corev1.Pod{pod})
			if err != nil {
				continue
			}
			least := int32(1)
			for _, n := range d.RoleMin {
				least = max(least, n)
			}
			if d.MinMember < least {
				t.Errorf("%s: pod %s declares a minimum of %d, and of %d for a role", r.Dialect, pod.Name, d.MinMember, least)
			}
		}
	}
}

// width is that of the terminal.
const width = 120

// command is a command line.
type command struct {
	make func(*cmdutil.Factory) *cobra.Command
	name string
	args []string
	// table is a command that fits its lines to a terminal; the others print to a pipe.
	table bool
}

func (c command) String() string { return c.name + " " + strings.Join(c.args, " ") }

// commands are those that print what the tenant wrote.
func (t target) commands() []command {
	job := t.kind + "/" + jobName
	listed := func(f *cmdutil.Factory) *cobra.Command { return list.NewCommand(f, nil) }
	shown := func(f *cmdutil.Factory) *cobra.Command { return top.NewCommand(f, nil) }
	whyPendingCommand := func(f *cmdutil.Factory) *cobra.Command { return whypending.NewCommand(f, nil) }
	one := func(f *cmdutil.Factory) *cobra.Command { return get.NewCommand(f, nil) }
	described := func(f *cmdutil.Factory) *cobra.Command { return describe.NewCommand(f, nil) }
	reportCommand := func(f *cmdutil.Factory) *cobra.Command { return report.NewCommand(f, nil) }
	happened := func(f *cmdutil.Factory) *cobra.Command { return events.NewCommand(f, nil) }
	return []command{
		{listed, "list", []string{"-A"}, true}, {listed, "list", []string{"-A", "-o", "wide"}, false},
		{shown, "top", []string{"job", "-A"}, true}, {shown, "top", []string{"node"}, true}, {shown, "top", []string{"queue"}, true},
		{whyPendingCommand, "why-pending", []string{"-A"}, true}, {whyPendingCommand, "why-pending", []string{job, "-v"}, false}, {whyPendingCommand, "why-pending", []string{job, "-o", "json"}, false},
		{one, "get", []string{job}, true}, {described, "describe", []string{job}, true}, {happened, "events", []string{job}, false},
		{reportCommand, "report", []string{job}, false},
	}
}

// run types the command line, and returns what it prints, its failure included.
func (c command) run(t *testing.T, in input) string {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	if c.table {
		io.SetTerminal(width)
	}
	cmd := c.make(&cmdutil.Factory{
		IO: io, Client: server{in.objects}.client, Namespace: func() (string, error) { return tenant, nil }, Getenv: func(string) string { return "" },
	})
	if err := commandtest.Execute(t.Context(), cmd, c.args...); err != nil {
		fmt.Fprintln(io.ErrOut, err)
	}
	return out.String() + errOut.String()
}

// check compares what was printed with what every output promises.
func (c command) check(t *testing.T, text string) {
	t.Helper()
	if slices.Contains(c.args, "-A") && !strings.Contains(text, "calm") {
		t.Errorf("gangctl %s does not show the job of another tenant:\n%.2000s", c, text)
	}
	if !utf8.ValidString(text) {
		t.Errorf("gangctl %s prints what is no UTF-8: %.2000q", c, text)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, control); i >= 0 && !strings.HasPrefix(line[i:], "\x1b[") {
			t.Errorf("gangctl %s lets a control character through: %.2000q", c, line)
		}
		if c.name == "top" && c.args[0] == "job" && wrap.Columns(line) > width {
			t.Errorf("gangctl %s prints a line of %d columns on a terminal of %d: %s", c, wrap.Columns(line), width, line)
		}
	}
}

// control reports whether a character does something to a terminal, or is not seen. Two that have no width are of scripts and emoji.
func control(r rune) bool {
	return r != '\t' && r != '\u200c' && r != '\u200d' && unicode.In(r, unicode.Cc, unicode.Cf)
}
