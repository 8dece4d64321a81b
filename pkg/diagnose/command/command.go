// Package command writes commands that work when they are pasted into a shell with kubectl.
package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Kubectl is a kubectl command in a namespace; an empty namespace is a cluster-wide object. Arguments are quoted for the shell.
func Kubectl(namespace string, args ...string) string {
	argv := []string{"kubectl"}
	if namespace != "" {
		argv = append(argv, "-n", namespace)
	}
	return shell.Join(append(argv, args...)...)
}

// DeploymentLog shows what a Deployment that runs has logged last.
func DeploymentLog(d metav1.Object) string {
	return Kubectl(d.GetNamespace(), "logs", "deployment/"+d.GetName(), "--tail=100")
}

// within finds the namespaces that commands of this package are about: those of kubectl, and of the paths of the API.
var within = regexp.MustCompile(`\bkubectl -n (\S+)|/namespaces/([^/\s]+)`)

// Within reports whether all namespaces that a command is about match.
func Within(command string, match func(namespace string) bool) bool {
	for _, found := range within.FindAllStringSubmatch(command, -1) {
		if !match(found[1] + found[2]) {
			return false
		}
	}
	return true
}

// Patch is a step of a JSON patch.
type Patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// JSONPatch patches an object.
func JSONPatch(namespace, resource, name string, steps ...Patch) string {
	return Kubectl(namespace, "patch", resource, name, "--type=json", "-p", encode(steps))
}

// MergePatch patches an object.
func MergePatch(namespace, resource, name string, patch any) string {
	return Kubectl(namespace, "patch", resource, name, "--type=merge", "-p", encode(patch))
}

// Then joins commands that follow one another, a line each. One that is there already is not repeated.
func Then(commands ...string) string {
	var lines []string
	for _, c := range commands {
		if c != "" && !slices.Contains(strings.Split(strings.Join(lines, "\n"), "\n"), c) {
			lines = append(lines, c)
		}
	}
	return strings.Join(lines, "\n")
}

// MaxObjects is how many objects what is pasted at once is about: a longer list is not read, and tenants decide how many there are.
const MaxObjects = 50

// ForEach joins commands that are for one object each, as [Then] does; there is none for more than [MaxObjects].
func ForEach(commands ...string) string {
	if len(commands) > MaxObjects {
		return ""
	}
	return Then(commands...)
}

// Pipe joins commands of which each reads what the one before wrote.
func Pipe(commands ...string) string { return strings.Join(commands, " | ") }

// Pointer is a path through an object as a JSON pointer.
func Pointer[T any](path []T) string {
	p := ""
	for _, part := range path {
		p += "/" + escape(fmt.Sprint(part))
	}
	return p
}

// escape makes one part of a JSON pointer.
func escape(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(part)
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // only values that marshal are passed
	}
	return string(text)
}

// Delete deletes a job, or the pods of one that has no object of its own.
func Delete(job *gang.Job) string {
	if job.Reader.Resource == "" {
		return DeletePods(job.Meta.Namespace, job.Bare)
	}
	return Kubectl(job.Meta.Namespace, "delete", job.Ref())
}

// DeletePods deletes pods of a namespace.
func DeletePods(namespace string, pods []*corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return Kubectl(namespace, append([]string{"delete", "pod"}, names...)...)
}

// Evict evicts a pod through the API server. Unlike a deletion, that respects PodDisruptionBudgets.
func Evict(namespace, pod string) string {
	body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":%q,"name":%q}}`, namespace, pod)
	return Pipe("echo "+shell.Quote(body), Kubectl("", "create", "--raw", "/api/v1/namespaces/"+namespace+"/pods/"+pod+"/eviction", "-f", "-"))
}

// OfKubernetes reports whether a controller of Kubernetes itself takes a finalizer away when what it waits for has come. By hand it is not: a Job would lose count of its
// pods, and the garbage collector of what the object owns.
func OfKubernetes(finalizer string) bool {
	return finalizer == batchv1.JobTrackingFinalizer || finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// Clear removes a pod that should have gone and has not: what holds it, or else the pod itself, whatever its kubelet has confirmed.
func Clear(p *corev1.Pod) string {
	return cmp.Or(ClearFinalizers("pod", p), Kubectl(p.Namespace, "delete", "pod", p.Name, "--force", "--grace-period=0"))
}

// ClearFinalizers takes the finalizers from an object that no controller of Kubernetes itself takes away; "" for an object without such.
func ClearFinalizers(resource string, o metav1.Object) string {
	kept := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(name string) bool { return !OfKubernetes(name) })
	if len(kept) == len(o.GetFinalizers()) {
		return ""
	}
	return MergePatch(o.GetNamespace(), resource, o.GetName(), map[string]any{"metadata": map[string]any{"finalizers": append([]string{}, kept...)}})
}
