// Package placement answers two questions exactly: which constraint of which node rejects a pod, and whether a whole gang has a
// placement.
//
// It is pure: API objects in, values out; no I/O, no clock but the time budget of a search. A Cluster is an immutable
// snapshot with cheap what-if copies. Matrix evaluates every constraint of every node independently, never stopping at the
// first. Place finds a placement of the whole gang, or proves that there is none, and says which kind of proof it has.
//
// The rules are those of the kube-scheduler plugins of the k8s.io/kubernetes version that the module requires: where an
// upstream plugin or helper can be called, it is called, so that what explains is the code that schedules. Two rules are
// stricter: a node that is being deleted takes no pods, and one whose Ready condition is not True is treated as if Kubernetes
// had tainted it already.
//
// # How a gang is placed
//
// Members that matter to each other only by what they use of a node (amounts, host ports, anti-affinity by host name, devices)
// are packed exactly: the counts that fit on several nodes are the sums of what fits on each, and a table over all counts holds
// them. A required topology key, or affinity that ties all members to each other, makes that one packing a domain. Other
// affinity, anti-affinity and spread across nodes is searched: members are placed one after the other, each where the scheduler
// would accept it after the ones before, in every order that can make a difference; nodes and members that are alike count
// once. Counting bounds prove most gangs too large before any search.
package placement
