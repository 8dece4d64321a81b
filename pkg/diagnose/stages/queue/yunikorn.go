package queue

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// leftInQueue is how YuniKorn reports what a queue has left, where it does not place a pod for that: available map[nvidia.com/gpu:0 pods:5].
var leftInQueue = regexp.MustCompile(`available (?:map)?\[([^\]]*)\]`)

// tooSmallQueue makes it that a gang is too large for its queue of YuniKorn where that follows from what is reported to be left of the queue, and from what its pods use. The report
// is as YuniKorn wrote it, and as users write amounts.
func tooSmallQueue(c *stage.Context, f *stage.Finding, queue, message, readable string) {
	m, need := leftInQueue.FindStringSubmatch(message), needs(c)
	if m == nil {
		return
	}
	for _, item := range strings.Fields(strings.ReplaceAll(m[1], ",", " ")) {
		key, value, _ := strings.Cut(item, ":")
		name := corev1.ResourceName(key)
		left, err := strconv.ParseInt(value, 10, 64)
		wants := request.Amount(name, need[name])
		if err != nil || !request.IsDevice(name) || wants == 0 {
			continue // cpu and memory are in units of YuniKorn's own
		}
		used, alone := usedAlone(c, queue, name)
		if limit := request.Sum(used, left); alone && limit < wants {
			f.Become(answer.QueueTooSmall)
			f.Message = "queue " + queue + " of YuniKorn has " + phrase.Amount(name, limit) + " in all, and the gang needs " + phrase.Quantity(name, wants) + ": " + readable
			f.Fact("queue", queue).Fact("resource", string(name)).Fact("requested", wants).Fact("limit", limit).Fact("used", used)
			return
		}
	}
}

// usedAlone is how much of a resource pods on nodes use of a queue of YuniKorn. alone is false where pods of other queues have nodes: a queue above both may be what is full.
func usedAlone(c *stage.Context, queue string, name corev1.ResourceName) (used int64, alone bool) {
	for _, p := range c.View.Snap.Pods {
		if gang.SchedulerName(p) != yunikorn.SchedulerName || !placement.Holds(p) {
			continue
		}
		if inQueue(p) != queue {
			return 0, false
		}
		used = request.Sum(used, request.OfResource(p, name))
	}
	return used, true
}
