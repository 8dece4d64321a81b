package start

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// pullsLimited is how a kubelet reports that it pulls no more images for the moment, by its registryPullQPS.
const pullsLimited = "pull QPS exceeded"

// imagePull finds that the image of a container cannot be pulled, or that it has its turn later.
func imagePull(c *stage.Context, m gang.Member, s corev1.ContainerStatus, events []view.Event) *stage.Finding {
	report, failed := cmp.Or(s.State.Waiting.Message, s.State.Waiting.Reason), pullFailed(events)
	if strings.Contains(report, pullsLimited) || failed != nil && strings.Contains(failed.Message, pullsLimited) {
		f := stage.Found(answer.ImagePulling, "image %s waits to be pulled: the kubelet limits how many it pulls at once (%s), and tries again", s.Image, pullsLimited).
			Fact("image", s.Image).Fact("container", s.Name)
		if failed != nil {
			f.SinceTime(failed.First)
		}
		return f
	}
	f := stage.Found(answer.ImagePull, "image %s of container %s cannot be pulled: %s", s.Image, s.Name, report).
		Fact("image", s.Image).Fact("container", s.Name).Run(c.Kubectl("describe", "pod", m.Pod.Name))
	if failed != nil {
		details(f, failed.Message).SinceTime(failed.First)
	}
	if e := stage.LatestEvent(events, "FailedToRetrieveImagePullSecret"); e != nil {
		details(f, e.Message)
	}
	return ofNode(c, m, f)
}

// pullFailed is the latest event that reports why an image could not be pulled; nil if there is none. Its reason is that of events which only repeat the state of
// the container, too.
func pullFailed(events []view.Event) *view.Event {
	for i := range events {
		if events[i].Reason == "Failed" && !strings.HasPrefix(events[i].Message, "Error: ") {
			return &events[i]
		}
	}
	return nil
}
