package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	jobkinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// What became of a sample.
const (
	whole      = "started whole"
	refused    = "refused, as its members cannot start together"
	memberless = "refused, as it has no members of its own"
	denied     = "refused by its own project"
	left       = "left to the operator, to Kueue or to a group of another file"
	partly     = "started partly"
	unrun      = "a gang by dry run, not run"
	undecided  = "neither a gang nor refused"
)

// sample is a file of a project with a job in it.
type sample struct{ name, path string }

// samplesIn are the files below a folder that hold a job of one of some kinds, and the blocks of pages there, where the project keeps them: nothing
// is kept of them.
func samplesIn(t *testing.T, dir string, kinds ...string) (all []sample) {
	t.Helper()
	job := regexp.MustCompile(`(?m)^kind: (` + strings.Join(kinds, "|") + `)\s*$`)
	fenced, blocks := regexp.MustCompile("(?ms)^```ya?ml\n(.*?)^```"), t.TempDir()
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		extension := filepath.Ext(path)
		if err != nil || entry.IsDir() || extension != ".yaml" && extension != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if extension == ".yaml" && job.Match(data) {
			all = append(all, sample{name, path})
		}
		for i, block := range fenced.FindAllSubmatch(data, -1) {
			if extension == ".yaml" || !job.Match(block[1]) || bytes.Contains(block[1], []byte("...")) {
				continue // what a page leaves out is no sample
			}
			file := filepath.Join(blocks, fmt.Sprintf("%d.yaml", len(all)))
			if err := os.WriteFile(file, block[1], 0o600); err != nil {
				return err
			}
			all = append(all, sample{fmt.Sprintf("%s, block %d", name, i), file})
		}
		return nil
	}))
	if len(all) == 0 {
		t.Errorf("no samples in %s", dir)
	}
	return all
}

// samples submits files, unedited, on a cluster that is one node short of each gang, and then whole. Nodes hold a pod each, of whatever resources and labels the
// file requests.
func (c *cluster) samples(t *testing.T, all []sample) {
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	like := nodes.Items[0]
	for _, node := range nodes.Items {
		must(t, c.client.CoreV1().Nodes().Delete(t.Context(), node.Name, now()))
	}
	counts := map[string]int{}
	for i, s := range all {
		t.Run(s.name, func(t *testing.T) {
			r := &sampleRun{cluster: c, namespace: fmt.Sprintf("sample-%d", i), like: like}
			result := r.run(t, s)
			counts[result]++
			if result == partly || result == undecided {
				t.Errorf("%s: %s", s.name, result)
			}
		})
	}
	for _, result := range []string{whole, refused, memberless, denied, left, partly, unrun, undecided} {
		t.Logf("%d of %d samples: %s", counts[result], len(all), result)
	}
}

// sampleRun is one sample in a namespace of its own.
type sampleRun struct {
	*cluster
	namespace string
	like      corev1.Node
	nodes     int
	// objects are what the file is submitted as, and job the one of them that has members.
	objects []*unstructured.Unstructured
	job     *unstructured.Unstructured
	// minimum is that of each gang.
	minimum map[string]int
}

