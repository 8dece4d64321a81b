package fit

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// query runs the command on a cluster that is a file.
func query(t *testing.T, c *clustertest.Cluster, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := c.Done().Save(path); err != nil {
		t.Fatal(err)
	}
	return run(t, func() (*kube.Client, error) { t.Error("a cluster is contacted"); return nil, nil }, append(args, "--from", path)...)
}

func run(t *testing.T, client func() (*kube.Client, error), args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("research", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), 0, client)
	f.Suffix = func() string { return "abcde" }
	return commandtest.Run(t.Context(), NewCommand(f, nil), streams, args...)
}

func code(f *failure.Error) failure.Code {
	if f == nil {
		return 0
	}
	return f.Code
}

func quota(c *clustertest.Cluster, gpus string) *clustertest.Cluster {
	limit := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse(gpus)}
	used := corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("0")}
	return c.Put(&corev1.ResourceQuota{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"}, ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "gpus"},
		Spec: corev1.ResourceQuotaSpec{Hard: limit}, Status: corev1.ResourceQuotaStatus{Hard: limit, Used: used}})
}

// Neither a name nor an image is needed; the exit code is 0 where the gang would start, else why-pending's.
func TestFit(t *testing.T) {
	for args, want := range map[string]struct {
		code failure.Code
		text string
	}{
		"--workers 2 --gpus 8":           {0, "FITS_NOW  gang-abcde: fits now: room for all 2 members on n1, n2\n"},
		"--workers 3 --gpus 8":           {6, "BLOCKED  gang-abcde"},
		"--workers 2 --gpus 8 --ps 1":    {0, "FITS_NOW  gang-abcde: fits now: room for all 3 members"},
		"--workers 2 --gpu-resource a/b": {2, ""},
		"--workers 2 --cpu 4000":         {6, "BLOCKED"},
	} {
		out, _, failed := query(t, clustertest.New().Nodes(2, 8), strings.Fields(args)...)
		if code(failed) != want.code || !strings.HasPrefix(out, want.text) {
			t.Errorf("%s: got %+v\n%s", args, failed, out)
		}
	}
}

// What advice gives to type can be typed: fit and submit have no flag that takes a node selector away.
func TestFitWithoutASelector(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	out, _, failed := query(t, c, "--workers", "2", "--gpus", "8", "--node-selector", "a=b")
	if code(failed) == 0 || !strings.Contains(out, "do not require a=b") || !strings.Contains(out, "submit it like that, without node selector a") || strings.Contains(out, "--node-selector a-") {
		t.Errorf("got %+v\n%s", failed, out)
	}
}

// The domain that members would share is named, whichever way the gang states that it must or should, and the ones that have no room for all.
func TestFitInDomain(t *testing.T) {
	racks := func() *clustertest.Cluster {
		c := clustertest.New().Nodes(5, 8).Runs("other", 8, "n1")
		for i, rack := range []string{"r1", "r1", "r2", "r2", "r3"} {
			c.S.Nodes[i].Labels["rack"] = rack
			c.S.Nodes[i].Labels["row"] = "a"
		}
		return c
	}
	for args, want := range map[string]struct {
		code failure.Code
		text []string
	}{
		"--workers 2 --gpus 8 --topology rack":                                {0, []string{"room for all 2 members on n3, n4, all at rack=r2"}},
		"--workers 2 --gpus 8 --topology-preferred rack":                      {0, []string{"room for all 2 members on n3, n4, all at rack=r2"}},
		"--workers 3 --gpus 8 --topology-preferred rack,row":                  {0, []string{", all at row=a", "no value of rack, which it prefers, has room for all: r2 has room for 2, r1 for 1, r3 for 1"}},
		"--workers 3 --gpus 8 --topology row --topology-preferred rack":       {0, []string{", all at row=a"}},
		"--workers 3 --gpus 8 --topology rack":                                {6, []string{"share one value of rack"}},
		"--workers 2 --gpus 8 --topology-preferred rack --dialect native":     {2, nil},
		"--workers 2 --gpus 8 --topology-preferred rack,rack,rack,rack,a,b,c": {2, nil},
	} {
		out, _, failed := query(t, racks(), strings.Fields(args)...)
		if code(failed) != want.code {
			t.Errorf("%s: got %+v\n%s", args, failed, out)
		}
		for _, text := range want.text {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
				t.Errorf("%s: no %q in\n%s", args, text, out)
			}
		}
	}
}

