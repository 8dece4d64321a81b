// Package audience decides how a text names what is in another namespace than its readers'.
//
// What the scheduler writes into a namespace is read by all who may read that namespace, whatever else they may read. So every text is
// written for a [Reader], and whoever writes one names objects through its Reader.
package audience

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Policy is whether texts that are written into a namespace name objects of others.
type Policy bool

const (
	// Hidden leaves the names of other namespaces out.
	Hidden Policy = false
	// Named writes them.
	Named Policy = true
)

// Reader is the reader of what is written into a namespace.
func (p Policy) Reader(namespace string) Reader {
	return Reader{limited: p == Hidden, namespace: namespace}
}

// Reader is whom a text is written for. The zero value may know every name: it is the caller, who has read the cluster with his own rights.
type Reader struct {
	limited   bool
	namespace string
}

// Sees reports whether objects of a namespace may be named; the empty namespace is that of cluster-wide objects.
func (r Reader) Sees(namespace string) bool {
	return !r.limited || namespace == "" || namespace == r.namespace
}

// SeesAll reports whether objects of every namespace may be named.
func (r Reader) SeesAll() bool { return !r.limited }

// Name is NAMESPACE/NAME of an object, or what it is where the reader does not see it.
func (r Reader) Name(t Thing) string {
	if !r.Sees(t.namespace) {
		return t.anonymous()
	}
	return t.namespace + "/" + t.name
}

// Title is KIND NAMESPACE/NAME of an object, or what it is where the reader does not see it.
func (r Reader) Title(t Thing) string {
	if !r.Sees(t.namespace) {
		return t.anonymous()
	}
	return t.kind + " " + r.Name(t)
}

// Thing is an object, and what is reported of it to a reader who may not see its name. Things can be compared.
type Thing struct {
	kind, namespace, name string
	size                  string
}

// New returns an object of a namespace of which only the kind is reported.
func New(kind, namespace, name string) Thing {
	return Thing{kind: kind, namespace: namespace, name: name}
}

// Sized adds what an object requests in all, of which the devices are reported, or the cpu where there are none; and its priority.
func (t Thing) Sized(requests corev1.ResourceList, priority int32) Thing {
	t.size = fmt.Sprintf("priority %d", priority)
	if size := phrase.Size(requests); size != "" {
		t.size = size + ", " + t.size
	}
	return t
}

// anonymous reads like: a gang of another namespace (16 GPUs, priority 0).
func (t Thing) anonymous() string {
	text := article(t.kind) + " " + t.kind + " of another namespace"
	if t.size != "" {
		text += " (" + t.size + ")"
	}
	return text
}

// article is the indefinite one of a kind, as it is spoken: an MPIJob.
func article(kind string) string {
	if kind != "" && strings.ContainsRune("AEIOaeio", rune(kind[0])) || strings.HasPrefix(kind, "MPI") || strings.HasPrefix(kind, "XG") {
		return "an"
	}
	return "a"
}

// Requests is the sum of what pods request.
func Requests(pods []*corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, pod := range pods {
		for name, quantity := range request.Of(pod) {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	return sum
}

// Text is a text that names objects of one namespace, and has readers of several. Texts can be compared.
type Text struct{ namespace, named, hidden string }

// Write has a text about objects of a namespace written for those who see them and for those who do not.
func Write(namespace string, write func(Reader) string) Text {
	return Text{namespace: namespace, named: write(Reader{}), hidden: write(Reader{limited: true})}
}

// Plain is a text that names nothing.
func Plain(text string) Text { return Text{named: text} }

// For is the text as it is written for a reader.
func (t Text) For(r Reader) string {
	if !r.Sees(t.namespace) {
		return t.hidden
	}
	return t.named
}
