package gang

// Exclusive is a rule by which the controller of a job gives each part of it, as a Job of a JobSet, a topology domain for itself: one that pods of no other part, and of
// no other job of the kind, are in.
//
// It is for explanations only, which have to know where pods go that are not made yet. The scheduler finds the rule in the pods: webhooks of the controller write it into them
// as affinity to each other, anti-affinity to others, and the domain of the first pod once it has one. So a rule like this is in no declaration of a gang.
type Exclusive struct {
	// Rule divides the members, and has the label of nodes and that of members which its parts keep out.
	Rule PartRule
	// Label is on pods of all jobs of the kind, with a value of its own for each part.
	Label string
	// Namespaces reports whether pods in other namespaces are kept out, too.
	Namespaces bool
	// PriorityLabel, on pods of the kind, has their priority: those with another one are not kept out. Pods without it are, and all are where it is empty.
	PriorityLabel string
}
