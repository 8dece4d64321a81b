package chaos

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Write is one request of a tenant who writes what no user means.
type Write struct {
	// Name is the fault.
	Name     string
	Resource schema.GroupVersionResource
	// Object is created; with Patch it exists already, and is changed.
	Object *unstructured.Unstructured
	Patch  []byte
	// Circle makes the object its own owner, when it exists.
	Circle bool
	// Delete removes all objects of the resource.
	Delete bool
	// After is the time until the next one.
	After time.Duration
}

// Noise is an endless sequence of valid, absurd objects: the same for the same seed.
type Noise struct {
	random *rand.Rand
	count  int
	groups []string // those that were created

	labels, resources, terms int // of the pods that have the most
}

// NewNoise returns the noise of a seed: numbers, names, owners and labels as no user means them.
func NewNoise(seed uint64) *Noise {
	return &Noise{random: rand.New(rand.NewPCG(seed, 2)), labels: 10_000, resources: 200, terms: 100}
}

// NewHeavyNoise returns the noise of a seed in which the pods are among the absurd objects for which the API server itself takes the longest: up
// to a second of CPU for one with 20,000 resources, and as much again to send it to those who watch pods.
func NewHeavyNoise(seed uint64) *Noise {
	n := NewNoise(seed)
	n.labels, n.resources, n.terms = 500, 20_000, 3000
	return n
}

const huge = int64(math.MaxInt32)

// NoiseResources are those that noise writes.
func NoiseResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{groupsResource(), jobsResource(), tfJobsResource(), podsResource(), budgetsResource(), claimsResource()}
}

func groupsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
}

func jobsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
}

func tfJobsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"}
}

func podsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

func budgetsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
}

func claimsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
}

// Next is the next request.
func (n *Noise) Next() Write {
	n.count++
	w := n.write(fmt.Sprintf("n%d-%s", n.count, strings.Repeat("x", n.random.IntN(50))))
	w.After = time.Duration(20+n.random.IntN(200)) * time.Millisecond
	return w
}

func (n *Noise) write(name string) Write {
	name = strings.TrimSuffix(name, "-")
	switch n.random.IntN(12) {
	case 0, 1:
		n.groups = append(n.groups, name)
		return Write{Name: "group", Resource: groupsResource(), Object: object("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, map[string]any{
			"minMember": n.number(), "minResources": map[string]any{"cpu": fmt.Sprint(n.number()), "example.com/x": "1"}})}
	case 2:
		if len(n.groups) == 0 {
			return n.pod(name)
		}
		group := n.groups[n.random.IntN(len(n.groups))]
		return Write{Name: "minimum", Resource: groupsResource(), Object: object("", "", group, nil), Patch: fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, n.number())}
	case 3:
		return n.batchJob(name)
	case 4:
		return n.tfJob(name)
	case 5:
		u := object("policy/v1", "PodDisruptionBudget", name, map[string]any{"minAvailable": n.number(), "selector": map[string]any{}})
		return Write{Name: "budget", Resource: budgetsResource(), Object: u, Circle: true}
	case 6:
		return Write{Name: "claim", Resource: claimsResource(), Object: n.claim("c-" + name)}
	case 7:
		u := object("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, map[string]any{"minMember": int64(1)})
		u.SetAnnotations(map[string]string{"large": strings.Repeat("y", 250<<10), "gangctl.dev/expected-runtime": "9999999999h"})
		n.groups = append(n.groups, name)
		return Write{Name: "large group", Resource: groupsResource(), Object: u}
	case 8:
		if n.random.IntN(6) == 0 {
			all := NoiseResources()
			return Write{Name: "removal", Resource: all[n.random.IntN(len(all))], Delete: true}
		}
	}
	return n.pod(name)
}

// number is one that users do not mean.
func (n *Noise) number() int64 {
	return []int64{huge, huge - 1, 1, 2, 1 << 20, 100_000}[n.random.IntN(6)]
}

