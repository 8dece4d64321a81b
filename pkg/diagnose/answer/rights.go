package answer

// Rights are what the caller may not do, and what would grant it. An answer has them only where something was refused.
type Rights struct {
	// User is the caller, as the API server names it; empty if that is not known.
	User string `json:"user,omitempty"`
	// Missing are the rights that were refused, those that changed the answer first.
	Missing []Right `json:"missing"`
	// Grant is YAML for `kubectl apply -f -` that grants those that changed the answer; empty if none did. GrantAll grants all.
	Grant    string `json:"grant,omitempty"`
	GrantAll string `json:"grantAll"`
}

// Right is one right, in the terms of an RBAC rule.
type Right struct {
	Verb     string `json:"verb"`
	Group    string `json:"apiGroup"`
	Resource string `json:"resource"`
	// Namespace is empty for all namespaces, and for kinds that have none.
	Namespace string `json:"namespace,omitempty"`
	// Stage is that which would have needed it first; empty if none did.
	Stage Stage `json:"stage,omitempty"`
	// Lost is what the answer cannot determine without it.
	Lost string `json:"lost"`
	// Decisive is true if the answer could be another one with it.
	Decisive bool `json:"decisive"`
}

// Name is RESOURCE or RESOURCE.GROUP.
func (r Right) Name() string {
	if r.Group == "" {
		return r.Resource
	}
	return r.Resource + "." + r.Group
}

// OfCluster reports whether the right is about a kind that has no namespace.
func (r Right) OfCluster() bool {
	switch r.Resource {
	case "nodes", "namespaces", "persistentvolumes", "storageclasses", "csinodes", "csidrivers", "volumeattachments", "priorityclasses",
		"runtimeclasses", "resourceslices", "deviceclasses", "devicetaintrules", "queues", "clusterqueues", "resourceflavors", "admissionchecks", "multikueueclusters", "workloadpriorityclasses",
		"hypernodes", "clusternetworktopologies", "clustertrainingruntimes", "nodeclaims", "nodepools",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "clusterroles", "clusterrolebindings":
		return true
	}
	return false
}

// Where is where the right is missing, as text; empty for kinds that have no namespace.
func (r Right) Where() string {
	switch {
	case r.Namespace != "":
		return "in namespace " + r.Namespace
	case r.OfCluster():
		return ""
	}
	return "in all namespaces"
}

// String reads like `list pods in all namespaces`.
func (r Right) String() string {
	text := r.Verb + " " + r.Name()
	if where := r.Where(); where != "" {
		text += " " + where
	}
	return text
}
