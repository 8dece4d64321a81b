package stage

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Name is NAMESPACE/NAME of a consumer to a reader who sees it.
func Name(v *view.View, r audience.Reader, h *view.Consumer) string {
	if r.Sees(h.Namespace) {
		return h.String()
	}
	return r.Name(consumer(v, h))
}

// Title is KIND NAMESPACE/NAME of a consumer to a reader who sees it.
func Title(v *view.View, r audience.Reader, h *view.Consumer) string {
	if r.Sees(h.Namespace) {
		return h.Kind + " " + h.String()
	}
	return r.Title(consumer(v, h))
}

// sized is the key of a consumer with its size.
type sized struct{ h *view.Consumer }

// consumer is described by what its pods request, which is summed up once for a view: it may have thousands.
func consumer(v *view.View, h *view.Consumer) audience.Thing {
	return view.Once(v, sized{h}, func() audience.Thing {
		return audience.New(h.Kind, h.Namespace, h.Name).Sized(audience.Requests(h.Pods), h.Priority())
	})
}

// Name is the name of a consumer to the reader of the diagnosis.
func (c *Context) Name(h *view.Consumer) string { return Name(c.View, c.Reader, h) }

// Title is the kind and the name of a consumer to the reader of the diagnosis.
func (c *Context) Title(h *view.Consumer) string { return Title(c.View, c.Reader, h) }

// TitleOf is the kind and the name of an object to the reader of the diagnosis.
func (c *Context) TitleOf(kind string, o metav1.Object) string {
	return c.Reader.Title(audience.New(kind, o.GetNamespace(), o.GetName()))
}

// NameOf is NAMESPACE/NAME of an object to the reader of the diagnosis.
func (c *Context) NameOf(kind string, o metav1.Object) string {
	return c.Reader.Name(audience.New(kind, o.GetNamespace(), o.GetName()))
}

// GroupName is NAMESPACE/NAME of a gang to the reader of the diagnosis.
func (c *Context) GroupName(d gang.Declaration) string {
	return c.Reader.Name(audience.New("gang", d.Key.Namespace, d.Key.Name))
}

// WhyOther is why another gang waits, as far as the reader of this diagnosis may see it: of one that they may not see, the code alone. Its
// message may name all that it has.
func (c *Context) WhyOther(d *Diagnosis) (text string, details []string) {
	if !c.Reader.Sees(d.Gang.Meta.Namespace) {
		return string(d.Primary.Code), nil
	}
	return d.Primary.Message, d.Primary.Details
}
