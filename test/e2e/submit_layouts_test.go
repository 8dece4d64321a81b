package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/sandbox/kubelet"
)

// today is the version that needs no conversion.
var today = regexp.MustCompile(`kubeflow\.org/v1"?\n`)

// TestSubmitLayouts submits manifests of every age as they are: each runs as a gang under the scheduler's name that it requests,
// and finishes. Room comes in steps, and at each of them a gang runs as a whole or holds nothing at all.
func TestSubmitLayouts(t *testing.T) {
	t.Parallel()
	// A cluster of its own: its scheduler serves the names of old manifests.
	c := newCluster(t, "--nodes=0", "--run-for=0", "--serve=kube-batch,volcano")
	t.Run("what every flag makes", c.goldens)
	t.Run("layouts", func(t *testing.T) { c.layouts(t, "testdata/layouts") })
	t.Run("guides", func(t *testing.T) { c.layouts(t, "testdata/guides") })
}

// layouts submits every file of a directory, each to a namespace of its own.
func (c *cluster) layouts(t *testing.T, dir string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	must(t, err)
	if len(paths) != 5 {
		t.Fatalf("%d files in %s, want 5", len(paths), dir)
	}
	// One node without GPUs: parameter servers alone would fit.
	c.node(t, "without", "0")
	jobs := map[string]string{} // namespace: file
	for _, path := range paths {
		namespace := strings.TrimSuffix(filepath.Base(path), ".yaml")
		namespace = strings.ReplaceAll(namespace, ".", "-")
		text, err := os.ReadFile(path)
		must(t, err)
		args := []string{"submit", "-f", path}
		if strings.Contains(string(text), "namespace: \"kubeflow\"") || strings.Contains(string(text), "namespace: kubeflow") {
			namespace = "kubeflow"
		} else {
			args = append(args, "-n", namespace)
		}
		c.home(t, namespace)
		stdout, stderr, code := gangctlAt(t, c.Kubeconfig, args...)
		if code != 0 || !strings.HasPrefix(stdout, "tfjob.kubeflow.org/") {
			t.Fatalf("%s: exit code %d\n%s", path, code, stderr)
		}
		if converted := strings.Contains(stderr, "is a TFJob of kubeflow.org/v1 now"); converted == today.Match(text) {
			t.Errorf("%s: %s", path, stderr)
		}
		jobs[namespace] = path
	}
	namespaces := slices.Sorted(maps.Keys(jobs))
	c.whole(t, namespaces, 13, 0)
	c.node(t, "seven", "7") // enough for four of them: the fifth wants 8
	c.whole(t, namespaces, 13, 4)
	c.node(t, "six", "6")
	c.whole(t, namespaces, 13, 5)
	c.startedTogether(t, namespaces)
	c.finish(t, namespaces)
	for _, namespace := range namespaces {
		must(t, c.dynamic.Resource(tfjobs).Namespace(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
	eventually(t, "the jobs' pods are gone", func(ctx context.Context) bool {
		pods, err := c.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0
	})
	for _, name := range []string{"without", "seven", "six"} {
		_, stderr, err := c.Run("node", "remove", name)
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr)
		}
	}
}

// node adds one with the label that some guide picks nodes by.
func (c *cluster) node(t *testing.T, name, gpus string) {
	t.Helper()
	_, stderr, err := c.Run("node", "add", name, "--gpus", gpus, "--cpu", "8", "--memory", "16Gi", "--label", "gpu=1060g1")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
}

// home is a namespace with the account that pods run under.
func (c *cluster) home(t *testing.T, name string) {
	t.Helper()
	_, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
	_, err = c.client.CoreV1().ServiceAccounts(name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		must(t, err)
	}
}

// whole waits until all members exist and the scheduler has decided about each: so many gangs run whole, and the others hold
// nothing, not even a place.
func (c *cluster) whole(t *testing.T, namespaces []string, members, want int) {
	t.Helper()
	last := ""
	defer func() {
		if t.Failed() {
			t.Log(last)
		}
	}()
	eventually(t, "the gangs run whole, or not at all", func(ctx context.Context) bool {
		gangs, seen, decided := 0, 0, true
		last = ""
		for _, namespace := range namespaces {
			pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return false
			}
			running, placed := 0, 0
			for _, pod := range pods.Items {
				seen++
				running += map[bool]int{true: 1}[pod.Status.Phase == corev1.PodRunning]
				placed += map[bool]int{true: 1}[pod.Spec.NodeName != ""]
				decided = decided && scheduled(&pod) != nil
			}
			switch {
			case running == len(pods.Items) && running > 0:
				gangs++
			case placed > 0:
				decided = false
			}
			last += namespace + ": " + strings.Repeat("r", running) + strings.Repeat("b", placed-running) + strings.Repeat("p", len(pods.Items)-placed) + "\n"
		}
		return seen == members && decided && gangs == want
	})
	t.Log(last)
}

// scheduled is the pod's PodScheduled condition; nil before the scheduler has set one.
func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	i := slices.IndexFunc(pod.Status.Conditions, func(cond corev1.PodCondition) bool { return cond.Type == corev1.PodScheduled })
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// apart is how far apart the members of a gang may get their places. The API server keeps whole seconds.
const apart = 5 * time.Second

// startedTogether: no member of a gang got its place long before another.
func (c *cluster) startedTogether(t *testing.T, namespaces []string) {
	t.Helper()
	for _, namespace := range namespaces {
		pods, err := c.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		var at []time.Time
		for _, pod := range pods.Items {
			at = append(at, scheduled(&pod).LastTransitionTime.Time)
		}
		if first, last := slices.MinFunc(at, time.Time.Compare), slices.MaxFunc(at, time.Time.Compare); last.Sub(first) > apart {
			t.Errorf("%s: a member got its place at %s, and another at %s", namespace, first, last)
		}
	}
}

// finish ends what trains, and waits until every job has succeeded: servers serve until their job is over.
func (c *cluster) finish(t *testing.T, namespaces []string) {
	t.Helper()
	end := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, kubelet.EndsAtAnnotation, time.Now().UTC().Format(time.RFC3339))
	for _, namespace := range namespaces {
		workers, err := c.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "training.kubeflow.org/replica-type=worker"})
		must(t, err)
		if len(workers.Items) == 0 {
			t.Errorf("%s: nothing trains", namespace)
		}
		for _, pod := range workers.Items {
			_, err := c.client.CoreV1().Pods(namespace).Patch(t.Context(), pod.Name, types.MergePatchType, end, metav1.PatchOptions{})
			must(t, err)
		}
	}
	for _, namespace := range namespaces {
		list, err := c.dynamic.Resource(tfjobs).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for _, job := range list.Items {
			c.succeeds(t, tfjobs, namespace, job.GetName())
		}
	}
}
