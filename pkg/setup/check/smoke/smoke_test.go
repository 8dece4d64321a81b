package smoke

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// cluster is one in which faults can be had that a real one has seldom. What a healthy one does is tested on the sandbox.
type cluster struct {
	typed   *fake.Clientset
	dynamic *dynamicfake.FakeDynamicClient
	made    []*corev1.Pod
}

// newCluster returns a cluster that does something with each pod as it is created.
func newCluster(place func(index int, p *corev1.Pod)) *cluster {
	c := &cluster{typed: fake.NewClientset(), dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{schedulerplugins.GVR(): "PodGroupList"})}
	c.typed.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		pod := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		place(len(c.made), pod)
		c.made = append(c.made, pod.DeepCopy())
		return false, nil, nil
	})
	return c
}

func (c *cluster) refuse(verb, resource string, err error) {
	react := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	c.typed.PrependReactor(verb, resource, react)
	c.dynamic.PrependReactor(verb, resource, react)
}

func (c *cluster) run(ctx context.Context, t *testing.T) (check.Outcome, *check.Placed, error) {
	t.Helper()
	return Run(ctx, &kube.Client{Typed: c.typed, Dynamic: c.dynamic}, Options{Name: "gangctl-smoke-x", Namespace: "team", Scheduler: "gang-scheduler", Image: Image,
		Timeout: 300 * time.Millisecond, Now: time.Now, Progress: func(string) {}})
}

// left counts what the run has left behind.
func (c *cluster) left(t *testing.T) int {
	t.Helper()
	pods, err := c.typed.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := c.dynamic.Resource(schedulerplugins.GVR()).List(t.Context(), metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if groups == nil {
		return len(pods.Items)
	}
	return len(pods.Items) + len(groups.Items)
}

func runs(_ int, p *corev1.Pod) {
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "x", errors.New(`User "ann" cannot create resource "`+resource+`" in API group "" in the namespace "team"`))
}

func TestRun(t *testing.T) {
	tests := []struct {
		name     string
		place    func(int, *corev1.Pod)
		change   func(*cluster)
		status   check.Status
		wantText string
	}{
		{name: "both run", place: runs, status: check.OK, wantText: "both running after"},
		{name: "no scheduler places them", place: func(_ int, p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/2 nodes are available"}}
		}, status: check.Fail, wantText: "bound no pod in 300ms: 0/2 nodes are available"},
		{name: "one is placed", place: func(i int, p *corev1.Pod) {
			if i == 0 {
				runs(i, p)
			}
		}, status: check.Fail, wantText: "bound 1 of 2 pods: it does not place gangs whole"},
		{name: "the image cannot be pulled", place: func(_ int, p *corev1.Pod) {
			p.Spec.NodeName = "n1"
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no route"}}}}
		}, status: check.Fail, wantText: "but 0 of 2 run after 300ms: ErrImagePull: no route"},
		{name: "they fail", place: func(_ int, p *corev1.Pod) {
			p.Spec.NodeName, p.Status.Phase, p.Status.Reason = "n1", corev1.PodFailed, "Evicted"
		}, status: check.Fail, wantText: "a pod failed Evicted"},
		{name: "no right to declare a gang", place: runs, change: func(c *cluster) { c.refuse("create", "podgroups", forbidden("podgroups")) }, status: check.Unknown, wantText: "create PodGroup team/gangctl-smoke-x: "},
		{name: "no right to create pods", place: runs, change: func(c *cluster) { c.refuse("create", "pods", forbidden("pods")) }, status: check.Unknown, wantText: "create Pod team/gangctl-smoke-x-0: "},
		{name: "a quota", place: runs, change: func(c *cluster) {
			c.refuse("create", "pods", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("exceeded quota: q")))
		}, status: check.Fail, wantText: "exceeded quota: q"},
		{name: "no right to delete them", place: runs, change: func(c *cluster) { c.refuse("delete", "podgroups", forbidden("podgroups")) }, status: check.Fail, wantText: "the gang is not deleted: delete PodGroup team/gangctl-smoke-x: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a busy machine does not use up the timeout
				c := newCluster(tt.place)
				if tt.change != nil {
					tt.change(c)
				}
				o, placed, err := c.run(t.Context(), t)
				if err != nil || placed == nil {
					t.Fatal(err)
				}
				var messages []string
				for _, f := range o.Findings {
					messages = append(messages, f.Message)
				}
				if o.Status != tt.status || !strings.Contains(strings.Join(messages, "\n"), tt.wantText) {
					t.Errorf("%s: %q", o.Status, messages)
				}
				if n := c.left(t); n > 0 && tt.name != "no right to delete them" {
					t.Errorf("%d objects are left", n)
				}
			})
		})
	}
}

// Where no PodGroups are served, labels declare the gang.
func TestWithoutPodGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(runs)
		c.refuse("create", "podgroups", apierrors.NewGenericServerResponse(404, "POST", schema.GroupResource{Group: "scheduling.x-k8s.io", Resource: "podgroups"}, "", "404 page not found", 0, true))
		o, placed, err := c.run(t.Context(), t)
		if err != nil || o.Status != check.OK || placed.Dialect != "labels" || c.made[0].Labels[labels.NameLabel] != "gangctl-smoke-x" || c.made[0].Labels[labels.MinAvailableLabel] != "2" {
			t.Errorf("%v %s %+v %v", err, o.Status, placed, c.made[0].Labels)
		}
	})
}

// An interrupt leaves nothing behind, either.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newCluster(func(i int, _ *corev1.Pod) {
			if i == 1 {
				cancel()
			}
		})
		_, _, err := c.run(ctx, t)
		if e := failure.From(err); e == nil || e.Code != failure.CodeInterrupted || len(c.made) != Members {
			t.Errorf("got %v, %d pods made", err, len(c.made))
		}
		if n := c.left(t); n > 0 {
			t.Errorf("%d objects are left", n)
		}
	})
}

// The pods comply with the strictest pod security, and do not outlive the test for long.
func TestPod(t *testing.T) {
	p := Options{Name: "g", Namespace: "team", Image: "x", Timeout: time.Minute}.pod(0, "scheduler-plugins")
	c := p.Spec.Containers[0].SecurityContext
	if !*p.Spec.SecurityContext.RunAsNonRoot || p.Spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *c.AllowPrivilegeEscalation || c.Capabilities.Drop[0] != "ALL" {
		t.Errorf("got %+v %+v", p.Spec.SecurityContext, c)
	}
	if *p.Spec.ActiveDeadlineSeconds != 120 || *p.Spec.AutomountServiceAccountToken {
		t.Errorf("got %+v", p.Spec)
	}
}
