package diagnose

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/placement"
)

// fakeKubectl does to a snapshot what kubectl, the API server and the controllers would do to a cluster, as far as the commands
// of advice need it. It knows nothing of how they were made.
type fakeKubectl struct {
	t *testing.T
	s *snapshot.Snapshot
}

// pasted is the snapshot after commands were pasted into a shell. ok is false if one of them does nothing that can be checked:
// it looks at something, or is for another program.
func pasted(t *testing.T, s *snapshot.Snapshot, commands string) (after *snapshot.Snapshot, ok bool) {
	t.Helper()
	k := &fakeKubectl{t, s.Clone()}
	for _, line := range strings.Split(commands, "\n") {
		if !k.run(line) {
			return nil, false
		}
	}
	k.controllers()
	k.s.Finish()
	return k.s, true
}

// splitArgs splits a line as a shell does, if nothing in it but single quotes means anything.
func splitArgs(t *testing.T, line string) []string {
	t.Helper()
	var all []string
	arg, quoted, begun := "", false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case quoted:
			arg += string(c)
		case c == ' ':
			if begun {
				all = append(all, arg)
			}
			arg, begun = "", false
		case c == '\\' && i+1 < len(line):
			i++
			arg, begun = arg+string(line[i]), true
		case strings.IndexByte("$`\"*?~&;<>(){}[]#!", c) >= 0:
			t.Fatalf("a shell would make something of %q in %s", c, line)
		default:
			arg, begun = arg+string(c), true
		}
	}
	if quoted {
		t.Fatalf("a quote is open: %s", line)
	}
	return append(all, arg)
}

// run does one line.
func (k *fakeKubectl) run(line string) bool {
	parts := splitArgs(k.t, line)
	if i := slices.Index(parts, "|"); i >= 0 {
		return k.pipe(parts[:i], parts[i+1:])
	}
	if parts[0] != "kubectl" {
		return false
	}
	namespace, args := "", parts[1:]
	if args[0] == "-n" {
		namespace, args = args[1], args[2:]
	}
	switch args[0] {
	case "patch":
		k.patch(namespace, args[1], args[2], args[3:])
	case "delete":
		k.delete(namespace, args[1:])
	case "annotate":
		key, value, _ := strings.Cut(args[len(args)-1], "=")
		for i, p := range k.s.Pods {
			if p.Namespace == namespace && slices.Contains(args, p.Name) {
				k.s.Pods[i] = p.DeepCopy()
				metav1.SetMetaDataAnnotation(&k.s.Pods[i].ObjectMeta, key, value)
			}
		}
	case "scale":
		k.scale(namespace, args[1], args[2])
	case "cordon", "uncordon":
		for i, n := range k.s.Nodes {
			if slices.Contains(args[1:], n.Name) {
				k.s.Nodes[i] = n.DeepCopy()
				k.s.Nodes[i].Spec.Unschedulable = args[0] == "cordon"
			}
		}
	case "wait":
		k.controllers()
	case "rollout":
	case "describe", "logs", "create", "get":
		return false
	default:
		k.t.Fatalf("what does %s do?", line)
	}
	return true
}

// scale has a Deployment run fewer pods: those that are marked go first.
func (k *fakeKubectl) scale(namespace, target, replicas string) {
	n, err := strconv.Atoi(strings.TrimPrefix(replicas, "--replicas="))
	if err != nil {
		k.t.Fatal(err)
	}
	_, name, _ := strings.Cut(target, "/")
	var pods []*corev1.Pod
	for _, p := range k.s.Pods {
		if ref := metav1.GetControllerOf(p); p.Namespace == namespace && ref != nil && strings.HasPrefix(ref.Name, name+"-") {
			pods = append(pods, p)
		}
	}
	marked := func(p *corev1.Pod) bool { return p.Annotations[corev1.PodDeletionCost] != "" }
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		switch {
		case marked(a) == marked(b):
			return 0
		case marked(a):
			return -1
		}
		return 1
	})
	going := pods[:max(0, len(pods)-n)]
	k.removePods(func(p *corev1.Pod) bool { return slices.Contains(going, p) })
}

