package submit

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/submit/render"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// parseKind returns what `gangctl submit KIND ARGS` would work with.
func parseKind(t *testing.T, arg string, args ...string) (*Options, *pflag.FlagSet, error) {
	t.Helper()
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == arg })
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	var got *Options
	cmd := newKindCommand(&cmdutil.Factory{IO: io, Args: args, Suffix: func() string { return "abcde" }}, kinds()[i], func(_ context.Context, o *Options) error {
		got = o
		return nil
	})
	err := commandtest.Execute(t.Context(), cmd, args...)
	return got, cmd.Flags(), err
}

func cpus(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// The same line means as many GPUs in every kind; what is different is what the kind makes of it.
func TestRolesOfKinds(t *testing.T) {
	tests := []struct {
		kind, args string
		want       []render.Role
		minimum    int32
	}{
		{"pytorch", "a --image i --workers 4 --gpus 2", []render.Role{{Name: "Master", Replicas: 1, Image: "i", GPUs: 2}, {Name: "Worker", Replicas: 3, Image: "i", GPUs: 2}}, 4},
		{"pytorch", "a --image i", []render.Role{{Name: "Master", Replicas: 1, Image: "i"}, {Name: "Worker", Image: "i"}}, 1},
		{"mpi", "a --image i --workers 4 --gpus 2 --launcher-image l", []render.Role{{Name: "Launcher", Replicas: 1, Image: "l"}, {Name: "Worker", Replicas: 4, Image: "i", GPUs: 2}}, 5},
		{"mpi", "a --image i --workers 4 --launcher-gpus 1 --worker-gpus 3", []render.Role{{Name: "Launcher", Replicas: 1, Image: "i", GPUs: 1}, {Name: "Worker", Replicas: 4, Image: "i", GPUs: 3}}, 5},
		{"ray", "a --image i --workers 4 --gpus 2 --head-cpu 2", []render.Role{{Name: "head", Replicas: 1, Image: "i", CPU: cpus("2")}, {Name: "worker", Replicas: 4, Image: "i", GPUs: 2}}, 5},
		{"job", "a --image i --workers 4 --gpus 2 --min-available 3", []render.Role{{Name: "Worker", Replicas: 4, Image: "i", GPUs: 2}}, 3},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.args, func(t *testing.T) {
			o, _, err := parseKind(t, tt.kind, strings.Fields(tt.args)...)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := o.spec("research", o.request().Default())
			if err != nil || spec.Gang.MinAvailable != tt.minimum {
				t.Errorf("minimum %d, %v", spec.Gang.MinAvailable, err)
			}
			if diff := cmp.Diff(tt.want, spec.Roles); diff != "" {
				t.Error(diff)
			}
			if _, err := o.objects("research", o.request().Default()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Slots follow GPUs unless they are set.
func TestSlots(t *testing.T) {
	for args, want := range map[string]int32{"": 1, "--gpus 8": 8, "--gpus 8 --slots-per-worker 2": 2} {
		o, _, err := parseKind(t, "mpi", append([]string{"a", "--image", "i"}, strings.Fields(args)...)...)
		if err != nil || o.SlotsPerWorker != want {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
}

// Flags are the same in every kind, but for what only some kinds can mean.
func TestFlagsAreTheSame(t *testing.T) {
	own := map[string][]string{
		"tf":      {"ps", "chief", "evaluator", "clean-pod-policy"},
		"pytorch": {"nproc-per-node", "clean-pod-policy"},
		"mpi":     {"slots-per-worker", "clean-pod-policy"},
		"job":     {"framework", "nproc-per-node"},
	}
	help := map[string]string{}
	for _, k := range kinds() {
		_, flags, err := parseKind(t, k.name, "a", "--image", "i")
		if err != nil {
			t.Fatal(err)
		}
		var common []string
		flags.VisitAll(func(f *pflag.Flag) {
			for _, r := range k.roles() {
				for _, suffix := range append(resize.FlagRequests(), "image") {
					if f.Name == r.flag()+"-"+suffix {
						return
					}
				}
			}
			if slices.Contains(own[k.name], f.Name) || f.Name == "help" {
				return
			}
			common = append(common, f.Name+" "+f.Shorthand)
			// How many members --workers are, and which of them --gpus is about, depends on the kind.
			if usage, ok := help[f.Name]; ok && usage != f.Usage && !slices.Contains([]string{"workers", "gpus", "name", "restart-policy", "ttl"}, f.Name) {
				t.Errorf("--%s: %q of one kind is %q of %s", f.Name, usage, f.Usage, k.name)
			}
			help[f.Name] = f.Usage
		})
		for _, name := range own[k.name] {
			if flags.Lookup(name) == nil {
				t.Errorf("submit %s has no --%s", k.name, name)
			}
		}
		if want := help["common"]; want != "" && want != strings.Join(common, ",") {
			t.Errorf("submit %s: %v\nothers: %s", k.name, common, want)
		}
		help["common"] = strings.Join(common, ",")
	}
}

func TestKindRefusals(t *testing.T) {
	long := strings.Repeat("a", 60)
	tests := []struct{ kind, args, want string }{
		{"pytorch", "a --nproc-per-node many", `--nproc-per-node "many": must be auto, gpu, cpu, or a whole number from 1 to 4096`},
		{"pytorch", "a --nproc-per-node 0", `--nproc-per-node "0": must be auto, gpu, cpu`},
		{"pytorch", "a --env RANK=1", "--env RANK has no effect: the training operator sets it for every member"},
		{"pytorch", "a --ps 1", "unknown flag: --ps"},
		{"pytorch", long, `is too long: the pod and service ` + long + `-master-0 would have 69 characters`},
		{"mpi", long, `is too long: the pod and service ` + long + `-launcher would have 69 characters`},
		{"mpi", "a --slots-per-worker 0", "--slots-per-worker"},
		{"mpi", "a --workers 0", "--workers"},
		{"mpi", "a --min-available 3", "--min-available 3: the job has 2 members (1 launcher, 1 worker); must be from 1 to 2"},
		{"mpi", "a --restart-policy Always", "--restart-policy"},
		{"mpi", "a --env OMPI_MCA_plm_rsh_agent=x", "--env OMPI_MCA_plm_rsh_agent has no effect: the mpi operator sets it"},
		{"job", long + "abc --workers 100", `is too long: the pod and service ` + long + `abc-99 would have 66 characters`},
		{"job", "a --nproc-per-node 2", "--nproc-per-node has no effect with --framework none"},
		{"job", "a --framework jax", "--framework"},
		{"job", "a --framework tensorflow --workers 2 --env TF_CONFIG=x", "--env TF_CONFIG has no effect: gangctl sets it for every member"},
		{"job", "a --framework torch --env MASTER_ADDR=x", "--env MASTER_ADDR has no effect: gangctl sets it for every member"},
		{"job", "a --env JOB_COMPLETION_INDEX=x", "--env JOB_COMPLETION_INDEX has no effect: gangctl sets it"},
		{"job", "a --clean-pod-policy All", "unknown flag: --clean-pod-policy"},
		{"job", "a --worker-gpus 2", "unknown flag: --worker-gpus"},
		{"tf", "a --workers 2 --env TF_CONFIG=x", "--env TF_CONFIG has no effect: the training operator sets it for every member"},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" "+tt.args, func(t *testing.T) {
			_, _, err := parseKind(t, tt.kind, append([]string{"--image", "i"}, strings.Fields(tt.args)...)...)
			if got := failure.From(err); got == nil || !strings.Contains(got.Message, tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A kind by the name that its objects have, or by a slip, is not one of a file.
func TestKindMeant(t *testing.T) {
	names := []string{"tf", "pytorch", "mpi", "ray", "job", "train"}
	for typed, want := range map[string]string{"tfjob": "tf", "PyTorchJob": "pytorch", "torch": "pytorch", "pytroch": "pytorch", "trainjob": "train", "jobs": "job", "jobset": "", "xgboost": "", "frobnicate": ""} {
		if got := kindMeant(typed, names); got != want {
			t.Errorf("%s: got %q", typed, got)
		}
	}
	_, _, failed := typeLine(t.Context(), nil, "", "submit", "tfjob", "llama")
	if failed == nil || failed.Hint != "did you mean gangctl submit tf?" {
		t.Errorf("got %+v", failed)
	}
}