// Every kind of job is queried with the flags that submit has for it, and needs what it is made of.
func TestKinds(t *testing.T) {
	for args, want := range map[string]struct {
		code failure.Code
		text string
	}{
		"tf --workers 2 --gpus 8":                    {0, "FITS_NOW  gang-abcde: fits now: room for all 2 members on n1, n2\n"},
		"pytorch --workers 2 --gpus 8":               {0, "FITS_NOW  gang-abcde: fits now: room for all 2 members on n1, n2\n"},
		"pytorch --workers 3 --gpus 8":               {6, "BLOCKED  gang-abcde"},
		"job --workers 2 --gpus 8":                   {0, "FITS_NOW  gang-abcde: fits now: room for all 2 members on n1, n2\n"},
		"mpi --workers 2 --gpus 8":                   {0, "FITS_NOW  gang-abcde: fits now: room for all 3 members on n1, n2\n"},
		"mpi --workers 2 --gpus 8 --launcher-cpu 97": {6, "BLOCKED  gang-abcde"},
	} {
		out, _, failed := query(t, clustertest.New().Nodes(2, 8), strings.Fields(args)...)
		if code(failed) != want.code || !strings.HasPrefix(out, want.text) {
			t.Errorf("%s: got %+v\n%s", args, failed, out)
		}
	}
	// The master of PyTorch is one of the workers; the launcher of MPI is besides them.
	for args, want := range map[string]string{"pytorch": "8             2         16     n1,n2", "mpi --launcher-gpus 1": "8             1         8 ", "job": "8             2         16     n1,n2"} {
		out, _, failed := query(t, clustertest.New().Nodes(2, 8), append(strings.Fields(args), "--what-fits")...)
		if failed != nil || !strings.Contains(out, want) {
			t.Errorf("%s: got %+v\n%s", args, failed, out)
		}
	}
	// A cluster that does not know the kind is no place for it.
	c := clustertest.New().Nodes(2, 8)
	c.S.Server.Resources = []string{"tfjobs.kubeflow.org/v1", "podgroups.scheduling.x-k8s.io/v1alpha1"}
	if out, _, failed := query(t, c, "pytorch", "--workers", "2"); code(failed) != 5 || !strings.Contains(out, "this cluster does not know pytorchjobs.kubeflow.org") {
		t.Errorf("got %+v\n%s", failed, out)
	}
}

