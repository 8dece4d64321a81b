package fit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/submit"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// apiVersion is that of a Table; it only grows.
const apiVersion = "gangctl.fit/v1"

// maxWorkers is how many members a role has at most.
const maxWorkers = resize.MaxReplicas

// Table has the sizes of gang that would start now.
type Table struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	// Resource is what the GPUs of a worker are counted in.
	Resource corev1.ResourceName `json:"resource"`
	// Usual is what comes with one GPU where the flags do not set it.
	Usual usage.Usual `json:"usualPerDevice"`
	Sizes []Size      `json:"sizes"`
	// Exit is the exit code.
	Exit int `json:"exit"`
}

// Size is the largest gang with workers of one size.
type Size struct {
	// GPUs are those of each worker.
	GPUs int64 `json:"gpus"`
	// Workers is how many would start now as one gang, and Total their GPUs.
	Workers int32 `json:"workers"`
	Total   int64 `json:"totalGPUs"`
	// Room is how many such workers the nodes have room for, each node by itself, whatever quotas and queues allow.
	Room int64 `json:"room"`
	// Nodes are those where the largest gang would be placed.
	Nodes []string `json:"nodes"`
	// Limit is what keeps one more worker from starting; null if nothing does but the largest gang that gangctl submits.
	Limit *answer.Finding `json:"limit"`
	// Exit is that of the answer for one worker more, and Missing what could not be seen for it.
	Exit    int      `json:"exit"`
	Missing []string `json:"missing,omitempty"`
}

// whatFits finds the largest gang for each size of a worker.
func (o *Options) whatFits(ctx context.Context, check *submit.FitCheck) error {
	w := view.New(check.Snapshot)
	t := Table{APIVersion: apiVersion, At: w.Now, Resource: o.flags.GPUResource(), Sizes: []Size{}}
	sizes := []int64{}
	for _, total := range usage.OfNodes(w).Totals {
		if total.Kind == t.Resource {
			t.Usual = total.Usual
			for _, l := range total.Largest {
				sizes = append(sizes, l.Devices)
			}
		}
	}
	if o.gpus {
		sizes = []int64{o.flags.GPUs()}
	} else if len(sizes) == 0 && !check.Snapshot.CanList("nodes", "") {
		sizes = []int64{1} // what the nodes offer is not known: the answer of any size reports that
	}
	if len(sizes) == 0 {
		return failure.WithCode(failure.Code(answer.ExitNever), "no node of the cluster offers %s", t.Resource).
			WithHint("see what there is with `gangctl top node`; other devices: --gpu-resource NAME; none: --what-fits --gpus 0 --cpu N")
	}
	slices.Reverse(sizes)
	for _, gpus := range sizes {
		size, err := largest(ctx, check, w, submit.Shape{GPUs: gpus, CPU: t.Usual.CPU, Memory: t.Usual.Memory})
		if err != nil {
			return err
		}
		t.Sizes = append(t.Sizes, size)
	}
	t.Exit = t.Sizes[len(t.Sizes)-1].Exit
	if slices.ContainsFunc(t.Sizes, func(s Size) bool { return s.Workers > 0 }) {
		t.Exit = answer.ExitOK
	}
	return o.print(t)
}

