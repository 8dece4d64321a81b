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

	"github.com/gangctl/gangctl/pkg/await"
	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/render"
)

// parse returns what `gangctl submit tf ARGS` would work with.
func parse(t *testing.T, args ...string) (*TFOptions, error) {
	t.Helper()
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	var got *TFOptions
	cmd := NewTFCommand(&factory.Factory{IO: io, Args: args, Suffix: func() string { return "abcde" }}, func(_ context.Context, o *TFOptions) error {
		got = o
		return nil
	})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return got, err
}

func TestSpec(t *testing.T) {
	worker := func(r render.Role) render.Role {
		r.Type = kubeflowv1.TFJobReplicaTypeWorker
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
			s.MinAvailable, s.Scheduler, s.PriorityClass, s.WorkingDir = 4, "other", "high", "/w"
		}},
		{"a --image i --chief 1 --ps 2 --ps-image p --ps-gpus 1 --gpus 2 --chief-gpus 0 --evaluator 1", func(s *render.Spec) {
			s.Roles[0] = render.Role{Type: "Chief", Replicas: 1, Image: "i"}
			s.Roles[1] = render.Role{Type: "PS", Replicas: 2, Image: "p", GPUs: 1}
			s.Roles[2] = worker(render.Role{Image: "i", GPUs: 2})
			s.Roles[3] = render.Role{Type: "Evaluator", Replicas: 1, Image: "i"}
			s.MinAvailable = 5
		}},
		{"a --worker-image i --dialect none", func(s *render.Spec) { s.Dialect, s.Scheduler = render.NoGang, "" }},
		{"a --image i --dialect none --scheduler mine", func(s *render.Spec) { s.Dialect, s.Scheduler = render.NoGang, "mine" }},
		{"a --image i --dialect labels --workers 3 --min-available 2", func(s *render.Spec) {
			s.Roles[2] = worker(render.Role{Replicas: 3, Image: "i"})
			s.Dialect, s.MinAvailable = gang.Labels, 2
		}},
		{"a --image i --env A=b=c --env Z= --label team=x --annotation n=1,2", func(s *render.Spec) {
			s.Env = []corev1.EnvVar{{Name: "A", Value: "b=c"}, {Name: "Z"}}
			s.Labels, s.Annotations = map[string]string{"team": "x"}, map[string]string{"n": "1,2"}
		}},
		{"a --image i --restart-policy ExitCode --clean-pod-policy None -- --workers 9 -- x", func(s *render.Spec) {
			s.RestartPolicy, s.CleanPodPolicy = kubeflowv1.RestartPolicyExitCode, kubeflowv1.CleanPodPolicyNone
			s.Command = []string{"--workers", "9", "--", "x"}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			o, err := parse(t, strings.Fields(tt.args)...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := o.spec("research")
			if err != nil {
				t.Fatal(err)
			}
			want := render.Spec{
				Name: "a", Namespace: "research", GPUResource: "nvidia.com/gpu",
				Roles:         []render.Role{{Type: "Chief", Image: "i"}, {Type: "PS", Image: "i"}, worker(render.Role{Image: "i"}), {Type: "Evaluator", Image: "i"}},
				RestartPolicy: kubeflowv1.RestartPolicyOnFailure, CleanPodPolicy: kubeflowv1.CleanPodPolicyRunning,
				Scheduler: "gang-scheduler", Dialect: gang.SchedulerPlugins, MinAvailable: 1,
				Labels: map[string]string{}, Annotations: map[string]string{}, CommandLine: "gangctl " + tt.args,
			}
			tt.want(&want)
			for i := range want.Roles { // a role that is not there needs nothing
				if want.Roles[i].Replicas == 0 {
					got.Roles[i] = want.Roles[i]
				}
			}
			if len(got.Command) == 0 {
				got.Command = nil
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestWaitFlag(t *testing.T) {
	for args, want := range map[string]await.Target{"": "", "--wait": await.Running, "--wait=scheduled": await.Scheduled, "--wait=done --timeout 5m": await.Done} {
		o, err := parse(t, append([]string{"a", "--image", "i"}, strings.Fields(args)...)...)
		if err != nil || o.Wait != want {
			t.Errorf("%q: got %+v, %v", args, o, err)
		}
	}
}