func (r *sampleRun) run(t *testing.T, s sample) string {
	args := []string{"submit", "-f", s.path}
	if data, err := os.ReadFile(s.path); err == nil && !regexp.MustCompile(`(?m)^  namespace:`).Match(data) {
		args = append(args, "-n", r.namespace)
	}
	stdout, stderr, code := gangctlAt(t, r.Kubeconfig, append(args, "--dry-run=client", "-o", "yaml")...)
	switch {
	case code != 0:
		t.Logf("refused: %s", strings.TrimSpace(stderr))
		return whyRefused(stderr)
	case strings.Contains(stderr, "leaves the gang to"), strings.Contains(stderr, "the file declares gang"): // which another file has
		return left
	}
	r.read(t, stdout)
	if suspended, _, _ := unstructured.NestedBool(r.job.Object, "spec", "suspend"); suspended {
		return left
	}
	made := regexp.MustCompile("makes a PodGroup of every TrainJob").FindString(stderr)
	if made != "" { // its runtime has Trainer make the gang, of all nodes
		nodes, _, _ := unstructured.NestedInt64(r.job.Object, "spec", "trainer", "numNodes")
		r.minimum[r.job.GetName()] = int(nodes)
	}
	if len(r.minimum) == 0 {
		t.Logf("no gang:\n%s", stdout)
		return undecided
	}
	// Here is no scheduler besides gangctl's, which serves volcano, too, and no room for Deployments, such as that of a Redis.
	if regexp.MustCompile(`schedulerName: (yunikorn|kai-scheduler)|kind: (Deployment|StatefulSet)`).MatchString(stdout) {
		return unrun
	}
	if len(valuesOf(r.job.Object, "volumeClaimPolicies")) > 0 && strings.Contains(stdout, "ReadWriteOnce") {
		return unrun // its members share a volume that one node has, and nodes hold a pod each here
	}
	r.prepare(t)
	// The API server knows the runtime of a TrainJob, unless that is in the file.
	if stdout, _, code = gangctlAt(t, r.Kubeconfig, append(args, "--dry-run=server", "-o", "yaml")...); code == 0 && made == "" {
		r.objects = nil
		r.read(t, stdout)
	}
	if stdout, stderr, code = gangctlAt(t, r.Kubeconfig, args...); code != 0 {
		t.Logf("not run: %s", strings.TrimSpace(stderr))
		if strings.Contains(stderr, "denied the request") {
			return denied
		}
		return unrun // objects of kinds that are not served here are the sample's, too
	}
	r.rename(stdout)
	defer r.clean(t)
	started := map[string]bool{}
	for len(started) < len(r.minimum) {
		gang := r.waiting(t, started)
		if gang == "" {
			continue // one started on the nodes of members that have ended
		}
		r.add(t, r.minimum[gang]-1-r.free(t))
		if !r.isShort(t, gang, len(started) == 0) {
			return partly
		}
		r.add(t, 1)
		eventually(t, "one starts", func(ctx context.Context) bool {
			pods := r.pods(ctx, t)
			return r.isWhole(pods) && r.hasStarted(pods, started)
		})
	}
	return whole
}

// whyRefused is why a file is refused. Nothing else is a reason: it is a mistake then.
func whyRefused(stderr string) string {
	switch {
	case strings.Contains(stderr, "its members cannot start together"):
		return refused
	case strings.Contains(stderr, "there is nothing to start together"), strings.Contains(stderr, "spec.replicatedJobs is empty"):
		return memberless
	case strings.Contains(stderr, "is given twice"), strings.Contains(stderr, "containers definition expected"),
		strings.Contains(stderr, "must start with a lower-case letter"): // no API server takes it
		return denied
	}
	return undecided
}

// hasStarted adds the gangs that run, or have run, to those that have started, and reports whether there are any.
func (r *sampleRun) hasStarted(pods []corev1.Pod, started map[string]bool) (found bool) {
	for name, n := range r.minimum {
		members := count(pods, func(p *corev1.Pod) bool {
			return groupOfPod(p) == name && (runs(p) || p.Status.Phase == corev1.PodSucceeded)
		})
		if !started[name] && members >= n {
			started[name], found = true, true
		}
	}
	return found
}

// waiting is a gang that has not started, of which all members that it needs are there and have no place; empty where one starts meanwhile. Where the
// controller makes some gangs only after others, those that are first come first, and end if they have to.
func (r *sampleRun) waiting(t *testing.T, started map[string]bool) (gang string) {
	t.Helper()
	eventually(t, "a gang waits", func(ctx context.Context) bool {
		r.complete(ctx, t)
		pods := r.pods(ctx, t)
		if r.hasStarted(pods, started) {
			return true
		}
		for _, name := range slices.Sorted(maps.Keys(r.minimum)) {
			refused := count(pods, func(p *corev1.Pod) bool {
				return groupOfPod(p) == name && refusedToSchedule(p) && p.Spec.NodeName == ""
			})
			if !started[name] && refused >= r.minimum[name] {
				gang = name
				return true
			}
		}
		return false
	})
	return gang
}

// isShort waits until the scheduler has reported that all members of a gang but one would find a place, and reports whether none of any gang has one
// by itself. Only of the first is it reported at once: that those after it are not tried for a node too few is no event.
func (r *sampleRun) isShort(t *testing.T, gang string, first bool) (whole bool) {
	t.Helper()
	n := r.minimum[gang]
	reported, polls := fmt.Sprintf("%d of the %d members", n-1, n), 0
	eventually(t, "all members but one would find a place", func(ctx context.Context) bool {
		pods := r.pods(ctx, t)
		if whole = r.isWhole(pods); !whole || n == 1 {
			return true
		}
		if polls++; !first {
			return polls > 20 // a second, in which one would start that may
		}
		return count(pods, func(p *corev1.Pod) bool {
			return groupOfPod(p) == gang && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return strings.Contains(c.Message, reported) })
		}) > 0
	})
	return whole
}

