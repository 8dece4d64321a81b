// Package placement determines two things exactly: which constraint of which node rejects a pod, and whether a whole gang has a
// placement.
//
// An Index follows the cluster of a running scheduler, and keeps data of all nodes from one plan to the next.
//
// It is pure: API objects in, values out; no I/O, no clock but the time budget of a search. A Cluster is an immutable snapshot with cheap
// what-if copies. Matrix evaluates every constraint of every node independently, never stopping at the first. Place finds a placement of
// the whole gang, or proves that there is none, and reports the kind of proof. Lacking measures what the role that is hardest to place does
// not find.
//
// The rules are those of the kube-scheduler plugins of the k8s.io/kubernetes version that the module requires: where an
// upstream plugin or helper can be called, it is called, so that what explains is the code that schedules. Two rules are
// stricter: a node that is being deleted takes no pods, and one whose Ready condition is not True is treated as if Kubernetes
// had tainted it already.
//
// # How a gang is placed
//
//  1. newTask parses the roles, and findConstraints the constraints between members: on one node (samenode.go) and across nodes
//     (crossnode.go, interpodaffinity.go, spread.go). Most gangs have none.
//  2. findCandidates evaluates every node on its own: which roles it takes, and how many members of each.
//     On the cluster of an Index the candidates come from what it keeps for gangs of the same shape (shape.go), no more of them than
//     the gang can use; if it has no placement there, it has none, and the other steps find the proof among all nodes.
//  3. Volumes that members share are tried one after the other (sharedvolumes.go), and so are the domains of a topology key that
//     all members have to share (place.go).
//  4. countingBound compares what the candidates have with the least that the gang needs. It rules most gangs out that do not fit.
//  5. pack looks at each node alone: greedily at first, then exactly. What fits on several nodes is the sum of what fits on each,
//     and a DP table over all counts of members has these sums (dp.go).
//  6. Only if members matter to each other across nodes, search places them one after the other, each where the scheduler would
//     accept it after the ones before (partial.go), in every order that can make a difference. Candidates and members that are
//     alike count once.
package placement