// largest searches the number of workers: up from what nodes have room for, each by itself, there is no need to look; below it,
// whatever fits would with fewer, too.
func largest(ctx context.Context, check *submit.FitCheck, w *view.View, shape submit.Shape) (Size, error) {
	size := Size{GPUs: shape.GPUs, Nodes: []string{}}
	shape.Workers = 1
	pod, err := check.Worker(shape)
	if err != nil {
		return size, err
	}
	for _, s := range placement.Slots(w.Cluster(), pod, maxWorkers, placement.Options{}) { //nolint:contextcheck // plugins that work on values take a context and have no use for one
		size.Room += s.Slots
	}
	answers := map[int64]*answer.Answer{}
	var failed error
	starts := func(workers int64) bool {
		if failed != nil {
			return false
		}
		shape.Workers = int32(workers) //nolint:gosec // at most maxWorkers
		answers[workers], failed = check.Answer(ctx, shape, diagnose.Options{NoAdvice: true})
		return failed == nil && answers[workers].Verdict == answer.FitsNow
	}
	most := min(max(size.Room, 1), maxWorkers)
	found := int64(0)
	if starts(most) {
		found = most
	} else if most > 1 {
		found, _ = placement.Largest(1, most-1, starts)
	}
	if found < maxWorkers && failed == nil && answers[found+1] == nil {
		starts(found + 1)
	}
	if failed != nil {
		return size, failed
	}
	size.Workers, size.Total = int32(found), found*shape.GPUs //nolint:gosec // at most maxWorkers
	if a := answers[found]; a != nil {
		for _, p := range a.Placement {
			if !slices.Contains(size.Nodes, p.Node) {
				size.Nodes = append(size.Nodes, p.Node)
			}
		}
		slices.Sort(size.Nodes)
	}
	if a := answers[found+1]; a != nil {
		size.Limit, size.Exit = a.Primary, a.Exit
		if a.Rights != nil {
			size.Missing = a.Confidence.MissingPermissions
		}
	}
	return size, nil
}

var columns = []printer.Column{{Name: "GPUs/worker"}, {Name: "Workers"}, {Name: "GPUs", Spare: 2}, {Name: "Nodes", Spare: 1}, {Name: "Limited by"}}

// shownNodes is how many nodes are named.
const shownNodes = 4

func (o *Options) print(t Table) error {
	if !o.Output.IsTable() {
		if err := cmdutil.Encode(o.IO, &o.Output, t); err != nil {
			return err
		}
		return cmdutil.ExitError(t.Exit)
	}
	var rows [][]string
	missing := ""
	for _, s := range t.Sizes {
		limit := "-"
		if s.Limit != nil {
			limit = fmt.Sprintf("%s: %s", s.Limit.Code, s.Limit.Message)
		}
		workers, total := strconv.Itoa(int(s.Workers)), strconv.FormatInt(s.Total, 10)
		if s.Workers == 0 && len(s.Missing) > 0 { // whether one would start is not known
			workers, total = "?", "?"
		}
		rows = append(rows, []string{strconv.FormatInt(s.GPUs, 10), workers, total, names(s.Nodes), limit})
		if len(s.Missing) > 0 {
			missing = strings.Join(s.Missing, "; ")
		}
	}
	if err := printer.PrintTable(o.IO.Out, printer.Flags{}, o.IO.Width(), columns, rows); err != nil {
		return err
	}
	if text := perGPU(t.Usual); text != "" {
		fmt.Fprintf(o.IO.ErrOut, "note: with each %s come%s, which is usual here, unless --cpu and --memory are set\n", deviceName(t.Resource), text)
	}
	if missing != "" {
		fmt.Fprintf(o.IO.ErrOut, "note: not seen: %s\n", missing)
	}
	return cmdutil.ExitError(t.Exit)
}

// deviceName is the name by which users call one device of a resource.
func deviceName(resource corev1.ResourceName) string {
	if request.IsGPU(resource) {
		return "GPU"
	}
	return usage.Short(resource)
}

// perGPU are the CPU and memory that come with one GPU.
func perGPU(u usage.Usual) string {
	text := ""
	if u.CPU > 0 {
		text += " " + resource.NewMilliQuantity(u.CPU, resource.DecimalSI).String() + " CPU"
	}
	if u.Memory > 0 {
		text += " " + resource.NewQuantity(u.Memory, resource.BinarySI).String() + " memory"
	}
	return text
}

// names are the first nodes by name.
func names(nodes []string) string {
	switch {
	case len(nodes) == 0:
		return "-"
	case len(nodes) <= shownNodes:
		return strings.Join(nodes, ",")
	}
	return fmt.Sprintf("%s,+%d", strings.Join(nodes[:shownNodes], ","), len(nodes)-shownNodes)
}
