// Package component names the processes of a sandbox, for those who start them,
// watch them and end them. Package controlplane is what runs in them.
package component

import (
	"slices"
	"time"
)

// The components, by the name that is the second argument of their command line.
const (
	Etcd              = "etcd"
	APIServer         = "apiserver"
	ControllerManager = "controller-manager"
	DefaultScheduler  = "default-scheduler"
	GangScheduler     = "gang-scheduler"
	Operator          = "operator"
	Nodes             = "nodes"
)

// EtcdSocket is etcd's address, relative to the data dir in which components
// run: only who may enter that directory gets at the storage, and no path is
// too long for a socket.
const EtcdSocket = "unix://etcd.sock"

// Grace is how long a component may take to end after its lifeline is cut.
const Grace = 3 * time.Second

// Known reports whether a name is a component's.
func Known(name string) bool {
	return slices.Contains([]string{Etcd, APIServer, ControllerManager, DefaultScheduler, GangScheduler, Operator, Nodes}, name)
}