// The largest gang is by what nodes have room for together, and not by the sum of what is free.
func TestWhatFits(t *testing.T) {
	c := clustertest.New().Nodes(3, 8).Runs("other", 6, "n1")
	out, _, failed := query(t, c, "--what-fits")
	for _, want := range []string{"GPUS/WORKER   WORKERS   GPUS   NODES", "8             2         16     n2,n3", "4             4         16     n2,n3", "2             9         18     n1,n2,n3", "1             18        18     n1,n2,n3"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if failed != nil {
		t.Errorf("got %+v", failed)
	}
}

// What is searched for is what --workers would find: one worker more does not start, and as many do.
func TestWhatFitsAgrees(t *testing.T) {
	for _, args := range []string{"", "--ps 1 --ps-gpus 4", "--gpus 3", "--gpus 2 --memory 100Gi"} {
		c := quota(clustertest.New().Nodes(3, 8).Runs("other", 5, "n2"), "13")
		out, _, failed := query(t, c, append(strings.Fields(args), "--what-fits", "-o", "json")...)
		var table Table
		if err := json.Unmarshal([]byte(out), &table); err != nil || failed != nil || len(table.Sizes) == 0 || table.APIVersion != "gangctl.fit/v1" {
			t.Fatalf("%s: %v, %+v\n%s", args, err, failed, out)
		}
		for _, size := range table.Sizes {
			if size.Room*size.GPUs > 24-5 {
				t.Errorf("%s: room for %d workers of %d GPUs, where 19 GPUs are free", args, size.Room, size.GPUs)
			}
			for workers, starts := range map[int32]bool{size.Workers: true, size.Workers + 1: false} {
				if workers == 0 {
					continue
				}
				line := append(strings.Fields(args), "--gpus", resource.NewQuantity(size.GPUs, resource.DecimalSI).String(), "--workers", resource.NewQuantity(int64(workers), resource.DecimalSI).String())
				if args == "" {
					line = append(line, "--cpu", resource.NewMilliQuantity(table.Usual.CPU*size.GPUs, resource.DecimalSI).String(), "--memory", resource.NewQuantity(table.Usual.Memory*size.GPUs, resource.BinarySI).String())
				}
				if table.Usual.CPU == 0 && args == "" {
					line = line[:len(line)-4]
				}
				out, _, failed := query(t, c, line...)
				if (code(failed) == 0) != starts {
					t.Errorf("%s: %d workers of %d GPUs: %+v\n%s", args, workers, size.GPUs, failed, out)
				}
			}
		}
	}
}

// Where room is not what limits the number, what does is named.
func TestLimits(t *testing.T) {
	out, _, failed := query(t, quota(clustertest.New().Nodes(2, 8), "6"), "--what-fits", "--gpus", "2")
	if failed != nil || !strings.Contains(out, "2             3         6 ") || !strings.Contains(out, "QUOTA") {
		t.Errorf("got %+v\n%s", failed, out)
	}
	out, _, failed = query(t, clustertest.New().Nodes(1, 8).Runs("other", 8, "n1"), "--what-fits", "--gpus", "8")
	if code(failed) != 3 && code(failed) != 5 || !strings.Contains(out, "8             0         0 ") {
		t.Errorf("nothing fits: %+v\n%s", failed, out)
	}
	if _, _, failed = query(t, clustertest.New().Nodes(1, 8), "--what-fits", "--gpu-resource", "amd.com/gpu", "--gpus", "1"); failed == nil {
		t.Error("amd.com/gpu is found where there is none")
	}
}

// Who may not list nodes learns that, and not that there are none.
func TestWhatFitsWithoutNodes(t *testing.T) {
	c := clustertest.New()
	c.S.Denied = []snapshot.Denial{{Resource: "nodes", Message: `User "ann" cannot list resource "nodes"`}}
	out, notes, failed := query(t, c, "--what-fits")
	if code(failed) != 8 || !strings.Contains(out, "NO_PERMISSION") || !strings.Contains(out, "1             ?         ?") || !strings.Contains(notes, "note: not seen: ") {
		t.Errorf("got %+v\n%s%s", failed, out, notes)
	}
}

// The cluster is queried once about the job, with dry runs; nothing is created.
func TestQueriesTheServer(t *testing.T) {
	l := kubetest.Serve(t, clustertest.New().Nodes(2, 8).Done())
	for _, path := range []string{"/apis/kubeflow.org/v1/namespaces/research/tfjobs", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/research/podgroups", "/api/v1/namespaces/research/pods"} {
		l.Answer("POST "+path, 201, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}})
	}
	_, _, failed := run(t, l.Client, "--what-fits")
	posts := 0
	for _, r := range l.Requests() {
		if strings.HasPrefix(r, "POST") && !strings.Contains(r, "self") {
			posts++
			if !strings.Contains(r, "dryRun=All") {
				t.Errorf("not a dry run: %s", r)
			}
		}
	}
	if failed != nil || posts != 3 {
		t.Errorf("got %+v, %d posts: %q", failed, posts, l.Requests())
	}
}

func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"llama":                   `fit "llama": the kinds of job are: tf, pytorch, mpi, ray, job`,
		"mpi llama":               `fit mpi takes no arguments, got "llama"`,
		"pytorch --workers 0":     `invalid argument "0" for "--workers" flag: must be a whole number from 1 to 10000`,
		"pytorch --ps 1":          "unknown flag: --ps",
		"--what-fits --workers 2": "--workers has no effect with --what-fits: their number is the answer",
		"--workers 0":             `invalid argument "0" for "--workers" flag: must be a whole number from 1 to 10000`,
		"--min-available 9":       "--min-available 9: the job has 1 member (1 worker); must be from 1 to 1",
	} {
		if _, _, failed := run(t, nil, strings.Fields(args)...); failed == nil || failed.Message != want {
			t.Errorf("%s: got %+v", args, failed)
		}
	}
}

// What limits a gang is reported in the words of its flags: --gpus, not the resource behind it.
func TestWhatFitsCountsGPUs(t *testing.T) {
	out, notes, failed := query(t, clustertest.New().Nodes(2, 8).Runs("other", 1, "n1"), "--what-fits")
	if failed != nil {
		t.Fatal(failed)
	}
	if strings.Contains(out+notes, "each nvidia") || !strings.Contains(notes, "with each GPU come") {
		t.Errorf("got\n%s\n%s", out, notes)
	}
}
