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

	"github.com/gangctl/gangctl/sandbox/demo"
	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/members"
)

// allNames are the schedulerNames of all dialects.
const allNames = "--serve=volcano,kube-batch,scheduler-plugins-scheduler,koord-scheduler,kai-scheduler"

// holdTTL is for how long the place of a dead member is kept: longer than a busy machine takes to see the death and its replacement.
const holdTTL = 20 * time.Second

// TestReplacement checks that the scheduler reserves the place of a dead member, in every
// dialect.
func TestReplacement(t *testing.T) {
	t.Parallel()
	c := newSharedCluster(t, twoNodes(), "--native-gangs")
	sched := startScheduler(t, c.DataDir, nil, map[string]string{"GangReplacement": fmt.Sprintf("{holdTTL: %s}", holdTTL)}, allNames)
	for _, w := range wires() {
		t.Run("T07, "+w.name, func(t *testing.T) { c.with(t, w).memberDies() })
	}
	for _, w := range []wire{wires()[1], wires()[7]} {
		t.Run("T07 without a replacement, "+w.name, func(t *testing.T) { c.with(t, w).withoutReplacement() })
		t.Run("a restart before the replacement comes, "+w.name, func(t *testing.T) { c.with(t, w).schedulerDies(sched) })
		t.Run("a death while no scheduler runs, "+w.name, func(t *testing.T) { c.with(t, w).memberDiesUnseen(sched) })
	}
}

// eight brings up a gang of eight on eight CPUs, and a single pod that waits, and
// returns their names. None is used twice: what is deleted late would be taken for
// another. end makes an end of them.
func (g team) eight() (gang, single string, end func()) {
	g.t.Helper()
	gang = unused(g.t)
	single = gang + "-s"
	g.defined()
	g.declare(gang, 8)
	g.members(gang, 8, 8)
	g.placed(g.t, g.names(gang, 8)...)
	g.create(g.t, plain(single, g.scheduler, "1"))
	g.waitMessage(g.t, single, "Insufficient cpu")
	return gang, single, func() {
		g.sweep(g.t)
		g.drop(gang)
	}
}

// replace creates a replacement of a member.
func (g team) replace(gang string) {
	g.t.Helper()
	name := gang + "-new"
	pod := plain(name, g.scheduler, "1")
	g.setGroup(pod, gang, 8)
	g.create(g.t, pod)
	g.placed(g.t, name)
}

func (c *cluster) kill(t *testing.T, name string) {
	t.Helper()
	must(t, c.client.CoreV1().Pods(space).Delete(t.Context(), name, now()))
}

// stays fails the test if a pod gets a node in a time.
func (c *cluster) stays(t *testing.T, name string, during time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(during); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if c.bound(t, name) != 0 {
			t.Fatalf("%s was let in", name)
		}
	}
}

func (g team) memberDies() {
	a, s, end := g.eight()
	defer end()
	g.kill(g.t, a+"-3")
	g.waitMessage(g.t, s, fmt.Sprintf("for the replacement of default/%s-3 (gang default/%s) until ", a, a))
	g.stays(g.t, s, 2*time.Second)
	g.replace(a)
	g.stays(g.t, s, time.Second)
}

func (g team) withoutReplacement() {
	usual := g.pace(g.t, g.scheduler)
	a, s, end := g.eight()
	defer end()
	died := time.Now()
	g.kill(g.t, a+"-3")
	g.waitMessage(g.t, s, "for the replacement of default/"+a+"-3")
	g.stays(g.t, s, holdTTL-time.Second-time.Since(died))
	g.placed(g.t, s)
	if late := time.Since(died); late > holdTTL+3*time.Second+4*usual {
		g.t.Errorf("s was bound %s after the death, want %s", late.Round(100*time.Millisecond), holdTTL)
	}
}

func (g team) schedulerDies(sched *ownScheduler) {
	a, s, end := g.eight()
	defer end()
	g.kill(g.t, a+"-3")
	g.waitMessage(g.t, s, "for the replacement of default/"+a+"-3")
	sched.stop()
	sched.start()
	g.stays(g.t, s, time.Second)
	g.replace(a)
	g.stays(g.t, s, time.Second)
}

func (g team) memberDiesUnseen(sched *ownScheduler) {
	a, s, end := g.eight()
	defer end()
	sched.stop()
	g.kill(g.t, a+"-3")
	sched.start()
	g.waitMessage(g.t, s, "for the replacement of a lost member (gang default/"+a+") until ")
	g.replace(a)
	g.stays(g.t, s, time.Second)
}

// F4: the operator replaces a worker that was killed, and the replacement gets
// the place, not the pod that waits for one. Compare
// TestDefaultSchedulerGivesADeadMembersPlaceAway.
func TestADeadMembersPlaceIsKept(t *testing.T) {
	t.Parallel()
	stage := newStage(t, gangScheduler("scheduler-plugins"))
	ctx := t.Context()
	must(t, stage.AddNodes(ctx, 2, 2))
	for _, dialect := range []string{"scheduler-plugins", "labels"} {
		t.Run(dialect, func(t *testing.T) {
			stage.Scheduler = gangScheduler(dialect)
			must(t, stage.Submit(ctx, "llama", "--workers", "4", "--gpus", "1", "--restart-policy", "ExitCode"))
			_, err := stage.WaitFor(ctx, func(s members.List) bool { return s.Count(members.Running) == 4 })
			must(t, err)
			filling := "filler-" + dialect
			filler := pod(filling, nil)
			filler.Labels = map[string]string{
				"training.kubeflow.org/job-name": filling, "training.kubeflow.org/replica-type": "pod", "training.kubeflow.org/replica-index": "0",
			}
			filler.Spec.Containers[0].Resources = corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
			create(t, stage, filler)
			explained(t, stage, filling, "Insufficient nvidia.com/gpu")

			pods := stage.Client().CoreV1().Pods(demo.Namespace)
			before, err := pods.Get(ctx, "llama-worker-2", metav1.GetOptions{})
			must(t, err)
			die := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"137",%q:%q}}}`,
				kubelet.ExitCodeAnnotation, kubelet.EndsAtAnnotation, time.Now().UTC().Format(time.RFC3339))
			_, err = pods.Patch(ctx, "llama-worker-2", types.MergePatchType, die, metav1.PatchOptions{})
			must(t, err)
			eventually(t, "another worker 2 runs", func(ctx context.Context) bool {
				after, err := pods.Get(ctx, "llama-worker-2", metav1.GetOptions{})
				return err == nil && after.UID != before.UID && after.Status.Phase == corev1.PodRunning
			})
			list, err := pods.List(ctx, metav1.ListOptions{})
			must(t, err)
			seen := members.Of(list.Items)
			if got := seen.Job("llama").Count(members.Running); got != 4 || seen.Job(filling).Count(members.Running) != 0 {
				t.Errorf("want llama whole and the filler pending: %s", seen)
			}
			must(t, stage.Delete(ctx, "llama"))
			bound(t, stage, filling)
			must(t, pods.Delete(ctx, filling, now()))
		})
	}
	nothingForbidden(t, stage)
}
