// Package gang is the domain that every other package speaks: a gang is a set
// of pods that is only useful when at least MinMember of them run. The package
// holds values only; it talks to no cluster and no terminal.
package gang

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Dialect names the wire format in which a gang was declared. Its values are
// those of the --dialect flag.
type Dialect string

// The dialects that gangctl reads; package dialect knows which of them it writes.
const (
	// SchedulerPlugins is the PodGroup object of scheduling.x-k8s.io/v1alpha1
	// and the pod label that points to it.
	SchedulerPlugins Dialect = "scheduler-plugins"
	// Labels is the pair of pod labels that Alibaba's ACK reads; no object.
	Labels      Dialect = "labels"
	Volcano     Dialect = "volcano"
	KubeBatch   Dialect = "kube-batch"
	PDB         Dialect = "pdb"
	Koordinator Dialect = "koordinator"
	KAI         Dialect = "kai"
	Native      Dialect = "native"
	Kueue       Dialect = "kueue"
	YuniKorn    Dialect = "yunikorn"
	// LeaderWorkerSet is what the controller of that kind labels pods with: each replica is a gang.
	LeaderWorkerSet Dialect = "leaderworkerset"
	// None is the dialect of a job whose members are scheduled one by one.
	None Dialect = "none"
)

// GatedTogether reports whether one gated member keeps all others of its gang from being scheduled, as the API of Kubernetes' PodGroups has it.
// In the other dialects a gang starts with those that are not gated, if they are enough.
func (d Dialect) GatedTogether() bool { return d == Native }

// WhyGatedTogether is what waiting members report where that is so.
const WhyGatedTogether = "Kubernetes starts no member of a PodGroup while another is gated"

// DialectAnnotation has the value none on a pod that is in no gang, although the controller that made it groups pods.
const DialectAnnotation = "gangctl.dev/dialect"

// Key identifies one gang in a cluster. Two dialects may use the same name in
// the same namespace for two different gangs.
type Key struct {
	Dialect   Dialect
	Namespace string
	Name      string
}

// String renders the key as dialect:namespace/name, for logs and errors.
func (k Key) String() string {
	return fmt.Sprintf("%s:%s/%s", k.Dialect, k.Namespace, k.Name)
}

// VirtualName is the name under which the gang is shown to an engine that
// knows one flat kind of group per namespace. The colon cannot occur in the
// name of an API object, so a virtual name never collides with a real one.
func (k Key) VirtualName() string {
	return string(k.Dialect) + ":" + k.Name
}

// VirtualGroup names the virtual PodGroup of the gang, which has its [Key.VirtualName].
func (k Key) VirtualGroup() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.VirtualName()}
}

// ParseVirtualName is the inverse of [Key.VirtualName].
func ParseVirtualName(namespace, virtual string) (Key, error) {
	dialect, name, ok := strings.Cut(virtual, ":")
	if !ok || dialect == "" || name == "" {
		return Key{}, fmt.Errorf("parse virtual gang name %q: want DIALECT:NAME", virtual)
	}
	return Key{Dialect: Dialect(dialect), Namespace: namespace, Name: name}, nil
}
