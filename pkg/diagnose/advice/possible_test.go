package advice_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Every change of a job waits for its pods to go. While one does not, because the node that would confirm it is dead, no other size helps.
func TestNoOtherSizeWhileAPodDoesNotGo(t *testing.T) {
	for name, test := range map[string]struct {
		left, silent time.Duration
		other        bool
	}{
		"going":                       {time.Minute, time.Minute, true},
		"going, and its node is dead": {time.Minute, 2 * time.Hour, false},
		"should have gone for long":   {-time.Hour, 2 * time.Hour, false},
	} {
		c := clustertest.New().Nodes(4, 8)
		c.S.Nodes[1].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: clustertest.Ago(test.silent)}}
		c.Runs("busy", 8, "n4")
		c.Add(clustertest.Gang{Namespace: "team", Name: "gang", Workers: 3, GPUs: 8, Nodes: []string{"n1", "n2", "n3"}, Age: 3 * time.Hour, Pod: func(i int, p *corev1.Pod) {
			if i == 1 {
				at := metav1.NewTime(clustertest.Now.Add(test.left))
				p.DeletionTimestamp = &at
			}
		}})
		_, found := look(t, c, advice.Options{})
		other := slices.ContainsFunc(found.Actions, func(a answer.Action) bool { return a.Kind == answer.Fewer })
		if other != test.other {
			t.Errorf("%s: fewer members offered: %t\n%+v", name, other, found.Actions)
		}
	}
}

// Where a device plugin fails on one of the nodes that are needed, what the others have is enough for something.
func TestSizesWithoutTheNodesOfADevicePlugin(t *testing.T) {
	c := clustertest.New().Nodes(2, 8)
	sick := c.S.Nodes[1]
	for key, value := range map[string]string{"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "8"} {
		sick.Labels[key] = value
	}
	for _, list := range []corev1.ResourceList{sick.Status.Allocatable, sick.Status.Capacity} {
		list["nvidia.com/gpu"] = resource.MustParse("0")
	}
	c.Put(&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "nvidia-device-plugin"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 1}})
	c.Add(clustertest.Gang{Namespace: "team", Name: "gang", Workers: 2, GPUs: 8})
	base, found := look(t, c, advice.Options{})
	if base.Primary == nil || base.Primary.Code != answer.NoDevicePlugin {
		t.Fatalf("got %+v", base.Primary)
	}
	if got := offers(found.Actions, answer.Fewer); !slices.Equal(got, []string{"Worker.replicas=1"}) {
		t.Errorf("fewer: %v", got)
	}
}

// Members that are made several at a time, as the hosts of a replica or the pods of each of several Jobs are, become fewer by so many.
func TestFewerOfWhatIsMadeSeveralAtATime(t *testing.T) {
	for kind, several := range map[string]func(map[string]any){
		"RayCluster": func(job map[string]any) {
			group := job["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
			group["replicas"], group["numOfHosts"] = int64(2), int64(4)
		},
		"JobSet": func(job map[string]any) {
			replicated := job["spec"].(map[string]any)["replicatedJobs"].([]any)[0].(map[string]any)
			replicated["replicas"] = int64(2)
			spec := replicated["template"].(map[string]any)["spec"].(map[string]any)
			spec["parallelism"], spec["completions"] = int64(4), int64(4)
		},
	} {
		c := clustertest.New().Nodes(6, 8)
		c.Add(clustertest.Gang{Kind: kind, Namespace: "team", Name: "gang", Workers: 8, GPUs: 8, Missing: 8, Job: several})
		base, found := look(t, c, advice.Options{})
		if got := offers(found.Actions, answer.Fewer); len(got) != 1 || !strings.HasSuffix(got[0], ".replicas=4") {
			t.Errorf("%s: %v of %v", kind, got, base.Gang.Roles)
		}
	}
}