// free is how many nodes hold no pod: each holds one.
func (r *sampleRun) free(t *testing.T) int {
	t.Helper()
	pods, err := r.client.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return r.nodes - count(pods.Items, func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
}

// read finds the job and the gangs of what a file is submitted as.
func (r *sampleRun) read(t *testing.T, text string) {
	t.Helper()
	docs, err := document.Split([]byte(text))
	must(t, err)
	r.minimum = map[string]int{}
	for _, doc := range docs {
		u := &unstructured.Unstructured{}
		must(t, u.UnmarshalJSON(doc.JSON))
		list := []unstructured.Unstructured{*u}
		if u.IsList() {
			all, err := u.ToList()
			must(t, err)
			list = all.Items
		}
		for i := range list {
			u := &list[i]
			r.objects = append(r.objects, u)
			for _, path := range [][]string{{"spec", "minMember"}, {"spec", "schedulingPolicy", "gang", "minCount"}} {
				if n, found, _ := unstructured.NestedInt64(u.Object, path...); found && u.GetKind() == "PodGroup" {
					r.minimum[u.GetName()] = int(n)
				}
			}
			if reader, known := jobkinds.ByKind(u.GroupVersionKind().GroupKind()); known && reader.Group != "batch" {
				r.job = u
			}
		}
	}
	if r.job.GetKind() != leaderworkerset.Kind {
		return
	}
	read, err := leaderworkerset.Reader().Job(r.job)
	must(t, err)
	for n := range read.Gangs() {
		r.minimum[fmt.Sprintf("%s-%d", read.Meta.Name, n)] = int(read.Total() / read.Gangs())
	}
}

// rename takes the name of the job from what submit printed: a file may leave it to be generated, and each dry run generates another one.
func (r *sampleRun) rename(created string) {
	ref := strings.ToLower(r.job.GetKind()) + "." + r.job.GroupVersionKind().Group + "/"
	was := r.job.GetName()
	for _, line := range strings.Split(created, "\n") {
		if name, found := strings.CutPrefix(line, ref); found {
			r.job.SetName(strings.TrimSuffix(name, " created"))
		}
	}
	minimum := map[string]int{}
	for group, n := range r.minimum {
		minimum[strings.Replace(group, was, r.job.GetName(), 1)] = n
	}
	r.minimum = minimum
}

// prepare makes the namespaces, the accounts, the claims and the classes of volumes that the file takes for there.
func (r *sampleRun) prepare(t *testing.T) {
	t.Helper()
	r.home(t, r.namespace)
	for _, u := range r.objects {
		if u.GetNamespace() != "" {
			r.home(t, u.GetNamespace())
		}
		for _, name := range valuesOf(u.Object, "serviceAccountName") {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name)}}
			_, err := r.client.CoreV1().ServiceAccounts(r.job.GetNamespace()).Create(t.Context(), account, metav1.CreateOptions{})
			if !apierrors.IsAlreadyExists(err) && !slices.ContainsFunc(r.objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ServiceAccount" }) {
				must(t, err)
			}
		}
		r.store(t, u)
	}
}

// store makes the claims and the classes of volumes that an object names and the file does not hold.
func (r *sampleRun) store(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	for _, name := range valuesOf(u.Object, "storageClassName") {
		late := storagev1.VolumeBindingWaitForFirstConsumer
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name)}, Provisioner: "kubernetes.io/host-path", VolumeBindingMode: &late}
		if _, err := r.client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			must(t, err)
		}
	}
	for _, name := range valuesOf(u.Object, "claimName") {
		named := func(u *unstructured.Unstructured) bool {
			return u.GetKind() == "PersistentVolumeClaim" && u.GetName() == name
		}
		if slices.ContainsFunc(r.objects, named) {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name)}, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		if _, err := r.client.CoreV1().PersistentVolumeClaims(r.job.GetNamespace()).Create(t.Context(), claim, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			must(t, err)
		}
	}
}

// valuesOf are the values of a field of a name, wherever it is in an object.
func valuesOf(value any, name string) (all []any) {
	switch value := value.(type) {
	case map[string]any:
		for key, each := range value {
			if key == name {
				all = append(all, each)
			}
			all = append(all, valuesOf(each, name)...)
		}
	case []any:
		for _, each := range value {
			all = append(all, valuesOf(each, name)...)
		}
	}
	return all
}

