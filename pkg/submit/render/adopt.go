package render

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
)

// adopt decides how a gang is declared that a file leaves to somebody else: its pods ask for a scheduler by name, or carry a
// mark, and the object that goes with it was the operator's to make. schedulerName and marks stay. The object is one of the kind
// that the scheduler of that name was made for, where the cluster serves it; elsewhere it is one of scheduling.x-k8s.io, which
// gangctl's scheduler reads for every name that it answers to. It reports whether there is a way.
func (c *completion) adopt() bool {
	own := dialectOf(c.scheduler)
	if c.scheduler == "" {
		own = c.dialect
	}
	if own != gang.Volcano && own != gang.KubeBatch {
		return false
	}
	writer, _ := dialect.WriterOf(own)
	version := slices.IndexFunc(writer.Versions, func(v schema.GroupVersion) bool { return c.serves(v.Group) })
	if version >= 0 && c.scheduler != "" {
		c.dialect, c.s.Version = own, writer.Versions[version]
		return true
	}
	c.dialect, c.s.Version = gang.SchedulerPlugins, schema.GroupVersion{}
	if c.scheduler != "" {
		c.Notes = append(c.Notes, fmt.Sprintf("its PodGroup is one of scheduling.x-k8s.io, as there are none of %s: gangctl's scheduler reads it if it answers to %s",
			own, c.scheduler))
	}
	return true
}

// replace gives a gang whose PodGroup the cluster does not serve one of scheduling.x-k8s.io.
func (c *completion) replace() error {
	group := c.PodGroup.GroupVersionKind().Group
	if c.s.Serves == nil || c.s.Serves(group) || (c.dialect != gang.Volcano && c.dialect != gang.KubeBatch) {
		return nil
	}
	reader, _ := dialect.ReaderOf(c.dialect)
	d, err := reader.Decode(c.PodGroup)
	if err != nil {
		return err
	}
	note := fmt.Sprintf("PodGroup %s is one of scheduling.x-k8s.io now, as the cluster serves none of %s", c.PodGroup.GetName(), group)
	if queue, _, _ := unstructured.NestedString(c.PodGroup.Object, "spec", "queue"); queue != "" {
		note += fmt.Sprintf("; its queue, %s, is left out", queue)
	}
	c.Notes = append(c.Notes, note)
	c.dialect, c.s.Version, c.s.MinAvailable, c.PodGroup = gang.SchedulerPlugins, schema.GroupVersion{}, d.MinMember, nil
	return nil
}

// serves reports whether the cluster serves group objects of an API group. Where it was not asked, kube-batch's are taken for
// absent: their definitions install on no Kubernetes since 1.22.
func (c *completion) serves(group string) bool {
	if c.s.Serves == nil {
		return !slices.Contains(kubebatch.Groups(), group)
	}
	return c.s.Serves(group)
}

// dialectOf is the dialect for which a scheduler is known; empty if it is not known for one.
func dialectOf(scheduler string) gang.Dialect {
	for _, r := range dialect.Readers() {
		if slices.Contains(r.Schedulers, scheduler) {
			return r.Dialect
		}
	}
	return ""
}
