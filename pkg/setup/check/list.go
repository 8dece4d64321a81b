package check

import "github.com/gangctl/gangctl/pkg/gang/dialect"

// Resources that checks need, besides those that are read for every answer.
const (
	pods           = "pods"
	nodes          = "nodes"
	deployments    = "deployments.apps"
	daemonSets     = "daemonsets.apps"
	leases         = "leases.coordination.k8s.io"
	definitions    = "customresourcedefinitions.apiextensions.k8s.io"
	clusterRoles   = "clusterroles.rbac.authorization.k8s.io"
	clusterBinding = "clusterrolebindings.rbac.authorization.k8s.io"
	roles          = "roles.rbac.authorization.k8s.io"
	roleBindings   = "rolebindings.rbac.authorization.k8s.io"
	namespaces     = "namespaces"
	events         = "events"
	accounts       = "serviceaccounts"
	tfJobs         = "tfjobs.kubeflow.org"
	limits         = "validatingadmissionpolicies.admissionregistration.k8s.io"
	limitBindings  = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
	webhooks       = "validatingwebhookconfigurations.admissionregistration.k8s.io"
)

// ResourceSlices is the resource in which DRA drivers offer devices. No check needs it: who may not list it is warned where it matters.
const ResourceSlices = "resourceslices.resource.k8s.io"

// groups are the group objects of every dialect.
func groups() []string {
	var all []string
	for _, r := range dialect.Readers() {
		for _, k := range r.Kinds {
			all = append(all, k.Resource+"."+k.Group)
		}
	}
	return all
}

// Cluster are the checks of a cluster on which gangs are to run.
func Cluster() []Check {
	return []Check{
		{ID: "api-ready", Category: API, Title: "the API server answers and is ready", Judge: apiReady},
		{ID: "version-server", Category: Versions, Title: "gangctl knows this release of Kubernetes", Judge: serverVersion},
		{ID: "version-kubelets", Category: Versions, Title: "nodes are of releases that go with the API server", Needs: []string{nodes}, Judge: kubeletVersions},
		{ID: "version-scheduler", Category: Versions, Title: "gang scheduler and gangctl are of one version", Needs: []string{deployments}, Judge: schedulerVersion},
		{ID: "version-operator", Category: Versions, Title: "the training operator is of a release that gangctl knows", Needs: []string{deployments}, Judge: operatorVersion},
		{ID: "rights-submit", Category: Rights, Title: "you may submit jobs and follow them", Judge: submitRights},
		{ID: "crd-podgroups", Category: CRDs, Title: "PodGroups of scheduling.x-k8s.io are served", Needs: []string{definitions}, Judge: podGroups},
		{ID: "crd-jobs", Category: CRDs, Title: "jobs that need an operator are served", Needs: []string{definitions}, Judge: jobKinds},
		{ID: "crd-foreign", Category: CRDs, Title: "other gang formats have a known owner", Needs: []string{definitions}, Judge: foreignGroups},
		{ID: "scheduler-alive", Category: Schedule, Title: "a gang scheduler is alive", Needs: []string{deployments, leases, pods, events}, Judge: schedulersAlive},
		{ID: "scheduler-fight", Category: Schedule, Title: "no two schedulers fight over gangs", Needs: []string{deployments, pods}, Judge: schedulersFight},
		{ID: "dialect-unserved", Category: Schedule, Title: "every gang format that is served has a scheduler", Needs: append([]string{deployments, leases, pods, events}, groups()...), Judge: unservedDialects},
		{ID: "pods-unserved", Category: Schedule, Title: "every waiting pod has a scheduler", Needs: []string{deployments, leases, pods, events}, Judge: unservedPods},
		{ID: "operator-alive", Category: Operators, Title: "a training operator turns TFJobs into pods", Needs: []string{deployments, tfJobs, webhooks}, Judge: operatorsAlive},
		{ID: "operator-gang", Category: Operators, Title: "the operator's gangs have a scheduler", Needs: []string{deployments, leases, pods, events}, Judge: operatorGangs},
		{ID: "kinds-gang", Category: Operators, Title: "every kind of job that is served would be a gang", Needs: []string{deployments, leases, pods, events}, Judge: kindGangs},
		{ID: "rbac-scheduler", Category: RBAC, Title: "the gang scheduler holds every right that it uses", Needs: []string{clusterRoles, clusterBinding, roles, roleBindings, deployments, accounts}, Judge: schedulerRules},
		{ID: "rbac-limit", Category: RBAC, Title: "of jobs the gang scheduler may change only whether they are suspended", Needs: []string{clusterRoles, clusterBinding, deployments, accounts, limits, limitBindings}, Judge: schedulerLimits},
		{ID: "rbac-operator", Category: RBAC, Title: "the training operator holds every right that it uses", Needs: []string{clusterRoles, clusterBinding, roles, roleBindings, deployments, accounts}, Judge: operatorRules},
		{ID: "devices", Category: Devices, Title: "device plugins offer what nodes have", Needs: []string{nodes, daemonSets}, Judge: devicePlugins},
		{ID: "clock-caller", Category: Clocks, Title: "your clock and the API server's agree", Judge: callerClock},
		{ID: "clock-nodes", Category: Clocks, Title: "no component is ahead of the API server's clock", Needs: []string{leases}, Judge: componentClocks},
	}
}

// Before are the checks of a cluster on which the gang scheduler is to be installed.
func Before() []Check {
	return []Check{
		{ID: "api-ready", Category: API, Title: "the API server answers and is ready", Judge: apiReady},
		{ID: "version-server", Category: Versions, Title: "gangctl knows this release of Kubernetes", Judge: serverVersion},
		{ID: "rights-install", Category: Rights, Title: "you may write everything that is installed", Judge: installRights},
		{ID: "crd-podgroups", Category: CRDs, Title: "PodGroups of scheduling.x-k8s.io belong to no other product, or can be shared", Needs: []string{definitions}, Judge: podGroupsBefore},
		{ID: "crd-foreign", Category: CRDs, Title: "other gang formats have a known owner", Needs: []string{definitions}, Judge: foreignGroups},
		{ID: "install-name", Category: Install, Title: "no other scheduler answers to the schedulerNames", Needs: []string{deployments}, Judge: namesTaken},
		{ID: "install-namespace", Category: Install, Title: "the namespace can take the scheduler", Needs: []string{namespaces}, Judge: targetNamespace},
		{ID: "install-objects", Category: Install, Title: "nothing of others is in the place of what is installed", Judge: placesTaken},
		{ID: "operator-alive", Category: Operators, Title: "a training operator turns TFJobs into pods", Needs: []string{deployments, tfJobs}, Judge: operatorsBefore},
		{ID: "clock-caller", Category: Clocks, Title: "your clock and the API server's agree", Judge: callerClock},
	}
}
