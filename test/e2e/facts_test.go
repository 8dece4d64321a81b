package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/members"
)

// What public guides recorded of two jobs on four GPUs, and of a job that finds
// half of the GPUs that it needs.
const (
	contendedDefault = "tf-job-1-ps-0 Running, tf-job-1-worker-0 Running, tf-job-1-worker-1 Running, tf-job-1-worker-2 Running, " +
		"tf-job-2-ps-0 Running, tf-job-2-worker-0 Running, tf-job-2-worker-1 Pending"
	contendedGang = "tf-job-1-ps-0 Running, tf-job-1-worker-0 Running, tf-job-1-worker-1 Running, tf-job-1-worker-2 Running, " +
		"tf-job-2-ps-0 Pending, tf-job-2-worker-0 Pending, tf-job-2-worker-1 Pending"
	freed        = "tf-job-2-ps-0 Running, tf-job-2-worker-0 Running, tf-job-2-worker-1 Running"
	shortDefault = "tf-smoke-gpu-ps-0 Running, tf-smoke-gpu-worker-0 Running, tf-smoke-gpu-worker-1 Running, " +
		"tf-smoke-gpu-worker-2 Pending, tf-smoke-gpu-worker-3 Pending"
	shortGang = "tf-smoke-gpu-ps-0 Pending, tf-smoke-gpu-worker-0 Pending, tf-smoke-gpu-worker-1 Pending, " +
		"tf-smoke-gpu-worker-2 Pending, tf-smoke-gpu-worker-3 Pending"
	enough = "tf-smoke-gpu-ps-0 Running, tf-smoke-gpu-worker-0 Running, tf-smoke-gpu-worker-1 Running, " +
		"tf-smoke-gpu-worker-2 Running, tf-smoke-gpu-worker-3 Running"
)

// The demo's own acts, with the tables that the guides recorded.
func TestRecordedFacts(t *testing.T) {
	t.Parallel()
	t.Run("default scheduler", func(t *testing.T) {
		stage := newStage(t, defaultScheduler())
		playActs(t, stage, [][]string{{contendedDefault, freed}, {shortDefault, enough}}, [][]int64{{1, 0}, {4, 0}})
	})
	t.Run("gang scheduler", func(t *testing.T) {
		stage := newStage(t, gangScheduler("scheduler-plugins"))
		for _, dialect := range []string{"scheduler-plugins", "labels"} {
			t.Run(dialect, func(t *testing.T) {
				stage.Scheduler = gangScheduler(dialect)
				playActs(t, stage, [][]string{{contendedGang, freed}, {shortGang, enough}}, [][]int64{{0, 0}, {0, 0}})
			})
		}
		t.Run("F1: room for all but two", func(t *testing.T) {
			stage.Scheduler = gangScheduler("scheduler-plugins")
			roomForAllButTwo(t, stage)
		})
	})
}

func playActs(t *testing.T, stage *demo.Stage, want [][]string, idle [][]int64) {
	for i, act := range demo.Acts() {
		seen, err := act.Play(t.Context(), stage)
		if err != nil {
			t.Fatalf("%s: %v", act.Title, err)
		}
		for moment, caption := range act.Moments {
			if got := seen[moment].String(); got != want[i][moment] {
				t.Errorf("%s, %s:\n%s\nwant:\n%s", act.Title, caption, got, want[i][moment])
			}
			if got := demo.Idle(seen[moment]); got != idle[i][moment] {
				t.Errorf("%s, %s: %d GPUs held for nothing, want %d", act.Title, caption, got, idle[i][moment])
			}
		}
	}
}

// F1: a job of 6 pods with room for 4 stays wholly pending.
func roomForAllButTwo(t *testing.T, stage *demo.Stage) {
	ctx := t.Context()
	must(t, stage.AddNodes(ctx, 1, 4))
	must(t, stage.Submit(ctx, "six", "--workers", "6", "--gpus", "1"))
	seen, err := stage.Decided(ctx, 6)
	must(t, err)
	if got := seen.Count(members.Pending); got != 6 {
		t.Errorf("%d of 6 pending: %s", got, seen)
	}
	must(t, stage.Delete(ctx, "six"))
	must(t, stage.RemoveNodes(ctx, "node-1"))
}

// F4, as every guide warns: under the default scheduler a waiting pod takes the
// place of a member that died, and the rest of the gang holds its GPUs for
// nothing.
func TestDefaultSchedulerGivesADeadMembersPlaceAway(t *testing.T) {
	t.Parallel()
	stage := newStage(t, defaultScheduler())
	ctx := t.Context()
	must(t, stage.AddNodes(ctx, 2, 2))
	must(t, stage.Submit(ctx, "llama", "--workers", "4", "--gpus", "1", "--restart-policy", "ExitCode"))
	_, err := stage.WaitFor(ctx, func(s members.List) bool { return s.Count(members.Running) == 4 })
	must(t, err)

	pods := stage.Client().CoreV1().Pods(demo.Namespace)
	filler := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "filler", Labels: map[string]string{
			"training.kubeflow.org/job-name": "filler", "training.kubeflow.org/replica-type": "pod", "training.kubeflow.org/replica-index": "0",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "filler", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}},
		}}},
	}
	_, err = pods.Create(ctx, filler, metav1.CreateOptions{})
	must(t, err)
	// The scheduler does not try a pod again for a second after it failed, and in
	// that second the replacement would win.
	eventually(t, "filler may be tried again", func(ctx context.Context) bool {
		pod, err := pods.Get(ctx, "filler", metav1.GetOptions{})
		if err != nil {
			return false
		}
		_, refused := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
		return refused != nil && refused.Status == corev1.ConditionFalse && time.Since(refused.LastTransitionTime.Time) > 3*time.Second
	})

	// It is killed, as by a node that runs out of memory: the operator replaces
	// members that end with a code from 128 on.
	die := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"137",%q:%q}}}`,
		kubelet.ExitCodeAnnotation, kubelet.EndsAtAnnotation, time.Now().UTC().Format(time.RFC3339))
	_, err = pods.Patch(ctx, "llama-worker-2", types.MergePatchType, die, metav1.PatchOptions{})
	must(t, err)
	seen, err := stage.WaitFor(ctx, func(s members.List) bool {
		return s.Job("filler").Count(members.Running) == 1 && s.Job("llama").Count(members.Pending) == 1
	})
	must(t, err)
	llama := seen.Job("llama")
	if llama.Count(members.Running) != 3 || !llama.Partial() || llama.Held() != 3 {
		t.Errorf("want 3 members that hold 3 GPUs for nothing: %s", llama)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
