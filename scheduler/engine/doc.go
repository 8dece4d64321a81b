// Package engine is the seam to kube-scheduler, the engine that places pods. It
// holds what the engine is given instead of what a kube-scheduler has: a store of
// virtual PodGroups that looks like an API server, a client that keeps the status
// of those groups in the process, a client that confirms bindings, informers of
// APIs that may not be served, and watches that reconnect.
package engine
