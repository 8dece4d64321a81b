package submit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/watch"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// parse returns what `gangctl submit tf ARGS` would work with.
func parse(t *testing.T, args ...string) (*Options, error) {
	t.Helper()
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	var got *Options
	cmd := newKindCommand(&cmdutil.Factory{IO: io, Args: args, Suffix: func() string { return "abcde" }}, tfKind(), func(_ context.Context, o *Options) error {
		got = o
		return nil
	})
	err := commandtest.Execute(t.Context(), cmd, args...)
	return got, err
}

func TestSpec(t *testing.T) {
	worker := func(r render.Role) render.Role {
		r.Name = "Worker"
		if r.Replicas == 0 {
			r.Replicas = 1
		}
		return r
	}
	tests := []struct {
		args string
		want func(*render.Spec)
	}{
		{"--image i", func(s *render.Spec) { s.Name = "tf-abcde" }},
		{"--name a --image i", func(*render.Spec) {}},
		{"a --image i --workers 4 --gpus 2 --scheduler other --priority-class high --working-dir /w", func(s *render.Spec) {
			s.Roles[2] = worker(render.Role{Replicas: 4, Image: "i", GPUs: 2})
			s.Gang.MinAvailable, s.Pod.Scheduler, s.Pod.PriorityClass, s.Pod.WorkingDir = 4, "other", "high", "/w"
		}},
		{"a --image i --chief 1 --ps 2 --ps-image p --ps-gpus 1 --gpus 2 --chief-gpus 0 --evaluator 1", func(s *render.Spec) {
			s.Roles[0] = render.Role{Name: "Chief", Replicas: 1, Image: "i"}
			s.Roles[1] = render.Role{Name: "PS", Replicas: 2, Image: "p", GPUs: 1}
			s.Roles[2] = worker(render.Role{Image: "i", GPUs: 2})
			s.Roles[3] = render.Role{Name: "Evaluator", Replicas: 1, Image: "i"}
			s.Gang.MinAvailable = 5
		}},
		{"a --worker-image i --dialect none", func(s *render.Spec) { s.Gang.Dialect, s.Pod.Scheduler = gang.None, "" }},
		{"a --image i --dialect none --scheduler mine", func(s *render.Spec) { s.Gang.Dialect, s.Pod.Scheduler = gang.None, "mine" }},
		{"a --image i --dialect volcano", func(s *render.Spec) { s.Gang.Dialect, s.Pod.Scheduler = gang.Volcano, "volcano" }},
		{"a --image i --dialect native", func(s *render.Spec) { s.Gang.Dialect, s.Pod.Scheduler = gang.Native, "" }},
		{"a --image i --dialect labels --workers 3 --min-available 2", func(s *render.Spec) {
			s.Roles[2] = worker(render.Role{Replicas: 3, Image: "i"})
			s.Gang.Dialect, s.Gang.MinAvailable = gang.Labels, 2
		}},
		{"a --image i --env A=b=c --env Z= --label team=x --annotation n=1,2", func(s *render.Spec) {
			s.Pod.Env = []corev1.EnvVar{{Name: "A", Value: "b=c"}, {Name: "Z"}}
			s.Labels, s.Annotations = map[string]string{"team": "x"}, map[string]string{"n": "1,2"}
		}},
		{"a --image i --restart-policy ExitCode --clean-pod-policy None -- --workers 9 -- x", func(s *render.Spec) {
			s.RestartPolicy, s.CleanPodPolicy = kubeflowv1.RestartPolicyExitCode, kubeflowv1.CleanPodPolicyNone
			s.Pod.Command = []string{"--workers", "9", "--", "x"}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			o, err := parse(t, strings.Fields(tt.args)...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.spec("research", o.request().Default())
			if err != nil {
				t.Fatal(err)
			}
			want := render.Spec{
				Name: "a", Namespace: "research", Pod: render.Pod{GPUResource: "nvidia.com/gpu", Scheduler: "gang-scheduler"},
				Gang:          render.GangSpec{Dialect: gang.SchedulerPlugins, MinAvailable: 1},
				Roles:         []render.Role{{Name: "Chief", Image: "i"}, {Name: "PS", Image: "i"}, worker(render.Role{Image: "i"}), {Name: "Evaluator", Image: "i"}},
				RestartPolicy: kubeflowv1.RestartPolicyOnFailure, CleanPodPolicy: kubeflowv1.CleanPodPolicyRunning,
				Labels: map[string]string{}, Annotations: map[string]string{}, CommandLine: strings.ReplaceAll(strings.ReplaceAll("gangctl "+tt.args, "--env A=b=c", "--env A=…"), "--env Z=", "--env Z=…"),
			}
			tt.want(&want)
			for i := range want.Roles { // a role that is not there needs nothing
				if want.Roles[i].Replicas == 0 {
					got.Roles[i] = want.Roles[i]
				}
			}
			if len(got.Pod.Command) == 0 {
				got.Pod.Command = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestWaitFlag(t *testing.T) {
	for args, want := range map[string]watch.Target{"": "", "--wait": watch.Running, "--wait=scheduled": watch.Scheduled, "--wait=done --timeout 5m": watch.Done} {
		o, err := parse(t, append([]string{"a", "--image", "i"}, strings.Fields(args)...)...)
		if err != nil || o.Wait != want {
			t.Errorf("%q: got %+v, %v", args, o, err)
		}
	}
}

// Only members that get an RDMA device may lock memory: the security level baseline refuses that.
func TestRDMAOfMembersThatTrain(t *testing.T) {
	stdout, _, err := submit(t.Context(), kubetest.New(t), "--ps", "1", "--evaluator", "1", "--workers", "2", "--rdma", "--dry-run=client", "-o", "yaml")
	if err != nil || strings.Count(stdout, "IPC_LOCK") != 1 {
		t.Errorf("got %v\n%s", err, stdout)
	}
}