// add adds nodes that hold a pod each, with the labels and as much as anyone requests of what the file requests.
func (r *sampleRun) add(t *testing.T, n int) {
	t.Helper()
	capacity := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse("1k"), corev1.ResourceMemory: resource.MustParse("100Ti"), corev1.ResourceEphemeralStorage: resource.MustParse("100Ti")}
	labels := map[string]string{}
	for _, u := range r.objects {
		for _, field := range []string{"requests", "limits"} {
			for _, list := range valuesOf(u.Object, field) {
				list, _ := list.(map[string]any)
				for name := range list {
					if strings.Contains(name, "/") {
						capacity[corev1.ResourceName(name)] = resource.MustParse("1k")
					}
				}
			}
		}
		for _, selector := range valuesOf(u.Object, "nodeSelector") {
			selector, _ := selector.(map[string]any)
			for key, value := range selector {
				labels[key] = fmt.Sprint(value)
			}
		}
	}
	for range n {
		node := r.like.DeepCopy()
		node.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", r.namespace, r.nodes), Labels: map[string]string{}, Annotations: r.like.Annotations}
		for _, set := range []map[string]string{r.like.Labels, labels} {
			for key, value := range set {
				node.Labels[key] = value
			}
		}
		node.Labels[corev1.LabelHostname] = node.Name
		node.Status.Capacity, node.Status.Allocatable = capacity, capacity
		_, err := r.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		must(t, err)
		r.nodes++
		status, err := json.Marshal(map[string]any{"status": node.Status})
		must(t, err)
		_, err = r.client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
		must(t, err)
	}
}

// pods are those of gangs.
func (r *sampleRun) pods(ctx context.Context, t *testing.T) (all []corev1.Pod) {
	t.Helper()
	pods, err := r.client.CoreV1().Pods(r.job.GetNamespace()).List(ctx, metav1.ListOptions{})
	must(t, err)
	for _, pod := range pods.Items {
		if groupOfPod(&pod) != "" {
			all = append(all, pod)
		}
	}
	return all
}

func groupOfPod(pod *corev1.Pod) string {
	if set := pod.Labels[leaderworkerset.NameLabel]; set != "" {
		return set + "-" + pod.Labels[leaderworkerset.GroupIndexLabel]
	}
	name, _ := schedulerplugins.NameOf(pod)
	return cmp.Or(name, pod.Annotations[volcano.GroupAnnotation])
}

// isWhole reports whether of each gang no pod has a node, or as many as it needs.
func (r *sampleRun) isWhole(pods []corev1.Pod) bool {
	bound := map[string]int{}
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			bound[groupOfPod(&pod)]++
		}
	}
	for group, n := range bound {
		if n < r.minimum[group] {
			return false
		}
	}
	return true
}

// complete ends pods that run and have to end before others are made: those that are in no gang, such as initializers, and those of replicated jobs
// that another depends on.
func (r *sampleRun) complete(ctx context.Context, t *testing.T) {
	t.Helper()
	pods, err := r.client.CoreV1().Pods(r.job.GetNamespace()).List(ctx, metav1.ListOptions{})
	must(t, err)
	for i := range pods.Items {
		pod, owner := &pods.Items[i], metav1.GetControllerOf(&pods.Items[i])
		if owner != nil && owner.Kind == "Job" && pod.Status.Phase != corev1.PodSucceeded && (groupOfPod(pod) == "" || runs(pod) && r.isFirst(pod)) {
			pod.Status.Phase = corev1.PodSucceeded
			_, err := r.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("complete %s: %v", pod.Name, err)
			}
		}
	}
}

// isFirst reports whether another replicated job is made when that of a pod is complete.
func (r *sampleRun) isFirst(pod *corev1.Pod) bool {
	return slices.ContainsFunc(valuesOf(r.job.Object, "dependsOn"), func(list any) bool {
		items, _ := list.([]any)
		return slices.ContainsFunc(items, func(item any) bool {
			on, _ := item.(map[string]any)
			_, role := jobset.Labelled(pod)
			return on["status"] == "Complete" && on["name"] == role
		})
	})
}

// clean removes the job and the nodes.
func (r *sampleRun) clean(t *testing.T) {
	reader, _ := jobkinds.ByKind(r.job.GroupVersionKind().GroupKind())
	r.cluster.run(t, "delete", reader.Argument(r.job.GetName()), "-n", r.job.GetNamespace())
	eventually(t, "nothing is left of it", func(ctx context.Context) bool { return len(r.pods(ctx, t)) == 0 })
	r.removeNodes(t)
}

func (r *sampleRun) removeNodes(t *testing.T) {
	t.Helper()
	for n := range r.nodes {
		must(t, r.client.CoreV1().Nodes().Delete(t.Context(), fmt.Sprintf("%s-%d", r.namespace, n), now()))
	}
}
