package clustertest

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
)

// isRay reports whether the operator of KubeRay runs the job.
func (g Gang) isRay() bool { return g.Kind == ray.JobKind || g.Kind == ray.ClusterKind }

// withHead has a head among its roles, which every RayCluster has.
func (g Gang) withHead() Gang {
	if !slices.ContainsFunc(g.More, func(r Role) bool { return r.Name == "Head" }) {
		g.More = append(slices.Clip(g.More), Role{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Missing: min(g.Missing, 1)})
	}
	return g
}

// cluster is the name of the RayCluster: that of a RayJob has a random one.
func (g Gang) cluster() string {
	if g.Kind == ray.JobKind {
		return g.Name + "-x7k2p"
	}
	return g.Name
}

// rayPod are the labels and the owner that the operator gives to a pod.
func (g Gang) rayPod(role string) (map[string]string, metav1.OwnerReference) {
	yes := true
	labels := map[string]string{"ray.io/cluster": g.cluster(), "ray.io/is-ray-node": "yes", "ray.io/node-type": "worker", "ray.io/group": role}
	if role == ray.Head {
		labels["ray.io/node-type"], labels["ray.io/group"] = "head", "headgroup"
	}
	return labels, metav1.OwnerReference{APIVersion: ray.Group + "/" + ray.Version, Kind: ray.ClusterKind, Name: g.cluster(), UID: uid(ray.ClusterKind, g.Namespace, g.cluster()), Controller: &yes}
}

// addRay adds a RayCluster, or a RayJob with the one that was made of it, in a cluster in which the operator of KubeRay runs.
func (c *Cluster) addRay(g Gang) {
	version := ray.Group + "/" + ray.Version
	c.S.Server.Resources = append(c.S.Server.Resources, ray.JobResource+"."+version, ray.ClusterResource+"."+version)
	c.Deployment("kuberay", "kuberay-operator", "quay.io/kuberay/operator:v1.4.2")
	spec := map[string]any{}
	var groups []any
	for _, r := range g.roles() {
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g.template(r))
		if err != nil {
			panic(err) // a mistake in a test
		}
		if r.Name == "Head" {
			spec["headGroupSpec"] = map[string]any{"template": template}
			continue
		}
		groups = append(groups, map[string]any{"groupName": strings.ToLower(r.Name), "replicas": int64(r.Replicas), "template": template})
	}
	spec["workerGroupSpecs"] = groups
	object := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": version, "kind": kind,
			"metadata": map[string]any{"name": name, "namespace": g.Namespace, "uid": string(uid(kind, g.Namespace, name)), "creationTimestamp": stamp(g.Age)}}
	}
	top := object(g.Kind, g.Name)
	if g.Kind == ray.JobKind {
		top["spec"] = map[string]any{"suspend": false, "shutdownAfterJobFinishes": true, "rayClusterSpec": spec}
		top["status"] = map[string]any{"jobDeploymentStatus": "Initializing", "rayClusterName": g.cluster()}
	} else {
		top["spec"] = spec
		spec["suspend"], top["status"] = false, map[string]any{"state": "ready"}
	}
	if g.Job != nil {
		g.Job(top)
	}
	if g.Kind == ray.JobKind {
		made := object(ray.ClusterKind, g.cluster())
		made["spec"] = runtime.DeepCopyJSON(map[string]any{"spec": spec})["spec"]
		made["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": version, "kind": g.Kind, "name": g.Name, "uid": string(g.uid()), "controller": true}}
		c.Object(made)
	}
	c.Object(top)
}
