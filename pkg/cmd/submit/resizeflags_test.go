package submit

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// resized is a job of the kind, with a role in addition to its workers if one is named.
func resized(t *testing.T, kind, role string) *gang.Job {
	t.Helper()
	g := clustertest.Gang{Namespace: "team", Name: "llama", Kind: kind, Workers: 4, GPUs: 2}
	if role != "" {
		g.More = []clustertest.Role{{Name: role, Replicas: 1}}
	}
	job, err := view.New(clustertest.New().Add(g).Done()).Find(view.Query{Namespace: "team", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func parseResize(t *testing.T, line string) *ResizeFlags {
	t.Helper()
	flags := pflag.NewFlagSet("resize", pflag.ContinueOnError)
	f := NewResizeFlags(flags)
	if err := flags.Parse(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	return f
}

// What flags change, and the flags that make that change again, which advice prints.
func TestResizeFlags(t *testing.T) {
	for _, tt := range []struct{ kind, role, line, again, want string }{
		{"TFJob", "", "--workers 2", "--workers 2", `{"roles":[{"name":"Worker","replicas":2}]}`},
		{"TFJob", "PS", "--gpus 4", "--gpus 4", `{"roles":[{"name":"Worker","gpus":4}]}`},
		{"TFJob", "PS", "--cpu 4", "--cpu 4", `{"roles":[{"name":"PS","cpu":"4"},{"name":"Worker","cpu":"4"}]}`},
		{"TFJob", "PS", "--cpu 4 --ps-cpu 1", "--ps-cpu 1 --worker-cpu 4", `{"roles":[{"name":"PS","cpu":"1"},{"name":"Worker","cpu":"4"}]}`},
		{"TFJob", "PS", "--ps 2 --worker-gpus 1", "--ps 2 --gpus 1", `{"roles":[{"name":"PS","replicas":2},{"name":"Worker","gpus":1}]}`},
		{"TFJob", "PS", "--device rdma/hca=2 --device example.com/fpga=0", "--device example.com/fpga=0 --device rdma/hca=2", `{"roles":[{"name":"Worker","devices":{"example.com/fpga":"0","rdma/hca":"2"}}]}`},
		{"TFJob", "PS", "--ephemeral-storage 100Gi", "--ephemeral-storage 100Gi", `{"roles":[{"name":"PS","ephemeralStorage":"100Gi"},{"name":"Worker","ephemeralStorage":"100Gi"}]}`},
		{"MPIJob", "Launcher", "--worker-ephemeral-storage 20Gi --device hugepages-1Gi=8Gi", "--worker-ephemeral-storage 20Gi --device hugepages-1Gi=8Gi",
			`{"roles":[{"name":"Worker","ephemeralStorage":"20Gi","devices":{"hugepages-1Gi":"8Gi"}}]}`},
		{"PyTorchJob", "Master", "--workers 3", "--workers 3", `{"roles":[{"name":"Worker","replicas":2}]}`},
		{"PyTorchJob", "", "--workers 3", "--workers 3", `{"roles":[{"name":"Worker","replicas":3}]}`},
		{"MPIJob", "Launcher", "--workers 3 --gpus 8", "--workers 3 --gpus 8", `{"roles":[{"name":"Worker","replicas":3,"gpus":8}]}`},
		{"Job", "", "--gpus 1 --gpu-resource amd.com/gpu", "--gpus 1 --gpu-resource amd.com/gpu", `{"roles":[{"name":"Worker","gpus":1,"device":"amd.com/gpu"}]}`},
		{"TFJob", "", "--min-available 2 --queue night --priority-class low", "--min-available 2 --priority-class low --queue night",
			`{"minAvailable":2,"priorityClass":"low","queue":"night"}`},
		{"TFJob", "", "--node-selector a=b --node-selector c- --toleration d=e:NoSchedule", "--node-selector a=b --node-selector c- --toleration d=e:NoSchedule",
			`{"nodeSelector":{"a":"b"},"anyNode":["c"],"tolerations":[{"key":"d","operator":"Equal","value":"e","effect":"NoSchedule"}]}`},
		{"JobSet", "Driver", "--workers 2 --gpus 4", "--workers 2 --gpus 4", `{"roles":[{"name":"worker","replicas":2,"gpus":4}]}`},
		{"JobSet", "Launcher", "--replicas launcher=2", "--replicas launcher=2", `{"roles":[{"name":"launcher","replicas":2}]}`},
		{"JobSet", "Driver", "--replicas DRIVER=2", "--replicas driver=2", `{"roles":[{"name":"driver","replicas":2}]}`},
		{"JobSet", "Workers", "--replicas worker=2", "--replicas worker=2", `{"roles":[{"name":"worker","replicas":2}]}`},
		{"RayCluster", "Gpu", "--replicas gpu=3 --head-cpu 4", "--replicas gpu=3 --head-cpu 4", `{"roles":[{"name":"head","cpu":"4"},{"name":"gpu","replicas":3}]}`},
		{"TrainJob", "", "--nodes 2 --gpus 1", "--nodes 2 --gpus 1", `{"roles":[{"name":"node","replicas":2,"gpus":1}]}`},
	} {
		t.Run(tt.kind+" "+tt.role+" "+tt.line, func(t *testing.T) {
			job, f := resized(t, tt.kind, tt.role), parseResize(t, tt.line)
			if err := f.Validate(); err != nil {
				t.Fatal(err)
			}
			c, err := f.Change(job)
			if err != nil {
				t.Fatal(err)
			}
			text, err := resize.Intent{Change: c, Min: 1}.Encode()
			if diff := gocmp.Diff(`{"change":`+tt.want+`,"min":1}`, text); err != nil || diff != "" {
				t.Errorf("%v, -want +got\n%s", err, diff)
			}
			args, ok := resize.Args(job, c)
			if got := strings.Join(args, " "); !ok || got != "llama "+tt.again {
				t.Fatalf("again: %q", got)
			}
			again, err := parseResize(t, strings.Join(args[1:], " ")).Change(job)
			if err != nil || !resize.Same(again, c) {
				t.Errorf("%v, again: %+v\nwant %+v", err, again, c)
			}
		})
	}
}

func TestResizeFlagsOfOtherKinds(t *testing.T) {
	for _, tt := range []struct{ kind, role, line, want string }{
		{"PyTorchJob", "", "--ps 2", "--ps has no effect: PyTorchJob team/llama has no ps"},
		{"Job", "", "--launcher-cpu 1", "--launcher-cpu has no effect: Job team/llama has no launcher"},
		{"MPIJob", "Launcher", "--chief 1", "--chief has no effect: MPIJob team/llama has no chief"},
		{"TFJob", "", "--replicas Worker=2", "--replicas worker=2: the number of worker of TFJob team/llama is --workers"},
		{"MPIJob", "Launcher", "--replicas launcher=2", "--replicas launcher=2: MPIJob team/llama has one launcher, always"},
		{"RayCluster", "", "--replicas head=2", "--replicas head=2: RayCluster team/llama has one head, always"},
		{"JobSet", "", "--replicas drive=2", "--replicas drive=2: JobSet team/llama has no role drive"},
		{"JobSet", "", "--replicas worker=2 --workers 2", "--replicas and --workers are both about worker"},
		{"JobSet", "Workers", "--workers 2", "--workers: JobSet team/llama has several roles that it may be about, worker among them"},
		{"JobSet", "Workers", "--worker-cpu 2", "--worker-cpu: JobSet team/llama has several roles that it may be about, worker among them"},
		{"JobSet", "", "--replicas worker", `--replicas "worker": must be ROLE=N, with N from 0 to 10000`},
		{"JobSet", "", "--replicas =2", `--replicas "=2": must be ROLE=N, with N from 0 to 10000`},
		{"JobSet", "", "--replicas worker=1 --replicas Worker=2", "--replicas has two numbers for worker"},
	} {
		if _, err := parseResize(t, tt.line).Change(resized(t, tt.kind, tt.role)); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v", tt.line, err)
		}
	}
}

func TestDevicesOfResize(t *testing.T) {
	for line, want := range map[string]string{
		"--device rdma=1":                              `"rdma" is neither an extended resource`,
		"--device hugepages-1Gi=1536Mi":                "with an amount of whole pages",
		"--device hugepages-1Gi":                       "with an amount of whole pages",
		"--device hugepages-big=1Gi":                   "is neither an extended resource",
		"--device hugepages-2Mi=512Mi":                 "",
		"--device rdma/hca=-1":                         "with a whole number from 0 on",
		"--device rdma/hca=x":                          "with a whole number from 0 on",
		"--device nvidia.com/gpu=1":                    "this resource is what --gpus counts",
		"--device rdma/hca=1 --device rdma/hca=2":      "is given twice",
		"--device rdma/hca=0 --device example.com/a=2": "",
	} {
		if err := parseResize(t, line).Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

// The flags of resize mean what those of submit do: which exist for how many members, and for which roles --gpus is.
func TestResizeFlagsAreThoseOfSubmit(t *testing.T) {
	for _, k := range kinds() {
		for _, r := range k.roles() {
			if r.count != resize.CountFlag(r.Name) || r.trains != resize.Trains(r.Name) {
				t.Errorf("%s, %s: flag %q, trains %t", k.name, r.Name, resize.CountFlag(r.Name), resize.Trains(r.Name))
			}
			if parseResize(t, "").role(r.Name) == nil {
				t.Errorf("%s: resize has no flags of %s", k.name, r.Name)
			}
		}
	}
}

// A setting is a default of jobs to come: of no flag does it change a job that is there.
func TestSettingsResizeNothing(t *testing.T) {
	flags := pflag.NewFlagSet("resize", pflag.ContinueOnError)
	f := NewResizeFlags(flags)
	examples := map[string]string{
		resize.FlagDevice: "rdma/hca=1", resize.FlagReplicas: "2", resize.FlagNodeSelector: "a=b", resize.FlagToleration: "d=e:NoSchedule",
		resize.FlagGPUResource: "amd.com/gpu", resize.FlagQueue: "night", resize.FlagPriorityClass: "low",
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		value := cmp.Or(examples[flag.Name], "3")
		if flag.Value.Type() == "quantity" && !strings.HasSuffix(flag.Name, resize.FlagCPU) {
			value = "3Gi"
		}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			if err := list.Replace([]string{value}); err != nil {
				t.Fatal(err)
			}
		} else if err := flag.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	})
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	for kind, role := range map[string]string{"TFJob": "PS", "JobSet": "Workers"} {
		if c, err := f.Change(resized(t, kind, role)); err != nil || !resize.Same(c, resize.Change{}) {
			t.Errorf("%s: %v, %+v", kind, err, c)
		}
	}
}