// pod is a member of a gang by labels or of a group, of a small request or of an impossible one.
func (n *Noise) pod(name string) Write {
	u := object("v1", "Pod", name, n.podSpec())
	labels := map[string]string{}
	switch n.random.IntN(4) {
	case 0:
		labels["pod-group.scheduling.sigs.k8s.io/name"] = strings.Repeat("G", 63)
		labels["pod-group.scheduling.sigs.k8s.io/min-available"] = fmt.Sprint(n.number())
	case 1:
		labels["pod-group.scheduling.sigs.k8s.io/name"] = fmt.Sprintf("g%d", n.random.IntN(5))
		labels["pod-group.scheduling.sigs.k8s.io/min-available"] = fmt.Sprint(1 + n.random.IntN(3))
	default:
		if len(n.groups) > 0 {
			labels["scheduling.x-k8s.io/pod-group"] = n.groups[n.random.IntN(len(n.groups))]
		}
	}
	for i := range []int{0, 0, 0, 500, 500, n.labels}[n.random.IntN(6)] { // one write in twelve has the most, as each fault has
		labels[fmt.Sprintf("l%d", i)] = strings.Repeat("v", 63)
	}
	u.SetLabels(labels)
	u.SetAnnotations(map[string]string{"scheduling.k8s.io/group-name": "../" + name, "gangctl.dev/expected-runtime": "-1s", "gangctl.dev/command": "\x1b]52;c;cm0gLXJm\a"})
	return Write{Name: "pod", Resource: podsResource(), Object: u}
}

func (n *Noise) podSpec() map[string]any {
	cpu := []string{"1m", "1m", "10m", "8"}[n.random.IntN(4)]
	container := map[string]any{"name": "tensorflow", "image": "x", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}
	spec := map[string]any{"restartPolicy": "Never", "containers": []any{container},
		"schedulerName": []string{"gang-scheduler", "gang-scheduler", "gang-scheduler", "volcano", strings.Repeat("s", 63)}[n.random.IntN(5)]}
	switch n.random.IntN(6) {
	case 0: // rules of many terms
		var terms []any
		for i := range []int{50, n.terms}[n.random.IntN(2)] {
			terms = append(terms, map[string]any{"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": map[string]any{"l" + fmt.Sprint(i): "v"}}})
		}
		spec["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": terms}}
	case 1:
		spec["topologySpreadConstraints"] = []any{map[string]any{"maxSkew": huge, "topologyKey": "nowhere", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": map[string]any{}}}
	case 2:
		spec["nodeSelector"] = map[string]any{"no": "node"}
	case 3: // resources that no node has, or none of them and no node
		amount := []string{"0", "1"}[n.random.IntN(2)]
		if amount == "0" {
			spec["nodeSelector"] = map[string]any{"no": "node"}
		}
		limits := map[string]any{}
		for i := range n.resources {
			limits[fmt.Sprintf("a/r%05d", i)] = amount
		}
		container["resources"] = map[string]any{"limits": limits, "requests": map[string]any{"cpu": "0"}}
	case 4:
		spec["schedulingGates"] = []any{map[string]any{"name": "never.example/opens"}}
	}
	return spec
}

func (n *Noise) batchJob(name string) Write {
	template := map[string]any{"metadata": map[string]any{"labels": map[string]any{
		"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": fmt.Sprint(n.number())}}, "spec": n.podSpec()}
	u := object("batch/v1", "Job", name, map[string]any{"suspend": true, "parallelism": huge, "completions": huge, "template": template})
	return Write{Name: "job", Resource: jobsResource(), Object: u, Circle: n.random.IntN(2) == 0}
}

// tfJob has replicas without bounds, a role that no operator knows, or an environment of more than a mebibyte.
func (n *Noise) tfJob(name string) Write {
	spec := n.podSpec()
	role, replicas := "Worker", huge
	switch n.random.IntN(3) {
	case 0:
		role = "Nobody"
	case 1:
		replicas = 1
		spec["containers"].([]any)[0].(map[string]any)["env"] = []any{map[string]any{"name": "LARGE", "value": strings.Repeat("z", 1100<<10)}}
	}
	u := object("kubeflow.org/v1", "TFJob", name, map[string]any{"runPolicy": map[string]any{"suspend": true},
		"tfReplicaSpecs": map[string]any{role: map[string]any{"replicas": replicas, "template": map[string]any{"spec": spec}}}})
	return Write{Name: "tfjob", Resource: tfJobsResource(), Object: u, Circle: n.random.IntN(4) == 0}
}

// claim requests devices that must be alike.
func (n *Noise) claim(name string) *unstructured.Unstructured {
	var requests []any
	for i := range 1 + n.random.IntN(32) {
		requests = append(requests, map[string]any{"name": fmt.Sprintf("r%d", i), "exactly": map[string]any{"deviceClassName": "any", "allocationMode": "ExactCount", "count": int64(1)}})
	}
	return object("resource.k8s.io/v1", "ResourceClaim", name, map[string]any{"devices": map[string]any{
		"requests": requests, "constraints": []any{map[string]any{"matchAttribute": "any.example/serial"}}}})
}

func object(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}
