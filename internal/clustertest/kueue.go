package clustertest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Quota is what a ClusterQueue, or a Cohort, has of one resource in one flavor.
type Quota struct {
	Flavor, Resource, Nominal string
	// Borrow and Lend are the limits; empty without.
	Borrow, Lend string
	// Group counts the resource groups from 0; quotas of one group offer alternatives.
	Group int
}

func kueueObject(kind, namespace, name string, spec map[string]any) map[string]any {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": meta, "spec": spec, "status": map[string]any{}}
}

// resourceGroups are the quotas as Kueue writes them: by group, by flavor, by resource.
func resourceGroups(quotas []Quota) []any {
	var groups []any
	for group := 0; ; group++ {
		var flavors []any
		var covered []any
		at := map[string]map[string]any{}
		seen := map[string]bool{}
		for _, q := range quotas {
			if q.Group != group {
				continue
			}
			if at[q.Flavor] == nil {
				at[q.Flavor] = map[string]any{"name": q.Flavor, "resources": []any{}}
				flavors = append(flavors, at[q.Flavor])
			}
			if !seen[q.Resource] {
				seen[q.Resource] = true
				covered = append(covered, q.Resource)
			}
			res := map[string]any{"name": q.Resource, "nominalQuota": q.Nominal}
			if q.Borrow != "" {
				res["borrowingLimit"] = q.Borrow
			}
			if q.Lend != "" {
				res["lendingLimit"] = q.Lend
			}
			at[q.Flavor]["resources"] = append(at[q.Flavor]["resources"].([]any), res)
		}
		if flavors == nil {
			return groups
		}
		groups = append(groups, map[string]any{"coveredResources": covered, "flavors": flavors})
	}
}

// ClusterQueue adds a ClusterQueue of Kueue, in a cohort unless that is empty.
func (c *Cluster) ClusterQueue(name, cohort string, quotas ...Quota) *unstructured.Unstructured {
	spec := map[string]any{"queueingStrategy": "BestEffortFIFO", "stopPolicy": "None", "namespaceSelector": map[string]any{}, "resourceGroups": resourceGroups(quotas)}
	if cohort != "" {
		spec["cohortName"] = cohort
	}
	return c.Object(kueueObject("ClusterQueue", "", name, spec))
}

// Cohort adds a Cohort with quotas of its own, below a parent unless that is empty.
func (c *Cluster) Cohort(name, parent string, quotas ...Quota) *unstructured.Unstructured {
	spec := map[string]any{}
	if len(quotas) > 0 {
		spec["resourceGroups"] = resourceGroups(quotas)
	}
	if parent != "" {
		spec["parentName"] = parent
	}
	return c.Object(kueueObject("Cohort", "", name, spec))
}

// LocalQueue adds a LocalQueue in namespace team.
func (c *Cluster) LocalQueue(name, cluster string) *unstructured.Unstructured {
	return c.Object(kueueObject("LocalQueue", "team", name, map[string]any{"clusterQueue": cluster, "stopPolicy": "None"}))
}

// Flavor adds a ResourceFlavor for nodes with a label; without one if the key is empty.
func (c *Cluster) Flavor(name, key, value string) *unstructured.Unstructured {
	spec := map[string]any{}
	if key != "" {
		spec["nodeLabels"] = map[string]any{key: value}
	}
	return c.Object(kueueObject("ResourceFlavor", "", name, spec))
}

// Workload adds Kueue's object for a TFJob of namespace team, which waits in a LocalQueue.
func (c *Cluster) Workload(job, queue string, age time.Duration) *unstructured.Unstructured {
	u := kueueObject("Workload", "team", "tfjob-"+job, map[string]any{"queueName": queue, "active": true, "podSets": []any{}})
	meta := u["metadata"].(map[string]any)
	meta["creationTimestamp"] = stamp(age)
	meta["ownerReferences"] = []any{map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job, "uid": string(uid("TFJob", "team", job)), "controller": true}}
	return c.Object(u)
}

// PodSet adds a pod set to a Workload, each pod of which has some requests. Counted is what Kueue writes that it counts of all of them; nil if it has written nothing.
func PodSet(u *unstructured.Unstructured, name string, pods int64, requests, counted corev1.ResourceList) *unstructured.Unstructured {
	list := func(from corev1.ResourceList) map[string]any {
		to := map[string]any{}
		for name, q := range from {
			to[string(name)] = q.String()
		}
		return to
	}
	add := func(item map[string]any, path ...string) {
		items, _, _ := unstructured.NestedSlice(u.Object, path...)
		Set(append(items, item), path...)(u.Object)
	}
	container := map[string]any{"name": "main", "resources": map[string]any{"requests": list(requests)}}
	add(map[string]any{"name": name, "count": pods, "template": map[string]any{"spec": map[string]any{"containers": []any{container}}}}, "spec", "podSets")
	if counted != nil {
		add(map[string]any{"name": name, "resources": list(counted)}, "status", "resourceRequests")
	}
	return u
}

// Admit makes a Workload one that was admitted to a ClusterQueue with so many GPUs of a flavor.
func Admit(u *unstructured.Unstructured, cluster, flavor, gpus string) {
	u.Object["status"] = map[string]any{
		"admission": map[string]any{"clusterQueue": cluster, "podSetAssignments": []any{map[string]any{"name": "worker",
			"flavors": map[string]any{"nvidia.com/gpu": flavor}, "resourceUsage": map[string]any{"nvidia.com/gpu": gpus}}}},
		"conditions": []any{Condition("QuotaReserved", "True", "QuotaReserved", "", time.Hour), Condition("Admitted", "True", "Admitted", "", time.Hour)},
	}
}

// Reclaim makes the quota of some pods of an admitted Workload one that Kueue has taken back: they have ended. Count is how many pods there are; 0 leaves it out.
func Reclaim(u *unstructured.Unstructured, count, ended int64) *unstructured.Unstructured {
	if count > 0 {
		Set([]any{map[string]any{"name": "worker", "count": count}}, "spec", "podSets")(u.Object)
	}
	Set([]any{map[string]any{"name": "worker", "count": ended}}, "status", "reclaimablePods")(u.Object)
	return u
}

// Condition is a condition of an object without a type.
func Condition(kind, status, reason, message string, ago time.Duration) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp(ago)}
}
