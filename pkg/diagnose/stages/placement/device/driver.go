package device

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Undriven finds nodes that look like they have devices which members claim, and of which no DRA driver publishes any: the kubelet removes what a driver has published
// that is gone. It is nil where the gang would not fit with as many as nodes like them have, unless no node has any.
func Undriven(c *stage.Context) *stage.Finding {
	for _, d := range c.Devices(c.Best()) {
		drivers := d.Drivers
		if len(drivers) == 0 {
			drivers = []string{d.Class} // as vendors call both
		}
		for _, driver := range drivers {
			if s := silenceOf(c, driver); d.Requested > d.Total && len(s.nodes) > 0 && (d.OfClass+d.Elsewhere == 0 || s.helps(c)) {
				return s.finding(c, d)
			}
		}
	}
	return nil
}

// silence is the nodes that look like they have devices of a DRA driver which has published none for them, and what it would publish: what it has for nodes like these.
type silence struct {
	driver string
	vendor *request.Vendor
	nodes  []*corev1.Node
	lacks  []*resourcev1.ResourceSlice
}

// silenceOf is the same for all gangs.
func silenceOf(c *stage.Context, driver string) *silence {
	type silent struct{ driver string }
	return view.Once(c.View, silent{driver}, func() *silence {
		vendors := request.Vendors()
		at := slices.IndexFunc(vendors, func(v request.Vendor) bool { return v.Drives(driver) })
		if at < 0 {
			return &silence{driver: driver}
		}
		s := &silence{driver: driver, vendor: &vendors[at]}
		own := map[string][]*resourcev1.ResourceSlice{}
		for _, slice := range c.View.Snap.ResourceSlices {
			if slice.Spec.Driver == driver {
				on := ptr.Deref(slice.Spec.NodeName, "")
				own[on] = append(own[on], slice)
			}
		}
		all := published(c, s.vendor.Device) // one driver may publish devices of several classes, and what stands for the driver here may be the class
		like := map[string][]*resourcev1.ResourceSlice{}
		for _, n := range c.View.Cluster().Nodes() {
			if kind := kindOfNode(n); kind != "" && len(like[kind]) == 0 {
				like[kind] = own[n.Name]
			}
		}
		for _, n := range c.View.Cluster().Nodes() {
			if !all.HasAny(n.Name, "") && s.vendor.Labelled(n) && !offersOf(n, s.vendor.Device) {
				s.nodes = append(s.nodes, n)
				s.lacks = append(s.lacks, slicesFor(n, like[kindOfNode(n)])...)
			}
		}
		return s
	})
}

// kindOfNode is equal for nodes that have the same devices: by their instance type, or else their pool.
func kindOfNode(n *corev1.Node) string {
	return cmp.Or(n.Labels[corev1.LabelInstanceTypeStable], node.PoolOf(n))
}

// slicesFor are the slices of a node as those of a node like it are.
func slicesFor(n *corev1.Node, like []*resourcev1.ResourceSlice) (all []*resourcev1.ResourceSlice) {
	for i, s := range like {
		s = s.DeepCopy()
		s.Name, s.Spec.NodeName, s.Spec.Pool.Name = fmt.Sprintf("%s-%d", n.Name, i), &n.Name, n.Name
		all = append(all, s)
	}
	return all
}

// helps reports whether the gang would fit with what is not published.
func (s *silence) helps(c *stage.Context) bool {
	if len(s.lacks) == 0 {
		return false
	}
	best := c.Best()
	return c.Fit(c.View.Derived(best, "driven by "+s.driver, func() *placement.Cluster { return best.WithMoreSlices(s.lacks) }), nil).Fits()
}

func (s *silence) finding(c *stage.Context, d placement.DeviceCount) *stage.Finding {
	names := node.Names(s.nodes)
	if !slices.ContainsFunc(s.nodes, func(n *corev1.Node) bool { return !node.IsNew(c, n) }) {
		return stage.Found(answer.ScalingUp, "%s joining the cluster, and DRA driver %s has not published %s devices yet", phrase.AreNames(names), s.driver, phrase.Verb(len(names), "its", "their")).
			Fact("nodes", names).Fact("class", d.Class).Fact("driver", s.driver)
	}
	f := stage.Found(answer.NoDevicePlugin, "%s (%s) %s %s devices and %s none of class %s: DRA driver %s does not work there",
		phrase.Count(len(names), "node"), phrase.Names(names), phrase.Verb(len(names), "looks like it has", "look like they have"), s.vendor.Name, phrase.Verb(len(names), "publishes", "publish"), d.Class, s.driver).
		Fact("nodes", names).Fact("class", d.Class).Fact("driver", s.driver)
	if len(s.lacks) > 0 && s.helps(c) {
		f.Detail("with them it would fit an empty cluster")
	}
	return daemon(c, f, "DRA driver", s.driver, component.Driver(c.View, s.driver, component.DRA), names)
}
