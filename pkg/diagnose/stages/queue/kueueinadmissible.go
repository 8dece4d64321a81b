package queue

import (
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// unmapped is how Kueue reports that it does not know as what resource it is to count the devices of a class.
var unmapped = regexp.MustCompile(`DeviceClass (\S+) is not mapped in DRA configuration`)

// inadmissible finds that Kueue does not admit a Workload for something that no end of a job changes: it reports what there is too little of with other reasons.
func inadmissible(c *stage.Context, u *unstructured.Unstructured, condition gang.Condition) *stage.Finding {
	f := notAdmitted(u, condition).As(answer.Blocked, answer.Admin)
	if m := unmapped.FindStringSubmatch(condition.Message); m != nil {
		f.Detail("in its configuration, an administrator maps DeviceClass %s to a resource that ClusterQueues have quota for: resources.deviceClassMappings", m[1]).Fact("deviceClass", m[1])
	}
	for _, d := range component.Running(c.View, component.Kueue(), func(image string) bool { return imagename.Base(image) == "kueue" }) {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.ConfigMap != nil {
				return f.Run(command.Kubectl(d.Namespace, "get", "configmap", v.ConfigMap.Name, "-o", "yaml"))
			}
		}
		return f.Run(command.DeploymentLog(d))
	}
	return f
}
