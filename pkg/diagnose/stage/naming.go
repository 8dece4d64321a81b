package stage

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Naming names the consumers of a cluster, and objects in it, to a reader.
type Naming struct {
	// View is the cluster.
	View *view.View
	// Reader is whom texts are written for: what is not in the gang's own namespace is named through it alone.
	Reader audience.Reader
}

// Name is NAMESPACE/NAME of a consumer to a reader who sees it.
func (n Naming) Name(h *view.Consumer) string {
	if n.Reader.Sees(h.Namespace) {
		return h.String()
	}
	return n.Reader.Name(n.sized(h))
}

// Title is KIND NAMESPACE/NAME of a consumer to a reader who sees it.
func (n Naming) Title(h *view.Consumer) string {
	if n.Reader.Sees(h.Namespace) {
		return h.Kind + " " + h.String()
	}
	return n.Reader.Title(n.sized(h))
}

// sizedKey is the key of a consumer with its size.
type sizedKey struct{ h *view.Consumer }

// sized is a consumer with what its pods request, which is summed up once for a view: it may have thousands.
func (n Naming) sized(h *view.Consumer) audience.Thing {
	return view.Once(n.View, sizedKey{h}, func() audience.Thing {
		return audience.New(h.Kind, h.Namespace, h.Name).Sized(audience.Requests(h.Pods), h.Priority())
	})
}

// TitleOf is the kind and the name of an object to the reader.
func (n Naming) TitleOf(kind string, o metav1.Object) string {
	return n.Reader.Title(audience.New(kind, o.GetNamespace(), o.GetName()))
}

// NameOf is NAMESPACE/NAME of an object to the reader.
func (n Naming) NameOf(kind string, o metav1.Object) string {
	return n.Reader.Name(audience.New(kind, o.GetNamespace(), o.GetName()))
}

// PodNames are the bare names of pods to a reader who sees them.
func (n Naming) PodNames(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		if n.Reader.Sees(p.Namespace) {
			names = append(names, p.Name)
		} else {
			names = append(names, n.NameOf("pod", p))
		}
	}
	return names
}

// Guarded are the PodDisruptionBudgets that do not let all of some pods go at once, as a clause: PodDisruptionBudget serving/web lets none of its 2 pods go. It is
// empty where there are none.
func (n Naming) Guarded(pods []*corev1.Pod) string {
	exceeded := n.View.ExceededBudgets(pods)
	if len(exceeded) == 0 {
		return ""
	}
	return n.Budgets(exceeded)
}

// Budgets is [Naming.Guarded] for budgets.
func (n Naming) Budgets(exceeded []view.Exceeded) string {
	return phrase.NamesOf(exceeded, func(e view.Exceeded) string {
		lets := "none"
		if e.Status.DisruptionsAllowed > 0 {
			lets = fmt.Sprint(e.Status.DisruptionsAllowed)
		}
		return fmt.Sprintf("%s lets %s of %s go", n.TitleOf("PodDisruptionBudget", e), lets, phrase.Count(e.Covered, "pod"))
	})
}

// GroupName is NAMESPACE/NAME of a gang to the reader: that of its job, as users know it, or else that of the group.
func (n Naming) GroupName(d gang.Declaration) string {
	name := d.Key.Name
	var user *view.Consumer
	if pods := n.View.GroupPods(d); len(pods) > 0 {
		user = n.View.ConsumerOf(pods[0])
	}
	if user != nil && user.Kind != "Pod" {
		name = user.Name
	} else if job := n.View.JobOfGroup(d); job != nil {
		name = job.Meta.Name
	} else if u := n.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name); u != nil && metav1.GetControllerOf(u) != nil {
		name = metav1.GetControllerOf(u).Name
	}
	return n.Reader.Name(audience.New("gang", d.Key.Namespace, name))
}

// WhyOther is why another gang waits, as far as the reader of this diagnosis may see it: of one that they may not see, the code alone. Its
// message may name all that it has.
func (n Naming) WhyOther(d *Diagnosis) (text string, details []string) {
	if !n.Reader.Sees(d.Gang.Meta.Namespace) {
		return string(d.Primary.Code), nil
	}
	return d.Primary.Message, d.Primary.Details
}
