package stage

import (
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Denied records that a list was not allowed, and reports whether it was not.
func (r *Result) Denied(c *Context, resource, namespace string) bool {
	if c.View.Snap.CanList(resource, namespace) {
		return false
	}
	r.Lack("list", resource, namespace)
	return true
}

// DeniedAny records every one of several lists that was not allowed, and reports whether there is one.
func (r *Result) DeniedAny(c *Context, namespace string, resources ...string) bool {
	some := false
	for _, resource := range resources {
		some = r.Denied(c, resource, namespace) || some
	}
	return some
}

// Lack records a right that this stage would have needed.
func (r *Result) Lack(verb, resource, namespace string) {
	right := RightOf(verb, resource, namespace)
	if right.OfCluster() {
		right.Namespace = ""
	}
	if !slices.ContainsFunc(r.Missing, func(m answer.Right) bool { return m.String() == right.String() }) {
		r.Missing = append(r.Missing, right)
	}
}

// RightOf is the right to a verb on RESOURCE or RESOURCE.GROUP.
func RightOf(verb, resource, namespace string) answer.Right {
	name, group, _ := strings.Cut(resource, ".")
	return answer.Right{Verb: verb, Group: group, Resource: name, Namespace: namespace}
}

// RightNames names rights as [answer.Right.String] does.
func RightNames(rights []answer.Right) []string {
	var names []string
	for _, r := range rights {
		names = append(names, r.String())
	}
	return names
}

// Lost reports what cannot be determined without a right; stage is the one that would have needed it, empty for none in particular.
func Lost(r answer.Right, stage answer.Stage) string {
	if r.Verb == snapshot.VerbCreate {
		if r.Resource == "pods" {
			return "whether the API server would accept the pods was not tried"
		}
		return "the job cannot be submitted"
	}
	switch r.Resource {
	case "nodes":
		return "placement is unknown"
	case "pods":
		return "what holds the nodes is unknown"
	case "namespaces":
		return "whether the namespace is being deleted is unknown"
	case "events":
		return "what was reported of the job is unknown"
	case "resourcequotas", "elasticquotas":
		return "how much the namespace may use is unknown"
	case "limitranges":
		return "the namespace's limits and defaults for pods are unknown"
	case "serviceaccounts", "priorityclasses", "runtimeclasses", "validatingwebhookconfigurations", "mutatingwebhookconfigurations":
		return "what the API server checks pods against is not all known"
	case "deployments", "leases":
		if stage == answer.StageController {
			return "whether the job's operator runs is unknown"
		}
		return "whether the gang's scheduler runs is unknown"
	case "clusterroles", "clusterrolebindings":
		return "who may be an operator or a scheduler is known by namespaces only"
	case "statefulsets", "replicasets":
		return "how many pods are made for the gang is unknown"
	case "podgroups":
		return "how the gang is declared is unknown"
	case "trainingruntimes", "clustertrainingruntimes":
		return "whether the runtime of the job exists is unknown"
	case "compositepodgroups":
		return "with which others the gang starts is unknown"
	case "nodeclaims", "nodepools":
		return "whether the nodes that were ordered come is not all known"
	case "hypernodes", "clusternetworktopologies":
		return "which nodes are together in the network is unknown"
	case "queues", "localqueues", "clusterqueues", "workloads", "resourceflavors", "admissionchecks", "multikueueclusters", "provisioningrequests", "workloadpriorityclasses":
		return "what the queue allows is unknown"
	case "persistentvolumes", "persistentvolumeclaims", "storageclasses", "csinodes", "csidrivers", "volumeattachments":
		return "where volumes can be used is not all known"
	case "resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses", "devicetaintrules":
		return "which claimed devices are free is unknown"
	}
	return "whose pods hold the nodes, and whether they end, is not all known"
}