// pipe evicts a pod, or puts a changed Job in the place of one.
func (k *fakeKubectl) pipe(first, rest []string) bool {
	if first[0] == "echo" {
		var e struct {
			Metadata struct{ Namespace, Name string }
		}
		if err := json.Unmarshal([]byte(first[1]), &e); err != nil {
			k.t.Fatal(err)
		}
		k.evict(e.Metadata.Namespace, e.Metadata.Name)
		return true
	}
	// kubectl -n NS get job NAME -o json | kubectl patch --local -f - --type=json -p PATCH -o json | kubectl -n NS replace --force -f -
	if first[4] == "pvc" {
		k.claimAgain(first[2], first[5], rest[slices.Index(rest, "-p")+1])
		return true
	}
	for i, j := range k.s.Jobs {
		if j.Namespace == first[2] && j.Name == first[5] {
			content := k.applied(j, rest[slices.Index(rest, "-p")+1])
			changed := &batchv1.Job{}
			k.into(content, changed)
			changed.UID, changed.Status = j.UID+"-2", batchv1.JobStatus{}
			k.s.Jobs[i] = changed
			k.removePods(func(p *corev1.Pod) bool { ref := metav1.GetControllerOf(p); return ref != nil && ref.UID == j.UID })
			for _, list := range k.s.Custom { // who belongs to the Job of this name belongs to the new one
				for n, u := range list {
					list[n] = u.DeepCopy()
					refs := list[n].GetOwnerReferences()
					for i := range refs {
						if refs[i].UID == j.UID {
							refs[i].UID = changed.UID
						}
					}
					list[n].SetOwnerReferences(refs)
				}
			}
			return true
		}
	}
	k.t.Fatalf("no Job for %v", first)
	return false
}

// claimAgain puts a changed volume claim in the place of one, for which its provisioner makes a volume.
func (k *fakeKubectl) claimAgain(namespace, name, patch string) {
	i := slices.IndexFunc(k.s.Claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Namespace == namespace && claim.Name == name
	})
	if i < 0 {
		k.t.Fatalf("there is no claim %s/%s", namespace, name)
	}
	made := &corev1.PersistentVolumeClaim{}
	k.into(k.applied(k.s.Claims[i], patch), made)
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made-for-" + name}}
	made.UID, made.Spec.VolumeName, made.Status.Phase = made.UID+"-2", volume.Name, corev1.ClaimBound
	volume.Spec.ClaimRef, volume.Spec.AccessModes, volume.Status.Phase = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: made.UID}, made.Spec.AccessModes, corev1.VolumeBound
	metav1.SetMetaDataAnnotation(&made.ObjectMeta, "pv.kubernetes.io/bind-completed", "yes")
	k.s.Claims[i], k.s.Volumes = made, append(k.s.Volumes, volume)
}

func (k *fakeKubectl) applied(obj any, patch string) any {
	raw, err := json.Marshal(obj)
	if err != nil {
		k.t.Fatal(err)
	}
	var content any
	var steps []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		k.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(patch), &steps); err != nil {
		k.t.Fatalf("%s: %v", patch, err)
	}
	for _, step := range steps {
		k.step(content, step.Op, strings.Split(strings.TrimPrefix(step.Path, "/"), "/"), step.Value)
	}
	return content
}

// step is one step of a JSON patch: it fails where the API server would refuse it.
func (k *fakeKubectl) step(content any, op string, path []string, value any) {
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch at := content.(type) {
	case map[string]any:
		child, there := at[key]
		switch {
		case len(path) > 1 && there:
			k.step(child, op, path[1:], value)
		case len(path) > 1, op != "add" && !there:
			k.t.Fatalf("%s %v: there is no %s", op, path, key)
		case op == "remove":
			delete(at, key)
		default:
			at[key] = value
		}
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i >= len(at) || len(path) == 1 && op != "replace" {
			k.t.Fatalf("%s %v in a list of %d", op, path, len(at))
		}
		if len(path) > 1 {
			k.step(at[i], op, path[1:], value)
			return
		}
		at[i] = value
	default:
		k.t.Fatalf("%s %v in %T", op, path, content)
	}
}

