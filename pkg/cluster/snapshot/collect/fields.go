package collect

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// lastApplied is the annotation in which kubectl keeps the whole object a second time.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// always is left out of every object: who set which field.
var always = []string{"metadata.managedFields"}

// What a container does, as opposed to what it requires of its node. Of controllers the arguments are read.
var (
	doing = []string{"env", "envFrom", "workingDir", "volumeMounts", "volumeDevices", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "terminationMessagePath",
		"terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty", "resizePolicy", "restartPolicyRules"}
	arguments = []string{"command", "args"}
)

// containers are the paths of containers in a pod spec.
func containers(spec string) []string {
	return []string{spec + ".containers", spec + ".initContainers"}
}

func fields(lists ...[]string) prune.Fields { return prune.Drop(slices.Concat(lists...)...) }

// What is left out of each kind, so that 50,000 pods stay small.
func nothingMore() prune.Fields { return fields(always) }

func podFields() prune.Fields {
	return fields(always, prune.Under(containers("spec"), slices.Concat(doing, arguments)...),
		prune.Under([]string{"spec"}, "ephemeralContainers", "imagePullSecrets", "dnsConfig", "hostAliases"),
		prune.Under([]string{"status"}, "hostIP", "hostIPs", "podIP", "podIPs"))
}

// compactFields are the fields that no stage reads of a pod that is Ready, or has succeeded, beyond podFields.
func compactFields() prune.Fields {
	return fields(
		prune.Under([]string{"spec"}, "dnsPolicy", "securityContext", "enableServiceLinks", "readinessGates", "hostname", "subdomain", "setHostnameAsFQDN", "serviceAccount",
			"automountServiceAccountToken"),
		prune.Under([]string{"status"}, "qosClass", "observedGeneration", "ephemeralContainerStatuses"),
		prune.Under([]string{"status.containerStatuses", "status.initContainerStatuses"}, "lastState", "image", "imageID", "containerID", "started", "volumeMounts", "user",
			"allocatedResourcesStatus", "stopSignal", "state.running.startedAt", "state.terminated.containerID", "state.terminated.startedAt"))
}

func nodeFields() prune.Fields {
	return fields(always, prune.Under([]string{"status"}, "images", "addresses", "nodeInfo", "daemonEndpoints", "volumesInUse", "volumesAttached", "runtimeHandlers", "config", "conditions.lastHeartbeatTime"))
}

// csiNodeFields leave what is the same on many nodes: how many volumes a driver takes.
func csiNodeFields() prune.Fields {
	return fields(always, []string{"metadata.annotations", "spec.drivers.nodeID"})
}

// roleFields leave of roles and bindings who may do what.
func roleFields() prune.Fields {
	return fields(always, []string{"metadata.annotations", "metadata.labels"})
}

// controllerFields keep the arguments of Deployments and DaemonSets, which hold how an operator was configured, and what the next pods of StatefulSets request.
func controllerFields() prune.Fields {
	return fields(always, prune.Under(containers("spec.template.spec"), doing...))
}

// ownerFields keep of a ReplicaSet whose it is, and how many pods it makes.
func ownerFields() prune.Fields { return fields(always, []string{"spec.template"}) }

// jobFields are those of a batch Job that is not in the namespace of the query.
func jobFields() prune.Fields {
	return fields(prune.Under(containers("spec.template.spec"), slices.Concat(doing, arguments)...))
}

// customFields are the fields that are left out of an object of a kind that has no type.
func customFields(kind schema.GroupKind) prune.Fields {
	f := fields(always)
	f["metadata"]["annotations"] = prune.Fields{lastApplied: nil}
	if slices.Contains(trainjob.RuntimeKinds(), kind) {
		f["spec"] = nil // of a runtime it counts that it is there: what it comes to is in the JobSet
	}
	return f
}

// otherNamespaceJobFields are those of a training job that is not in the namespace of the query, beyond customFields: the roles are
// in a map whose name differs from kind to kind.
func otherNamespaceJobFields() prune.Fields {
	return fields([]string{"status.replicaStatuses", "status.conditions.lastUpdateTime"}, prune.Under(containers("spec."+prune.Any+"."+prune.Any+".template.spec"), slices.Concat(doing, arguments)...))
}
