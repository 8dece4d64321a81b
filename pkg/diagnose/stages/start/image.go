package start

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// pullsLimited is how a kubelet reports that it pulls no more images for the moment, by its registryPullQPS.
const pullsLimited = "pull QPS exceeded"

// noPlatform is how containerd reports that an image is for none of a node's architecture.
const noPlatform = "no match for platform"

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
	image, of := s.Image, "container "+s.Name
	v := imageVolume(m.Pod, s, report, failed)
	if v != nil {
		image, of = v.Image.Reference, "volume "+v.Name
	}
	why := report
	if failed != nil && around.ReplaceAllString(report, "") == "" { // the event alone has the reason
		why = failed.Message
	}
	f := stage.Found(answer.ImagePull, "image %s of %s cannot be pulled: %s", image, of, reasonOf(why, image)).
		Fact("image", image).Fact("container", s.Name).Run(c.Kubectl("describe", "pod", m.Pod.Name))
	if v != nil {
		f.Fact("volume", v.Name)
	}
	if failed != nil {
		f.SinceTime(failed.First)
		reason := failed.Message
		if _, after, named := strings.Cut(reason, `": `); named { // Failed to pull image "x": why
			reason = after
		}
		if !strings.Contains(report, reason) { // which the state of the container has, too, if it is as new
			details(f, failed.Message)
		}
	}
	if e := stage.LatestEvent(events, "FailedToRetrieveImagePullSecret"); e != nil {
		details(f, e.Message)
		secretsMissing(c, f, m, e, image, why)
	}
	limited(f, why)
	if n := c.View.Cluster().Node(m.Pod.Spec.NodeName); n != nil && strings.Contains(report, noPlatform) {
		if arch := n.Labels[corev1.LabelArchStable]; arch != "" {
			f.Detail("node %s is of architecture %s: build the image for that, too, or have members require another value of %s", n.Name, arch, corev1.LabelArchStable).Fact("architecture", arch)
		}
	}
	return ofNode(c, m, f)
}

// imageVolume is the volume whose image it is that cannot be pulled, where that is not the container's own: the kubelet pulls it for the container that mounts it.
func imageVolume(p *corev1.Pod, s corev1.ContainerStatus, report string, failed *view.Event) *corev1.Volume {
	if strings.Contains(report, strconv.Quote(s.Image)) {
		return nil
	}
	if failed != nil {
		report += " " + failed.Message
	}
	for i, v := range p.Spec.Volumes {
		if v.Image != nil && v.Image.Reference != "" && v.Image.Reference != s.Image && strings.Contains(report, strconv.Quote(v.Image.Reference)) {
			return &p.Spec.Volumes[i]
		}
	}
	return nil
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

// pulledIn is how a kubelet reports how long the pull of an image took.
var pulledIn = regexp.MustCompile(`^Successfully pulled image "([^"]+)" in ([0-9a-zµ.]+)`)

// pulledBefore adds to the finding that an image is being pulled how long another member took for that, if it is shorter.
func pulledBefore(c *stage.Context, f *stage.Finding) {
	image, _ := f.Facts["image"].(string)
	if f.Code != answer.ImagePulling || image == "" || f.Since == nil {
		return
	}
	for _, m := range c.Gang.Members {
		if m.State != gang.Running {
			continue
		}
		for _, e := range c.View.EventsOfPod(m.Pod) {
			report := pulledIn.FindStringSubmatch(e.Message)
			if e.Reason != "Pulled" || report == nil || report[1] != image {
				continue
			}
			if took, err := time.ParseDuration(report[2]); err == nil && took < c.View.Age(*f.Since) {
				f.Detail("%s had that image after %s, on %s", m.Name(), phrase.Age(took), m.Node())
				return
			}
		}
	}
}