func (k *fakeKubectl) into(content any, obj any) {
	raw, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(raw, obj)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func merge(into, from map[string]any) {
	for key, value := range from {
		child, nested := value.(map[string]any)
		if had, ok := into[key].(map[string]any); ok && nested {
			merge(had, child)
			continue
		}
		if value == nil {
			delete(into, key)
			continue
		}
		into[key] = value
	}
}

func (k *fakeKubectl) patch(namespace, resource, name string, args []string) {
	patch := args[slices.Index(args, "-p")+1]
	if resource == "job" {
		for i, j := range k.s.Jobs {
			if j.Namespace == namespace && j.Name == name {
				changed := &batchv1.Job{}
				if args[0] == "--type=json" {
					k.into(k.applied(j, patch), changed)
				} else {
					k.into(j, changed)
					k.into(json.RawMessage(patch), changed)
				}
				k.s.Jobs[i] = changed
				return
			}
		}
	}
	kind, group, _ := strings.Cut(resource, ".")
	for gk, list := range k.s.Custom {
		for i, u := range list {
			if strings.ToLower(gk.Kind) != kind || group != "" && gk.Group != group || u.GetNamespace() != namespace || u.GetName() != name {
				continue
			}
			content := map[string]any{}
			if args[0] == "--type=json" {
				k.into(k.applied(u.Object, patch), &content)
			} else {
				var change map[string]any
				k.into(json.RawMessage(patch), &change)
				k.into(u.Object, &content)
				merge(content, change)
			}
			list[i] = &unstructured.Unstructured{}
			raw, err := json.Marshal(content)
			if err == nil {
				err = list[i].UnmarshalJSON(raw) // with whole numbers
			}
			if err != nil {
				k.t.Fatal(err)
			}
			return
		}
	}
	k.t.Fatalf("there is no %s %s/%s", resource, namespace, name)
}

func (k *fakeKubectl) delete(namespace string, args []string) {
	if args[0] == "pods" || args[0] == "pod" {
		k.removePods(func(p *corev1.Pod) bool {
			if len(args) == 3 && args[1] == "-l" {
				key, value, _ := strings.Cut(args[2], "=")
				return p.Namespace == namespace && p.Labels[key] == value
			}
			return p.Namespace == namespace && slices.Contains(args[1:], p.Name)
		})
		return
	}
	for gk, list := range k.s.Custom {
		k.s.Custom[gk] = slices.DeleteFunc(list, func(u *unstructured.Unstructured) bool {
			gone := strings.ToLower(gk.Kind) == args[0] && u.GetNamespace() == namespace && u.GetName() == args[1]
			if gone {
				k.removePods(func(p *corev1.Pod) bool { ref := metav1.GetControllerOf(p); return ref != nil && ref.UID == u.GetUID() })
			}
			return gone
		})
	}
}

func (k *fakeKubectl) removePods(match func(*corev1.Pod) bool) {
	k.s.Pods = slices.DeleteFunc(k.s.Pods, match)
}

// evict moves a pod to the first node that takes it, as its controller and the scheduler would.
func (k *fakeKubectl) evict(namespace, name string) {
	i := slices.IndexFunc(k.s.Pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name })
	if i < 0 {
		k.t.Fatalf("there is no pod %s/%s", namespace, name)
	}
	again := k.s.Pods[i].DeepCopy()
	k.s.Pods = slices.Delete(k.s.Pods, i, i+1)
	again.Spec.NodeName = ""
	nodes := view.New(k.s).Cluster().Matrix(again).Eligible()
	if len(nodes) == 0 {
		k.t.Fatalf("pod %s/%s finds no place again", namespace, name)
	}
	again.Spec.NodeName = nodes[0]
	k.s.Pods = append(k.s.Pods, again)
}

// controllers do what they do when they see the changes: jobs that are suspended lose their pods, members that are too many go.
func (k *fakeKubectl) controllers() {
	w := view.New(k.s)
	for _, job := range w.Jobs() {
		replicas := map[string]int32{}
		for _, r := range job.Roles {
			replicas[strings.ToLower(r.Name)] = r.Replicas
		}
		k.removePods(func(p *corev1.Pod) bool {
			ref := metav1.GetControllerOf(p)
			if ref == nil || ref.UID != job.Meta.UID {
				return false
			}
			index, err := strconv.Atoi(p.Labels["training.kubeflow.org/replica-index"])
			return job.Suspended || err == nil && int32(index) >= replicas[p.Labels["training.kubeflow.org/replica-type"]]
		})
	}
	left := map[string]int32{} // a Job of Kubernetes itself lets any of its pods go
	for _, j := range k.s.Jobs {
		if j.Spec.Parallelism != nil {
			left[string(j.UID)] = *j.Spec.Parallelism
		}
	}
	k.removePods(func(p *corev1.Pod) bool {
		ref := metav1.GetControllerOf(p)
		if ref == nil || ref.Kind != "Job" || !placement.Holds(p) && p.Spec.NodeName != "" {
			return false
		}
		n, known := left[string(ref.UID)]
		left[string(ref.UID)] = n - 1
		return known && n <= 0
	})
}
